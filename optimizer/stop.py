"""A polite end: asked by a signal, the job gets some seconds, then its work is unwound."""

import os
import signal
from types import FrameType, TracebackType
from typing import Self

import psutil

ASKED_BY = (signal.SIGTERM, signal.SIGINT)
GRACE_S = 4.0
"""A trial that is nearly done may end, and is then recorded."""
UNWIND_S = 3.0
"""Afterwards what runs is unwound, which kills its children; who takes longer is cut off."""


class StoppedError(BaseException):
    """The job was asked to stop and had not done so in time.

    No `Exception`: nothing between the job's work and its entry may take it for a failed trial.
    """


class Stop:
    """Whether the job has been asked to stop: ``with Stop() as stopped: ... stopped()``."""

    def __init__(self, *, grace_s: float = GRACE_S, unwind_s: float = UNWIND_S) -> None:
        self.asked = False
        self._grace_s = grace_s
        self._unwind_s = unwind_s
        self._unwinding = False

    def __call__(self) -> bool:
        """Return whether the job should begin nothing more."""
        return self.asked

    def __enter__(self) -> Self:
        """Listen for the signals; only the main thread can."""
        for number in ASKED_BY:
            signal.signal(number, self._ask)
        signal.signal(signal.SIGALRM, self._force)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no child behind."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        kill_children()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self.asked:
            self.asked = True
            signal.setitimer(signal.ITIMER_REAL, self._grace_s)

    def _force(self, number: int, frame: FrameType | None) -> None:
        if self._unwinding:
            kill_children()
            os._exit(1)
        self._unwinding = True
        signal.setitimer(signal.ITIMER_REAL, self._unwind_s)
        raise StoppedError


def kill_children() -> None:
    """Kill every process that this one has started, and theirs."""
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
