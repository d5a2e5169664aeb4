"""The daemon at work: its loops and its web server, until it is told to stop."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from daemon.bot import WORK, Bot
from daemon.logs import find_log
from daemon.pause import find_pause
from daemon.report import Report
from daemon.role import Role
from daemon.schedule import run_every
from daemon.settings import read_secrets
from daemon.steward import Duty, Steward
from daemon.web.health import Health, HealthReport
from daemon.web.metrics import Metrics
from daemon.web.server import Reception, Site, serving
from daemon.web.webhooks import Addressee
from optimizer.errors import StoreError
from optimizer.store import Delivery

ROUND_S = 3.0
TURN_S = 300.0
"""On several devices a turn makes room so often for a look at the registry."""
_WORK_LIMIT_S = 900.0
"""A search tells several times a second that it goes on; git has two minutes for each exchange."""
_STEWARD_LIMIT_S = 3600.0
"""A steward may wait for a verification."""
_JOIN_S = 9.0
_ROLE_S = 0.5
"""Whether to prolong the role is asked so often."""
log = find_log(__name__)


class Turns(Protocol):
    """What makes the turns of the work loop: `daemon.cycle.Cycle`."""

    def run(self) -> Report:
        """Make one turn."""
        ...


@dataclass
class WorkLoop:
    """Makes the turns of the cycle, and tells how they went."""

    cycle: Turns
    health: Health
    metrics: Metrics
    wake: threading.Event = field(default_factory=threading.Event)

    def turn(self) -> None:
        """Make a turn; whatever goes wrong in it, there is a next one."""
        began = time.monotonic()
        self.health.beat(WORK)
        # The daemon's one broad `except` for turns, as the stewards have theirs for duties.
        try:
            report = self.cycle.run()
        except Exception as error:
            log.exception("turn failed")
            self.fail(f"{type(error).__name__}: {error}")
        else:
            for end in report.ends:
                self.metrics.count_end(end.verdict)
            if report.errors:
                self.fail(report.errors[0])
            else:
                self.health.recover(WORK)
        self.metrics.note_round(WORK, time.monotonic() - began)
        self.health.beat(WORK)

    def fail(self, why: str) -> None:
        """Note that a turn went wrong, or the clock that makes them."""
        self.metrics.count_failure(WORK)
        self.health.fail(WORK, why)


def serve(bot: Bot, lanes: Mapping[str, Sequence[Duty]], *, stop: threading.Event) -> None:
    """Be the daemon until `stop` is set.

    Args:
        bot: Its parts.
        lanes: The stewards by their names, with their duties: each has a thread, so that none
            waits for another.
        stop: Set once the daemon should end. What then runs is handed back.

    Raises:
        SettingsError: Webhooks are to be taken, and there is no secret.
        OSError: The address can't be listened at.
    """
    settings = bot.settings
    metrics = Metrics(bot.store, bot.health, clock=bot.clock)
    work = WorkLoop(bot.cycle, bot.health, metrics)
    stewards = tuple(
        Steward(
            name=name,
            duties=duties,
            is_paused=lambda: find_pause(bot.store) is not None,
            is_on_hold=lambda: bot.config.find_hold() is not None,
            may_act=bot.role.renew,
            clock=time.monotonic,
            health=bot.health,
            metrics=metrics,
        )
        for name, duties in lanes.items()
    )

    def heed(delivery: Delivery) -> None:
        for steward in stewards:
            steward.wake()
        if delivery.event == "push":
            work.wake.set()

    reception = make_reception(bot, metrics, heed) if settings.takes_webhooks else None
    bot.cycle.turn_s = TURN_S
    bot.health.expect(WORK, within_s=_WORK_LIMIT_S + settings.interval_s)
    with ExitStack() as stack:
        for steward in stewards:
            bot.health.expect(steward.name, within_s=_STEWARD_LIMIT_S)
            stack.enter_context(_running(steward, stop))
        if at := settings.listen_at:
            port = stack.enter_context(serving(make_site(bot, metrics, reception, stop), *at))
            log.info("listening", host=at[0], port=port, webhooks=reception is not None)
        stack.enter_context(keeping_role(bot.role, stop))
        run_every(work.turn, settings.interval_s, stop=stop, wake=work.wake, on_fault=work.fail)


@contextmanager
def keeping_role(role: Role, stop: threading.Event) -> Iterator[None]:
    """Prolong the role, which nothing else may do between two turns; set `stop` where it is lost.

    What is lost is the right to act; who goes on as if nothing were meets the new holder at the
    forge. The next start stands by.
    """
    run = threading.Thread(target=_keep_role, args=(role, stop), name="role", daemon=True)
    run.start()
    try:
        yield
    finally:
        stop.set()
        run.join(_JOIN_S)


def _keep_role(role: Role, stop: threading.Event) -> None:
    while not stop.wait(_ROLE_S):
        try:
            kept = role.renew()
        except StoreError as error:
            log.warning("role not prolonged", error=str(error))
            continue
        if not kept:
            log.error("another process is the scheduler now: this one ends")
            stop.set()


def make_reception(
    bot: Bot, metrics: Metrics, on_delivery: Callable[[Delivery], None]
) -> Reception:
    """Return what takes webhooks in.

    Raises:
        SettingsError: There is no secret, or one that protects nothing.
    """
    settings = bot.settings
    return Reception(
        addressee=Addressee(
            secrets=read_secrets(settings.webhook_secrets),
            repository=settings.github_repository,
            installation=settings.github_installation_id,
        ),
        inbox=bot.store,
        clock=bot.clock,
        on_delivery=on_delivery,
        on_answer=metrics.count_answer,
    )


def make_site(
    bot: Bot, metrics: Metrics, reception: Reception | None, stop: threading.Event
) -> Site:
    """Return what the server serves, until `stop` is set with the word that it is ready."""

    def find_health() -> HealthReport:
        try:
            return bot.health.report(paused=find_pause(bot.store) is not None)
        except StoreError:  # to start anew would bring no database back
            found = bot.health.report(paused=False)
            return found.model_copy(update={"faults": (*found.faults, "store")})

    def is_ready() -> bool:
        try:
            find_pause(bot.store)
        except StoreError:
            return False
        return not stop.is_set()

    return Site(
        reception=reception,
        find_health=find_health,
        is_ready=is_ready,
        render_metrics=metrics.render,
    )


@contextmanager
def _running(steward: Steward, stop: threading.Event) -> Iterator[None]:
    run = threading.Thread(
        target=steward.run, args=(ROUND_S,), kwargs={"stop": stop}, name=steward.name, daemon=True
    )
    run.start()
    try:
        yield
    finally:
        stop.set()  # also where another part could not start
        steward.wake()
        run.join(_JOIN_S)
