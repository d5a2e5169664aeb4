"""Worker processes that are started before they are wanted: importing torch takes seconds."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from optimizer.evaluate.process import Place, Process


@dataclass
class Spares:
    """Some workers that have held no candidate yet. A worker that misbehaved is never reused.

    To start one takes a core for a second, so on a processor it is done while nothing is timed:
    `refill` when that is so, `settle` before it ends. Beside a device it may be done at any time.
    """

    place: Place
    count: int
    make: Callable[[Place], Process] = Process
    _waiting: deque[Future[Process]] = field(default_factory=deque)
    _pool: ThreadPoolExecutor | None = None

    def refill(self) -> None:
        """Start as many as are missing, and return at once."""
        # A child dies with the thread that started it, so the threads live as long as the spares.
        self._pool = self._pool or ThreadPoolExecutor(self.count)
        while len(self._waiting) < self.count:
            self._waiting.append(self._pool.submit(self._start))

    def settle(self) -> None:
        """Wait until all that were begun are ready."""
        wait(self._waiting)

    def take(self) -> Process:
        """Return a worker that holds nothing, and knows no clock yet.

        Raises:
            RunnerError: It can't be started.
        """
        while self._waiting:
            process = self._waiting.popleft().result()
            if process.alive:
                return process
            process.kill()
        return self._start()

    def close(self) -> None:
        """End all that nobody took, and all that the pool's threads started."""
        if self._pool is None:
            return
        for future in self._waiting:
            future.add_done_callback(_kill)
        self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None

    def _start(self) -> Process:
        process = self.make(self.place)
        # Without a clock: to make one takes time on the device, which somebody else may hold.
        process.greet(timed=False)
        return process


def _kill(started: Future[Process]) -> None:
    if not started.cancelled() and started.exception() is None:
        started.result().kill()
