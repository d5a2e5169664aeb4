"""Why a measurement can't be trusted, and what disturbed it (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from optimizer.evaluate.guards import ALL_UP, Guard, Guards
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.summary import TWIN, Measured, Pair, Reading, median_of

NO_FAULTS = 4
"""Minor page faults a call that count as none."""
CLOCK_SLACK_MS = 0.3
CLOCK_SLACK = 0.5
BURST_SLACK, BURST_SLACK_MS = 1.5, 0.1
"""How much longer than alone a call may take in a row of calls: other processes disturb."""
LEAST_FLUSH_MS = 1.0
FLUSH_SHARE = 0.5
"""Of the time that it takes in the baseline's process, what a flush takes at least."""
HOST_MS = 0.2
"""What the host may need for a call, while a graph's baseline needs nearly nothing."""


@dataclass(frozen=True)
class Clocks:
    """What is known of the judge's own clock."""

    host: bool
    """The calls run on the host, so that it sees all of each."""
    bursts: Sequence[Mapping[str, float]] = ()
    """What a call takes in a row of calls, in each pair, of the candidate and of the twin."""


def find_faults(
    pairs: Sequence[Pair],
    measured: Measured,
    baseline: str,
    *,
    clocks: Clocks,
    guards: Guards = ALL_UP,
) -> Iterator[str]:
    """Yield why the measurement of a workload can't be trusted.

    Args:
        pairs: All complete process pairs.
        measured: The workload.
        baseline: The best peer's name.
        clocks: What is known of the judge's own clock.
        guards: Which guards are up.
    """
    if measured.handed_back:
        return
    name = measured.workload
    mine = [r for pair in pairs for r in pair[name][CANDIDATE]]
    theirs = [r for pair in pairs for r in pair[name][baseline]]
    ours_faults, their_faults = (median(r.faults for r in side) for side in (mine, theirs))
    if (ours_faults > NO_FAULTS) != (their_faults > NO_FAULTS):
        yield (
            f"{name}: page faults on one side only, {ours_faults:g} a call in the kernel and "
            f"{their_faults:g} in {baseline}"
        )
    fastest = median_of(mine, "device_ms")
    if guards.up(Guard.FLOOR) and fastest < measured.impossible_below_ms:
        yield (
            f"{name}: {fastest:.4g} ms is less than the {measured.impossible_below_ms:.4g} ms that "
            "its outputs need at the data sheet's bandwidth"
        )
    flushed = [min(r.armed_ms for r in side) for side in (mine, theirs)]
    if guards.up(Guard.FLUSH) and clocks.host and _is_unflushed(*flushed):
        yield (
            f"{name}: the caches are flushed in {flushed[0]:.3g} ms in the kernel's process, "
            f"in {flushed[1]:.3g} ms in {baseline}'s"
        )
    if guards.up(Guard.JUDGE_CLOCK):
        for fault in _clock_faults(mine, theirs, clocks):
            yield f"{name}: {fault}"


def _is_unflushed(mine_ms: float, theirs_ms: float) -> bool:
    """Return whether a process got ready too soon: a candidate's has more to do than a peer's."""
    return theirs_ms > LEAST_FLUSH_MS and mine_ms < FLUSH_SHARE * theirs_ms


def describe_disturbance(
    pairs: Sequence[Pair], baselines: Mapping[str, str]
) -> dict[str, tuple[float, float] | float]:
    """Return what disturbed kernel and baseline, as `Conditions` names it: the worst workload's.

    Args:
        pairs: All complete process pairs.
        baselines: By workload, the best peer.
    """
    faults, disturbed, dry, late_ms = [(0.0, 0.0)], [(0.0, 0.0)], [(0.0, 0.0)], [0.0]
    for name, baseline in baselines.items():
        sides = [
            [r for pair in pairs for r in pair.get(name, {}).get(subject, ())]
            for subject in (CANDIDATE, baseline)
        ]
        if all(sides):
            mine, theirs = sides
            faults.append((median(r.faults for r in mine), median(r.faults for r in theirs)))
            disturbed.append((_disturbed(mine), _disturbed(theirs)))
            dry.append((fmean(r.dry for r in mine), fmean(r.dry for r in theirs)))
            late_ms.append(median(r.late_ms for r in mine))
    return {
        "page_faults": max(faults),
        "disturbed": max(disturbed),
        "dry": max(dry),
        "late_ms": max(late_ms),
    }


def _disturbed(readings: Sequence[Reading]) -> float:
    return sum(reading.preemptions > 0 for reading in readings) / len(readings)


def _clock_faults(
    mine: Sequence[Reading],
    theirs: Sequence[Reading],
    clocks: Clocks,
) -> Iterator[str]:
    """Yield in what the worker's clock disagrees with the judge's own."""
    call_ms = median_of(mine, "call_ms")
    gap = _gap_ms(mine) - _gap_ms(theirs)
    if clocks.host and gap > max(CLOCK_SLACK_MS, CLOCK_SLACK * call_ms):
        yield f"the judge's clock saw the kernel take {gap:.3g} ms longer than it says"
    if any(r.parent_ms < r.call_ms for r in mine):
        yield "the kernel's clock ran ahead of the judge's"
    yield from _feigned(mine)
    rows = [burst[CANDIDATE] for burst in clocks.bursts if CANDIDATE in burst]
    if rows and median(rows) > BURST_SLACK_MS + BURST_SLACK * call_ms:
        yield (
            f"by the judge's clock a call takes {median(rows):.3g} ms in a row of calls, and by "
            f"the kernel's {call_ms:.3g} ms alone, with cold caches"
        )
    if not clocks.host:
        yield from _burst_faults(mine, theirs, clocks.bursts)


def _feigned(mine: Sequence[Reading]) -> Iterator[str]:
    """Yield that calls take longer where their outputs are compared.

    A process that its own Python has taken over can tell which those are, by the values that it is
    given; there it must work, and elsewhere it need not.
    """
    checked = [r.parent_ms for r in mine if r.checked]
    others = [r.parent_ms for r in mine if not r.checked]
    if not checked or not others:
        return
    usual_ms = median(others)
    if min(checked) > CLOCK_SLACK_MS + (1 + CLOCK_SLACK) * usual_ms:
        yield (
            f"by the judge's clock a call takes {min(checked):.3g} ms or more where its outputs "
            f"are compared, and {usual_ms:.3g} ms elsewhere"
        )


def _burst_faults(
    mine: Sequence[Reading], theirs: Sequence[Reading], bursts: Sequence[Mapping[str, float]]
) -> Iterator[str]:
    """Yield that events show a gain of which rows of calls show nothing, but a loss."""
    both = [burst for burst in bursts if {CANDIDATE, TWIN} <= burst.keys()]
    if not both:
        return
    ours, base = (median(burst[label] for burst in both) for label in (CANDIDATE, TWIN))
    gains = median_of(mine, "device_ms") < median_of(theirs, "device_ms")
    if gains and ours > HOST_MS + BURST_SLACK * base:
        yield (
            f"by the judge's clock a call takes {ours:.3g} ms in a row of calls, the baseline's "
            f"{base:.3g} ms; the kernel's events say that it is the faster one"
        )


def _gap_ms(readings: Sequence[Reading]) -> float:
    return median(r.parent_ms - r.call_ms for r in readings)
