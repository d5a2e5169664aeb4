"""Has the code host send again what did not reach us. Polling finds it as well, but later."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.logs import find_log
from daemon.marks import Marks
from daemon.web.webhooks import EVENTS
from operator_registry.record import Record

log = find_log(__name__)
_LOOKED_AT = "watermark/deliveries"
_OVERLAP_S = 3 * 3600.0
"""A delivery may fail late, and be told of later still."""
_LONGEST_S = 3 * 86400.0
"""The code host forgets older ones."""


class Attempt(Record):
    """One attempt of the code host to deliver something to us."""

    id: int
    """The attempt's own."""
    delivery_id: str
    """The same for all attempts of a delivery."""
    event: str
    at: float
    """Seconds since 1970."""
    is_first: bool
    """Nobody had asked for it again yet."""
    succeeded: bool


class Sender(Protocol):
    """The code host, as one that delivers."""

    def attempts(self, *, since: float) -> tuple[Attempt, ...]:
        """Return the attempts since a time, in seconds since 1970.

        Raises:
            ForgeError: They can't be asked for now, or not by us.
        """
        ...

    def deliver_again(self, attempt_id: int) -> None:
        """Have a delivery sent again.

        Raises:
            ForgeError: It can't be now, or never.
        """
        ...


def find_missed(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Return the last attempt of each delivery that we want and that never arrived."""
    arrived = {attempt.delivery_id for attempt in attempts if attempt.succeeded}
    # By the first attempt, or each one that fails would be a reason for the next, for ever.
    wanted = {attempt.delivery_id for attempt in attempts if attempt.is_first} - arrived
    last = {
        attempt.delivery_id: attempt
        for attempt in sorted(attempts, key=lambda attempt: attempt.at)
        if attempt.event in EVENTS and attempt.delivery_id in wanted
    }
    return tuple(last.values())


@dataclass(frozen=True)
class Redelivery:
    """Looks through the deliveries since the last look, with some overlap."""

    sender: Sender
    marks: Marks
    clock: Callable[[], float]
    """Seconds since 1970."""

    def run(self) -> None:
        """Have what was missed sent again."""
        now = self.clock()
        since = max(float(self.marks.recall(_LOOKED_AT) or 0.0) - _OVERLAP_S, now - _LONGEST_S)
        missed = find_missed(self.sender.attempts(since=since))
        for attempt in missed:
            self.sender.deliver_again(attempt.id)
        if missed:
            log.info("missed deliveries asked for again", count=len(missed))
        self.marks.mark(_LOOKED_AT, str(now))
