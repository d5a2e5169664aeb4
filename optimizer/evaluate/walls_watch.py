"""The first process of a child's own process namespace: it waits, and ends what takes too much.

The kernel kills all processes of the namespace with it. It runs no foreign code.
"""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from optimizer.evaluate.walls_terms import Terms

_CALM_S: Final = 1.0
_TENSE_S: Final = 0.05
_TENSE_FROM: Final = 0.5
"""Which share of a limit makes it look more often."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def watch(worker: int, terms: Terms, *, count: bool, tell: Callable[[str], None]) -> NoReturn:
    """Wait for the worker's end, and tell how it ended; SIGCHLD must be blocked before it starts.

    Args:
        worker: The process that answers.
        terms: How much all processes may use.
        count: Whether the kernel does not bound the number of processes by itself.
        tell: Sends a line to the judge.
    """
    usage = Usage(terms, count=count)
    while (status := _reap(worker)) is None:
        if excess := usage.excess():
            tell(f"excess {excess}")
            os.kill(-1, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, usage.patience_s)
    tell(f"exit {os.waitstatus_to_exitcode(status)}")
    os._exit(0)


@dataclass
class Usage:
    """What all processes of a namespace use together, found by looking."""

    terms: Terms
    count: bool
    _share: float = 0.0
    _free: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look how full the disks are before anything runs."""
        self._free = {path: _free_bytes(path) for path in (*self.terms.write, *self.terms.fill)}

    @property
    def patience_s(self) -> float:
        """Return how long not to look."""
        return _TENSE_S if self.count or self._share > _TENSE_FROM else _CALM_S

    def excess(self) -> str:
        """Return what is used too much; empty where nothing is."""
        held = sum(_resident_bytes(pid) for pid in _processes())
        written = max((free - _free_bytes(path) for path, free in self._free.items()), default=0)
        running = sum(_tasks(pid) for pid in _processes()) if self.count else 0
        terms = self.terms
        uses = (
            (f"its processes hold {held >> 20} MiB", held, terms.total_bytes),
            (f"it wrote {written >> 20} MiB", written, terms.disk_bytes),
            (f"it runs {running} processes and threads", running, terms.processes),
        )
        bounded = [(told, used, most) for told, used, most in uses if most is not None]
        self._share = max((used / most for _, used, most in bounded), default=0.0)
        return next((f"{told}, too many" for told, used, most in bounded if used > most), "")


def _reap(worker: int) -> int | None:
    """Return the worker's status once it has ended; others' ends are of no interest."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == worker:
            return status
        if pid == 0:
            return None


def _processes() -> Iterator[str]:
    return (name for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 - texts do


def _resident_bytes(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:  # noqa: PTH123 - looked at often
            return int(stream.read().split()[1]) * _PAGE
    except (OSError, IndexError):  # it ended meanwhile
        return 0


def _tasks(pid: str) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 - texts do
    except OSError:
        return 0


def _free_bytes(path: str) -> int:
    try:
        told = os.statvfs(path)
    except OSError:
        return 0
    return told.f_bfree * told.f_frsize
