"""When: APScheduler as a clock, and as no more. What must not be lost lies in the store."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.background import BackgroundScheduler

from daemon.logs import find_log

log = find_log(__name__)
_WHAT = {EVENT_JOB_ERROR: "turn failed", EVENT_JOB_MISSED: "turn was missed"}


def run_every(turn: Callable[[], None], interval_s: float, *, stop: threading.Event) -> None:
    """Make turns until `stop` is set: the first at once, never two at a time.

    Returns when the turn that then runs has ended; a turn is expected to look at `stop` itself.
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
    scheduler.add_listener(_report, EVENT_JOB_ERROR | EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
    scheduler.add_job(turn, "interval", seconds=interval_s, next_run_time=datetime.now(UTC))
    scheduler.start()
    try:
        stop.wait()
    finally:
        scheduler.shutdown(wait=True)


def _report(event: JobEvent) -> None:
    if event.code in _WHAT:
        log.error(_WHAT[event.code], error=str(getattr(event, "exception", "")))
    else:
        log.debug("the last turn still runs")
