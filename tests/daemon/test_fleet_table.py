"""What a drill's figures are made of."""

import pytest

from daemon.fleet.fleet_table import (
    FleetSummary,
    FleetTable,
    GoalTimes,
    TrialTime,
    find_failures,
    make_row,
    summarise,
    to_markdown,
)

QUICK = [TrialTime(own_s=1.0, waited_s=1.004)] * 2


def row(times: list[TrialTime], *, distinct: int | None = None, verdict: str = "x") -> GoalTimes:
    count = len(times) if distinct is None else distinct
    return make_row("goal", verdict, times, span_s=(0.0, 2.5), distinct=count, commit="c")


def summary(*rows: GoalTimes, devices: int = 1) -> FleetSummary:
    return summarise(
        rows,
        devices=devices,
        trials_each=2,
        median_trial_s=1.0,
        killed=(1, 1),
        taken_over_after_s=0.5,
    )


def test_overhead_is_what_a_trial_is_waited_for_beyond_its_length() -> None:
    found = summary(row(QUICK))

    assert found.overhead_ms_per_trial == pytest.approx(4)
    assert found.efficiency == pytest.approx(2 / 2.5)
    assert found.idle_ms_per_trial == pytest.approx(250)


def test_a_trial_that_was_lost_with_its_worker_is_no_overhead_but_costs_efficiency() -> None:
    found = summary(row([*QUICK[:1], TrialTime(own_s=1.0, waited_s=1.9)]))

    assert found.overhead_ms_per_trial == pytest.approx(4)
    assert found.efficiency == pytest.approx(2 / 2.5)


def test_what_is_missing_is_lost_and_what_is_there_twice_is_doubled() -> None:
    assert (summary(row(QUICK[:1])).lost, summary(row(QUICK[:1])).doubled) == (1, 0)
    assert summary(row(QUICK * 2, distinct=2)).doubled == 2
    assert summary(row(QUICK, verdict="")).lost == 1


def test_the_table_says_what_was_not_kept() -> None:
    good, bad = summary(row(QUICK)), summary(row(QUICK[:1]), devices=8)

    assert [*find_failures(good)] == ["an efficiency of 80%, not 85%"]
    assert len([*find_failures(bad)]) == 2
    table = FleetTable(command="kernelevolve bench fleet", environment={}, summary=bad, rows=())
    assert "Not kept:" in to_markdown(table)
    assert "took over after 0.5 s" in to_markdown(table)
