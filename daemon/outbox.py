"""What is to be done on the code host: asked for in the store, then done once, the urgent first.

Each effect is looked for before it is made. A call that seems to have failed may have had its
effect, and a kill may come between an effect and the note of it: looking again costs a request,
a second comment costs trust.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType

from pydantic import ValidationError

from daemon.forge import (
    Check,
    CodeHost,
    Comment,
    ForgeBusyError,
    ForgeError,
    ForgeRefusedError,
    ForgeUnavailableError,
    NotThereError,
    Reaction,
)
from daemon.logs import find_log
from daemon.talk.sticky import find_own, status_marker
from operator_registry.record import Record
from optimizer.store import URGENT, Effect, Store, StoredEffect

log = find_log(__name__)
STOP, ACK, RESULT, STATUS = URGENT - 1, URGENT, 5, 9
"""Priorities: ``/stop``; acknowledgements; results; what is edited in place."""
_STATUS_EVERY_S = 15.0
_RUN_S = 5.0
_FIRST_WAIT_S = 2.0
_LONGEST_WAIT_S = 300.0
_LOOK_AGAIN_S = 10.0
_UNANSWERED = "sent, and not answered"
_MOST_REFUSALS = 3
"""What was just made may be denied for a moment; after that a no is a no."""
_KEPT_S = MappingProxyType({"react": 3600.0})
_USUALLY_KEPT_S = 24 * 3600.0
"""For how long it is tried while the host is away."""


class _NotSeenError(ForgeUnavailableError):
    """It may be there and not be shown yet: it is looked for once more before it is written."""

    def __init__(self) -> None:
        super().__init__("looked for once, and not seen")


GONE = "gone"
"""What an effect ends in whose place is not there any more."""


class React(Record):
    """Put a reaction beside a comment."""

    comment_id: int
    reaction: Reaction
    while_paused: bool = False


class NewComment(Record):
    """Write a comment."""

    number: int
    body: str
    marker: str
    """A line that stands in no other comment; by it the comment is found again."""


class EditComment(Record):
    """Change a comment of one's own."""

    comment_id: int
    body: str


class Sticky(Record):
    """Bring the one status comment of an issue or pull request up to date."""

    number: int
    while_paused: bool = False


class ShowCheck(Record):
    """Show a check."""

    check: Check


Payload = React | NewComment | EditComment | Sticky | ShowCheck
_KINDS: Mapping[str, type[Payload]] = MappingProxyType(
    {
        "react": React, "comment": NewComment, "edit_comment": EditComment, "sticky": Sticky,
        "check": ShowCheck,
    }
)  # fmt: skip


def post_reaction(store: Store, react: React, *, now: float, priority: int = RESULT) -> bool:
    """Ask for a reaction; False where it was asked for before."""
    key = f"react/{react.comment_id}/{react.reaction}"
    effect = Effect(key=key, kind="react", payload=react.to_json(), priority=priority)
    return store.post(effect, now=now)


def post_comment(store: Store, number: int, body: str, *, key: str, now: float) -> bool:
    """Ask for a comment; False where one of this key was asked for before."""
    name = sha256(key.encode()).hexdigest()[:16]
    comment = NewComment(number=number, body=body, marker=f"<!-- kernelevolve answer {name} -->")
    effect = Effect(key=f"comment/{key}", kind="comment", payload=comment.to_json())
    return store.post(effect, now=now)


def post_sticky(store: Store, number: int, *, now: float, while_paused: bool = False) -> bool:
    """Ask for the status comment to be brought up to date, soon; False where it is asked for."""
    turn, sent_at = _last_turn(store, number)
    payload = Sticky(number=number, while_paused=while_paused).to_json()
    key = f"sticky/{number}/{turn + 1}{'/paused' if while_paused else ''}"
    effect = Effect(key=key, kind="sticky", payload=payload, priority=STATUS)
    # The clock may have been set back since: a status that is late is still sent soon.
    return store.post(effect, now=now, not_before=min(sent_at, now) + _STATUS_EVERY_S)


@dataclass
class Outbox:
    """Does what is asked for."""

    host: CodeHost
    store: Store
    render_status: Callable[[int], str]
    """The status comment of an issue or pull request, without its marker."""
    is_paused: Callable[[], bool]
    clock: Callable[[], float]
    urgent: bool = False
    """Whether it does what is urgent, and nothing else; another outbox does the rest."""

    def run(self) -> None:
        """Do what is due, for some seconds. What fails is put off and does not keep the rest.

        Raises:
            ForgeBusyError: Nothing may be sent for now.
        """
        until = self.clock() + _RUN_S
        # Asked anew each time: what is urgent overtakes what was asked for before it.
        while self.clock() < until and (found := self._find_due()):
            self._carry_out(*found)
            if self.urgent and self.store.unhandled_deliveries(limit=1):
                return  # somebody may want something stopped

    def _find_due(self) -> tuple[StoredEffect, Payload] | None:
        paused = self.is_paused()
        for effect in self.store.due_effects(now=self.clock(), urgent=self.urgent):
            try:
                payload = _KINDS[effect.kind].from_json(effect.payload)
            except (KeyError, ValidationError):
                self._give_up(effect, "asked for by another version of this program")
                continue
            if not paused or getattr(payload, "while_paused", False):
                return effect, payload
        return None

    def _carry_out(self, effect: StoredEffect, payload: Payload) -> None:
        self.store.start_effect(effect.id)
        last = effect.attempts + 1 >= _MOST_REFUSALS
        # A process that died at it, like a call without an answer, may have made it.
        unsure = effect.attempts > 0 and (effect.error or _UNANSWERED).startswith(_UNANSWERED)
        try:
            remote = self._do(payload, unsure=unsure)
        except ForgeBusyError as error:
            self._put_off(effect, error, until=error.retry_at)
            raise
        except ForgeUnavailableError as error:
            kept_s = _KEPT_S.get(effect.kind, _USUALLY_KEPT_S)
            last = self.clock() - effect.made_at > kept_s
            self._give_up(effect, str(error)) if last else self._put_off(effect, error)
        except NotThereError as error:
            if last:  # somebody deleted what it was for
                self.store.end_effect(effect.id, now=self.clock(), remote=GONE)
            else:
                self._put_off(effect, error)
        except ForgeRefusedError as error:
            self._give_up(effect, str(error)) if last else self._put_off(effect, error)
        else:
            self.store.end_effect(effect.id, now=self.clock(), remote=remote)

    def _do(self, payload: Payload, *, unsure: bool) -> str | None:
        match payload:
            case React(comment_id=comment_id, reaction=reaction):
                self.host.react(comment_id, reaction)
                return None
            case NewComment(number=number, body=body, marker=marker):
                return str(self._write(number, f"{body}\n\n{marker}", marker, unsure=unsure).id)
            case EditComment(comment_id=comment_id, body=body):
                return str(self.host.edit_comment(comment_id, body).id)
            case Sticky(number=number):
                return self._show_status(number, unsure=unsure)
            case ShowCheck(check=check):
                self.host.show_check(check)
                return None

    def _write(self, number: int, body: str, marker: str, *, unsure: bool) -> Comment:
        mine = find_own(self.host.comments_on(number), marker, self.host.me)
        if mine is not None:
            return mine
        if unsure:
            raise _NotSeenError
        try:
            return self.host.add_comment(number, body)
        except ForgeBusyError:
            raise
        except ForgeUnavailableError as error:
            msg = f"{_UNANSWERED}: {error}"
            raise ForgeUnavailableError(msg) from error

    def _show_status(self, number: int, *, unsure: bool) -> str | None:
        turn, _ = _last_turn(self.store, number)
        # First: what changes from here on is not in what is rendered next.
        self.store.mark(_turn(number), f"{turn + 1} {self.clock():.3f}")
        marker = status_marker(number)
        body = f"{marker}\n{self.render_status(number)}"
        shown = sha256(body.encode()).hexdigest()
        known = self.store.recall(f"sticky/{number}")
        if known and self.store.recall(f"sticky_body/{number}") == shown:
            return known
        comment = self._edit(int(known), body) if known else None
        if comment is None:
            if known:  # it is deleted; or the host lags behind, in its lists as well
                self.store.mark(f"sticky/{number}", "")
                unsure = True
            comment = self._write(number, body, marker, unsure=unsure)
            if comment.body != body:  # it was there, and our memory of it was lost
                comment = self.host.edit_comment(comment.id, body)
        self.store.mark(f"sticky/{number}", str(comment.id))
        self.store.mark(f"sticky_body/{number}", shown)
        return str(comment.id)

    def _edit(self, comment_id: int, body: str) -> Comment | None:
        try:
            return self.host.edit_comment(comment_id, body)
        except NotThereError:
            return None

    def _put_off(
        self, effect: StoredEffect, error: ForgeError, *, until: float | None = None
    ) -> None:
        wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(effect.attempts, 20))
        if isinstance(error, _NotSeenError):
            wait_s = max(wait_s, _LOOK_AGAIN_S)
        not_before = self.clock() + wait_s if until is None else until
        self.store.put_off_effect(effect.id, not_before=not_before, error=str(error))
        log.warning("effect put off", kind=effect.kind, key=effect.key, error=str(error))

    def _give_up(self, effect: StoredEffect, error: str) -> None:
        self.store.end_effect(effect.id, now=self.clock(), error=error)
        log.error("effect given up", kind=effect.kind, key=effect.key, error=error)


def _last_turn(store: Store, number: int) -> tuple[int, float]:
    turn, _, sent_at = (store.recall(_turn(number)) or "0 0").partition(" ")
    return int(turn), float(sent_at)


def _turn(number: int) -> str:
    return f"sticky_turn/{number}"
