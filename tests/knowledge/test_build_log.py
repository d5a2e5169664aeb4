import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.build_log import read_log
from knowledge.signatures import SIGNATURES, find_signature
from tests.knowledge.faulty import FAULTY, Faulty

BY_NAME = {faulty.name: faulty for faulty in FAULTY}
UNNAMED = {"import_fails", "bitwise_on_floats"}
"""Faults that have no name of their own; their message says all."""


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("name_not_defined", 3, "column is not defined"),
        ("arange_not_a_power_of_two", 2, "arange's range must be a power of 2"),
        ("missing_semicolon", 3, "expected \u2018,\u2019 or \u2018;\u2019 before \u2018y\u2019"),
        ("wrong_target_intrinsic", None, "target specific option mismatch"),
        ("too_much_shared_memory", None, "kernel wants 262144 bytes of shared memory, over 232448"),
    ],
)
def test_the_message_and_its_line_are_read(name: str, line: int | None, message: str) -> None:
    reading = read_log(BY_NAME[name].log)

    assert reading.line == line
    assert message in reading.message


@pytest.mark.parametrize(
    "log", ["E: at {}:1:\n^\n", "kernel.cpp:{}: error: x\n", "kernel.cpp:1:{}: error: x"]
)
def test_a_number_of_any_length_is_read(log: str) -> None:
    assert isinstance(read_log(log.format("9" * 5000)).message, str)


def test_the_line_of_triton_code_is_shown() -> None:
    assert read_log(BY_NAME["break_in_a_loop"].log).source == "break"


def test_a_missing_header_is_told_with_the_compilers_hint() -> None:
    assert "did you forget to" in read_log(BY_NAME["missing_include"].log).message


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: faulty.name)
def test_a_reading_holds_no_source_and_no_repetition(faulty: Faulty) -> None:
    lines = read_log(faulty.log).message.splitlines()

    assert lines
    assert len(set(lines)) == len(lines)
    assert not any(line.startswith(("def ", "    ", "CompilationError")) for line in lines)


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: faulty.name)
def test_a_fault_is_known_by_name(faulty: Faulty) -> None:
    known = find_signature(read_log(faulty.log).message)

    assert (known is None) == (faulty.name in UNNAMED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alpha is not defined", "beta is not defined"),
        (
            "softmax wants 262144 bytes of shared memory, over 232448",
            "norm wants 300000 bytes of shared memory, over 232448",
        ),
        (
            "kernel.cpp:2:27: error: \u2018rows\u2019 was not declared in this scope",
            "kernel.cpp:9:1: error: \u2018cols\u2019 was not declared in this scope",
        ),
    ],
)
def test_names_and_numbers_do_not_change_a_signature(one: str, other: str) -> None:
    assert read_log(one).signature == read_log(other).signature


def test_unlike_faults_have_unlike_signatures() -> None:
    """Two faults may share one only if they are the same: a name that is not there."""
    by_signature: dict[str, set[str]] = {}
    for faulty in FAULTY:
        by_signature.setdefault(read_log(faulty.log).signature, set()).add(faulty.name)
    shared = [names for names in by_signature.values() if len(names) > 1]

    assert sorted(map(sorted, shared)) == [
        ["global_not_constexpr", "name_not_defined"],
        ["tunable_has_no_value", "undeclared_name"],
    ]


def test_of_a_traceback_the_last_exception_is_read() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 3, in run\n'
        "    call()\n"
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )

    assert read_log(log).message == (
        "RuntimeError: CUDA error: an illegal memory access was encountered"
    )


@given(st.text())
def test_any_log_is_read(log: str) -> None:
    reading = read_log(log)

    assert isinstance(reading.signature, str)
    assert "\n" not in reading.signature


def test_names_of_signatures_are_unique() -> None:
    assert len({signature.name for signature in SIGNATURES}) == len(SIGNATURES)


@pytest.mark.drill
@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: faulty.name)
def test_todays_compilers_still_say_what_is_recorded(faulty: Faulty) -> None:
    log = faulty.build()

    assert log
    assert read_log(log).signature == read_log(faulty.log).signature
