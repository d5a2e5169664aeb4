from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operator_registry.document import parse_document
from operator_registry.registry import Operator, load_registry, parse_registry, read_files
from operator_registry.source import syntax_digest
from tests.operator_registry.small import FILES, OPERATOR, SOURCE, edited


def operator(path: str, *changes: tuple[str, str]) -> Operator:
    return parse_registry(edited(path, *changes)).operators["cut"]


EVERY_SORT = """
import math as m
@m.cache
class A(B, metaclass=C):
    a: int = -1
    def f(self, x, /, y=2.5, *z, k, w=None, **rest) -> "int":
        'prose'
        with open(x) as (p, q): pass
        return {**x, 1: [*z]}, {k async for k in y}, f"{x!r:>{w}} and {m.pi}", x[1:, ...], b"y"
match a:
    case {"b": [1, *_], **c} if c: lambda: (yield)
    case A(a=1) | None: x = y = 1j
try: ...
except* E as e: raise e from None
"""
DIGEST = "c83508a9c30c9dc6a19d03381f8a0162d56821f2b6b06ed83f1d11d83d312128"

ORIGINAL = parse_registry(FILES).operators["cut"]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (OPERATOR, ("summary: Keeps the first", "summary: Holds the first")),
        (OPERATOR, ("owners: [somebody]", "owners: [somebody, else]")),
        (OPERATOR, ("precision:\n", "precision: # exact\n\n")),
        (SOURCE, ('"""Cuts segments."""', '"""Cuts."""  # thus')),
        (SOURCE, ('    """Return the kept lengths and elements."""\n', "")),
        (SOURCE, ("import torch\n", "import torch\n\n# a comment\n\n")),
        (SOURCE, ("x[place < longest]", "(x[\n        place < longest\n    ])")),
    ],
)
def test_prose_does_not_change_the_digest(path: str, change: tuple[str, str]) -> None:
    assert operator(path, change).digest == ORIGINAL.digest


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (OPERATOR, ("max: 4096", "max: 8192")),
        (OPERATOR, ("  k: 0", "  k: 1")),
        (OPERATOR, ("{segments: 64}", "{segments: 66}")),
        (OPERATOR, ("[by_mask]", "[]")),
        (SOURCE, ("place < longest", "place <= longest")),
    ],
)
def test_what_is_computed_or_measured_changes_the_digest(
    path: str, change: tuple[str, str]
) -> None:
    assert operator(path, change).digest != ORIGINAL.digest


def test_the_order_of_the_inputs_changes_the_digest() -> None:
    swapped = dict(reversed(ORIGINAL.spec.inputs.items()))
    spec = ORIGINAL.spec.model_copy(update={"inputs": swapped})

    assert Operator(spec=spec, source=ORIGINAL.source).digest != ORIGINAL.digest


def test_the_digest_of_a_source_is_the_same_on_every_python() -> None:
    """Written down on Python 3.11: results of another version must be found again."""
    assert syntax_digest(EVERY_SORT) == DIGEST


def test_an_operator_survives_json() -> None:
    assert Operator.from_json(ORIGINAL.to_json()) == ORIGINAL


def test_the_source_is_not_run(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w').close()\n"

    parse_registry({**FILES, SOURCE: FILES[SOURCE] + trap})

    assert not (tmp_path / "sprung").exists()


def test_files_elsewhere_in_the_folder_are_not_read(tmp_path: Path) -> None:
    for name, text in {
        **FILES,
        "kernels/a/b/kernel.py": "(",
        "operators/cut/NOTES.md": "(",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert set(read_files(tmp_path)) == set(FILES)
    assert load_registry(tmp_path) == parse_registry(FILES)


def test_an_unchanged_operator_is_read_once() -> None:
    assert parse_registry(FILES).operators["cut"] is ORIGINAL


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers() | st.booleans() | st.none()))
def test_plain_scalars_are_read_as_yaml_1_2_writes_them(values: dict[str, object]) -> None:
    words = {True: "true", False: "false", None: "null"}
    lines = [
        f"{k}: {words[v] if v in words and type(v) is not int else v}" for k, v in values.items()
    ]

    root, faults = parse_document("p", "\n".join(["first: no", *lines]))

    assert root.plain() == {"first": "no", **values}
    assert not faults


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1.0e-6", 1e-6),
        (".5", 0.5),
        ("'1'", "1"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        (".inf", ".inf"),
        ("~", None),
    ],
)
def test_a_scalar_is_no_surprise(text: str, value: object) -> None:
    root, _ = parse_document("p", f"key: {text}")

    assert root.plain() == {"key": value}
