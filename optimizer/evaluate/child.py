"""The entry of a child process: takes its limits on, then answers one message after the other.

Started by `optimizer.evaluate.sandbox` only: ``python -m optimizer.evaluate.child FD LIMITS NAME``.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optimizer.evaluate import frames

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38


def main(argv: list[str]) -> int:
    """Answer messages until the parent closes the socket."""
    descriptor, limits, name = argv
    stream = socket.socket(fileno=int(descriptor))
    stream.set_inheritable(False)
    _take_limits_on(json.loads(limits))
    # Imported at once, so that several children of a judge start side by side.
    answer = Answerer(name)
    while (message := frames.receive(stream)) is not None:
        stream.sendall(frames.encode(json.dumps(answer(message))))
    return 0


class Answerer:
    """Answers messages by a function, or by the error with which it can't be imported."""

    def __init__(self, name: str) -> None:
        self._function: Callable[[str], str] | None = None
        self._told: dict[str, str] = {}
        try:
            self._function = find_function(name)
        except Exception as error:  # noqa: BLE001 - as below
            self._told = _told(error)

    def __call__(self, message: str) -> dict[str, str]:
        """Return the function's value, or the error that it raised."""
        if self._function is None:
            return self._told
        try:
            return {"value": self._function(message)}
        except Exception as error:  # noqa: BLE001 - whatever foreign code raises is an answer
            return _told(error)


def find_function(name: str) -> Callable[[str], str]:
    """Return what ``package.module:name`` names; of a class, a new instance (it keeps state)."""
    module, _, attribute = name.partition(":")
    found: Any = getattr(importlib.import_module(module), attribute)
    made: Callable[[str], str] = found() if isinstance(found, type) else found
    return made


def _told(error: Exception) -> dict[str, str]:
    trace = "".join(traceback.format_exception(error))
    return {"error": type(error).__name__, "log": trace[-8000:]}


def _take_limits_on(limits: dict[str, int | None]) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != limits["parent"]:  # it died before the line above
        os._exit(1)
    for kind, key in (
        # Not the address space: CUDA reserves far more of it than it ever uses.
        (resource.RLIMIT_DATA, "memory_bytes"),
        (resource.RLIMIT_CPU, "cpu_s"),
        (resource.RLIMIT_FSIZE, "file_bytes"),
    ):
        if (most := limits[key]) is not None:
            resource.setrlimit(kind, (most, most))
    if (processes := limits["processes"]) is not None:
        most = processes + _tasks_of_this_user()
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _tasks_of_this_user() -> int:
    """Return how many threads the user runs now: the kernel's limit counts them all."""
    tasks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it ended meanwhile
                if entry.stat().st_uid == os.getuid():
                    tasks += sum(1 for _ in (entry / "task").iterdir())
    return tasks


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
