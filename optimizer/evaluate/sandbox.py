"""Runs foreign code in a process of its own that can always be killed."""

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

import psutil

from optimizer.evaluate import frames
from optimizer.evaluate.child_errors import (
    ChildDiedError,
    ChildError,
    ChildRaisedError,
    ChildTimedOutError,
)
from optimizer.evaluate.scratch import make_scratch

__all__ = [
    "Child",
    "ChildDiedError",
    "ChildError",
    "ChildRaisedError",
    "ChildTimedOutError",
    "Limits",
    "call",
    "start",
]
_ROOT = Path(__file__).parents[2]
_MARK = "KERNELEVOLVE_CHILD"
_TAIL_BYTES = 8192
_REAPED_S = 30.0
_STARTED_S = 1.0
"""How long a process may take from its file to its environment."""
_INHERITED = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "OMP_NUM_THREADS",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a child may use; None leaves a kind unlimited."""

    wall_s: float = 60.0
    """For the start and one `call`; `Child.ask` has a deadline of its own."""
    memory_bytes: int | None = 8 << 30
    """Private memory. Shared memory that the parent made is not counted."""
    cpu_s: int | None = None
    file_bytes: int | None = 4 << 30
    """The size of one file."""
    processes: int | None = None
    """Processes and threads; the kernel holds nobody to it who is root."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the few that are inherited."""


def call(function: str, request: str, *, limits: Limits | None = None) -> str:
    """Return ``function(request)``, computed in a fresh process that is gone afterwards.

    Args:
        function: ``package.module:name`` of a function from text to text.
        request: Its argument.
        limits: What the process may use, the wall time included.

    Raises:
        ChildTimedOutError: It was still busy at the deadline.
        ChildDiedError: The process ended before it answered.
        ChildRaisedError: The function raised.
    """
    limits = limits or Limits()
    with start(function, limits=limits) as child:
        return child.ask(request, deadline_s=limits.wall_s)


def start(function: str, *, limits: Limits | None = None) -> "Child":
    """Return a child that answers any number of messages with ``function(message)``.

    Where `function` names a class, one instance of it answers all messages.
    """
    return Child(function, limits or Limits())


class Child:
    """A process, the head of a session of its own. It dies with the thread that started it."""

    def __init__(self, function: str, limits: Limits) -> None:
        self._mark = uuid.uuid4().hex
        self._since = time.time() - 1.0  # the kernel's clock ticks coarsely
        self._gone = False
        self._received, self._tail = bytearray(), bytearray()
        self._scratch = make_scratch()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                _command(function, limits, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._scratch,
                env=_environment(limits, self._scratch, self._mark),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        ours.settimeout(0.0)
        self._socket = ours
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        self._output: IO[bytes] = self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        # For a judge that ends without a word: the kernel kills the child, this sweeps up.
        self._sweep = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it."""
        self.kill()

    @property
    def pid(self) -> int:
        """Return the id of the process, which is also that of its group and its session."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def ask(self, message: str, *, deadline_s: float) -> str:
        """Return the child's answer to a message.

        Raises:
            ChildTimedOutError: No answer by the deadline; the child was killed.
            ChildDiedError: The process ended, or what it sent is no answer; it was killed.
            ChildRaisedError: The function raised; the child lives on.
        """
        until = time.monotonic() + deadline_s
        if self._gone:
            raise ChildDiedError(self._exit_code, "killed before")
        try:
            self._send(frames.encode(message), until=until)
            answer = self._receive(until)
        except TimeoutError:
            self.kill()
            raise ChildTimedOutError(deadline_s) from None
        except (OSError, EOFError, frames.FrameError) as error:
            raise self._bury(error) from error
        return self._open(answer)

    def kill(self) -> None:
        """End the process and all that it started, and remove its scratch folder."""
        if self._gone:
            return
        self._gone = True
        _kill_group(self._process.pid, self._mark, since=self._since)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A driver can hold a killed process for a while; a judge that waits for ever is worse.
            self._process.wait(timeout=_REAPED_S)
        self._drain()
        self._socket.close()
        self._output.close()
        self._sweep()

    def _open(self, answer: str) -> str:
        try:
            fields = json.loads(answer)
            if "error" in fields:
                raise ChildRaisedError(str(fields["error"]), str(fields["log"]))
            return str(fields["value"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._bury(error) from error

    def _bury(self, error: Exception) -> ChildDiedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its last words, and its own exit code rather than that of our kill.
            self._process.wait(timeout=1.0)
        self.kill()
        said = self._tail.decode(errors="replace").strip()
        return ChildDiedError(self._exit_code, said or str(error))

    @property
    def _exit_code(self) -> int:
        code: int | None = self._process.returncode
        return -signal.SIGKILL if code is None else code

    def _send(self, frame: bytes, *, until: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_WRITE)
            selector.register(self._output, selectors.EVENT_READ)
            left = memoryview(frame)
            while left:
                for key, _ in selector.select(_time_left(until)):
                    if key.fileobj is self._socket:
                        left = left[self._socket.send(left) :]
                    elif not self._drain():
                        selector.unregister(self._output)

    def _receive(self, until: float) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._output, selectors.EVENT_READ)
            while (text := frames.split(self._received)) is None:
                for key, _ in selector.select(_time_left(until)):
                    if key.fileobj is self._socket:
                        self._take()
                    elif not self._drain():
                        selector.unregister(self._output)
            return text

    def _take(self) -> None:
        chunk = self._socket.recv(1 << 20)
        if not chunk:
            raise EOFError
        self._received += chunk

    def _drain(self) -> bool:
        """Keep the end of what the child printed; False once it can print no more."""
        try:
            chunk = os.read(self._output.fileno(), 1 << 16)
        except BlockingIOError:
            return True
        self._tail += chunk
        del self._tail[:-_TAIL_BYTES]
        return bool(chunk)


def _command(function: str, limits: Limits, descriptor: int) -> list[str]:
    taken = {
        "memory_bytes": limits.memory_bytes,
        "cpu_s": limits.cpu_s,
        "file_bytes": limits.file_bytes,
        "processes": limits.processes,
        "parent": os.getpid(),
    }
    # -P: the child's folder is foreign code's to write in, so nothing is imported from there.
    module = ["-P", "-m", "optimizer.evaluate.child"]
    return [sys.executable, *module, str(descriptor), json.dumps(taken), function]


def _environment(limits: Limits, scratch: Path, mark: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    own = {
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, sys.path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        _MARK: mark,
    }
    return {**kept, **own, **limits.environment}


def _time_left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _kill_group(group: int, mark: str, *, since: float) -> None:
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
            if environment.get(_MARK) == mark:
                process.kill()
            # The kernel's own threads have no file, and dead processes have none left.
            elif not environment and process.exe() and process.create_time() > since:
                blank.append(process)
    return blank
