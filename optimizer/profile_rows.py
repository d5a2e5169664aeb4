"""A profile as rows of text, for a kernel's page and for a pull request (pure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from knowledge.evidence import Evidence, KernelResources
from knowledge.profile import KernelCounters, Profile, SideProfile

_SHOWN = 12
"""Characters of a hash."""


@dataclass(frozen=True)
class Rows:
    """A table: its heads and its cells; which of them are names of code."""

    title: str
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    names: frozenset[int] = frozenset()
    """Columns that hold names that others chose."""


def profile_tables(evidence: Evidence, *, bandwidth_gb_s: float | None = None) -> Iterator[Rows]:
    """Yield the tables that are not empty.

    Args:
        evidence: The evidence with the profile.
        bandwidth_gb_s: The data sheet's, where it is known.
    """
    tables = (
        Rows(
            "Share of the roofline (the time to move inputs and outputs once)",
            ("workload", "this kernel", "best peer"),
            tuple(_roofline(evidence)),
            frozenset({0}),
        ),
        Rows(
            "Kernels of one call",
            ("workload", "side", "kernel", "launches", "device ms"),
            tuple(_launches(evidence)),
            frozenset({0, 1, 2}),
        ),
        Rows(
            "Counted by the device",
            ("side", "kernel", "ms", "DRAM MB", "GB/s", "of data sheet", "top waits"),
            tuple(_counters(evidence, bandwidth_gb_s)),
            frozenset({0, 1}),
        ),
        Rows(
            "Resources",
            ("kernel", "registers", "spilled bytes", "shared bytes", "occupancy"),
            tuple(_resources(evidence.resources)),
            frozenset({0}),
        ),
    )
    yield from (table for table in tables if table.cells)


def not_measured(evidence: Evidence) -> tuple[str, ...]:
    """Return what the profile lacks and why, each once."""
    sides = (side for p in evidence.profile for side in (p.ours, p.baseline))
    return tuple(dict.fromkeys(why for side in sides for why in side.not_measured))


def chain(evidence: Evidence, verdict: str) -> tuple[str, tuple[str, ...], tuple[str, ...], str]:
    """Return the links from source to verdict: hash, artefacts' hashes, what was launched."""
    artefacts = dict.fromkeys(r.artefact_sha256[:_SHOWN] for r in evidence.resources)
    return evidence.source_sha256[:_SHOWN], tuple(artefacts), evidence.launched, verdict


def _roofline(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    for w in evidence.workloads:
        peer = next((peer for peer in w.peers if peer.name == w.best_peer), None)
        if w.share_of_roofline is not None and peer is not None:
            theirs = w.share_of_roofline * w.device_ms / peer.device_ms
            yield w.workload, f"{100 * w.share_of_roofline:.1f} %", f"{100 * theirs:.1f} %"


def _launches(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    for profile in evidence.profile:
        for name, side in _sides(profile):
            for kernel in side.kernels:
                times = (str(kernel.launches), f"{kernel.device_ms:.4g}")
                yield profile.workload, name, kernel.kernel, *times


def _counters(evidence: Evidence, bandwidth_gb_s: float | None) -> Iterator[tuple[str, ...]]:
    for profile in evidence.profile:
        for name, side in _sides(profile):
            for counted in side.counters:
                yield name, *_counted(counted, bandwidth_gb_s)


def _counted(counted: KernelCounters, bandwidth_gb_s: float | None) -> tuple[str, ...]:
    share = f"{100 * counted.bandwidth_gb_s / bandwidth_gb_s:.0f} %" if bandwidth_gb_s else "-"
    waits = (f"{s.reason.replace('_', ' ')} {100 * s.share:.0f} %" for s in counted.stalls)
    return (
        counted.kernel,
        f"{counted.device_ms:.4g}",
        f"{counted.dram_bytes / 1e6:.4g}",
        f"{counted.bandwidth_gb_s:.4g}",
        share,
        ", ".join(waits) or "-",
    )


def _resources(resources: Sequence[KernelResources]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kernel; its instances mostly need the same."""
    rows = {
        (r.kernel, r.registers, r.spill_bytes, r.shared_bytes, r.occupancy): r
        for r in resources
        if r.registers is not None
    }
    for r in rows.values():
        occupancy = "-" if r.occupancy is None else f"{100 * r.occupancy:.0f} %"
        counts = (_or_dash(count) for count in (r.registers, r.spill_bytes, r.shared_bytes))
        yield r.kernel, *counts, occupancy


def _sides(profile: Profile) -> tuple[tuple[str, SideProfile], ...]:
    return ("this kernel", profile.ours), (profile.baseline.subject, profile.baseline)


def _or_dash(count: int | None) -> str:
    return "-" if count is None else str(count)
