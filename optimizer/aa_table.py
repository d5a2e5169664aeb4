"""``aa.json`` and its Markdown: how often the judge errs where the truth is known (pure)."""

from collections.abc import Iterator, Sequence
from math import exp, log, sqrt
from statistics import fmean, median, stdev

from pydantic import Field

from knowledge.evaluation import Environment
from knowledge.evidence import Interval
from operator_registry.record import Record

MOST_FALSE_WINS = 3
POWER = {1.10: 0.98, 1.07: 0.90}
"""True gain -> the share of trials that must be Better, where the goal is 1.05."""
NO_GAIN = 1.05
"""A true gain that just is the goal: at most one trial in 200 may be Better."""
MOST_DEVICE_S = 2.0
MOST_FAULTY = 0.02
"""The share of comparisons that may be disturbed: they can't be won, so that they test nothing."""


class AaRow(Record):
    """One comparison: a kernel beside itself with a known amount of more work."""

    number: int
    gain: float
    """The true one, made by the amount of work; 1 in an A/A comparison."""
    minimum_gain: float
    run: str
    """Which run's process pairs these are."""
    pairs: tuple[int, ...]
    """The pair's number, negative where its second process played the candidate."""
    ratios: tuple[float, ...]
    """Of each pair: baseline's median time over the candidate's."""
    ratio: Interval
    verdict: str
    faulty: bool = False
    """The judge did not trust the measurement, so that it could not be Better."""
    device_s: float
    """Time of all its timed calls on the device."""
    commit: str


class AaSummary(Record):
    """The table in few numbers."""

    comparisons: int
    process_pairs: int
    false_wins: int
    power: dict[str, float]
    """True gain -> share of trials that were Better; the goal is 1.05."""
    trials: dict[str, int]
    measured_gain: dict[str, float]
    """True gain -> geometric mean of all pair ratios."""
    pair_spread: float
    """Standard deviation of an A/A comparison's pair ratios, relative; the median comparison's."""
    faulty: int
    """Comparisons that the judge did not trust."""
    first_process: Interval | None
    """Time of a pair's second process over its first's, over all pairs, at two standard errors."""
    longest_device_s: float


class AaTable(Record):
    """``aa.json``."""

    schema_version: int = Field(default=1, alias="schema")
    command: str
    environment: Environment | None
    alpha: float
    rounds: int
    """Samples of each side in each pair of an A/A comparison."""
    trial_rounds: int
    """The same in a trial of a true gain."""
    per_comparison: int
    summary: AaSummary
    rows: tuple[AaRow, ...]


def summarise(rows: Sequence[AaRow]) -> AaSummary:
    """Return the table in few numbers."""
    null = [row for row in rows if row.gain == 1]
    trials = {gain: [r for r in rows if r.gain == gain] for gain in sorted({r.gain for r in rows})}
    powered = {gain: found for gain, found in trials.items() if gain != 1}
    spreads = [stdev(map(log, row.ratios)) for row in null if len(row.ratios) > 1]
    return AaSummary(
        comparisons=len(null),
        process_pairs=len({(row.run, abs(pair)) for row in rows for pair in row.pairs}),
        false_wins=sum(row.verdict == "better" for row in null),
        power={
            name_of(gain): round(fmean(row.verdict == "better" for row in found), 4)
            for gain, found in powered.items()
        },
        trials={name_of(gain): len(found) for gain, found in powered.items()},
        measured_gain={
            name_of(gain): round(exp(fmean(log(r) for row in found for r in row.ratios)), 5)
            for gain, found in trials.items()
        },
        pair_spread=round(median(spreads), 5) if spreads else 0.0,
        faulty=sum(row.faulty for row in rows),
        first_process=_first_process(null),
        longest_device_s=max((row.device_s for row in rows), default=0.0),
    )


def name_of(gain: float) -> str:
    """Return a gain as a key of the summary."""
    return f"{gain:.2f}"


def find_failures(summary: AaSummary) -> Iterator[str]:
    """Yield what the judge promises and did not keep."""
    if summary.false_wins > MOST_FALSE_WINS:
        yield f"{summary.false_wins} false wins in {summary.comparisons} A/A comparisons"
    for gain, least in POWER.items():
        share = summary.power.get(name_of(gain))
        if share is not None and share < least:
            yield f"a true {gain:.2f} is Better in {share:.1%} only, not in {least:.0%}"
    wins = summary.power.get(name_of(NO_GAIN), 0.0) * summary.trials.get(name_of(NO_GAIN), 0)
    if wins > max(1, summary.trials.get(name_of(NO_GAIN), 0) / 200) + 1e-6:
        yield f"a true {NO_GAIN:.2f} is Better than {NO_GAIN:.2f} in {wins:.0f} trials"
    rows = summary.comparisons + sum(summary.trials.values())
    if summary.faulty > MOST_FAULTY * rows:
        yield f"{summary.faulty} of {rows} measurements were not trusted, and so could show no win"
    if summary.longest_device_s > MOST_DEVICE_S:
        yield f"a trial took {summary.longest_device_s:.2f} s of device time"


def table(aa: AaTable) -> str:
    """Return the results as Markdown."""
    found = aa.summary
    lines = [
        "# The judge beside itself",
        "",
        f"Written by `{aa.command}`.",
        "",
        _null_text(aa),
        "",
        _power_text(aa),
        "",
        "| true gain | measured | trials | Better | must be |",
        "| ---: | ---: | ---: | ---: | --- |",
        *(
            f"| {gain} | {found.measured_gain[gain]:.4f} | {found.trials[gain]} | "
            f"{share:.1%} | {_wanted(gain)} |"
            for gain, share in found.power.items()
        ),
        "",
        _cost_text(found),
    ]
    failures = [f"- {failure}" for failure in find_failures(found)]
    if failures:
        lines += ["", "Not kept:", "", *failures]
    return "\n".join(lines) + "\n"


def _null_text(aa: AaTable) -> str:
    found = aa.summary
    return (
        f"{found.comparisons} A/A comparisons at minimum gain 1.00 and level {aa.alpha:g}, each "
        f"with fresh samples ({aa.rounds} a side) from {aa.per_comparison} of "
        f"{found.process_pairs} process pairs: {found.false_wins} false wins "
        f"({aa.alpha * found.comparisons:.2g} expected at most). "
        f"Ratios of process pairs spread by {found.pair_spread:.2%}; "
        f"{_first_text(found.first_process)}"
    )


def _power_text(aa: AaTable) -> str:
    return (
        f"Minimum gain 1.05, true gains made by the amount of work, {aa.trial_rounds} samples a "
        "side in each pair:"
    )


def _cost_text(found: AaSummary) -> str:
    return (
        f"Longest device time of a trial: {found.longest_device_s:.2f} s. Comparisons whose "
        f"measurement was not trusted: {found.faulty}."
    )


def _first_process(rows: Sequence[AaRow]) -> Interval | None:
    """Return whether a pair's first process is another than its second: then roles matter."""
    by_pair: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        for pair, ratio in zip(row.pairs, row.ratios, strict=True):
            signed = log(ratio) if pair > 0 else -log(ratio)
            by_pair.setdefault((row.run, abs(pair)), []).append(signed)
    means = [fmean(found) for found in by_pair.values()]
    if len(means) < 2:  # noqa: PLR2004 - one pair has no spread
        return None
    reach = 2 * stdev(means) / sqrt(len(means))
    centre = fmean(means)
    return Interval(low=exp(centre - reach), estimate=exp(centre), high=exp(centre + reach))


def _first_text(found: Interval | None) -> str:
    if found is None:
        return "too few pairs to tell their processes apart."
    return (
        f"a pair's second process takes {found.estimate:.4f} ({found.low:.4f} to {found.high:.4f}) "
        "times as long as its first; a coin decides which of them plays the candidate."
    )


def _wanted(gain: str) -> str:
    least = {name_of(g): share for g, share in POWER.items()}.get(gain)
    return "at most 1 in 200" if least is None else f">= {least:.0%}"
