"""What was measured inside a kernel and its baseline, apart from the timed run."""

from operator_registry.record import Record


class KernelTime(Record):
    """A kernel of one call: how often it was launched, and how long that took in sum."""

    kernel: str
    launches: int
    device_ms: float


class StallReason(Record):
    """Why warps waited: the share of their samples."""

    reason: str
    share: float


class KernelCounters(Record):
    """What the device counted while one kernel ran."""

    kernel: str
    device_ms: float
    dram_bytes: float
    """Read and written, as the memory's own counters have it."""
    bandwidth_gb_s: float
    """`dram_bytes` over `device_ms`."""
    stalls: tuple[StallReason, ...] = ()
    """The most frequent first."""


class SideProfile(Record):
    """One side: the kernel that is published, or its baseline."""

    subject: str
    """The candidate's id, or the peer's name."""
    kernels: tuple[KernelTime, ...] = ()
    """What ran on the device; empty on a processor, where no profiler sees native code."""
    functions: tuple[str, ...] = ()
    """Library functions that the host called, outermost only."""
    counters: tuple[KernelCounters, ...] = ()
    not_measured: tuple[str, ...] = ()
    """What is missing here, and why."""


class Profile(Record):
    """Both sides on one public workload."""

    workload: str
    ours: SideProfile
    baseline: SideProfile
