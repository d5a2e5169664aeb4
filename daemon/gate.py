"""Whether a search may start now, and whether what it proved may be proposed."""

from collections.abc import Callable
from dataclasses import dataclass

from daemon.config import BotConfig, day_of
from daemon.config_watch import ConfigWatch
from daemon.pause import Marks, find_pause
from knowledge.evidence import Evidence

_SPENT = "device_seconds"
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Gate:
    """Holds the configuration in force against what is about to be done."""

    config: ConfigWatch
    memory: Marks
    clock: Callable[[], float]

    def find_obstacle(self, hardware: str, *, budget_s: float) -> str | None:
        """Return why a search of so many seconds may not start now; None where it may."""
        if reason := find_pause(self.memory):
            return f"paused: {reason}"
        if reason := self.config.find_hold():
            return reason
        config = self.config.in_force()
        if not config.selects(hardware):
            return f"the configuration selects no hardware {hardware}"
        if not config.is_open(self.clock()):
            return "outside of the configuration's windows"
        spent_s, limit_s = self.spent_s(), config.limits.device_hours_per_day * _HOUR_S
        if spent_s + budget_s > limit_s:
            return (
                f"needs {budget_s / 60:.3g} minutes of a device; of today's "
                f"{limit_s / 60:.3g}, {max(0.0, limit_s - spent_s) / 60:.3g} are left"
            )
        return None

    def spend(self, seconds: float) -> None:
        """Count seconds that a device was busy."""
        today = day_of(self.clock())
        self.memory.mark(_SPENT, f"{today} {self.spent_s() + seconds:.3f}")

    def spent_s(self) -> float:
        """Return how many seconds devices were busy today."""
        day, _, seconds = (self.memory.recall(_SPENT) or "").partition(" ")
        return float(seconds) if day == day_of(self.clock()) else 0.0


def find_objection(evidence: Evidence, config: BotConfig) -> str | None:
    """Return why a proven kernel is not proposed; None where it is."""
    if config.dry_run:
        return "a dry run proposes nothing"
    asked = config.thresholds
    if evidence.ratio.low < asked.minimum_gain:
        return f"the configuration asks for a proven ratio of {asked.minimum_gain:g}"
    for workload in evidence.workloads:
        is_handed_back = workload.served_by in {row.name for row in workload.peers}
        if not is_handed_back and workload.ratio.low < 1 - asked.largest_regression:
            least, most = workload.ratio.low, asked.largest_regression
            return (
                f"{workload.workload} may be down to {least:.3f} of the baseline; the "
                f"configuration takes {most:g} less at the worst"
            )
    return None
