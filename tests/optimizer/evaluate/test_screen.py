"""The screen: readable reasons before anything is built."""

import pytest

from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.evaluate.screen import find_fault, is_library_only
from optimizer.plan import Launch, LibraryCall, Plan, ReadSize, Step
from tests.makers import HARDWARE, make_candidate

TRITON = HARDWARE.model_copy(update={"name": "h200", "target": "cuda", "languages": ("triton",)})
KERNEL = """\
import triton
import triton.language as tl

TUNABLES = {"BLOCK": (128, 256)}


@triton.jit
def scale(x, y, rows, factor, BLOCK: tl.constexpr):
    pass
"""


def triton(code: str, **chosen: int) -> Candidate:
    launch = Launch(kernel="scale", arguments=("x", "y", "rows", "factor"))
    plan = Plan(language="triton", steps=(launch,))
    return Candidate(code=code, plan=plan, origin="test", chosen=chosen or {"BLOCK": 128})


def test_sound_code_has_no_fault() -> None:
    assert find_fault(make_candidate(), HARDWARE) is None
    assert find_fault(triton(KERNEL), TRITON) is None


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (KERNEL + "def (\n", "line 10: "),
        ("import os\n" + KERNEL, "line 1: imports os"),
        ("from torch import nn\n" + KERNEL, "line 1: imports torch"),
        (KERNEL + "eval('1')\n", "line 10: uses eval"),
        (KERNEL + "().__class__\n", "line 10: uses __class__"),
        (KERNEL.replace("def scale", "def other"), "the plan launches scale"),
        (KERNEL.replace("(128, 256)", "range(2)"), "TUNABLES is no literal"),
    ],
)
def test_triton_is_read_with_line_numbers(code: str, fault: str) -> None:
    found = find_fault(triton(code), TRITON)

    assert found is not None
    assert fault in found


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ('#include "fstream"\n', "line 1: includes fstream"),
        ("\nint f() { return system(0); }\n", "line 2: calls system"),
        ('__asm(".incbin 1");\n', "line 1: uses __asm"),
        ("void f() { asm volatile (0); }\n", "line 1: uses asm"),
    ],
)
def test_cpp_is_read_with_line_numbers(code: str, fault: str) -> None:
    candidate = make_candidate()
    found = find_fault(candidate.model_copy(update={"code": code + candidate.code}), HARDWARE)

    assert found == fault


def test_comments_and_texts_are_not_code() -> None:
    candidate = make_candidate()
    code = '// system(0)\n/* fork()\n */ const char* text = "popen(";\n' + candidate.code

    assert find_fault(candidate.model_copy(update={"code": code}), HARDWARE) is None


def test_a_kernel_that_the_plan_launches_must_be_there() -> None:
    candidate = make_candidate().model_copy(update={"code": "// nothing"})

    assert find_fault(candidate, HARDWARE) == (
        "the plan launches scale, but the code has no KERNEL(scale)"
    )


@pytest.mark.parametrize(
    ("chosen", "fault"),
    [({"BLOCK": 64}, "BLOCK = 64 is not among"), ({"BLOCK": 128, "WAYS": 2}, "WAYS is chosen")],
)
def test_a_choice_must_be_admitted(chosen: dict[str, int], fault: str) -> None:
    found = find_fault(triton(KERNEL, **chosen), TRITON)

    assert found is not None
    assert fault in found


def test_a_tunable_without_a_choice_is_named() -> None:
    candidate = triton(KERNEL).model_copy(update={"chosen": {}})

    assert find_fault(candidate, TRITON) == "no value is chosen for BLOCK"


def test_an_expression_that_is_none_is_quoted() -> None:
    launch = Launch(kernel="scale", grid=("rows.real",), arguments=())
    plan = Plan(language="triton", steps=(launch,))

    found = find_fault(triton(KERNEL).model_copy(update={"plan": plan}), TRITON)

    assert found is not None
    assert "rows.real" in found


@pytest.mark.parametrize("hardware", [HARDWARE])
def test_another_language_is_refused(hardware: HardwareSpec) -> None:
    assert find_fault(triton(KERNEL), hardware) == "cpu-x86-64-v3 takes cpp, this is triton"


def test_host_code_is_refused() -> None:
    candidate = make_candidate().model_copy(update={"host": "python"})

    assert "host: python" in str(find_fault(candidate, HARDWARE))


def test_library_calls_alone_are_told_apart() -> None:
    call = LibraryCall(op="aten::mul.Scalar_out", arguments=("x", "2"), out=("y",))

    assert is_library_only(
        make_candidate().model_copy(update={"plan": Plan(language="cpp", steps=(call,))})
    )
    assert not is_library_only(make_candidate())


HOST = """\
import torch

TUNABLES = {"BLOCK": (128, 256)}


def run(x, y, *, factor, BLOCK):
    torch.mul(x, factor, out=y)
"""
MUL = LibraryCall(op="aten::mul.out", arguments=(), out=())


def python(code: str = HOST, *steps: Step) -> Candidate:
    plan = Plan(language="python", steps=steps or (MUL,))
    chosen = {"BLOCK": 128}
    return Candidate(code=code, plan=plan, origin="test", host="python", chosen=chosen)


def test_a_host_side_in_python_may_import_torch_on_any_hardware() -> None:
    assert find_fault(python(), HARDWARE) is None
    assert find_fault(python(), TRITON) is None
    assert is_library_only(python())
    assert not is_library_only(python(HOST, Launch(kernel="run", arguments=())))


@pytest.mark.parametrize(
    ("candidate", "fault"),
    [
        (python(HOST.replace("def run", "def go")), "run, which the code does not define"),
        (python("import os\n" + HOST), "line 1: imports os"),
        (python(HOST, Launch(kernel="scale", arguments=())), "the plan launches scale"),
        (python(HOST, Launch(kernel="run", arguments=("x",))), "only names what is launched"),
        (python(HOST, ReadSize(buffer="y", axis="rows")), "only names what is launched"),
    ],
)
def test_a_host_side_in_python_is_read_as_well(candidate: Candidate, fault: str) -> None:
    found = find_fault(candidate, HARDWARE)

    assert found is not None
    assert fault in found
