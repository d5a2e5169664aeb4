"""Jobs: ``python -m optimizer`` as a process of its own, its events read while it runs.

JobError               the job has no result
├── JobRefusedError    it says itself why: a machine or a caller is at fault
├── JobDiedError       it ended without a word
└── JobLostError       it was sent to another machine, and nothing that can be used came back
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Literal, Protocol

import psutil
from pydantic import ValidationError

from daemon.logs import find_log
from daemon.settings import environment_of_jobs
from operator_registry.record import Record
from optimizer.job import (
    ErrorEvent,
    OptimizeRequest,
    PhaseEvent,
    Result,
    ResultEvent,
    TrialEvent,
    VerifyRequest,
    load_event,
)
from optimizer.runners.access import LocalAccess

Task = Literal[
    "optimize",
    "evaluate",
    "verify",
    "doctor",
    "bench",
    "aa",
    "throughput",
    "landscapes",
    "search",
    "redteam",
    "admit",
]
Progress = PhaseEvent | TrialEvent
_ROOT = Path(__file__).parent.parent
_TETHER = Path(__file__).with_name("tether.py")
OPTIMIZER = (sys.executable, "-m", "optimizer")
GRACE_S = 6.0
"""How long a job may take to stop: four seconds for a trial that is nearly done, the rest for its
end. A person who says stop is promised that all is gone ten seconds after that."""
_TICK_S = 0.2
_END_S = 5.0
_TAIL_BYTES = 4096

log = find_log(__name__)


class JobError(Exception):
    """The job has no result."""


class JobRefusedError(JobError):
    """The job says that it can't do its work, and why."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{message} ({error})")
        self.error = error
        self.message = message


class JobDiedError(JobError):
    """The job ended without a result."""

    def __init__(self, exit_code: int, said: str) -> None:
        lines = said.strip().splitlines()
        how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        super().__init__(f"the job died ({how}): {lines[-1] if lines else 'it said nothing'}")
        self.exit_code = exit_code
        self.said = said
        """The end of its error output."""


class JobLostError(JobError):
    """The job was sent to another machine, and nothing that can be used came back."""


class RunsJobs(Protocol):
    """Where jobs are done."""

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result, or None where it has none yet; see `Jobs.run`."""
        ...


@dataclass(frozen=True)
class Jobs:
    """Starts jobs, one at a time."""

    command: Sequence[str] = OPTIMIZER
    grace_s: float = GRACE_S

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result, or None where it was stopped before it had one.

        Args:
            task: What to do.
            request: The record that the task takes.
            on_progress: Called with each event before the last.
            keep_going: Asked several times a second; the job is stopped once it says no.

        Raises:
            JobRefusedError: The job could not do its work.
            JobDiedError: The job ended without a result.
        """
        with _started((*self.command, task), request) as (process, errors):
            reader = _Reader(process, on_progress)
            stopped_at: float | None = None
            while reader.read(_TICK_S):
                if stopped_at is None and not keep_going():
                    stopped_at = time.monotonic()
                    process.send_signal(signal.SIGTERM)
                if stopped_at is not None and time.monotonic() - stopped_at > self.grace_s:
                    break
            else:
                # It has said its last word; its own end, and exit code, come a moment later.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_S if stopped_at is None else _TICK_S)
            end = reader.end
        if end is None and stopped_at is not None:
            return None
        if end is None:
            raise JobDiedError(process.returncode, errors[0] if errors else "")
        if isinstance(end, ErrorEvent):
            raise JobRefusedError(end.error, end.message)
        return end.result


@dataclass
class _Reader:
    """Reads a job's events, line by line, without ever waiting long."""

    process: subprocess.Popen[bytes]
    on_progress: Callable[[Progress], None]
    end: ResultEvent | ErrorEvent | None = None
    _left: bytes = field(default=b"", init=False)

    def read(self, wait_s: float) -> bool:
        """Read what there is within some time; return False once the job will say no more."""
        stdout = _stdout(self.process)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(wait_s):
                return self.process.poll() is None
        chunk = os.read(stdout.fileno(), 1 << 16)
        *lines, self._left = (self._left + chunk).split(b"\n")
        for line in lines:
            self._take(line)
        return bool(chunk) and self.end is None

    def _take(self, line: bytes) -> None:
        try:
            event = load_event(line)
        except ValidationError:
            # Something below the job wrote to its output; an event is never more than noise away.
            log.warning("job said what is no event", line=line[:200].decode(errors="replace"))
            return
        if isinstance(event, ResultEvent | ErrorEvent):
            self.end = event
        else:
            self.on_progress(event)


@contextmanager
def _started(
    command: Sequence[str], request: Record
) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """Start a job; whatever happens, nothing of it runs afterwards."""
    errors: list[str] = []
    device = find_local(request)
    cores = ",".join(map(str, device.cores))
    tied = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), cores, *command]
    with TemporaryFile() as stdin, TemporaryFile() as stderr:
        stdin.write(request.to_json().encode())
        stdin.seek(0)
        process = subprocess.Popen(
            tied,
            env=environment_of_jobs(
                gpu=device.gpu
            ),  # foreign code runs there: it learns no token of ours
            cwd=_ROOT,  # `-m` looks there first: a folder of the user's can't stand in for ours
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            yield process, errors
        finally:
            _kill(process)
            errors.append(_tail(stderr))
            _stdout(process).close()


def find_local(request: Record) -> LocalAccess:
    """Return what of this machine a job may use: all of it, where no device is leased for it."""
    device = request.device if isinstance(request, OptimizeRequest | VerifyRequest) else None
    if device is None or not isinstance(device.access, LocalAccess):
        return LocalAccess()
    return device.access


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)  # the tether kills what is left, and then ends
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None  # noqa: S101 - asked for above
    return process.stdout


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    return file.read().decode(errors="replace")
