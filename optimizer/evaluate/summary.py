"""From the readings of a confirming run to what stands in its evidence (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from knowledge.evidence import Figure, Interval, NullRun, PeerRow, WorkloadEvidence
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.statistics import (
    UNKNOWN,
    combined_ratios,
    distribution,
    proof_interval,
    quick,
    ratio_interval,
    simultaneous,
    spread,
)

TWIN = "twin"
"""The best peer once more, in a process of its own: the candidate of the A/A run."""
WORKLOAD_ALPHA = 0.025
"""One-sided level at which all workloads' intervals hold together."""
HOPELESS = 3.0
"""A peer so many times slower than the best in ranking is in no pair; eager always is."""
DEVICE_HOPELESS = 1.5
"""The same on a device, whose own clock no other process disturbs, and where compiling is dear."""
SIT_OUT, DEVICE_SIT_OUT = 1.5, 1.15
"""A peer this many times slower than the best, here and in ranking, sits out the other pairs."""
LEAST_HIDDEN = 3
"""So many samples of a pair must hide the host's time before those that do not are left out."""
CERTAIN = Interval(low=1.0, estimate=1.0, high=1.0)


@dataclass(frozen=True)
class Reading:
    """One sample as the worker told it, and how long the judge's own clock saw it take."""

    device_ms: float
    call_ms: float
    faults: int
    parent_ms: float
    late_ms: float = 0.0
    """How long the device was still busy after the end event, on whatever stream."""
    preemptions: int = 0
    checked: int = 0
    """1 if its outputs were compared, so that the work was done: only the judge knows of which."""
    armed_ms: float = 0.0
    """How long the judge's clock saw the process get ready: on a processor, flush the caches."""
    dry: int = 0
    """1 if the device may have waited for the host within the call."""

    def by(self, figure: Figure) -> float:
        """Return the time of a figure."""
        return self.device_ms if figure == "device_ms" else self.call_ms


Readings = Mapping[str, Sequence[Reading]]
"""Of one pair on one workload: by subject (`CANDIDATE`, `TWIN` or a peer's name)."""
Pair = Mapping[str, Readings]
"""Of one pair: by workload. A workload that the candidate does not serve is in the first alone."""


@dataclass(frozen=True)
class Measured:
    """What is known of a public workload beside its readings."""

    workload: str
    sizes: Mapping[str, int]
    dtypes: Mapping[str, str]
    weight: float
    roofline_ms: float | None
    impossible_below_ms: float
    handed_back: bool
    """By the dispatch table, frozen before the run, the baseline serves it."""
    error: float
    reference_error: float


def times_of(readings: Sequence[Reading], figure: Figure) -> list[float]:
    """Return the times; on a device, of samples in which it surely did not wait for the host.

    All of them where those are too few: a call that waits for the device has no others.
    """
    if figure == "device_ms":
        hidden = [reading for reading in readings if not reading.dry]
        readings = hidden if len(hidden) >= LEAST_HIDDEN else readings
    return [reading.by(figure) for reading in readings]


def median_of(readings: Sequence[Reading], figure: Figure) -> float:
    """Return the median time."""
    return median(times_of(readings, figure))


def staying(
    readings: Readings, ranked_ms: Mapping[str, float], figure: Figure, *, behind: float
) -> tuple[str, ...]:
    """Return the peers that stay in the run after the first pair.

    To leave, a peer must be far slower than the best both there and in the ranking: one disturbed
    measurement must not send the true baseline away.

    Args:
        readings: Those of the first pair on a workload.
        ranked_ms: The peers' times for ranking on it.
        figure: The time that counts.
        behind: How many times slower than the best is far slower.
    """
    here = {name: quick(times_of(readings[name], figure)) for name in peers_in(readings)}
    ranked = {name: ranked_ms[name] for name in here}
    slow = _far_behind(here, behind) & _far_behind(ranked, behind)
    return tuple(name for name in here if name not in slow)


def _far_behind(times: Mapping[str, float], behind: float) -> set[str]:
    limit = behind * min(times.values(), default=0.0)
    return {name for name, time in times.items() if time > limit}


def peers_in(readings: Readings) -> tuple[str, ...]:
    """Return the names of the peers among the subjects."""
    return tuple(name for name in readings if name not in {CANDIDATE, TWIN})


def best_peer(pairs: Sequence[Pair], workload: str, figure: Figure) -> str:
    """Return the baseline: the fastest peer by its pooled median, of those in every pair."""
    common = set.intersection(*(set(peers_in(p[workload])) for p in pairs if workload in p))
    return min(sorted(common), key=lambda name: _pooled(pairs, workload, name, figure))


def pair_ratios(
    pairs: Sequence[Pair], workload: str, above: str, below: str, *, figure: Figure
) -> tuple[float, ...]:
    """Return one subject's median time over another's, pair by pair."""
    return tuple(
        median_of(pair[workload][above], figure) / median_of(pair[workload][below], figure)
        for pair in pairs
    )


def describe_workload(
    pairs: Sequence[Pair], measured: Measured, *, served_by: str, figure: Figure, workloads: int
) -> WorkloadEvidence:
    """Return the evidence on one workload.

    Args:
        pairs: All complete process pairs.
        measured: What else is known of the workload.
        served_by: The name under which the candidate serves it.
        figure: The time that counts.
        workloads: How many intervals must hold together.
    """
    name = measured.workload
    baseline = best_peer(pairs, name, figure)
    server = baseline if measured.handed_back else CANDIDATE
    ratios = (1.0,) * len(pairs)
    ours_ms: tuple[float, ...] = ()
    theirs_ms: tuple[float, ...] = ()
    if server == CANDIDATE:
        ratios = pair_ratios(pairs, name, baseline, CANDIDATE, figure=figure)
        ours_ms = tuple(median_of(pair[name][CANDIDATE], figure) for pair in pairs)
        theirs_ms = tuple(median_of(pair[name][baseline], figure) for pair in pairs)
    alpha = simultaneous(WORKLOAD_ALPHA, workloads)
    device_ms = _pooled(pairs, name, server, "device_ms")
    return WorkloadEvidence(
        workload=name,
        sizes=dict(measured.sizes),
        dtypes=dict(measured.dtypes),
        weight=measured.weight,
        served_by=served_by if server == CANDIDATE else server,
        device_ms=device_ms,
        call_ms=_pooled(pairs, name, server, "call_ms"),
        peers=_peer_rows(pairs, name),
        best_peer=baseline,
        pair_ratios=ratios,
        pair_ms=ours_ms,
        baseline_pair_ms=theirs_ms,
        ratio=ratio_interval(ratios, alpha=alpha) if server == CANDIDATE else CERTAIN,
        spread=spread([t for found in _all(pairs, name, server) for t in times_of(found, figure)]),
        quantiles_ms=_quantiles(pairs, name, server, figure),
        baseline_quantiles_ms=_quantiles(pairs, name, baseline, figure),
        share_of_roofline=measured.roofline_ms / device_ms if measured.roofline_ms else None,
        error=measured.error,
        reference_error=measured.reference_error,
    )


def describe_ratio(workloads: Sequence[WorkloadEvidence], *, alpha: float) -> Interval:
    """Return the weighted geometric mean over the workloads, each pair being one draw of it."""
    by_workload = {w.workload: w.pair_ratios for w in workloads}
    weights = {w.workload: w.weight for w in workloads}
    return proof_interval(combined_ratios(by_workload, weights), alpha=alpha)


def describe_null(
    pairs: Sequence[Pair], twins: Mapping[str, str], weights: Mapping[str, float],
    *, figure: Figure, alpha: float,
) -> NullRun:  # fmt: skip
    """Return the A/A run: the best peer over its twin in another process.

    Args:
        pairs: All complete process pairs.
        twins: Which peer each workload's twin is; of workloads that are in every pair.
        weights: The workloads' weights.
        figure: The time that counts.
        alpha: The level of the confirming run itself: the same procedure must show nothing here.
    """

    def is_whole(pair: Pair) -> bool:
        return all({peer, TWIN} <= pair[workload].keys() for workload, peer in twins.items())

    whole = [pair for pair in pairs if is_whole(pair)]
    by_workload = {
        workload: pair_ratios(whole, workload, peer, TWIN, figure=figure)
        for workload, peer in twins.items()
    }
    if not by_workload or not whole:
        return NullRun(pair_ratios=(), ratio=UNKNOWN)
    ratios = tuple(combined_ratios(by_workload, weights))
    return NullRun(pair_ratios=ratios, ratio=ratio_interval(ratios, alpha=alpha))


def versus(workloads: Sequence[WorkloadEvidence], peer: str, figure: Figure) -> float:
    """Return the weighted geometric mean of a peer's time over that of what serves."""
    rows = {w.workload: {row.name: row for row in w.peers} for w in workloads}
    by_workload: dict[str, tuple[float, ...]] = {}
    for w in workloads:
        row = rows[w.workload].get(peer)
        if row is not None:
            times = (row.device_ms, w.device_ms), (row.call_ms, w.call_ms)
            theirs, ours = times[0 if figure == "device_ms" else 1]
            by_workload[w.workload] = (theirs / ours,)
    if not by_workload:
        return 1.0
    return combined_ratios(by_workload, {w.workload: w.weight for w in workloads})[0]


def with_first_calls(
    row: WorkloadEvidence, first_ms: Sequence[Mapping[str, Mapping[str, float]]]
) -> WorkloadEvidence:
    """Return the evidence on a workload with what first calls took, as medians over processes.

    Args:
        row: The evidence.
        first_ms: For each pair, by workload and subject.
    """

    def find(subject: str) -> float | None:
        told = [ms for pair in first_ms if (ms := pair.get(row.workload, {}).get(subject))]
        return median(told) if told else None

    peers = tuple(peer.model_copy(update={"first_call_ms": find(peer.name)}) for peer in row.peers)
    server = row.served_by if row.served_by in {peer.name for peer in row.peers} else CANDIDATE
    return row.model_copy(update={"peers": peers, "first_call_ms": find(server)})


def _peer_rows(pairs: Sequence[Pair], workload: str) -> tuple[PeerRow, ...]:
    names = dict.fromkeys(name for pair in pairs for name in peers_in(pair.get(workload, {})))
    return tuple(
        PeerRow(
            name=name,
            device_ms=_pooled(pairs, workload, name, "device_ms"),
            call_ms=_pooled(pairs, workload, name, "call_ms"),
        )
        for name in names
    )


def _quantiles(
    pairs: Sequence[Pair], workload: str, subject: str, figure: Figure
) -> tuple[float, ...]:
    readings = _all(pairs, workload, subject)
    return distribution([time for found in readings for time in times_of(found, figure)])


def _pooled(pairs: Sequence[Pair], workload: str, subject: str, figure: Figure) -> float:
    """Return the median over pairs of a subject's median in each."""
    return median(median_of(found, figure) for found in _all(pairs, workload, subject))


def _all(pairs: Sequence[Pair], workload: str, subject: str) -> list[Sequence[Reading]]:
    """Return a subject's readings in each pair that has some."""
    found = (pair.get(workload, {}).get(subject, ()) for pair in pairs)
    return [readings for readings in found if readings]
