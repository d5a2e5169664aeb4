"""``throughput.json`` and its Markdown: how many trials a judge makes, and where the time goes."""

from collections.abc import Iterator, Sequence
from statistics import median

from pydantic import Field

from knowledge.evaluation import Environment
from operator_registry.record import Record

PHASES = ("screen", "cases", "build", "start", "load", "check", "time", "other")
"""As `optimizer.evaluate.ledger` has them, and what is in none of them."""
LEAST_PER_MINUTE = {"cpu": 30.0, "cuda": 60.0}
MOST_IDLE_S = 0.3
"""On a device other than the processor, which is the judge's own as well."""
_ABOUT = {
    "screen": "the source is read",
    "cases": "held-out sizes are drawn, the oracle computes what is expected",
    "build": "the judge waits for a build, which may be under way since the last batch",
    "start": "the judge waits for a worker process",
    "load": "kernels are loaded",
    "check": "outputs on public and drawn sizes are compared with the oracle's",
    "time": "the candidate is warmed up and timed",
    "other": "all else",
}


class ThroughputRow(Record):
    """One trial of the sweep."""

    number: int
    batch: int
    chosen: dict[str, int]
    outcome: str
    detail: str = ""
    """Why, where it did not pass."""
    device_ms: float | None
    """Of the only workload; absent where the candidate did not pass."""
    ended_at_s: float
    """Since the sweep began."""
    commit: str


class ThroughputSummary(Record):
    """The table in few numbers."""

    trials_per_minute: float
    leased_idle_s_per_trial: float
    leased_s_per_trial: float
    trials: int
    passed: int
    seconds: float
    setup_s: float
    """Once for each goal, and not in the rate: public cases, and the peers' times."""
    batch: int
    cores: int
    device_ms: float | None
    """Of the median variant."""
    seconds_per_trial: dict[str, float]
    """By phase, as the judge's one thread goes through them."""


class ThroughputTable(Record):
    """``throughput.json``."""

    schema_version: int = Field(default=1, alias="schema")
    command: str
    environment: Environment
    target: str
    summary: ThroughputSummary
    rows: tuple[ThroughputRow, ...]


def summarise(
    rows: Sequence[ThroughputRow],
    *,
    spent: dict[str, float],
    leased: tuple[float, float],
    setup_s: float,
    cores: int,
) -> ThroughputSummary:
    """Return the table in few numbers.

    Args:
        rows: All trials.
        spent: Seconds in each phase, all trials together.
        leased: Seconds for which a device was held, and for which nothing ran on it meanwhile.
        setup_s: Seconds before the sweep began.
        cores: Cores that builds and the judge share.
    """
    trials = max(1, len(rows))
    seconds = max((row.ended_at_s for row in rows), default=0.0)
    times = [row.device_ms for row in rows if row.device_ms is not None]
    other_s = max(0.0, seconds - sum(spent.values()))
    return ThroughputSummary(
        trials_per_minute=round(60 * len(rows) / seconds, 2) if seconds else 0.0,
        leased_idle_s_per_trial=round(leased[1] / trials, 4),
        leased_s_per_trial=round(leased[0] / trials, 4),
        trials=len(rows),
        passed=sum(row.outcome == "passed" for row in rows),
        seconds=round(seconds, 2),
        setup_s=round(setup_s, 2),
        batch=max((sum(r.batch == row.batch for r in rows) for row in rows), default=0),
        cores=cores,
        device_ms=median(times) if times else None,
        seconds_per_trial={
            phase: round({**spent, "other": other_s}.get(phase, 0.0) / trials, 4)
            for phase in PHASES
        },
    )


def find_failures(table: ThroughputTable) -> Iterator[str]:
    """Yield what the judge promises and did not keep."""
    found = table.summary
    least = LEAST_PER_MINUTE.get(table.target, 0.0)
    if found.trials_per_minute < least:
        yield f"{found.trials_per_minute:.1f} trials a minute, not {least:.0f}"
    if table.target != "cpu" and found.leased_idle_s_per_trial > MOST_IDLE_S:
        idle_s = found.leased_idle_s_per_trial
        yield f"the device is held idle for {idle_s:.2f} s a trial, not {MOST_IDLE_S} at most"
    if found.passed < found.trials:
        # One that fails is quick to judge, and would flatter the rate.
        first = next(row for row in table.rows if row.outcome != "passed")
        yield (
            f"{found.trials - found.passed} of {found.trials} variants did not pass, the first: "
            f"{first.outcome}, {first.detail}"
        )


def to_markdown(table: ThroughputTable) -> str:
    """Return the results as Markdown."""
    found = table.summary
    each_s = found.seconds / max(1, found.trials)
    lines = [
        "# Trials a minute",
        "",
        f"Written by `{table.command}`.",
        "",
        _rate_text(table),
        "",
        _lease_text(found),
        "",
        "| phase | s a trial | share | what |",
        "| --- | ---: | ---: | --- |",
        *(
            f"| {phase} | {spent_s:.4f} | {spent_s / each_s if each_s else 0:.0%} "
            f"| {_ABOUT[phase]} |"
            for phase, spent_s in found.seconds_per_trial.items()
        ),
    ]
    failures = [f"- {failure}" for failure in find_failures(table)]
    if failures:
        lines += ["", "Not kept:", "", *failures]
    return "\n".join(lines) + "\n"


def _rate_text(table: ThroughputTable) -> str:
    found = table.summary
    kernel = "not timed" if found.device_ms is None else f"{found.device_ms * 1e3:.1f} us"
    return (
        f"{found.trials} variants of one source in {found.seconds:.1f} s on "
        f"{table.environment.device}: {found.trials_per_minute:.1f} trials a minute, every check "
        f"of a search included, {found.passed} passed. The median variant takes {kernel}. A batch "
        f"holds {found.batch}; {found.cores} cores build and judge."
    )


def _lease_text(found: ThroughputSummary) -> str:
    return (
        f"The device is held for {found.leased_s_per_trial:.3f} s a trial, for "
        f"{found.leased_idle_s_per_trial:.3f} s of which no process is at work on it. Before the "
        f"sweep, once for a goal: {found.setup_s:.1f} s."
    )
