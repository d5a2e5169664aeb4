"""The rounds in which everything on the code host beside publishing is brought up to date."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from daemon.forge import ForgeBusyError
from daemon.logs import find_log
from daemon.web.health import Health
from daemon.web.metrics import Metrics

log = find_log(__name__)
_LONGEST_WAIT_S = 30.0
"""After failures a duty waits twice as long each time, but no longer than this or its period."""
_LOOK_S = 0.25


class Part(Protocol):
    """What a steward does one thing with."""

    def run(self) -> None:
        """Bring it up to date; whatever is raised is logged, and it is tried again later."""
        ...


@dataclass(frozen=True)
class Duty:
    """A part, and when it runs."""

    name: str
    part: Part
    every_s: float = 0.0
    """At most so often; 0 for every round."""
    while_paused: bool = False
    """It runs on while all is paused; what it does then is its own affair."""
    while_on_hold: bool = False
    """It runs where the registry's configuration wants nothing done, or is not there yet."""
    at_the_end: bool = False
    """It runs once more before the daemon ends."""


@dataclass
class Steward:
    """Duties in order, round after round. One that fails doesn't keep the others."""

    name: str
    duties: Sequence[Duty]
    is_paused: Callable[[], bool]
    """Whether all is paused, by who runs this daemon."""
    may_act: Callable[[], bool]
    """Whether this process still is the one that may write."""
    clock: Callable[[], float]
    """Seconds that only ever grow."""
    health: Health
    metrics: Metrics
    is_on_hold: Callable[[], bool] = lambda: False
    """Whether the registry's configuration wants nothing done."""
    _due_at: dict[str, float] = field(default_factory=dict, init=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False)
    _woken: threading.Event = field(default_factory=threading.Event, init=False)

    def wake(self) -> None:
        """Have the next round begin at once."""
        self._woken.set()

    def run(self, interval_s: float, *, stop: threading.Event) -> None:
        """Make rounds until `stop` is set, a new one `interval_s` after the last at the latest."""
        while not stop.is_set():
            self._woken.clear()
            began = self.clock()
            self.run_round(stop=stop)
            ended = self.clock()
            self.metrics.note_round(self.name, ended - began)
            while self.clock() < ended + interval_s and not stop.is_set():
                if self._woken.wait(min(_LOOK_S, interval_s)):
                    break
        for duty in self.duties:
            if duty.at_the_end and self._may_run(duty):
                self._do(duty)

    def run_round(self, *, stop: threading.Event | None = None) -> None:
        """Do each duty whose time has come."""
        self.health.beat(self.name)
        for duty in self.duties:
            if stop is not None and stop.is_set():
                return
            if self.clock() >= self._due_at.get(duty.name, 0.0) and self._may_run(duty):
                self._do(duty)
                self.health.beat(self.name)

    def _may_run(self, duty: Duty) -> bool:
        # A store that is away is one more failure of this duty, and no end of the loop.
        try:
            return (
                self.may_act()
                and (duty.while_paused or not self.is_paused())
                and (duty.while_on_hold or not self.is_on_hold())
            )
        except Exception as error:  # noqa: BLE001 - as in `_do`
            self._note_failure(duty, error)
            return False

    def _do(self, duty: Duty) -> None:
        # A loop's one broad `except`: whatever goes wrong in a duty, the others are done.
        try:
            duty.part.run()
        except ForgeBusyError as error:
            # Nothing failed: there is too much to do, and it is done when it may be.
            self._due_at[duty.name] = self.clock() + duty.every_s
            log.info("duty waits", loop=self.name, duty=duty.name, why=str(error))
        except Exception as error:  # noqa: BLE001 - logged and counted there
            self._note_failure(duty, error)
        else:
            self._failures.pop(duty.name, None)
            self._due_at[duty.name] = self.clock() + duty.every_s
            if self.health.recover(duty.name):
                log.info("duty goes well again", loop=self.name, duty=duty.name)

    def _note_failure(self, duty: Duty, error: Exception) -> None:
        failures = self._failures[duty.name] = self._failures.get(duty.name, 0) + 1
        longest_s = max(_LONGEST_WAIT_S, duty.every_s)
        self._due_at[duty.name] = self.clock() + min(longest_s, 2.0 ** min(failures, 20))
        self.metrics.count_failure(duty.name)
        why = f"{type(error).__name__}: {error}"
        if self.health.fail(duty.name, why):
            log.error("duty failed", loop=self.name, duty=duty.name, exc_info=error)
