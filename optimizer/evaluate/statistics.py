"""Intervals of time ratios over process pairs (pure)."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, quantiles, stdev

import numpy as np
from scipy.special import stdtrit

from knowledge.evidence import LARGEST_RATIO, Interval
from optimizer.evaluate.protocol import Sample

LEAST_CALM = 3
LUCK = 1.10
"""How far apart the modes of a process may be: pairs too few for a level may all share one."""
LOOKS = 2
"""How often chance may look right: once where a run stops because its pairs agree, once at its end.

Where processes have two modes, pairs are narrow just when they all share one.
"""
MOST_BLOCKS = 20
"""More pairs than these are averaged in groups: all subsets of the groups are looked at."""
UNKNOWN = Interval(low=0.0, estimate=1.0, high=LARGEST_RATIO)


def ratio_interval(ratios: Sequence[float], *, alpha: float) -> Interval:
    """Return the geometric mean of the ratios, each end of its t-interval at one-sided `alpha`.

    The ratios are one for each process pair: timings differ between processes far more than
    within one, so that only pairs are independent. One pair proves nothing.
    """
    logs = [math.log(ratio) for ratio in ratios]
    if not logs:
        return UNKNOWN
    centre = fmean(logs)
    reach = _reach(logs, alpha)
    return Interval(
        low=_ratio(centre - reach, floor=0.0),
        estimate=math.exp(centre),
        high=_ratio(centre + reach),
    )


def proof_interval(ratios: Sequence[float], *, alpha: float) -> Interval:
    """Return an interval that holds its level whatever modes processes have.

    Timings of processes are bimodal, and a t-interval of a dozen pairs that fall into either of
    two modes misses its level tenfold. So each end is the farther of the t-interval's and of the
    sign-flip test's, which asks only that pairs stray to both sides alike: the mean of the true
    ratios is as likely to lie between any two neighbours among the means of all subsets of the
    pairs. Pairs too few for that test to speak at this level (12 at 0.00025) may all have been
    lucky, by `LUCK`.
    """
    normal = ratio_interval(ratios, alpha=alpha)
    if not normal.bounded:
        return normal
    low, high = _flip_limits([math.log(ratio) for ratio in ratios], alpha / LOOKS)
    return Interval(
        low=min(normal.low, math.exp(low)),
        estimate=normal.estimate,
        high=max(normal.high, _ratio(high)),
    )


def least_pairs(alpha: float) -> int:
    """Return how many pairs there must be before chance alone can't put them all on one side."""
    return math.ceil(-math.log2(alpha / LOOKS))


def combined_ratios(
    by_workload: Mapping[str, Sequence[float]], weights: Mapping[str, float]
) -> list[float]:
    """Return for each pair the weighted geometric mean of its ratios over the workloads."""
    total = sum(weights[name] for name in by_workload)
    return [
        math.exp(
            sum(weights[n] * math.log(r) for n, r in zip(by_workload, pair, strict=True)) / total
        )
        for pair in zip(*by_workload.values(), strict=True)
    ]


def simultaneous(alpha: float, comparisons: int) -> float:
    """Return the level of each of several intervals that must all hold at `alpha` (Bonferroni)."""
    return alpha / max(1, comparisons)


def relative_width(interval: Interval) -> float:
    """Return the interval's length over its estimate."""
    return (interval.high - interval.low) / interval.estimate


def quick(samples: Sequence[float]) -> float:
    """Return the 20th percentile: the figure for ranking, which a busy machine disturbs least."""
    return samples[0] if len(samples) == 1 else quantiles(samples, n=5, method="inclusive")[0]


def undisturbed(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples during which no other process took a thread's place, if there are some.

    For ranking only: a worker that holds native code can claim what it likes.
    """
    return [s for s in samples if s.preemptions == 0] if is_calm(samples) else samples


def is_calm(samples: Sequence[Sample]) -> bool:
    """Return whether enough samples were left in peace by other processes."""
    return sum(sample.preemptions == 0 for sample in samples) >= LEAST_CALM


def distribution(samples: Sequence[float]) -> tuple[float, ...]:
    """Return the quantiles from the least to the greatest sample in steps of 5 %, rounded."""
    if len(samples) == 1:
        return (samples[0],) * 21
    cuts = quantiles(samples, n=20, method="inclusive")
    return tuple(float(f"{cut:.5g}") for cut in (min(samples), *cuts, max(samples)))


def spread(samples: Sequence[float]) -> tuple[float, float]:
    """Return the 10th and the 90th percentile."""
    if len(samples) == 1:
        return samples[0], samples[0]
    cuts = quantiles(samples, n=10, method="inclusive")
    return cuts[0], cuts[-1]


def _reach(logs: Sequence[float], alpha: float) -> float:
    pairs = len(logs)
    if pairs == 1:
        return math.inf
    return -float(stdtrit(pairs - 1, alpha)) * stdev(logs) / math.sqrt(pairs)


def _flip_limits(logs: Sequence[float], alpha: float) -> tuple[float, float]:
    """Return the sign-flip test's limits of the mean (Hartigan 1969), each at one-sided `alpha`."""
    blocks = [float(b.mean()) for b in np.array_split(logs, min(len(logs), MOST_BLOCKS))]
    place = int(alpha * 2 ** len(blocks))
    if place == 0:
        return min(blocks) - math.log(LUCK), max(blocks) + math.log(LUCK)
    means = _subset_means(blocks)
    last = len(means) - place
    ordered = np.partition(means, (place - 1, last))
    return float(ordered[place - 1]), float(ordered[last])


def _subset_means(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the mean of each subset but the empty one."""
    sums, counts = np.zeros(1), np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
        counts = np.concatenate([counts, counts + 1])
    return sums[1:] / counts[1:]


def _ratio(log: float, *, floor: float | None = None) -> float:
    if floor is not None and log == -math.inf:
        return floor
    return math.exp(log) if log < math.log(LARGEST_RATIO) else LARGEST_RATIO
