"""Whether a search may start now, and whether what it proved is worth a pull request."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from daemon.config.file import Limits, Thresholds, day_of
from daemon.config.watch import ConfigWatch
from daemon.marks import Marks
from daemon.pause import find_pause
from daemon.pulls.interest import find_silence
from knowledge.evidence import Evidence

_BUSY = "device_seconds"
_HOUR_S = 3600.0
_MOMENT_S = 0.05
"""Within it no device has done anything."""


@dataclass(frozen=True)
class Gate:
    """Holds the configuration in force against what is about to be done. Any thread may ask."""

    config: ConfigWatch
    memory: Marks
    clock: Callable[[], float]
    _counting: threading.Lock = field(default_factory=threading.Lock, init=False)

    def find_obstacle(self, hardware: str, *, budget_s: float | None) -> str | None:
        """Return why a goal may not be worked on now; None where it may.

        Args:
            hardware: What its search runs on.
            budget_s: How long that takes; None where it is done, so that nothing is left but to
                show what came of it.
        """
        if reason := find_pause(self.memory):
            return f"paused: {reason}"
        if reason := self.config.find_hold():
            return reason
        return None if budget_s is None else self._find_hindrance(hardware, budget_s)

    def _find_hindrance(self, hardware: str, budget_s: float) -> str | None:
        """Return why nothing new may begin now."""
        if reason := find_silence(self.memory, self.clock()):
            return reason
        config = self.config.in_force()
        if not config.selects(hardware):
            return f"the configuration selects no hardware {hardware}"
        if not config.is_open(self.clock()):
            return "outside of the configuration's windows"
        return self._find_lack(config.limits, budget_s)

    def find_objection(self, evidence: Evidence | None) -> str | None:
        """Return why a proven kernel is not worth a pull request; None where it is, or is none."""
        if evidence is None:
            return None
        return find_objection(evidence, self.config.in_force().thresholds)

    def minimum_gain(self, asked: float) -> float:
        """Return the proven ratio to ask for, where the registry asks for one."""
        return max(asked, self.config.in_force().thresholds.minimum_gain)

    @contextmanager
    def counting(self, key: str) -> Iterator[None]:
        """Count how long a device is busy for a goal, however that ends."""
        began = self.clock()
        try:
            yield
        finally:
            self.spend(key, self.clock() - began)

    def spend(self, key: str, seconds: float) -> None:
        """Count seconds that a device was busy for something; to ask for a job takes a moment."""
        if seconds < _MOMENT_S:
            return
        with self._counting:
            today, so_far = day_of(self.clock()), self.spent_s()
            self.memory.mark(_BUSY, f"{today} {so_far + max(0.0, seconds):.3f}")
            self.memory.mark(_counted(key), f"{self._counted_s(key) + max(0.0, seconds):.3f}")

    def settle(self, key: str, seconds: float) -> None:
        """Count what took so long in all, as far as it is not: it ran on another machine."""
        left_s = seconds - self._counted_s(key)
        if left_s > 0:
            self.spend(key, left_s)

    def spent_s(self) -> float:
        """Return how many seconds devices were busy today."""
        day, _, seconds = (self.memory.recall(_BUSY) or "").partition(" ")
        return float(seconds) if day == day_of(self.clock()) else 0.0

    def _counted_s(self, key: str) -> float:
        return float(self.memory.recall(_counted(key)) or 0.0)

    def _find_lack(self, limits: Limits, budget_s: float) -> str | None:
        limit_s = limits.device_hours_per_day * _HOUR_S
        left_s = max(0.0, limit_s - self.spent_s())
        if budget_s <= left_s:
            return None
        return (
            f"needs {budget_s / 60:.3g} minutes of a device; of today's {limit_s / 60:.4g}, "
            f"{left_s / 60:.3g} are left"
        )


def find_objection(evidence: Evidence, asked: Thresholds) -> str | None:
    """Return why a proven kernel is not worth a pull request; None where it is."""
    if evidence.ratio.low < asked.minimum_gain:
        return (
            f"the ratio may be down to {evidence.ratio.low:.3f}, and the configuration asks for "
            f"{asked.minimum_gain:g}"
        )
    for workload in evidence.workloads:
        is_handed_back = workload.served_by in {row.name for row in workload.peers}
        if not is_handed_back and workload.ratio.low < 1 - asked.largest_regression:
            return (
                f"{workload.workload} may be down to {workload.ratio.low:.3f} of the baseline; "
                f"the configuration takes {1 - asked.largest_regression:g} at the worst"
            )
    return None


def _counted(key: str) -> str:
    return f"device_seconds/{key}"
