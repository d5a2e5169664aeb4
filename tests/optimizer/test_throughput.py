"""The throughput bench: what it counts, and that its sweep is all right kernels."""

from itertools import islice

import pytest

from operator_registry.registry import CATALOG, load_registry
from optimizer.evaluate.screen import find_fault
from optimizer.throughput_kernel import sweep
from optimizer.throughput_table import (
    ThroughputRow,
    ThroughputSummary,
    ThroughputTable,
    find_failures,
    summarise,
    to_markdown,
)
from tests.makers import ENVIRONMENT

HARDWARE = load_registry(CATALOG).hardware


def make_row(number: int, *, every_s: float = 1.0, outcome: str = "passed") -> ThroughputRow:
    return ThroughputRow(
        number=number,
        batch=1 + number // 5,
        chosen={"BLOCK": number},
        outcome=outcome,
        device_ms=0.05 if outcome == "passed" else None,
        ended_at_s=number * every_s,
        commit="abc",
    )


def make_summary(
    rows: list[ThroughputRow], *, spent_s: float = 0.5, idle_s: float = 1.0
) -> ThroughputSummary:
    return summarise(rows, spent={"check": spent_s}, leased=(5.0, idle_s), setup_s=3.0, cores=2)


def make_table(target: str, summary: ThroughputSummary, *rows: ThroughputRow) -> ThroughputTable:
    return ThroughputTable(
        command="c", environment=ENVIRONMENT, target=target, summary=summary, rows=rows
    )


def test_the_rate_counts_trials_until_the_last_one_ended() -> None:
    found = make_summary([make_row(n, every_s=0.5) for n in range(1, 11)])

    assert (found.trials, found.seconds, found.trials_per_minute) == (10, 5.0, 120.0)


def test_all_seconds_are_in_some_phase() -> None:
    found = make_summary([make_row(n) for n in range(1, 11)], spent_s=4.0)

    assert found.seconds_per_trial["check"] == 0.4
    assert sum(found.seconds_per_trial.values()) == pytest.approx(1.0)


def test_a_device_held_idle_is_counted_for_each_trial() -> None:
    found = make_summary([make_row(n) for n in range(1, 11)], idle_s=4.0)

    assert (found.leased_s_per_trial, found.leased_idle_s_per_trial) == (0.5, 0.4)


@pytest.mark.parametrize(
    ("target", "every_s", "idle_s", "kept"),
    [
        ("cuda", 1.0, 3.0, True),
        ("cuda", 1.01, 3.0, False),
        ("cuda", 1.0, 3.1, False),
        ("cpu", 2.0, 9.0, True),
        ("cpu", 2.1, 0.0, False),
    ],
)
def test_what_the_judge_promises(target: str, every_s: float, idle_s: float, *, kept: bool) -> None:
    rows = [make_row(n, every_s=every_s) for n in range(1, 11)]

    assert (not list(find_failures(make_table(target, make_summary(rows, idle_s=idle_s))))) == kept


def test_variants_that_fail_do_not_flatter_the_rate() -> None:
    rows = [make_row(1), make_row(2, outcome="incorrect")]
    table = make_table("cpu", make_summary(rows), *rows)

    (failure,) = find_failures(table)

    assert failure.startswith("1 of 2 variants did not pass")
    assert failure in to_markdown(table)


@pytest.mark.parametrize(("target", "hardware"), [("cpu", "cpu-x86-64-v3"), ("cuda", "h200")])
def test_a_sweep_is_of_one_source_and_repeats_nothing(target: str, hardware: str) -> None:
    found = list(sweep(target, salt="s"))

    assert len({candidate.code for candidate in found}) == 1
    # A minute's trials at several times the rate that is asked for.
    assert len({candidate.id for candidate in found}) == len(found) >= 320
    assert [find_fault(c, HARDWARE[hardware]) for c in islice(found, 3)] == [None] * 3


def test_another_run_builds_everything_anew() -> None:
    ids = [next(sweep("cuda", salt=salt)).id for salt in ("one", "other")]

    assert ids[0] != ids[1]
