"""What holds back a candidate that is correct, as far as its times show (pure).

The roofline is that of memory alone. Whoever computes much (a matrix product, say) is far from it
for a good reason.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knowledge.evidence import KernelResources
from knowledge.fitness import find_best_peer, pick_figure
from knowledge.outcome import Passed, WorkloadTime

TimeKind = Literal[
    "not_timed", "library_only", "launch_bound", "latency_bound", "register_spills",
    "occupancy_limited", "far_from_roofline", "near_roofline",
]  # fmt: skip
NEAR: Final = 0.8
"""From this share of the data sheet's bandwidth on, there is little left to gain."""
SHORT_MS: Final = 0.005
"""A kernel that takes no longer on a device is mostly start and the latency of a few loads."""
LOW_OCCUPANCY: Final = 0.25


@dataclass(frozen=True)
class Bottleneck:
    """What holds a candidate back, in sentences, and what to search for."""

    kind: TimeKind
    text: str
    terms: tuple[str, ...] = ()
    workload: str | None = None
    """The public workload with most to gain."""


def find_bottleneck(
    outcome: Passed,
    rooflines_ms: Mapping[str, float],
    resources: Sequence[KernelResources],
    *,
    on_device: bool,
) -> Bottleneck:
    """Return what holds a candidate back on the workload with most to gain.

    Args:
        outcome: Its times.
        rooflines_ms: By public workload, the least time to move its bytes, where it is known.
        resources: What the compiler reports of the kernels, where that is known.
        on_device: Whether the hardware is a device with launches, not the host's processor.
    """
    if not outcome.times:
        text = "It is correct. There is no device here to time it on."
        return Bottleneck(kind="not_timed", text=text)
    if outcome.library_only:
        text = "It only calls the library, so that it can't be better than its peers."
        wanted = ("library only", "fuse the library call's neighbours")
        return Bottleneck(kind="library_only", text=text, terms=wanted)
    worst = max(outcome.times, key=lambda time: _loss(time, rooflines_ms))
    told = _tell(worst, rooflines_ms.get(worst.workload))
    kind, why, terms = _bottleneck(outcome.times, worst, rooflines_ms, resources, on_device)
    return Bottleneck(
        kind=kind,
        text=f"{why} {told}",
        terms=(kind.replace("_", " "), *terms),
        workload=worst.workload,
    )


def _bottleneck(
    times: Sequence[WorkloadTime],
    worst: WorkloadTime,
    rooflines_ms: Mapping[str, float],
    resources: Sequence[KernelResources],
    on_device: bool,  # noqa: FBT001 - of `diagnose`
) -> tuple[TimeKind, str, tuple[str, ...]]:
    """Return the kind, a sentence that says why, and search terms."""
    spilt = [r for r in resources if r.spill_bytes]
    if spilt:
        most = max(spilt, key=lambda r: r.spill_bytes or 0)
        why = f"{most.kernel} spills {most.spill_bytes} bytes of registers ({most.registers} used)."
        return "register_spills", why, ("register spills to local memory",)
    share = _share(worst, rooflines_ms)
    if share is not None and share >= NEAR:
        why = f"Its least share of the memory roofline is {share:.0%}: little is left to gain."
        return "near_roofline", why, ("memory-bound near the roofline", "move fewer bytes")
    if on_device and pick_figure(times) == "call_ms":
        why = "A call's host time counts here, more than the device's."
        return "launch_bound", why, ("launch-bound: launch latency, host time", "fewer launches")
    if on_device and worst.device_ms <= SHORT_MS:
        why = f"It takes {1e3 * worst.device_ms:.1f} us on the device: mostly latency."
        return "latency_bound", why, ("latency-bound short kernel", "few programs")
    narrow = [r for r in resources if r.occupancy is not None and r.occupancy < LOW_OCCUPANCY]
    if narrow:
        least = min(narrow, key=lambda r: r.occupancy or 0.0)
        why = (
            f"{least.kernel} can keep {least.occupancy:.0%} of a multiprocessor's threads resident "
            f"({least.registers} registers a thread, {least.shared_bytes} bytes of shared memory)."
        )
        return "occupancy_limited", why, ("occupancy-limited: registers, shared memory",)
    why = "Its time is not explained by the bytes that it must move."
    if share is None:
        why = "Nothing is known of the bytes that it must move."
    terms = ("far from the memory roofline", "uncoalesced access, too few bytes in flight")
    if not on_device:
        terms = ("far from the memory roofline", "vectorisation threads cache")
    return "far_from_roofline", why, terms


def _tell(time: WorkloadTime, roofline_ms: float | None) -> str:
    """Return a workload's times in a sentence."""
    parts = [
        f"{time.workload}: {time.device_ms:.4g} ms on the device, {time.call_ms:.4g} ms a call"
    ]
    peer = find_best_peer(time, "device_ms")
    if peer is not None:
        parts.append(f"best peer {peer.name} {peer.device_ms:.4g} ms and {peer.call_ms:.4g} ms")
    if roofline_ms:
        share = roofline_ms / time.device_ms
        parts.append(f"memory roofline {roofline_ms:.4g} ms, of which it reaches {share:.0%}")
    return "; ".join(parts) + "."


def _share(time: WorkloadTime, rooflines_ms: Mapping[str, float]) -> float | None:
    roofline_ms = rooflines_ms.get(time.workload)
    return roofline_ms / time.device_ms if roofline_ms else None


def _loss(time: WorkloadTime, rooflines_ms: Mapping[str, float]) -> float:
    """Return how much could be gained on a workload, by its weight; 0 where nothing is known."""
    share = _share(time, rooflines_ms)
    if share is not None:
        return time.weight * -math.log(min(1.0, share))
    peer = find_best_peer(time, "device_ms")
    return time.weight * math.log(time.device_ms / peer.device_ms) if peer else 0.0
