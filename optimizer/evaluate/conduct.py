"""Whether a candidate works inside its calls and nowhere else (pure)."""

from collections.abc import Sequence
from statistics import median

from knowledge.outcome import Cheated
from optimizer.evaluate.census import Census
from optimizer.evaluate.guards import Guard, Guards
from optimizer.evaluate.summary import Reading
from optimizer.profilers.trace import Trace

LATE_MS = 0.03
LATE_SHARE = 0.03
"""How long after the end event a device may still be busy: for the wait itself, and of the time."""
UNSEEN_MS = 0.05
UNSEEN_SHARE = 0.5
"""By how much more than its timed calls a candidate may keep a device busy in a profiled call."""
EDGE_US = 50.0
"""How far the profiler's clocks of host and device may differ."""
LINGERING_SHARE = 1 / 3
"""In how many of the calls a thread may still be seen: one that was joined may be ending."""


def find_late(readings: Sequence[Reading], guards: Guards) -> Cheated | None:
    """Return that the device was busy after the calls had ended, None where it was idle."""
    late_ms = median(reading.late_ms for reading in readings)
    took_ms = median(reading.device_ms for reading in readings)
    if not guards.up(Guard.SYNC) or late_ms <= LATE_MS + LATE_SHARE * took_ms:
        return None
    return Cheated(
        guard=Guard.SYNC,
        detail=f"the device is busy for {late_ms:.3g} ms after the end event of a call",
    )


def find_unseen(trace: Trace, device_ms: float, guards: Guards) -> Cheated | None:
    """Return what a profiler saw that no event did, None where there is nothing.

    Args:
        trace: One call of the candidate on all streams of the device, untimed.
        device_ms: Its time between events.
        guards: Which guards are up.
    """
    begin_us, end_us = trace.window_us
    outside = [
        activity.name
        for activity in trace.activities
        if activity.begin_us < begin_us - EDGE_US
        or activity.begin_us + activity.took_us > end_us + EDGE_US
    ]
    busy_ms = busy_us(trace) * 1e-3
    detail = None
    if outside:
        detail = f"{outside[0]} runs outside the call"
    elif busy_ms > UNSEEN_MS + (1 + UNSEEN_SHARE) * device_ms:
        detail = (
            f"a call keeps the device busy for {busy_ms:.3g} ms, of which its events show "
            f"{device_ms:.3g} ms"
        )
    if detail is None or not guards.up(Guard.SPAN):
        return None
    return Cheated(guard=Guard.SPAN, detail=detail)


def busy_us(trace: Trace) -> float:
    """Return how long the device did anything at all, on whatever streams."""
    total = until = 0.0
    for activity in sorted(trace.activities, key=lambda a: a.begin_us):
        end = activity.begin_us + activity.took_us
        total += max(0.0, end - max(until, activity.begin_us))
        until = max(until, end)
    return total


def find_lingering(censuses: Sequence[tuple[Census, Census]], guards: Guards) -> Cheated | None:
    """Return that threads or processes outlive the calls, None where none do.

    Args:
        censuses: Before and right after each call.
        guards: Which guards are up.
    """
    excesses = [after.excess(before) for before, after in censuses]
    lingering = [excess for excess in excesses if excess]
    if not guards.up(Guard.THREADS) or len(lingering) <= LINGERING_SHARE * len(excesses):
        return None
    return Cheated(
        guard=Guard.THREADS,
        detail=f"{max(lingering)} threads or processes outlive {len(lingering)} of "
        f"{len(excesses)} calls",
    )
