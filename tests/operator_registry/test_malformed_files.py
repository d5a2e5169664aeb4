"""Malformed files of every sort, and damage at random."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operator_registry.checks.operators import FUNCTIONS_OF_PLANS
from operator_registry.registry import RegistryError, parse_registry, read_files
from optimizer.expression import FUNCTIONS
from tests.operator_registry.small import (
    CONFIG,
    DEVICE,
    FILES,
    MODEL,
    OPERATOR,
    SOURCE,
    Case,
    check_case,
    edited,
    faults_of,
)

SOURCES: dict[str, Case] = {
    "a reference that is not there": (
        OPERATOR,
        [("reference: cut", "reference: cute")],
        [
            (
                "reference: cute",
                "reference names 'cute', which reference.py does not define; did you mean 'cut'?",
            )
        ],
    ),
    "an equivalent that is not there": (
        OPERATOR,
        [("[by_mask]", "[by_masks]")],
        [("[by_masks]", "equivalents names 'by_masks', which reference.py does not define")],
    ),
    "an equivalent that is the reference": (
        OPERATOR,
        [("[by_mask]", "[cut]")],
        [("[cut]", "equivalents names cut again")],
    ),
    "a reference with too few arguments": (
        SOURCE,
        [("def cut(lengths, offsets, x, longest)", "def cut(lengths, offsets)")],
        [
            (
                "def cut(",
                "the spec has 3 inputs; write it as `def cut(lengths, offsets, x, longest)`",
            )
        ],
    ),
    "a reference without an attribute": (
        SOURCE,
        [("def cut(lengths, offsets, x, longest)", "def cut(lengths, offsets, x)")],
        [("def cut(", "cut takes no argument 'longest', an attribute of the spec")],
    ),
    "a reference that wants more": (
        SOURCE,
        [("x, *, longest=4)", "x, *, longest=4, shortest)")],
        [("def by_mask(", "by_mask needs an argument 'shortest', which the spec lacks")],
    ),
    "a syntax error": (
        SOURCE,
        [("def by_mask(", "def by_mask((")],
        [("def by_mask", "is no Python: ")],
    ),
    "an import from beside it": (
        SOURCE,
        [("import torch", "import torch\nfrom .shared import tools")],
        [("from .shared", "imports a file beside it, but a reference stands alone")],
    ),
}
YAML: dict[str, Case] = {
    "a key given twice": (
        OPERATOR,
        [("reference: cut", "reference: cut\nreference: by_mask")],
        [("reference: by_mask", "key 'reference' stands here again, first on line 21; keep one")],
    ),
    "an indentation by tabs": (
        OPERATOR,
        [("  segments: {min", "\tsegments: {min")],
        [("\tsegments", "is indented with a tab; indent with spaces")],
    ),
    "an open bracket": (
        CONFIG,
        [("hardware: [box]", "hardware: [box")],
        [("budget_s", "is no YAML: ")],
    ),
    "an alias": (
        DEVICE,
        [("vendor: any", "vendor: &v any"), ("[cpp]", "[*v]")],
        [("&v", "sets the anchor &v"), ("*v", "uses the alias *v; write the value out")],
    ),
    "a tag": (
        DEVICE,
        [("vendor: any", "vendor: !!python/name:os.system any")],
        [("vendor", "uses the tag tag:yaml.org,2002:python/name:os.system; remove it")],
    ),
    "two documents": (
        CONFIG,
        [("budget_s: 30", "---\nbudget_s: 30")],
        [("---", "a second document begins; keep one document a file")],
    ),
    "a control character": (
        CONFIG,
        [("budget_s: 30", "budget_s: 30 \x07")],
        [("budget_s", "holds the control character U+0007; remove it")],
    ),
    "a list at the top": (
        CONFIG,
        [(FILES[CONFIG], "- schema: 1\n")],
        [("- schema", "is no mapping of keys to values")],
    ),
    "an empty file": (CONFIG, [(FILES[CONFIG], "# soon\n")], [("#", "is empty")]),
    "nesting without end": (
        CONFIG,
        [("[box]", "[" * 60)],
        [("hardware", "nests deeper than 32 levels; flatten it")],
    ),
    "a file without end": (
        CONFIG,
        [("[box]", "[box] #" + "x" * 300_000)],
        [("schema", "is larger than 256 KiB; shorten it")],
    ),
    "a version that YAML reads as a number": (
        DEVICE,
        [("languages: [cpp]", "languages: [cpp]\nenvironment: {torch: 2.11}")],
        [
            (
                "torch: 2.11",
                'torch should be a text, is the number 2.11; write it in quotes: "2.11"',
            )
        ],
    ),
}
OTHERS: dict[str, Case] = {
    "a device unlike its file": (
        DEVICE,
        [("name: box", "name: fox")],
        [("name: fox", "name is 'fox', but the file is box.yaml; give both the same name")],
    ),
    "a language that the target lacks": (
        DEVICE,
        [("[cpp]", "[triton]")],
        [("[triton]", "target cpu does not run triton; use cpp")],
    ),
    "an architecture of another target": (
        DEVICE,
        [("target: cpu", "target: cuda"), ("[cpp]", "[triton]")],
        [("arch: x86", "compile.arch 'x86-64-v3' is none of target cuda; write it like sm_90")],
    ),
    "an architecture that differs by machine": (
        DEVICE,
        [("arch: x86-64-v3", "arch: native")],
        [("arch: native", "compile.arch 'native' is none of target cpu")],
    ),
    "a limit of nothing": (
        DEVICE,
        [("dram_gb: 8", "dram_gb: 0")],
        [("dram_gb", "limits.dram_gb is 0, must be greater than 0")],
    ),
    "a model with an unknown operator": (
        MODEL,
        [("operator: cut", "operator: cat")],
        [("operator: cat", "ranker uses the unknown operator 'cat'; did you mean 'cut'?")],
    ),
    "a model with an unknown workload": (
        MODEL,
        [("[small]", "[smal]")],
        [("[smal]", "cut has no workload 'smal'; did you mean 'small'?")],
    ),
    "a model on unknown hardware": (
        MODEL,
        [("[box]", "[fox]")],
        [("[fox]", "hardware 'fox' is not known; did you mean 'box'?")],
    ),
    "a model with more than its time": (
        MODEL,
        [("share_of_time: 0.5}", "share_of_time: 0.5}\n  - {operator: cut, share_of_time: 0.7}")],
        [("uses:", "the shares of time add up to 1.2, more than 1")],
    ),
    "a share as a percentage": (
        MODEL,
        [("share_of_time: 0.5", "share_of_time: 50")],
        [("share_of_time", "uses[0].share_of_time is 50, must be less than or equal to 1")],
    ),
    "a search on unknown hardware": (
        CONFIG,
        [("[box]", "[box, h100]")],
        [("h100", "hardware 'h100' is not known; use one of box (files in hardware/)")],
    ),
    "a gain below one": (
        CONFIG,
        [("budget_s: 30", "minimum_gain: 0.9")],
        [("minimum_gain", "minimum_gain is 0.9, must be greater than or equal to 1")],
    ),
}
SEVERAL: dict[str, Case] = {
    "faults of every sort at once": (
        OPERATOR,
        [
            ("multiple_of: 2", "multipel_of: 2"),
            ("shape: [elements], dtype: T", "shape: [elements, rows], dtype: T"),
            ("reference: cut", "reference: cute"),
            ("{segments: 64}", "{segments: 5000}"),
            ("{T: bfloat16}", "{T: int8}"),
        ],
        [
            ("multipel_of", "did you mean 'multiple_of'?"),
            ("rows", "inputs.x has the unknown axis 'rows'"),
            ("cute", "reference names 'cute'"),
            ("5000", "outside 0..4096"),
            ("{T: int8}", "binds T to int8"),
        ],
    ),
}
CASES = {**SOURCES, **YAML, **OTHERS, **SEVERAL}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_fault_is_told_with_its_line_and_remedy(case: Case) -> None:
    check_case(case)


def test_the_small_registry_is_sound() -> None:
    assert set(parse_registry(FILES).operators) == {"cut"}


@pytest.mark.parametrize("path", [OPERATOR, SOURCE, CONFIG])
def test_a_missing_file_is_told(path: str) -> None:
    files = {name: text for name, text in FILES.items() if name != path}

    assert any(text.startswith(f"{path}:1: is missing; add it") for *_, text in faults_of(files))


def test_a_file_that_ends_in_yml_is_not_passed_over() -> None:
    files = {**FILES, "hardware/fox.yml": FILES[DEVICE]}

    assert "rename it to hardware/fox.yaml" in faults_of(files)[0][2]


def test_bytes_that_are_no_utf8_are_told_with_their_line(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / CONFIG).write_bytes(b"schema: 1\nhardware: [b\xf8x]\n")

    found = faults_of(read_files(tmp_path))

    assert found[0][2] == "registry.yaml:2: byte 0xf8 is no UTF-8; save the file as UTF-8"


@pytest.mark.parametrize(
    "source",
    ["(" * 99_999, "-" * 99_999 + "1", "+".join(["a"] * 50_000), "a" + ".b" * 50_000, "f(" * 90],
    ids=["brackets", "signs", "sums", "attributes", "calls"],
)
def test_a_source_that_nests_without_end_is_a_fault(source: str) -> None:
    assert SOURCE in {path for path, *_ in faults_of({**FILES, SOURCE: source})}


def test_words_of_plans_are_kept_free() -> None:
    """This package can't import the optimizer's, so it holds a copy."""
    assert frozenset(FUNCTIONS) == FUNCTIONS_OF_PLANS


def test_faults_of_all_files_come_together() -> None:
    files = {
        **edited(OPERATOR, ("reference: cut", "reference: cute")),
        DEVICE: edited(DEVICE, ("name: box", "name: fox"))[DEVICE],
        MODEL: edited(MODEL, ("operator: cut", "operator: cat"))[MODEL],
    }

    assert [path for path, *_ in faults_of(files)] == [DEVICE, MODEL, OPERATOR]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_damage_makes_the_parser_fail_in_another_way(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(FILES)))
    text = FILES[path]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    inserted = data.draw(st.text(max_size=8) | st.sampled_from(["[", "{", ": ", "\n", "- ", "\t"]))

    with suppress(RegistryError):
        parse_registry({**FILES, path: text[:start] + inserted + text[end:]})
