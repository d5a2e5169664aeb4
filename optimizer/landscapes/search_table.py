"""``search.json`` and its Markdown: how many evaluations each way of searching takes (pure)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.landscapes.search_record import (
    Group,
    Interval,
    SearchRow,
    SearchSummary,
    SearchTable,
)

RANDOM: Final = "random"
TPE: Final = "tpe"
MOST_OF_RANDOM: Final = 1 / 3
"""The default may need this share of random search's evaluations."""
_DRAWS: Final = 2000
_LEVEL: Final = 0.95


def summarise(rows: Sequence[SearchRow], *, default: str) -> SearchSummary:
    """Return the table in few numbers.

    Args:
        rows: A row for each landscape and method.
        default: The policy that is named as default.
    """
    every = summarise_group(rows)
    evaluations = dict(every.evaluations_to_5_percent) if every else {}
    if default in evaluations:
        evaluations = {"default": evaluations[default], **evaluations}
    return SearchSummary(
        landscapes=every.landscapes if every else 0,
        seeds=min((len(row.evaluations) for row in rows), default=0),
        default=default,
        evaluations_to_5_percent=evaluations,
        tuned=summarise_group([row for row in rows if not row.held_out]),
        held_out=summarise_group([row for row in rows if row.held_out]),
    )


def summarise_group(rows: Sequence[SearchRow]) -> Group | None:
    """Return each method in sum; None where there is no row."""
    if not rows:
        return None
    methods = list(dict.fromkeys(row.method for row in rows))
    runs = {m: {r.landscape: r.evaluations for r in rows if r.method == m} for m in methods}
    return Group(
        landscapes=len({row.landscape for row in rows}),
        evaluations_to_5_percent={m: round(_geomean_of_means(runs[m]), 2) for m in methods},
        versus_random=_against(runs, RANDOM),
        versus_tpe=_against(runs, TPE),
    )


def find_failures(summary: SearchSummary) -> Iterator[str]:
    """Yield what the default promises and does not keep, on the tuned and the held-out ones."""
    for name, group in (("tuned", summary.tuned), ("held-out", summary.held_out)):
        if group is None or summary.default not in group.evaluations_to_5_percent:
            continue
        random_share = group.versus_random.get(summary.default)
        tpe_share = group.versus_tpe.get(summary.default)
        if random_share and random_share.estimate > MOST_OF_RANDOM:
            share = random_share.estimate
            yield f"{name}: {summary.default} takes {share:.2f} of random search's evaluations"
        if tpe_share and tpe_share.estimate > 1:
            yield f"{name}: {summary.default} takes {tpe_share.estimate:.2f} of TPE's evaluations"


def to_markdown(table: SearchTable) -> str:
    """Return the results as Markdown, the default first."""
    summary = table.summary
    about = (
        f"{summary.landscapes} recorded landscapes, {summary.seeds} seeds each. The default is "
        f"`{summary.default}`. A run that finds nothing counts as many evaluations as there are "
        "points. Intervals are bootstrapped over seeds."
    )
    title = "# Evaluations until a search is within 5 % of the optimum"
    lines = [title, "", f"Written by `{table.command}`.", "", about]
    for name, group in (("Landscapes", summary.tuned), ("Held out", summary.held_out)):
        if group is not None:
            lines += ["", f"## {name}", "", *_group_lines(group, summary.default)]
    failures = [f"- {failure}" for failure in find_failures(summary)]
    if failures:
        lines += ["", "Not kept:", "", *failures]
    return "\n".join([*lines, "", *_row_lines(table)]) + "\n"


def _group_lines(group: Group, default: str) -> Iterator[str]:
    yield "| method | evaluations | of random's | of TPE's |"
    yield "| --- | ---: | ---: | ---: |"
    for method in ordered(group.evaluations_to_5_percent, default):
        count = group.evaluations_to_5_percent[method]
        shares = (group.versus_random.get(method), group.versus_tpe.get(method))
        told = " | ".join(_share_text(share) for share in shares)
        yield f"| {method} | {count:.1f} | {told} |"


def _row_lines(table: SearchTable) -> Iterator[str]:
    methods = ordered({row.method: None for row in table.rows}, table.summary.default)
    yield f"| landscape | points | near | {' | '.join(methods)} |"
    yield f"| --- | ---: | ---: | {' | '.join('---:' for _ in methods)} |"
    for name in dict.fromkeys(row.landscape for row in table.rows):
        rows = {row.method: row for row in table.rows if row.landscape == name}
        first = next(iter(rows.values()))
        means = [f"{mean(rows[m].evaluations):.1f}" if m in rows else "-" for m in methods]
        title = f"{name} (held out)" if first.held_out else name
        yield f"| {title} | {first.points} | {first.near_share:.2%} | {' | '.join(means)} |"


def ordered(methods: Mapping[str, object], default: str) -> Sequence[str]:
    """Return the methods with the default first; others stay as they are."""
    return sorted(methods, key=lambda method: method != default)


def _share_text(share: Interval | None) -> str:
    return "-" if share is None else f"{share.estimate:.2f} ({share.low:.2f} to {share.high:.2f})"


Floats = NDArray[np.float64]
Runs = Mapping[str, Sequence[int]]
"""The evaluations of each seed, by landscape."""


def _against(runs: Mapping[str, Runs], other: str) -> dict[str, Interval]:
    if other not in runs:
        return {}
    return {method: _ratio(runs[method], runs[other]) for method in runs if method != other}


def _ratio(one: Runs, other: Runs) -> Interval:
    both = {name: (one[name], other[name]) for name in one if name in other}
    rng = np.random.default_rng(0)

    def resampled(counts: Sequence[int]) -> Floats:
        """Return the logarithm of the mean of each resample of some seeds."""
        drawn = rng.choice(np.asarray(counts, dtype=np.float64), size=(_DRAWS, len(counts)))
        logarithms: Floats = np.log(drawn.mean(axis=1))
        return logarithms

    logs = [resampled(ours) - resampled(theirs) for ours, theirs in both.values()]
    drawn = np.exp(np.mean(logs, axis=0))
    tail = (1 - _LEVEL) / 2
    estimate = _geomean_of_means({n: pair[0] for n, pair in both.items()}) / _geomean_of_means(
        {n: pair[1] for n, pair in both.items()}
    )
    low, high = (round(float(end), 4) for end in np.quantile(drawn, (tail, 1 - tail)))
    return Interval(low=low, estimate=round(estimate, 4), high=high)


def _geomean_of_means(runs: Runs) -> float:
    return math.exp(mean(math.log(mean(several)) for several in runs.values()))
