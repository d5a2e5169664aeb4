"""What a confirming run proves (pure)."""

from knowledge.evidence import (
    Better,
    Evidence,
    Interval,
    NotBetter,
    Unclear,
    Verdict,
    WorkloadEvidence,
)
from knowledge.fitness import FLOOR

MEMORY_SLACK_BYTES = 1 << 20
"""Allocators round up, and a table of addresses is nobody's gain."""


def judge(evidence: Evidence) -> Verdict:
    """Return what the evidence proves.

    Better: the lower end of the ratio's interval is above the minimum gain, no public workload may
    be below 0.98 of the baseline, and nothing speaks against the measurement. NotBetter: the
    opposite is proven. Unclear: everything between, and whatever can't be trusted.
    """
    return _find_bar(evidence) or _find_heavy(evidence) or _weigh(evidence)


def _find_bar(evidence: Evidence) -> Verdict | None:
    """Return the verdict of what no ratio can mend; None where the ratio decides."""
    if evidence.library_only:
        return NotBetter(reason="the candidate consists of library calls only")
    if not _served(evidence):
        return NotBetter(reason="every public workload is served by a peer")
    if evidence.faults:
        return Unclear(reason=f"the measurement can't be trusted: {evidence.faults[0]}")
    if not evidence.null.pair_ratios:
        return Unclear(reason="no A/A run stands beside the measurement")
    null = evidence.null.ratio
    if not null.low <= 1 <= null.high:
        return Unclear(
            reason=f"the baseline beside itself shows a ratio of {_text(null)}, where there is none"
        )
    return None


def _find_heavy(evidence: Evidence) -> NotBetter | None:
    """Return the verdict of a kernel that buys its speed with memory, without the spec's leave."""
    for workload in _served(evidence):
        peaks = {row.name: row.peak_bytes for row in workload.peers}
        mine, theirs = workload.peak_bytes, peaks.get(workload.best_peer)
        if mine is None or theirs is None:
            continue
        if mine > evidence.memory_leave * theirs + MEMORY_SLACK_BYTES:
            return NotBetter(
                reason=f"{workload.workload} takes {mine / 1e6:.0f} MB at its peak where the "
                f"baseline takes {theirs / 1e6:.0f}; the spec allows {evidence.memory_leave:g} "
                "times as much"
            )
    return None


def _weigh(evidence: Evidence) -> Verdict:
    ratio, goal = evidence.ratio, evidence.minimum_gain
    measured = f"the ratio is {_text(ratio)}"
    least = min(_served(evidence), key=lambda workload: workload.ratio.high)
    if least.ratio.high < FLOOR:
        return NotBetter(
            reason=f"{least.workload} is slower than the baseline: {_text(least.ratio)}, "
            f"below {FLOOR}"
        )
    if ratio.high <= goal:
        return NotBetter(reason=f"{measured}, not above {goal:g}")
    if ratio.low <= goal:
        return Unclear(reason=f"{measured}: {goal:g} can't be ruled out; a larger budget may tell")
    doubtful = min(_served(evidence), key=lambda workload: workload.ratio.low)
    if doubtful.ratio.low < FLOOR:
        return Unclear(
            reason=f"{measured}, but {doubtful.workload} may be below {FLOOR} of the baseline: "
            f"{_text(doubtful.ratio)}"
        )
    return Better()


def _served(evidence: Evidence) -> list[WorkloadEvidence]:
    """Return the workloads that the kernel itself serves."""
    peers = {row.name for workload in evidence.workloads for row in workload.peers}
    return [w for w in evidence.workloads if w.served_by not in peers]


def _text(ratio: Interval) -> str:
    if not ratio.bounded:
        return f"{ratio.estimate:.3f} (too few process pairs for an interval)"
    return f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
