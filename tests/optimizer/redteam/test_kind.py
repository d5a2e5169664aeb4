"""The corpus: every file is a kind that can prove something."""

import ast
from pathlib import Path

import pytest

from operator_registry.registry import CATALOG, load_registry
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.screen import find_fault
from optimizer.redteam.kind import (
    FORMS,
    MOST_LINES,
    TARGETS,
    CorpusError,
    Kind,
    Target,
    load_corpus,
)
from optimizer.redteam.rows import INEXPRESSIBLE, ROWS
from optimizer.targets import host_cpu_arch

LEAST = {"cpu": 30, "cuda": 40}
HARDWARE = load_registry(CATALOG).hardware
ON = {"cpu": HARDWARE[f"cpu-{host_cpu_arch()}"], "cuda": HARDWARE["h200"]}
BAIT = {"FOLDER": "/f", "PORT": "1", "VARIABLE": "V", "TOKEN": "t", "PID": "2", "REPO": "/r"}
ALL = [kind for target in TARGETS for kind in load_corpus(target)]
FILE = """\
summary = "Nothing."
rows = ["O9"]
guard = "precision"

[cheat]
code = '''
one
'''

[twin]
code = '''
two
'''
"""


def write(folder: Path, text: str) -> Path:
    (folder / "cpu" / "plan").mkdir(parents=True)
    (folder / "cpu" / "plan" / "kind.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("target", TARGETS)
def test_there_are_enough_kinds_in_both_forms(target: Target) -> None:
    kinds = load_corpus(target)

    assert len(kinds) >= LEAST[target]
    assert {kind.form for kind in kinds} == set(FORMS)
    assert len({kind.id for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("target", TARGETS)
def test_each_row_has_a_kind_or_a_reason(target: Target) -> None:
    kinds = load_corpus(target)
    shown = {form: {r for k in kinds if k.form == form for r in k.rows} for form in FORMS}

    for row in ROWS:
        told = {form for form in FORMS if row in INEXPRESSIBLE[target, form]}
        assert any(row in shown[form] for form in FORMS) or told == set(FORMS), row
        assert not [form for form in told if row in shown[form]], row


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.id))
def test_only_the_screen_s_own_cheats_fail_the_screen(kind: Kind) -> None:
    """One that fails there for another reason would say nothing of its own guard."""
    cheat, twin = (kind.candidate(text, bait=BAIT) for text in (kind.cheat, kind.twin))

    assert find_fault(twin, ON[kind.target]) is None
    assert (find_fault(cheat, ON[kind.target]) is not None) == (Guard.SCREEN in kind.down)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.id))
def test_a_twin_is_close_and_takes_no_bait(kind: Kind) -> None:
    cheat, twin = (kind.candidate(text, bait=BAIT) for text in (kind.cheat, kind.twin))

    assert 1 <= kind.differing_lines <= MOST_LINES
    assert twin.code == kind.twin.code
    assert "@" not in cheat.code.replace("@triton.jit", "")


@pytest.mark.parametrize(
    "kind",
    [kind for kind in ALL if (kind.target, kind.form) != ("cpu", "plan")],
    ids=lambda kind: str(kind.id),
)
def test_python_texts_parse(kind: Kind) -> None:
    for text in (kind.cheat, kind.twin):
        ast.parse(kind.candidate(text, bait=BAIT).code)


def test_a_file_is_a_kind(tmp_path: Path) -> None:
    (kind,) = load_corpus("cpu", write(tmp_path, FILE))

    assert (kind.id, kind.guard, kind.differing_lines) == ("cpu/plan/kind", Guard.PRECISION, 1)
    assert kind.down == {Guard.PRECISION}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"O9"', '"O99"', "catalogue lacks: O99"),
        ('guard = "precision"', 'guard = "wishes"', "guard"),
        ('guard = "precision"', 'guard = "precision"\nbeside = ["precision"]', "beside itself"),
        ('guard = "precision"', 'guard = "precision"\noperator = "none"', "no operator none"),
        ("one\n", "one\n" * (MOST_LINES + 1), f"{MOST_LINES} are allowed"),
        ("summary =", "summary ", "Expected '='"),
    ],
)
def test_a_file_that_is_no_kind_is_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    folder = write(tmp_path, FILE.replace(old, new))

    with pytest.raises(CorpusError, match=message):
        load_corpus("cpu", folder)
