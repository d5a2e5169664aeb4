"""A stop that is heard: SIGTERM and SIGINT set an event rather than end the process."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DEADLINE_S = 9.5
"""Who is not done by then is cut off: a kill is safe at any moment, a late end may not be."""


@contextmanager
def heeding_signals(*, deadline_s: float = DEADLINE_S) -> Iterator[threading.Event]:
    """Have the signals set the event that is handed out; as before afterwards.

    The process is gone `deadline_s` after the first signal, even if git then waits for a network
    that does not answer.
    """
    stop = threading.Event()
    cut_off = threading.Timer(deadline_s, os._exit, [0])
    cut_off.daemon = True

    heard = threading.Event()

    def heed(*_: object) -> None:
        stop.set()
        if not heard.is_set():  # `stop` may have been set by something else before
            heard.set()
            cut_off.start()

    before = {number: signal.signal(number, heed) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        cut_off.cancel()
        for number, old in before.items():
            signal.signal(number, old)
