"""Kills whatever a child has started, where no process namespace ends all of it at once."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from typing import Final

import psutil

MARK: Final = "KERNELEVOLVE_CHILD"
"""The variable by which a child's processes are told from others'."""
_STARTED_S: Final = 1.0
"""How long a process may take from its file to its environment."""


def kill_group(group: int, mark: str, *, since: float) -> None:
    """Kill a process group, then whatever left it but still carries the mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    blank = _kill_marked(psutil.process_iter(), mark, since=since)
    # What is just being started shows no environment yet, though its parent has its id already.
    until = time.monotonic() + _STARTED_S
    while blank and time.monotonic() < until:
        time.sleep(0.005)
        blank = _kill_marked(blank, mark, since=since)


def _kill_marked(
    processes: Iterable[psutil.Process], mark: str, *, since: float
) -> list[psutil.Process]:
    """Kill those that carry the mark; return the young ones of which it can't be told yet."""
    blank = []
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if environment.get(MARK) == mark:
                process.kill()
            # The kernel's own threads have no file, and dead processes have none left.
            elif not environment and process.exe() and process.create_time() > since:
                blank.append(process)
    return blank
