"""Jobs on the code host's own runners, for hardware that is not in this machine."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from daemon.actions.errand import Errand
from daemon.actions.parcel import find_key
from daemon.actions.yard import Yard
from daemon.jobs import JobRefusedError, Progress, RunsJobs, Task
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from optimizer.errors import KernelFolderError
from optimizer.job import OptimizeRequest, Result, VerifyRequest
from optimizer.kernel import read_kernel


@dataclass(frozen=True)
class ActionsJobs:
    """Has jobs done by runners of the code host, and waits for them."""

    yard: Yard
    is_ending: Callable[[], bool] = lambda: False
    """Whether this process ends: a run then goes on, for the next one to find."""
    sleep: Callable[[float], None] = time.sleep

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result; None where it was stopped, and its run cancelled.

        Where the process ends the run is left alone, and the same request finds it again.

        Raises:
            JobRefusedError: The request can't be sent, or the job could not do its work.
            JobLostError: The run never came to be, or ended without an answer that can be used.
        """
        hardware = find_hardware(request)
        if hardware is None:
            error, message = "ParcelError", "this job names no hardware to find a runner by"
            raise JobRefusedError(error, message)
        clock, patience = self.yard.clock, self.yard.patience
        errand = Errand(self.yard, request, hardware, on_progress)
        look_at = clock()
        while keep_going():
            if clock() >= look_at:
                if (result := errand.look()) is not None:
                    return result
                look_at = clock() + patience.look_s
            self.sleep(patience.tick_s)
        while not self.is_ending() and not errand.cancel():
            self.sleep(patience.look_s)
        return None


AWAY = "away"
"""What threads that wait for a job are called by."""


@dataclass
class Away:
    """Has others wait for jobs: `run` starts one, and says what came of it when asked again."""

    jobs: RunsJobs
    at_once: int = 4
    _going: dict[str, Future[Result | None]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        """Make the threads, each of which waits for one job."""
        self._pool = ThreadPoolExecutor(self.at_once, thread_name_prefix=AWAY)

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result, or None while there is none: it runs, or waits for its turn.

        Args:
            task: What to do.
            request: The record that the task takes; the same one is the same job.
            on_progress: Called from another thread.
            keep_going: Called from another thread, from now on until the job has ended.

        Raises:
            JobError: The job has ended without a result; asked again, it is begun anew.
        """
        key = find_key(request)
        with self._lock:
            future = self._going.get(key)
            if future is None:
                if self._under_way() < self.at_once:
                    self._going[key] = self._pool.submit(
                        self.jobs.run, task, request, on_progress=on_progress, keep_going=keep_going
                    )
                return None
            if not future.done():
                return None
            del self._going[key]
        return future.result()

    def _under_way(self) -> int:
        """Return how many jobs are not done; forget results that nobody has come for."""
        done = [key for key, future in self._going.items() if future.done()]
        for key in done[: -self.at_once]:
            del self._going[key]  # a search's is found again by its tag
        return sum(not future.done() for future in self._going.values())

    def is_going(self, key: str) -> bool:
        """Return whether a job is under way or has a result that nobody has asked for yet."""
        with self._lock:
            return key in self._going

    def close(self) -> None:
        """Wait for the threads, which end soon once `keep_going` says no."""
        self._pool.shutdown()


def is_away() -> bool:
    """Return whether this is a thread that waits for another machine."""
    return threading.current_thread().name.startswith(AWAY)


def find_hardware(request: Record) -> HardwareSpec | None:
    """Return the hardware that a job is for; None where any machine will do, or will say more."""
    if isinstance(request, OptimizeRequest):
        return request.hardware
    if isinstance(request, VerifyRequest):
        try:
            return read_kernel(request.kernel_folder).hardware
        except KernelFolderError:
            return None  # a verification says what is wrong with it, anywhere
    return None
