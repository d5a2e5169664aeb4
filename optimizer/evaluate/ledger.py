"""Where the judge's seconds go, and how long it holds a device without working on it."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

Phase = Literal["screen", "cases", "build", "start", "load", "check", "time"]
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass
class Ledger:
    """The seconds of an evaluator, added up over its trials.

    A device is *leased* from the moment that a process is asked to do something on it until the
    trial ends, and *idle* while it is leased and no process is at work on an answer: the judge
    then reads outputs, compares, or waits.
    """

    seconds: dict[Phase, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    leased_s: float = 0.0
    worked_s: float = 0.0
    trials: int = 0
    now_s: Callable[[], float] = time.monotonic

    @property
    def leased_idle_s(self) -> float:
        """Return the seconds for which a device was held and nothing ran on it."""
        return max(0.0, self.leased_s - self.worked_s)

    @contextmanager
    def phase(self, name: Phase) -> Generator[None]:
        """Count what happens inside as a phase; phases do not nest."""
        began_s = self.now_s()
        try:
            yield
        finally:
            self.seconds[name] += self.now_s() - began_s

    @contextmanager
    def lease(self, worked_s: Callable[[], float]) -> Generator[None]:
        """Count what happens inside as leased.

        Args:
            worked_s: Tells for how long the leaseholder's processes have been at work so far.
        """
        began_s, before_s = self.now_s(), worked_s()
        try:
            yield
        finally:
            self.leased_s += self.now_s() - began_s
            self.worked_s += worked_s() - before_s
