"""The report: what counts as caught, and which guards are shown to be needed."""

import re

import pytest

from optimizer.evaluate.guards import Guard
from optimizer.redteam.attempt import Attempt
from optimizer.redteam.kind import Kind, load_corpus
from optimizer.redteam.report import KindRow, Report, Tried, make_report, make_row, table

KINDS = {kind.id: kind for kind in load_corpus("cpu")}
OUTPUT = KINDS["cpu/plan/no-tail"]
TIME = KINDS["cpu/plan/memo-by-address"]
LAYERED = KINDS["cpu/plan/swapped-artefact"]
YES, NO = Attempt(through=True, how="passed"), Attempt(through=False, how="incorrect: y")
BROKEN = Attempt(through=False, how="the judge failed", broke="no worker")


def row(kind: Kind, tried: Tried) -> KindRow:
    return make_row(kind, tried, commit="c")


def report(*rows: KindRow) -> Report:
    return make_report(rows, target="cpu", command="kernelevolve redteam", environment=None)


def told(ms: float) -> Attempt:
    return YES.model_copy(update={"told_ms": ms})


def test_a_cheat_that_only_its_guard_stops_shows_the_guard_to_be_needed() -> None:
    found = report(row(OUTPUT, Tried(unguarded=YES, guarded=NO, honest=YES)))

    assert found.faults == ()
    assert found.summary.model_dump() == {
        "cheats": 1, "caught": 1, "succeed_unguarded": 1, "honest": 1, "accepted": 1,
    }  # fmt: skip
    sizes = next(guard for guard in found.guards if guard.guard is Guard.SIZES)
    assert sizes.alone == (OUTPUT.id,)


@pytest.mark.parametrize(
    ("tried", "fault"),
    [
        (Tried(unguarded=YES, guarded=YES, honest=YES), "gets through"),
        (Tried(unguarded=YES, guarded=BROKEN, honest=YES), "gets through.*no worker"),
        (Tried(unguarded=YES, guarded=NO, honest=NO), "twin is refused: incorrect: y"),
        (Tried(unguarded=NO, guarded=NO, honest=YES), "proves nothing: without sizes"),
    ],
)
def test_whatever_is_not_as_it_should_be_is_a_fault(tried: Tried, fault: str) -> None:
    found = report(row(OUTPUT, tried))

    assert len(found.faults) == 1
    assert re.search(fault, found.faults[0])


@pytest.mark.parametrize(("ms", "pays"), [(0.4, True), (0.6, False)])
def test_a_cheat_with_time_pays_only_if_much_less_is_believed(ms: float, pays: bool) -> None:  # noqa: FBT001 - a case
    found = row(TIME, Tried(unguarded=told(0.1), guarded=told(ms), honest=told(1.0)))

    assert found.succeeds
    assert found.caught is not pays


def test_a_guard_among_others_is_shown_where_those_are_down() -> None:
    holds = row(LAYERED, Tried(unguarded=YES, guarded=NO, honest=YES, layer=NO))
    leaks = row(LAYERED, Tried(unguarded=YES, guarded=NO, honest=YES, layer=YES))

    assert [g.layered for g in report(holds).guards if g.guard is Guard.CHAIN] == [(LAYERED.id,)]
    assert [g.layered for g in report(leaks).guards if g.guard is Guard.CHAIN] == [()]


def test_the_table_names_guards_without_a_cheat_and_rows_that_cannot_be_written() -> None:
    text = table(report(row(OUTPUT, Tried(unguarded=YES, guarded=NO, honest=YES))))

    assert f"| sizes | {OUTPUT.id} |" in text
    assert "| sync | **nothing here** |" in text
    assert "| T16 | many calls captured, one of them works |  | the judge makes one" in text
