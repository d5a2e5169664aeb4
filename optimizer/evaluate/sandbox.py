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
from pathlib import Path
from typing import IO, Self

from optimizer.evaluate import frames
from optimizer.evaluate.child_errors import (
    ChildDiedError,
    ChildError,
    ChildRaisedError,
    ChildTimedOutError,
)
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.limits import Limits, terms_of
from optimizer.evaluate.scratch import make_scratch
from optimizer.evaluate.sweeping import MARK, kill_group
from optimizer.evaluate.walls_layout import readable
from optimizer.evaluate.walls_terms import Terms

__all__ = [
    "Child",
    "ChildDiedError",
    "ChildError",
    "ChildRaisedError",
    "ChildTimedOutError",
    "Limits",
    "call",
    "shows",
    "start",
]
_ROOT = Path(__file__).parents[2]
_TAIL_BYTES = 8192
_STATUS_BYTES = 1024
_REAPED_S = 30.0
_PATIENCE_WITHOUT_DEADLINE = 20.0
_INHERITED = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "OMP_NUM_THREADS",
)  # fmt: skip


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


def shows(path: Path) -> bool:
    """Return whether a child is shown a file beside the folders that it is given."""
    shown = {Path(folder) for folder in readable(os.environ)}
    forms = (path.absolute(), path.resolve())
    return any(not shown.isdisjoint([form, *form.parents]) for form in forms)


class Child:
    """A process, the head of a session of its own. It dies with the thread that started it."""

    def __init__(self, function: str, limits: Limits) -> None:
        self._mark = uuid.uuid4().hex
        self._since = time.time() - 1.0  # the kernel's clock ticks coarsely
        self._gone, self._closed = False, False
        self._patience = 1.0 if limits.guards.up(Guard.DEADLINE) else _PATIENCE_WITHOUT_DEADLINE
        self._received, self._tail, self._told = bytearray(), bytearray(), bytearray()
        self._scratch = make_scratch()
        ours, theirs = socket.socketpair()
        self._status, status = os.pipe()
        os.set_blocking(self._status, False)
        with theirs, open(status, "wb"):  # noqa: PTH123 - closes a descriptor
            fds = (theirs.fileno(), status)
            self._process = subprocess.Popen(
                _command(
                    function,
                    terms_of(limits, self._scratch, os.environ),
                    socket_fd=fds[0],
                    status_fd=fds[1],
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._scratch,
                env=_environment(limits, self._scratch, self._mark),
                pass_fds=fds,
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
        until = time.monotonic() + deadline_s * self._patience
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
        self._end()
        self._drain()
        self._socket.close()
        self._output.close()
        self._hear()
        os.close(self._status)
        self._closed = True
        self._sweep()

    def _end(self) -> None:
        watch = self._heard("watch")
        if watch is None:
            kill_group(self._process.pid, self._mark, since=self._since)
        elif self._process.poll() is None:
            # The porter waits for it, and the kernel lets it go last of all in its namespace.
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(watch), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A driver can hold a killed process for a while; a judge that waits for ever is worse.
            self._process.wait(timeout=_REAPED_S)

    def _hear(self) -> None:
        """Take in what was told of the child from outside its reach."""
        with contextlib.suppress(BlockingIOError):
            self._told += os.read(self._status, _STATUS_BYTES)

    def _heard(self, word: str) -> str | None:
        if not self._closed:
            self._hear()
        for line in self._told.decode().splitlines():
            said, _, rest = line.partition(" ")
            if said == word:
                return rest
        return None

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
        excess = self._heard("excess")
        said = excess or self._tail.decode(errors="replace").strip()
        return ChildDiedError(self._exit_code, said or str(error), excess=excess is not None)

    @property
    def _exit_code(self) -> int:
        told = self._heard("exit")
        code: int | None = self._process.returncode if told is None else int(told)
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


def _command(function: str, terms: Terms, *, socket_fd: int, status_fd: int) -> list[str]:
    # -P: the child's folder is foreign code's to write in, so nothing is imported from there.
    module = ["-P", "-m", "optimizer.evaluate.child"]
    return [sys.executable, *module, str(socket_fd), str(status_fd), terms.to_json(), function]


def _environment(limits: Limits, scratch: Path, mark: str) -> dict[str, str]:
    scrubbed = limits.guards.up(Guard.ENVIRONMENT)
    names = _INHERITED if scrubbed else tuple(os.environ)
    kept = {name: os.environ[name] for name in names if name in os.environ}
    own = {
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, sys.path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        MARK: mark,
    }
    return {**kept, **own, **limits.environment}


def _time_left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
