"""When people are answered in a comment of its own: seldom. The status comment shows the rest."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from daemon.markdown import code, plain
from daemon.outbox import post_comment
from daemon.talk.deeds import Deed
from daemon.talk.rates import DAY_S, HOUR_S, take_reply
from optimizer.store import Store, StoredCommand

_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}")


@dataclass(frozen=True)
class Answers:
    """Writes to people who gave a command."""

    store: Store
    clock: Callable[[], float]

    def tell_rate(self, command: StoredCommand, why: str) -> None:
        """Say once an hour that a person asks too often."""
        self._reply(f"rate/{command.author_id}", command, why, every_s=HOUR_S)

    def tell_misunderstood(self, command: StoredCommand, why: str) -> None:
        """Say once an hour what was not understood."""
        self._reply(f"help/{command.author_id}", command, why, every_s=HOUR_S)

    def tell_denied(self, command: StoredCommand, why: str) -> None:
        """Say once a day below each pull request what a person may not do."""
        what = f"denied/{command.author_id}/{command.number}"
        self._reply(what, command, why, every_s=DAY_S)

    def tell_failure(self, command: StoredCommand, why: str) -> None:
        """Say once an hour that something went wrong: reactions and edits notify nobody."""
        self._reply(f"failed/{command.author_id}", command, why, every_s=HOUR_S)

    def shows_status(self, command: StoredCommand, deed: Deed) -> bool:
        """Return whether the status comment is to be written: strangers don't get one by a no."""
        if deed.state not in {"refused", "misunderstood"}:
            return True
        return self.store.recall(f"sticky/{command.number}") is not None

    def _reply(self, what: str, command: StoredCommand, why: str, *, every_s: float) -> None:
        if take_reply(self.store, what, command, every_s=every_s):
            # The one place where somebody is pinged: who asked, by the name the code host gave.
            who = f"@{command.author}" if _LOGIN.fullmatch(command.author) else "You"
            body = f"{who}: {code(command.text)}: {plain(why)}."
            key = f"{what}/{command.id}"
            post_comment(self.store, command.number, body, key=key, now=self.clock())
