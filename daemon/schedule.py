"""When: APScheduler as a clock, and as no more. What must not be lost lies in the store."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.background import BackgroundScheduler

from daemon.logs import find_log

log = find_log(__name__)
_LOOK_S = 0.25
_WHAT = {EVENT_JOB_ERROR: "turn failed", EVENT_JOB_MISSED: "turn was missed"}


def run_every(
    turn: Callable[[], None],
    interval_s: float,
    *,
    stop: threading.Event,
    wake: threading.Event | None = None,
    on_fault: Callable[[str], None] = lambda _: None,
) -> None:
    """Make turns until `stop` is set: the first at once, never two at a time.

    Returns when the turn that then runs has ended; a turn is expected to look at `stop` itself.

    Args:
        turn: What to do.
        interval_s: How long from one turn's beginning to the next one's.
        stop: Set once no more turns should be made.
        wake: Set where a turn should be made before its time; cleared here.
        on_fault: Called with what went wrong in the clock, or in a turn that raised.
    """
    scheduler = BackgroundScheduler(
        timezone=UTC,
        job_defaults={
            # A turn that was missed is made as soon as it can be, however late; many become one.
            "misfire_grace_time": None,
            "coalesce": True,
            "max_instances": 1,
        },
    )

    def report(event: JobEvent) -> None:
        if event.code in _WHAT:
            log.error(_WHAT[event.code], error=str(getattr(event, "exception", "")))
            on_fault(_WHAT[event.code])
        else:
            log.debug("the last turn still runs")

    scheduler.add_listener(report, EVENT_JOB_ERROR | EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
    job = scheduler.add_job(turn, "interval", seconds=interval_s, next_run_time=datetime.now(UTC))
    scheduler.start()
    try:
        while not stop.wait(_LOOK_S):
            if wake is not None and wake.is_set():
                wake.clear()
                job.modify(next_run_time=datetime.now(UTC))
    finally:
        scheduler.shutdown(wait=True)
