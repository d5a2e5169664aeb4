"""A lock that is fair: first come, first served, and the urgent before all others.

Python's own lock may go to the same thread again and again, while others wait for a list of fifty
pages to end.
"""

import heapq
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count


class Turns:
    """One thread has the turn at a time. It is not for a thread that has it already."""

    def __init__(self) -> None:
        """Nobody has the turn."""
        self._change = threading.Condition()
        self._waiting: list[tuple[bool, int]] = []
        self._tickets = count()
        self._taken = False

    @contextmanager
    def turn(self, *, urgent: bool = False) -> Iterator[None]:
        """Wait for the turn and have it."""
        with self._change:
            ticket = (not urgent, next(self._tickets))
            heapq.heappush(self._waiting, ticket)
            while self._taken or self._waiting[0] != ticket:
                self._change.wait()
            heapq.heappop(self._waiting)
            self._taken = True
        try:
            yield
        finally:
            with self._change:
                self._taken = False
                self._change.notify_all()
