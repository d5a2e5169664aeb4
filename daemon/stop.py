"""A stop that is heard: SIGTERM and SIGINT set an event rather than end the process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heeding_signals() -> Iterator[threading.Event]:
    """Have the signals set the event that is handed out; as before afterwards."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)
