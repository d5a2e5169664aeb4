"""Jobs on leased devices: one after another on a single device, side by side on several."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from daemon.actions.parcel import find_key
from daemon.actions.runner import AWAY, find_hardware
from daemon.fleet.lending import Lease, Lending
from daemon.jobs import JobError, JobRefusedError, Progress, RunsJobs, Task
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from optimizer.job import OptimizeRequest, Result, VerifyRequest

_MOST_THREADS = 256
"""Each waits for one job; there are never more than devices are lent."""
LOST = frozenset({"WorkerLostError", "DeviceLostError"})


@dataclass(frozen=True)
class OnDevice:
    """Does one job on a device, which is given back however that ends; see `daemon.jobs.Jobs`."""

    jobs: RunsJobs
    lease: Lease

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result; None where it was stopped, or its device is to be drained.

        Raises:
            JobError: The job has no result.
        """
        lease, key = self.lease, find_key(request)
        try:
            result = self.jobs.run(
                task,
                _on(request, lease),
                on_progress=on_progress,
                keep_going=lambda: keep_going() and lease.renew(),
            )
        except JobError as error:
            if isinstance(error, JobRefusedError) and error.error in LOST:
                lease.lending.note_loss(key, lease.device.name)
            raise
        else:
            lease.lending.forget(key)
            return result
        finally:
            lease.give_back()


@dataclass(frozen=True)
class LeasedJobs:
    """Does jobs here, one at a time, each while its device is leased; see `daemon.jobs.Jobs`."""

    jobs: RunsJobs
    lending: Lending

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result; None where it was stopped, or its device is not to be had.

        Raises:
            JobError: The job has no result.
        """
        hardware = find_hardware(request)
        if hardware is None:
            return self.jobs.run(task, request, on_progress=on_progress, keep_going=keep_going)
        lease = lend(self.lending, request, hardware)
        if lease is None:
            return None
        return OnDevice(self.jobs, lease).run(
            task, request, on_progress=on_progress, keep_going=keep_going
        )


@dataclass
class Pool:
    """Has jobs done side by side, one a device: `run` starts one, and tells its end when asked."""

    jobs: RunsJobs
    lending: Lending
    _going: dict[str, Future[Result | None]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        """Make the threads, each of which waits for one job."""
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix=AWAY)

    def run(
        self,
        task: Task,
        request: Record,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        keep_going: Callable[[], bool] = lambda: True,
    ) -> Result | None:
        """Return the job's result, or None while there is none: it runs, or no device is free.

        Args:
            task: What to do.
            request: The record that the task takes; the same one is the same job.
            on_progress: Called from another thread.
            keep_going: Called from another thread, from now on until the job has ended.

        Raises:
            JobError: The job has ended without a result; asked again, it is begun anew.
        """
        key, hardware = find_key(request), find_hardware(request)
        if hardware is None:
            return self.jobs.run(task, request, on_progress=on_progress, keep_going=keep_going)
        with self._lock:
            future = self._going.get(key)
            if future is None:
                if lease := lend(self.lending, request, hardware):
                    self._going[key] = self._threads.submit(
                        OnDevice(self.jobs, lease).run,
                        task,
                        request,
                        on_progress=on_progress,
                        keep_going=keep_going,
                    )
                return None
            if not future.done():
                return None
            del self._going[key]
        return future.result()

    def knows(self, hardware: HardwareSpec) -> bool:
        """Return whether there is any device of a hardware, free or not."""
        return self.lending.knows(hardware)

    def has_room(self, hardware: HardwareSpec) -> bool:
        """Return whether a job for a hardware could begin now."""
        return self.lending.has_room(hardware)

    def is_going(self, key: str) -> bool:
        """Return whether a job is under way or has a result that nobody has asked for yet."""
        with self._lock:
            return key in self._going

    def is_busy(self) -> bool:
        """Return whether any job is under way."""
        with self._lock:
            return any(not future.done() for future in self._going.values())

    def is_done(self, key: str) -> bool:
        """Return whether a job has ended and waits to be asked for."""
        with self._lock:
            future = self._going.get(key)
            return future is not None and future.done()

    def wait(self, wait_s: float) -> None:
        """Wait until a job has ended, or for so long."""
        with self._lock:
            # One that has ended and that nobody asks for would end each wait at once.
            going = [future for future in self._going.values() if not future.done()]
        if going:
            wait(going, wait_s, return_when=FIRST_COMPLETED)
        else:
            time.sleep(wait_s)

    def forget(self, key: str) -> None:
        """Forget a job that has ended, whose result nobody wants any more."""
        with self._lock:
            if (future := self._going.get(key)) is not None and future.done():
                del self._going[key]

    def close(self) -> None:
        """Wait for the threads, which end soon once `keep_going` says no."""
        self._threads.shutdown()


def lend(lending: Lending, request: Record, hardware: HardwareSpec) -> Lease | None:
    """Return a device for a job; None where none is free."""
    return lending.lend(hardware, key=find_key(request), task=describe(request))


def describe(request: Record) -> str:
    """Return what a job does, in words."""
    if isinstance(request, OptimizeRequest):
        return f"{request.operator.name} on {request.hardware.name}"
    if isinstance(request, VerifyRequest):
        return f"replay of {request.kernel_folder.name}"
    return type(request).__name__


def _on(request: Record, lease: Lease) -> Record:
    """Return a request with its device in it."""
    if isinstance(request, OptimizeRequest | VerifyRequest):
        return request.model_copy(update={"device": lease.device})
    return request
