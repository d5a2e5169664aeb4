"""``fleet.json`` and its Markdown: what a drill of a fleet lost, doubled and cost. Pure."""

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Literal

from pydantic import Field

from operator_registry.record import Record

LEAST_EFFICIENCY = 0.85
MOST_OVERHEAD_MS = 10.0
RECOVERY_S = 0.5
"""A trial that was waited for so much longer than it takes was lost with a worker, and repeated."""


class TrialTime(Record):
    """A trial as the store has it."""

    own_s: float
    """Its own length, on a slow device the longer one."""
    waited_s: float
    """How long its search waited for it, until it was recorded."""


class GoalTimes(Record):
    """A goal of the drill."""

    goal: str
    verdict: str
    opened_at_s: float
    """Since the first search began."""
    ended_at_s: float
    trials: int
    """That its search holds."""
    distinct: int
    """Of them, those with different keys."""
    own_s: float
    waited_s: float
    """Without trials that were repeated."""
    undisturbed: int
    """Trials that `waited_s` counts."""
    undisturbed_own_s: float
    commit: str


class FleetSummary(Record):
    """The table in few numbers."""

    goals: int
    trials: int
    lost: int
    """Trials that no search holds, and goals that have not ended."""
    doubled: int
    """Trials that count twice."""
    overhead_ms_per_trial: float
    """What a search waits for a trial beyond its length: the way there and back, and the record."""
    idle_ms_per_trial: float
    """What all devices are without a trial for, whatever the cause: kills and goals' ends, say."""
    efficiency: float
    """The trials' own lengths over devices x wall time."""
    devices: int
    wall_s: float
    median_trial_s: float
    workers_killed: int
    schedulers_killed: int
    taken_over_after_s: float | None
    """From the scheduler's death to the stand-by's first word."""


class FleetTable(Record):
    """``fleet.json``."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    command: str
    environment: dict[str, str]
    summary: FleetSummary
    rows: tuple[GoalTimes, ...]


def make_row(  # noqa: PLR0913 - a goal and what became of it
    goal: str,
    verdict: str,
    times: Sequence[TrialTime],
    *,
    span_s: tuple[float, float],
    distinct: int,
    commit: str,
) -> GoalTimes:
    """Return the row of a goal.

    Args:
        goal: Its operator's name.
        verdict: As it ended; empty where it did not.
        times: Its trials.
        span_s: From when to when it was worked on.
        distinct: How many of the trials have keys of their own.
        commit: The revision measured.
    """
    undisturbed = [time for time in times if time.waited_s - time.own_s < RECOVERY_S]
    return GoalTimes(
        goal=goal,
        verdict=verdict,
        opened_at_s=round(span_s[0], 3),
        ended_at_s=round(span_s[1], 3),
        trials=len(times),
        distinct=distinct,
        own_s=round(sum(time.own_s for time in times), 4),
        waited_s=round(sum(time.waited_s for time in undisturbed), 4),
        undisturbed=len(undisturbed),
        undisturbed_own_s=round(sum(time.own_s for time in undisturbed), 4),
        commit=commit,
    )


def summarise(  # noqa: PLR0913 - what a drill is measured by
    rows: Sequence[GoalTimes],
    *,
    devices: int,
    trials_each: int,
    median_trial_s: float,
    killed: tuple[int, int],
    taken_over_after_s: float | None,
) -> FleetSummary:
    """Return the table in few numbers.

    Args:
        rows: All goals.
        devices: How many there are.
        trials_each: How many trials a goal has.
        median_trial_s: The length of the median trial.
        killed: Workers and schedulers.
        taken_over_after_s: How long nobody was the scheduler.
    """
    own_s = sum(row.own_s for row in rows)
    wall_s = max((row.ended_at_s for row in rows), default=0.0)
    trials = sum(row.trials for row in rows)
    undisturbed = sum(row.undisturbed for row in rows)
    waited_s = sum(row.waited_s - row.undisturbed_own_s for row in rows)
    missing = sum(max(0, trials_each - row.distinct) for row in rows)
    return FleetSummary(
        goals=len(rows),
        trials=trials,
        lost=missing + sum(not row.verdict for row in rows),
        doubled=sum(row.trials - row.distinct for row in rows),
        overhead_ms_per_trial=round(1e3 * waited_s / max(1, undisturbed), 3),
        idle_ms_per_trial=round(1e3 * (devices * wall_s - own_s) / max(1, trials), 3),
        efficiency=round(own_s / (devices * wall_s), 4) if wall_s else 0.0,
        devices=devices,
        wall_s=round(wall_s, 2),
        median_trial_s=round(median_trial_s, 4),
        workers_killed=killed[0],
        schedulers_killed=killed[1],
        taken_over_after_s=taken_over_after_s,
    )


def find_failures(found: FleetSummary) -> Iterator[str]:
    """Yield what a fleet promises and did not keep."""
    if found.lost or found.doubled:
        yield f"{found.lost} trials or goals were lost, {found.doubled} trials count twice"
    if found.overhead_ms_per_trial >= MOST_OVERHEAD_MS:
        yield f"{found.overhead_ms_per_trial:.1f} ms of overhead a trial, not {MOST_OVERHEAD_MS:g}"
    if found.efficiency < LEAST_EFFICIENCY:
        yield f"an efficiency of {found.efficiency:.0%}, not {LEAST_EFFICIENCY:.0%}"


def to_markdown(table: FleetTable) -> str:
    """Return the results as Markdown."""
    found = table.summary
    spans = [row.ended_at_s - row.opened_at_s for row in table.rows] or [0.0]
    lines = [
        "# A fleet whose workers and scheduler are killed",
        "",
        f"Written by `{table.command}`.",
        "",
        _in_words(found),
        "",
        "| | |",
        "| --- | ---: |",
        f"| trials lost | {found.lost} |",
        f"| trials counted twice | {found.doubled} |",
        f"| overhead a trial | {found.overhead_ms_per_trial:.2f} ms |",
        f"| devices idle, a trial | {found.idle_ms_per_trial:.1f} ms |",
        f"| efficiency | {found.efficiency:.1%} |",
        f"| wall time | {found.wall_s:.0f} s |",
        f"| a goal, median and mean | {median(spans):.1f} s, {fmean(spans):.1f} s |",
    ]
    failures = [f"- {failure}" for failure in find_failures(found)]
    if failures:
        lines += ["", "Not kept:", "", *failures]
    return "\n".join(lines) + "\n"


def _in_words(found: FleetSummary) -> str:
    took = found.taken_over_after_s
    over = "never" if took is None else f"after {took:.1f} s"
    return (
        f"{found.goals} goals of {found.trials / max(1, found.goals):.0f} trials on "
        f"{found.devices} logical devices of one machine, two of them slow. A trial is a pause as "
        f"long as a recorded one took (median {found.median_trial_s:.3f} s); cluster, store, "
        f"scheduler, search and runner are real. {found.workers_killed} workers and "
        f"{found.schedulers_killed} scheduler were killed; the stand-by took over {over}."
    )
