"""What stands between a candidate and an unearned verdict, by name.

Every guard is up in every judge. Only the red team takes one down, to show that a cheat gets
through without it: a guard that nothing needs is no guard.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Guard(StrEnum):
    """One reason why a cheat does not pay."""

    SCREEN = "screen"
    """The source is read before it is built."""
    NETWORK = "network"
    """No network but a loopback of its own."""
    FILES = "files"
    """The file system is read-only, but for a private scratch of limited size."""
    PROCESSES = "processes"
    """It sees, signals and leaves behind no process but its own."""
    SYSCALLS = "syscalls"
    """Calls to the kernel that no kernel needs are refused."""
    ENVIRONMENT = "environment"
    """No variable of the judge's environment but a few harmless ones."""
    LIMITS = "limits"
    """Memory, processes, file sizes and processor time are bounded."""
    DEADLINE = "deadline"
    """Whatever is still busy is killed, with all that it started."""
    SEPARATION = "separation"
    """Reference, expected outputs and seeds are in other processes."""
    OUTPUTS = "outputs"
    """Outputs are the judge's own memory, read once the candidate has answered."""
    POISON = "poison"
    """Outputs and scratch hold bytes that change from run to run."""
    CANARIES = "canaries"
    """Memory around each tensor must stay as it was."""
    INPUTS = "inputs"
    """Inputs must stay as they were."""
    FRESH = "fresh"
    """New values at the same addresses, and the same sizes at new ones, in each run."""
    SIZES = "sizes"
    """Sizes are drawn after the candidate is frozen."""
    DISTRIBUTIONS = "distributions"
    """Values come from several distributions inside the domain."""
    HOSTILE = "hostile"
    """Among the values are the extremes of the domain."""
    PRECISION = "precision"
    """Errors against float64 are bounded by the reference's own."""
    STRIDES = "strides"
    """Inputs lie misaligned, and strided where the spec admits it."""
    REPEAT = "repeat"
    """A second run on the same inputs gives the same outputs."""
    TIMED = "timed"
    """Outputs of timed calls are checked, in rounds that can't be foreseen."""
    MEMORY = "memory"
    """Peak memory stays near the baseline's."""
    JUDGE_CLOCK = "judge_clock"
    """The judge's clock must agree with the worker's."""
    SYNC = "sync"
    """After the end event the device must be idle."""
    SPAN = "span"
    """A profiler sees no work of the call outside its events, on any stream."""
    FLUSH = "flush"
    """Caches are cold: flushed by the judge's own kernel, with persisting lines reset."""
    FLOOR = "floor"
    """No time below what compulsory bytes need at the data sheet's bandwidth is believed."""
    THREADS = "threads"
    """No thread or process outlives a call."""
    CHAIN = "chain"
    """The artefact that runs is the one built from the source, by its hash."""
    LAUNCHED = "launched"
    """Every kernel that runs is one that the plan names."""


@dataclass(frozen=True)
class Guards:
    """Which guards are up: all of them, but for those that the red team took down."""

    down: frozenset[Guard] = frozenset()

    def up(self, guard: Guard) -> bool:
        """Return whether a guard is up."""
        return guard not in self.down


ALL_UP = Guards()


def without(guards: Collection[Guard]) -> Guards:
    """Return guards of which some are down: for the red team only."""
    return Guards(frozenset(guards))
