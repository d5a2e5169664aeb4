"""Whether the daemon's loops turn, and what in them fails: told to whoever watches over it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from operator_registry.record import Record


class LoopHealth(Record):
    """A loop, and how long nothing was heard of it."""

    silent_s: float
    limit_s: float
    """After so long it is taken to hang."""


class HealthReport(Record):
    """What the daemon's state is. Names and times only: strangers may read it."""

    alive: bool
    """Every loop was heard of in time; otherwise the process should be started anew."""
    loops: dict[str, LoopHealth]
    faults: tuple[str, ...]
    """What failed when it was last tried; the log says why."""
    paused: bool


@dataclass
class Health:
    """What was heard of each loop last, and what fails. Safe to use from every thread."""

    clock: Callable[[], float]
    """Seconds that only ever grow."""
    _limits_s: dict[str, float] = field(default_factory=dict, init=False)
    _heard_at: dict[str, float] = field(default_factory=dict, init=False)
    _faults: dict[str, str] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def expect(self, loop: str, *, within_s: float) -> None:
        """Have a loop be taken for dead when nothing is heard of it for so long."""
        with self._lock:
            self._limits_s[loop] = within_s
            self._heard_at[loop] = self.clock()

    def beat(self, loop: str) -> None:
        """Note that a loop turns."""
        with self._lock:
            self._heard_at[loop] = self.clock()

    def fail(self, what: str, why: str) -> bool:
        """Note that something failed; return whether that is news: it went well, or otherwise."""
        with self._lock:
            is_news = self._faults.get(what) != why
            self._faults[what] = why
            return is_news

    def recover(self, what: str) -> bool:
        """Note that something went well; return whether it failed before."""
        with self._lock:
            return self._faults.pop(what, None) is not None

    def report(self, *, paused: bool) -> HealthReport:
        """Return the state now."""
        with self._lock:
            now = self.clock()
            loops = {
                loop: LoopHealth(silent_s=round(now - self._heard_at[loop], 1), limit_s=limit_s)
                for loop, limit_s in self._limits_s.items()
            }
            return HealthReport(
                alive=all(loop.silent_s <= loop.limit_s for loop in loops.values()),
                loops=loops,
                faults=tuple(sorted(self._faults)),
                paused=paused,
            )
