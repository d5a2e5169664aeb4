"""What a trial's times are worth: the ratio to the best peer, by the figure that counts (pure)."""

import math
from collections.abc import Sequence

from knowledge.evidence import Figure
from knowledge.outcome import Outcome, Passed, PeerTime, WorkloadTime

LAUNCH_BOUND = 2.0
"""An operator is launch-bound where the quickest call takes so many times the least device time."""
FLOOR = 0.98
"""No public workload may fall below this share of the baseline; else the baseline serves it."""


def find_best_peer(time: WorkloadTime, figure: Figure) -> PeerTime | None:
    """Return the fastest peer on a workload; None where no peer was timed."""
    return min(time.peers, key=lambda peer: _value(peer, figure), default=None)


def pick_figure(times: Sequence[WorkloadTime]) -> Figure:
    """Return the figure that counts: ``device_ms``, or ``call_ms`` for a launch-bound operator."""
    # Each figure's own best: what a compiler adds to a call says nothing of the operator.
    excess = [
        (t.weight, min(p.call_ms for p in t.peers) / min(p.device_ms for p in t.peers))
        for t in times
        if t.peers
    ]
    launch_bound = bool(excess) and weighted_geomean(excess) > LAUNCH_BOUND
    return "call_ms" if launch_bound else "device_ms"


def ratios(times: Sequence[WorkloadTime], figure: Figure) -> dict[str, float]:
    """Return best peer's time over the candidate's for each workload that has a peer."""
    found = ((time, find_best_peer(time, figure)) for time in times)
    return {
        time.workload: _value(peer, figure) / _value(time, figure)
        for time, peer in found
        if peer is not None
    }


def fitness(outcome: Outcome, figure: Figure | None = None) -> float:
    """Return the weighted geometric mean of best peer's time over the candidate's.

    0 unless the candidate passed and was timed beside peers.

    Args:
        outcome: How the trial ended.
        figure: The time that counts; picked from the peers' times when absent.
    """
    if not isinstance(outcome, Passed):
        return 0.0
    by_workload = ratios(outcome.times, figure or pick_figure(outcome.times))
    weighted = [
        (t.weight, by_workload[t.workload]) for t in outcome.times if t.workload in by_workload
    ]
    return weighted_geomean(weighted) if weighted else 0.0


def hand_back(
    times: Sequence[WorkloadTime], figure: Figure | None = None, *, floor: float = FLOOR
) -> frozenset[str]:
    """Return the workloads on which the candidate reached less than `floor` of its best peer.

    They are the dispatch table to freeze before a confirming run: there the baseline serves.
    """
    by_workload = ratios(times, figure or pick_figure(times))
    return frozenset(name for name, ratio in by_workload.items() if ratio < floor)


def _value(time: PeerTime | WorkloadTime, figure: Figure) -> float:
    return time.device_ms if figure == "device_ms" else time.call_ms


def weighted_geomean(weighted: Sequence[tuple[float, float]]) -> float:
    """Return the geometric mean of values, each behind its weight."""
    total = sum(weight for weight, _ in weighted)
    return math.exp(sum(weight * math.log(value) for weight, value in weighted) / total)
