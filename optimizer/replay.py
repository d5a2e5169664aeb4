"""Whether a replay bears out what was published (pure)."""

import math
from collections.abc import Sequence
from statistics import fmean, variance

from scipy.special import stdtrit

from knowledge.evidence import Evidence, Interval
from knowledge.outcome import Outcome
from optimizer.evaluate.statistics import combined_ratios, ratio_interval
from optimizer.events import explain
from optimizer.job import CannotRun, CannotTell, NotReproduced, Reproduced
from optimizer.kernel_page import ratio_text

LOOKS = 2
"""How often a kernel is measured at most; a second time only where the first could not tell."""
REPLAY_ALPHA = 0.025 / LOOKS
"""One-sided level of each look: a replay tests one claim, and searches for none."""
SLOWER = 1.1
"""A kernel that may be so much slower than published is not said to be reproduced."""
TOLERANCE = 1.07
"""One that is slower by less than this is not said to be slower: no machine is quite as it was."""
Finding = Reproduced | NotReproduced | CannotTell | CannotRun


def compare(published: Evidence, replays: Sequence[Evidence] | Outcome) -> Finding:
    """Return whether replays bear the published claim out; their process pairs are pooled.

    Outputs must agree, and the kernel must be faster than the best peer beyond the noise. In the
    very environment of the evidence it must also be ruled out that the kernel is slower by 10 %
    than it was: then a kernel that is, passes once in 40 times at most, however noisy the machine.
    """
    if not isinstance(replays, Sequence):
        return NotReproduced(reason=f"{replays.kind}: {explain(replays)}")
    if fault := next((fault for replay in replays for fault in replay.faults), None):
        return CannotTell(reason=f"the measurement can't be trusted: {fault}")
    pairs = [ratio for replay in replays for ratio in _pair_ratios(replay)]
    ratio = ratio_interval(pairs, alpha=REPLAY_ALPHA)
    measured = f"the ratio is {ratio_text(ratio)}, published is {ratio_text(published.ratio)}"
    if ratio.high < 1:
        return NotReproduced(reason=f"{measured}: slower than the best peer")
    same = all(replay.environment == published.environment for replay in replays)
    change = _find_change(_pair_ratios(published), pairs, measured) if same else None
    if change is not None:
        return change
    if ratio.low <= 1:
        return CannotTell(reason=f"{measured}: too noisy to tell that it is faster")
    return Reproduced()


def _find_change(
    before: Sequence[float], after: Sequence[float], measured: str
) -> NotReproduced | CannotTell | None:
    """Return that a kernel is slower than it was, or that it may be; None where it is not."""
    change = _change(before, after)
    if change.high < 1 and change.estimate < 1 / TOLERANCE:
        times = 1 / change.estimate
        return NotReproduced(reason=f"{measured}: {times:.2f} times slower than it was")
    if change.low <= 1 / SLOWER:
        return CannotTell(reason=f"{measured}: too noisy to rule out {SLOWER:g} times slower")
    return None


def _pair_ratios(evidence: Evidence) -> list[float]:
    """Return the weighted geometric mean over the workloads in each process pair."""
    by_workload = {w.workload: w.pair_ratios for w in evidence.workloads}
    return combined_ratios(by_workload, {w.workload: w.weight for w in evidence.workloads})


def _change(before: Sequence[float], after: Sequence[float]) -> Interval:
    """Return the gain now over the gain then, by Welch's interval of the mean logarithms."""
    old, new = ([math.log(ratio) for ratio in ratios] for ratios in (before, after))
    centre = fmean(new) - fmean(old)
    if min(len(old), len(new)) < 2:  # noqa: PLR2004 - one pair says nothing of how pairs differ
        return Interval(low=0.0, estimate=math.exp(centre), high=math.inf)
    parts = [variance(logs) / len(logs) for logs in (old, new)]
    freedom = [len(logs) - 1 for logs in (old, new)]
    spread = sum(parts)
    reach = 0.0
    if spread > 0:
        degrees = spread**2 / sum(p**2 / f for p, f in zip(parts, freedom, strict=True))
        reach = -float(stdtrit(degrees, REPLAY_ALPHA)) * math.sqrt(spread)
    return Interval(
        low=math.exp(centre - reach), estimate=math.exp(centre), high=math.exp(centre + reach)
    )
