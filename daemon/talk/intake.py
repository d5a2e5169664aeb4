"""What people wrote on the code host becomes commands in the store, each once.

The comments themselves are read, every round; a delivery only says that there is something to read.
What was delivered late, twice, in another order or not at all thus makes no difference.
"""

import json
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from daemon.config.file import Configured
from daemon.forge import CodeHost, Comment, ForgeRefusedError
from daemon.logs import find_log
from daemon.outbox import ACK, STOP, React, post_reaction
from daemon.pulls.interest import note_interest
from daemon.pulls.watched import find_watched
from daemon.talk.commands import Misunderstood, Stop, parse
from daemon.talk.lines import find_lines
from daemon.talk.rates import is_beyond_rate
from optimizer.store import Delivery, NewCommand, Store

log = find_log(__name__)
_WATERMARK = "watermark/comments"
_OVERLAP = timedelta(minutes=10)
"""Lists of comments lag behind, and clocks differ."""
_AWAITED_S = 60.0
"""So long a delivered comment is waited for, that the list does not have yet."""
_KEPT_S = 30 * 24 * 3600.0
"""GitHub delivers again what it delivered in the last days."""
_KEPT_EVERY_S = 3600.0


@dataclass
class Intake:
    """Reads comments; notes commands, with the head that each was given for; acknowledges them."""

    host: CodeHost
    store: Store
    config: Configured
    clock: Callable[[], float]
    _read: set[int] = field(default_factory=set, init=False)
    """Comments that need no second look while this process lives."""
    _acknowledged: set[int] = field(default_factory=set, init=False)
    _tidied_at: float = field(default=0.0, init=False)

    def run(self) -> None:
        """Take in what is new.

        Raises:
            ForgeError: The code host can't be asked now; what was not read is read later.
        """
        deliveries = self.store.unhandled_deliveries()
        try:
            self._read_comments()
        finally:
            self._acknowledge()
        for delivery in deliveries:
            if self._is_read(delivery):
                self.store.handle_delivery(delivery.id, now=self.clock())
        self._tidy()

    def _read_comments(self) -> None:
        mark = self.store.recall(_WATERMARK)
        if mark is None:  # what was written before there was a bot is not for it
            mark = datetime.fromtimestamp(self.clock(), UTC).isoformat()
            self.store.mark(_WATERMARK, mark)
        # A mark from a time when clocks went ahead must not make us deaf until then.
        latest = min(datetime.fromisoformat(mark), datetime.fromtimestamp(self.clock(), UTC))
        since = (latest - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = self.host.comments(since=since)
        fresh = [comment for comment in found if comment.id not in self._read]
        me = self.host.me
        heads: dict[int, str | None] = {}
        watched = {request.number for request in find_watched(self.store)} if fresh else set()
        # Whoever wants something stopped does not wait until others' heads are looked up.
        for comment in sorted(fresh, key=lambda comment: not _has_stop(comment, me.login)):
            self._read_comment(comment, heads, watched)
        self._read = {comment.id for comment in found}
        if found:
            newest = max(found, key=lambda comment: _at(comment.updated_at))
            if _at(newest.updated_at) > latest:
                self.store.mark(_WATERMARK, newest.updated_at)

    def _read_comment(
        self, comment: Comment, heads: dict[int, str | None], watched: Container[int]
    ) -> None:
        me = self.host.me
        if comment.author.is_bot or comment.via_app or comment.author.id == me.id:
            return
        lines = find_lines(comment.body, me=me.login)
        at = _at(comment.created_at).timestamp()
        if comment.number in watched:
            note_interest(self.store, at, number=comment.number)
        elif lines:
            note_interest(self.store, at)
        # Others may edit it too, so that whose words they are is not known any more.
        if not lines or _at(comment.updated_at) != _at(comment.created_at):
            return
        for line in lines:
            needs_head = not isinstance(parse(line.text), Stop | Misunderstood)
            command = NewCommand(
                comment_id=comment.id,
                line=line.number,
                number=comment.number,
                head_sha=self._find_head(comment.number, heads) if needs_head else None,
                author_id=comment.author.id,
                author=comment.author.login,
                text=line.text,
            )
            if self.store.note_command(command, now=self.clock()):
                log.info(
                    "command received", number=comment.number, author=comment.author.login,
                    comment=comment.id, line=line.number,
                )  # fmt: skip

    def _find_head(self, number: int, heads: dict[int, str | None]) -> str | None:
        if number not in heads:
            try:
                heads[number] = self.host.pull_request(number).head_sha
            except ForgeRefusedError:
                heads[number] = None  # an issue, mostly
        return heads[number]

    def _acknowledge(self) -> None:
        """Say of each accepted command that it was seen: only now it can't be lost any more."""
        waiting = self.store.commands(states=("received",))
        for command in reversed(waiting):
            if command.id in self._acknowledged:
                continue
            parsed = parse(command.text)
            most = self.config().limits.commands_per_hour
            understood = not isinstance(parsed, Misunderstood)
            if understood and not is_beyond_rate(command, self.store, most=most):
                told = getattr(parsed, "kind", "") in {"stop", "status"}
                eyes = React(comment_id=command.comment_id, reaction="eyes", while_paused=told)
                priority = STOP if isinstance(parsed, Stop) else ACK
                post_reaction(self.store, eyes, now=self.clock(), priority=priority)
        self._acknowledged = {command.id for command in waiting}

    def _is_read(self, delivery: Delivery) -> bool:
        """Return whether nothing is to be expected of a delivery any more."""
        if delivery.event != "issue_comment":
            return True
        try:
            comment_id = json.loads(delivery.body)["comment"]["id"]
        except (ValueError, KeyError, TypeError):
            return True
        return comment_id in self._read or self.clock() - delivery.received_at > _AWAITED_S

    def _tidy(self) -> None:
        now = self.clock()
        if now - self._tidied_at > _KEPT_EVERY_S:
            self.store.forget_deliveries(before=now - _KEPT_S)
            self._tidied_at = now


def _has_stop(comment: Comment, me: str) -> bool:
    return any(isinstance(parse(line.text), Stop) for line in find_lines(comment.body, me=me))


def _at(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
