"""The worker that tries candidates, and spare ones: importing torch takes seconds."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field

from optimizer.errors import RunnerError
from optimizer.evaluate.process import Place, Process
from optimizer.evaluate.protocol import Case
from optimizer.evaluate.sandbox import ChildError


@dataclass
class Workers:
    """One worker in use, and some that have held no candidate yet to take its place.

    To start one takes a core for a second, so on a processor it is done while nothing is timed:
    `refill` when that is so, `settle` before it ends. Beside a device it may be done at any time.
    """

    place: Place
    timed: bool
    """Whether the one in use needs a clock."""
    spares: int
    _current: Process | None = None
    _waiting: deque[Future[Process]] = field(default_factory=deque)
    _pool: ThreadPoolExecutor | None = None

    @property
    def alive(self) -> bool:
        """Return whether there is one in use, and it runs."""
        return self._current is not None and self._current.alive

    def open(self) -> Process:
        """Return the worker in use; a spare one takes the place of one that has ended.

        Raises:
            RunnerError: None can be started.
        """
        if self._current is None or not self._current.alive:
            self.end()
            self._current = self._make_ready()
        return self._current

    def end(self) -> None:
        """End the one in use: whatever it holds, the next one does not."""
        if self._current is not None:
            self._current.kill()
            self._current = None

    def forget(self, case: Case) -> None:
        """Let the one in use forget a case."""
        if self._current is None or not self._current.alive:
            return
        try:
            self._current.drop(case)
        except ChildError:
            self.end()  # it holds nothing any more

    def refill(self) -> None:
        """Start as many spares as are missing, and return at once."""
        if not self.spares:
            return
        # A child dies with the thread that started it, so the threads live as long as the spares.
        self._pool = self._pool or ThreadPoolExecutor(self.spares)
        while len(self._waiting) < self.spares:
            self._waiting.append(self._pool.submit(self._start))

    def settle(self) -> None:
        """Wait until all that were begun are ready."""
        wait(self._waiting)

    def close(self) -> None:
        """End all."""
        self.end()
        for future in self._waiting:
            future.add_done_callback(_kill)
        self._waiting.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _make_ready(self) -> Process:
        process = self._take()
        if not self.timed:
            return process
        try:
            process.greet()
        except RunnerError:
            if not process.was_killed:
                raise
            process = self._start()
            process.greet()
        return process

    def _take(self) -> Process:
        while self._waiting:
            process = self._waiting.popleft().result()
            if process.alive:
                return process
            process.kill()
        return self._start()

    def _start(self) -> Process:
        # Without a clock: to make one takes time on the device, which somebody else may hold.
        process = Process(self.place)
        process.greet(timed=False)
        return process


def _kill(started: Future[Process]) -> None:
    if not started.cancelled() and started.exception() is None:
        with suppress(RuntimeError):  # what was lent to it may have been taken back already
            started.result().kill()
