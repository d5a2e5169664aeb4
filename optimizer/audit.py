"""The arithmetic of evidence done again: whether its numbers follow from each other (pure)."""

import contextlib
import math
from collections.abc import Callable, Iterator
from statistics import StatisticsError, median

from knowledge.evidence import Evidence, Interval, WorkloadEvidence
from optimizer.evaluate import summary
from optimizer.evaluate.peers import EAGER
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.samples import RawSamples
from optimizer.evaluate.statistics import ratio_interval, simultaneous
from optimizer.evaluate.workbench import JUDGE_VERSION

_SAME = 1e-9
"""Relative: floating sums may be taken in another order."""


def find_flaw(evidence: Evidence, samples: RawSamples | None = None) -> str | None:
    """Return why the evidence contradicts itself, or its raw samples; None where it does not.

    How wide an interval must be is a rule of the judge's version: ends are computed again for this
    version's evidence only, estimates and ratios for all.
    """
    return next(_flaws(evidence, samples), None)


def _flaws(evidence: Evidence, samples: RawSamples | None) -> Iterator[str]:
    if fault := _find_odd_number(evidence):
        yield fault
        return
    for workload in evidence.workloads:
        if fault := _find_workload_flaw(workload, evidence):
            yield f"{workload.workload}: {fault}"
    ratio = summary.describe_ratio(evidence.workloads, alpha=evidence.alpha)
    yield from _differ("the ratio", evidence, evidence.ratio, ratio)
    yield from _differ("the A/A run", evidence, evidence.null.ratio, _null(evidence))
    eager = summary.versus(evidence.workloads, EAGER, evidence.figure)
    if not _same(eager, evidence.versus_eager):
        yield f"the ratio to eager is {eager:.6g}, not {evidence.versus_eager:.6g}"
    if samples is not None:
        yield from _sample_flaws(evidence, samples)


def _find_odd_number(evidence: Evidence) -> str | None:
    """Return which numbers no measurement can have given."""
    for w in evidence.workloads:
        times = (w.device_ms, w.call_ms, w.weight, *w.pair_ms, *w.baseline_pair_ms)
        if not all(math.isfinite(n) and n > 0 for n in (*times, *w.pair_ratios)):
            return f"{w.workload}: a time, weight or ratio is not above 0"
        if len(w.pair_ms) != len(w.baseline_pair_ms):
            return f"{w.workload}: kernel and baseline were not measured in the same pairs"
        if w.best_peer not in {peer.name for peer in w.peers}:
            return f"{w.workload}: the best peer is none of the peers"
    if len({len(w.pair_ratios) for w in evidence.workloads}) != 1:
        return "not all workloads have the same number of process pairs"
    if not all(math.isfinite(n) and n > 0 for n in evidence.null.pair_ratios):
        return "a ratio of the A/A run is not above 0"
    return None


def _find_workload_flaw(workload: WorkloadEvidence, evidence: Evidence) -> str | None:
    """Return what is wrong with one workload's numbers."""
    handed_back = workload.served_by in {peer.name for peer in workload.peers}
    if handed_back:
        certain = set(workload.pair_ratios) <= {1.0}
        return None if certain else "a peer serves it, which is no faster than itself"
    if workload.pair_ms:
        ratios = [
            theirs / ours
            for theirs, ours in zip(workload.baseline_pair_ms, workload.pair_ms, strict=True)
        ]
        if not _all_same(ratios, workload.pair_ratios):
            return "the pairs' ratios are not those of their medians"
        if not _same(median(workload.pair_ms), getattr(workload, evidence.figure)):
            return "the kernel's time is not the median of its pairs'"
    served = sum(w.served_by not in {peer.name for peer in w.peers} for w in evidence.workloads)
    alpha = simultaneous(summary.WORKLOAD_ALPHA, served)
    wanted = ratio_interval(workload.pair_ratios, alpha=alpha)
    return next(_differ("its ratio", evidence, workload.ratio, wanted), None)


def _null(evidence: Evidence) -> Interval:
    return ratio_interval(evidence.null.pair_ratios, alpha=evidence.alpha)


def _sample_flaws(evidence: Evidence, samples: RawSamples) -> Iterator[str]:
    for workload in evidence.workloads:
        sides = {CANDIDATE: workload.pair_ms, workload.best_peer: workload.baseline_pair_ms}
        for subject, medians in sides.items():
            found = _medians(samples, workload.workload, subject, name=evidence.figure)
            if medians and not _all_same(found, medians):
                yield f"{workload.workload}: the medians of {subject} are not its samples'"


def _medians(samples: RawSamples, workload: str, subject: str, *, name: str) -> list[float]:
    """Return a subject's median in each pair; fewer where a pair lacks it."""
    found = []
    for pair in range(len(samples.pairs)):
        with contextlib.suppress(KeyError, StatisticsError):
            found.append(median(samples.column(pair, workload, subject, name=name)))
    return found


def _differ(what: str, evidence: Evidence, stated: Interval, found: Interval) -> Iterator[str]:
    ends: tuple[Callable[[Interval], float], ...] = (lambda i: i.estimate,)
    if evidence.judge_version == JUDGE_VERSION:
        ends = (lambda i: i.low, lambda i: i.estimate, lambda i: i.high)
    if not all(_same(end(stated), end(found)) for end in ends):
        yield f"{what} is {_text(stated)}, its pairs say {_text(found)}"


def _all_same(some: list[float], others: tuple[float, ...]) -> bool:
    return len(some) == len(others) and all(map(_same, some, others))


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)


def _text(ratio: Interval) -> str:
    return f"{ratio.estimate:.6g} ({ratio.low:.6g} to {ratio.high:.6g})"
