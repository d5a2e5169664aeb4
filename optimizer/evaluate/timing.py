"""Takes one sample of one logical call, from a cold cache, on a processor or a CUDA device.

`device_ms` is the time of the work itself, `call_ms` that from the call to the device being idle.
On a processor they are the same: of a call whose inputs are cold and whose code is warm. On CUDA,
`device_ms` lies between two events in a queue that is primed behind a flush of the L2 cache, so
that the host's time is hidden, and a sample tells where it was not; `call_ms` is the host's clock
around a call into an empty queue. A sample there makes two calls, one for each figure.
"""

import math
import resource
import time
from collections.abc import Callable
from statistics import median
from typing import Protocol

import numpy as np
import torch

from optimizer.evaluate.guards import ALL_UP, Guard, Guards
from optimizer.evaluate.lent import map_lent
from optimizer.evaluate.memory import Value
from optimizer.evaluate.protocol import LentMemory, Sample
from optimizer.targets.driver import open_driver

Call = Callable[[], tuple[Value, ...]]
SHORTEST_MS = 1e-6
"""Stands for a time too short for the clock: a time is never zero."""
MOST_PRIMING_MS = 5.0
"""How long the queue is blocked at most while the host enqueues a call."""
_HANDED_OVER_BYTES = 1 << 21
"""Memory that processes share comes in such pieces."""
_SLEEP_CYCLES = 200_000
"""About a tenth of a millisecond: what stands for a flush where the caches shall stay warm."""


class Clock(Protocol):
    """Takes samples on one kind of device."""

    def arm(self) -> None:
        """Flush the caches and come to rest."""
        ...

    def calibrate(self, call: Call) -> int:
        """Return the priming that samples of this call need; it has been warmed up."""
        ...

    def warm_up(self, call: Call) -> None:
        """Make a call on other inputs, after the flush and before the sample, if need be."""
        ...

    def deepen(self, priming: int) -> int:
        """Return the priming for calls of which one found the queue dry."""
        ...

    def fire(self, call: Call, *, priming: int) -> tuple[Sample, tuple[Value, ...]]:
        """Take a sample, and return it with the call's outputs.

        Args:
            call: What is timed.
            priming: What `calibrate` returned for it.
        """
        ...


class HostClock:
    """Samples on a processor."""

    def __init__(
        self, cache_bytes: int, *, flush_file: str | None = None, guards: Guards = ALL_UP
    ) -> None:
        """Take the size of the last-level cache; twice as much is written before each sample."""
        self._cold = guards.up(Guard.FLUSH)
        size = 2 * cache_bytes
        self._flush = (
            np.memmap(flush_file, dtype=np.uint8, mode="r+", shape=(size,))
            if flush_file
            else np.zeros(size, dtype=np.uint8)
        )

    def arm(self) -> None:
        """See `Clock.arm`.

        By one thread: OpenMP's would go on spinning, and disturb whoever is measured next.
        """
        if self._cold:
            self._flush += 1

    def calibrate(self, call: Call) -> int:
        """See `Clock.calibrate`; nothing to hide here."""
        return 0

    def warm_up(self, call: Call) -> None:
        """See `Clock.warm_up`.

        The flush leaves the code cold too, which costs a small operator more than its work does.
        A call on other inputs brings the code back, and leaves these inputs cold.
        """
        call()

    def deepen(self, priming: int) -> int:
        """See `Clock.deepen`; nothing to hide here."""
        return priming

    def fire(self, call: Call, *, priming: int) -> tuple[Sample, tuple[Value, ...]]:
        """See `Clock.fire`."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter_ns()
        outputs = call()
        took_ms = max((time.perf_counter_ns() - began) * 1e-6, SHORTEST_MS)
        return make_sample(took_ms, took_ms, before), outputs


class CudaClock:
    """Samples on a CUDA device.

    What it needs of torch and of the driver it takes when it is made, before any candidate is
    loaded: a candidate that puts its own functions in their places changes nothing here.
    """

    def __init__(self, cache_bytes: int, *, memory: str | None, guards: Guards = ALL_UP) -> None:
        """Take the size of the L2 cache; at least four times as much is written before a call.

        Args:
            cache_bytes: The cache's size.
            memory: Where this process is handed the memory to write, which many share; its own
                if None.
            guards: Those that are up.
        """
        self._cold = guards.up(Guard.FLUSH)
        size = flush_bytes(cache_bytes)
        self._memory = (
            torch.zeros(size, dtype=torch.uint8, device="cuda")
            if memory is None
            else map_lent(LentMemory(path=memory, nbytes=size), "cuda")
        )
        self._fill = self._memory.zero_
        self._flush = self._write_over
        self._start, self._end = _event(), _event()
        self._elapsed_ms = self._start.elapsed_time
        self._record = (self._start.record, self._end.record)
        self._begun: Callable[[], bool] = self._start.query
        self._await_end = self._end.synchronize
        self._driver = open_driver()
        # A device without a share of its cache for such lines refuses the call.
        self._lets_go = self._driver.allows("cuCtxResetPersistingL2Cache")
        self._wait()
        self._flush_ms = median(self._time_flush() for _ in range(5))
        self._idle_ms = median(self._time_wait() for _ in range(9))

    def arm(self) -> None:
        """See `Clock.arm`."""
        self._wait()
        self._let_go()

    def calibrate(self, call: Call) -> int:
        """See `Clock.calibrate`: as many flushes as hide the time that the host needs."""
        host_ms = median(self._host_ms(call) for _ in range(3))
        return flushes_to_hide(host_ms, self._flush_ms)

    def warm_up(self, call: Call) -> None:
        """See `Clock.warm_up`; a flush of the device leaves the host's code warm."""

    def deepen(self, priming: int) -> int:
        """See `Clock.deepen`."""
        return min(2 * priming, flushes_to_hide(MOST_PRIMING_MS, self._flush_ms))

    def fire(self, call: Call, *, priming: int) -> tuple[Sample, tuple[Value, ...]]:
        """See `Clock.fire`."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        start, end = self._record
        for _ in range(max(1, priming)):
            self._flush()
        start()
        call()
        end()
        # The device was at the call already, so it may have waited for the host within it.
        dry = bool(self._begun())
        self._await_end()
        # Whatever the call left to other streams makes the whole device busy for longer.
        late_ms = max(0.0, self._time_wait() - self._idle_ms)
        device_ms = max(self._elapsed_ms(self._end), SHORTEST_MS)
        self._let_go()
        self._flush()
        self._wait()
        began = time.perf_counter_ns()
        outputs = call()
        self._wait()
        call_ms = max((time.perf_counter_ns() - began) * 1e-6, SHORTEST_MS)
        return make_sample(device_ms, call_ms, before, late_ms=late_ms, dry=dry), outputs

    def _let_go(self) -> None:
        """Let lines go that were asked to stay in the L2 cache: the next flush takes them too."""
        if self._cold and self._lets_go:
            self._driver.call("cuCtxResetPersistingL2Cache")

    def _write_over(self) -> None:
        """Write over the cache; with the guard down only a corner of it, to hide the host."""
        if self._cold:
            self._fill()
        else:
            torch.cuda._sleep(_SLEEP_CYCLES)  # type: ignore[no-untyped-call] # noqa: SLF001 - torch has no other

    def _wait(self) -> None:
        """Wait until the device is idle, on every stream."""
        self._driver.call("cuCtxSynchronize")

    def _time_wait(self) -> float:
        began = time.perf_counter_ns()
        self._wait()
        return (time.perf_counter_ns() - began) * 1e-6

    def _time_flush(self) -> float:
        start, end = self._record
        start()
        self._flush()
        end()
        self._wait()
        return float(self._elapsed_ms(self._end))

    def _host_ms(self, call: Call) -> float:
        self._wait()
        began = time.perf_counter_ns()
        call()
        took_ms = (time.perf_counter_ns() - began) * 1e-6
        self._wait()
        return took_ms


def flush_bytes(cache_bytes: int) -> int:
    """Return how many bytes are written to flush a device's L2 cache."""
    size = max(4 * cache_bytes, 1 << 28)
    return size + -size % _HANDED_OVER_BYTES


def make_clock(
    device: str, cache_bytes: int, *, flush_file: str | None = None, guards: Guards = ALL_UP
) -> Clock:
    """Return the clock of a kind of device."""
    if device == "cuda":
        return CudaClock(cache_bytes, memory=flush_file, guards=guards)
    return HostClock(cache_bytes, flush_file=flush_file, guards=guards)


def flushes_to_hide(host_ms: float, flush_ms: float) -> int:
    """Return how many flushes keep the device busy while the host enqueues a call, with a margin.

    The margin is wide, because a single call after a pause takes the host several times as long as
    one of a row of calls, and a queue that runs dry makes a short kernel look slow. A call that
    waits for the device in its middle can't be hidden: the number is bounded.
    """
    hidden_ms = min(3.0 * host_ms + 0.2, MOST_PRIMING_MS)
    return max(1, math.ceil(hidden_ms / max(flush_ms, SHORTEST_MS)))


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's


def make_sample(
    device_ms: float,
    call_ms: float,
    before: resource.struct_rusage,
    *,
    late_ms: float = 0.0,
    dry: bool = False,
) -> Sample:
    """Return a sample with what happened to the process since `before`."""
    after = resource.getrusage(resource.RUSAGE_SELF)
    return Sample(
        device_ms=device_ms,
        call_ms=call_ms,
        faults=after.ru_minflt - before.ru_minflt,
        preemptions=after.ru_nivcsw - before.ru_nivcsw,
        late_ms=late_ms,
        dry=dry,
    )
