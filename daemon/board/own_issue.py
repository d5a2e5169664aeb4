"""One issue of the bot's own: opened once, found again, kept up to date."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from daemon.forge import Issue, Person
from daemon.marks import Marks

_UNLISTED_S = 600.0
"""A host may not list for a moment what it has just made."""


class Host(Protocol):
    """What the code host is asked: a part of `daemon.forge.CodeHost`."""

    @property
    def me(self) -> Person:
        """The account that this program acts under."""
        ...

    def issues(self, *, label: str) -> tuple[Issue, ...]:
        """Return the issues of a label, oldest first."""
        ...

    def open_issue(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        ...

    def update_issue(
        self, number: int, *, title: str, body: str, state: Literal["open", "closed"]
    ) -> Issue:
        """Make an issue what it should be."""
        ...


@dataclass(frozen=True)
class OwnIssue:
    """The oldest issue with a label that we opened: anybody may label, or write what we write."""

    host: Host
    marks: Marks
    label: str
    clock: Callable[[], float]

    def find(self) -> Issue | None:
        """Return the issue as it is now.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        me = self.host.me.id
        ours = (i for i in self.host.issues(label=self.label) if i.author and i.author.id == me)
        return next(ours, None)

    def show(
        self, found: Issue | None, title: str, body: str, *, state: Literal["open", "closed"]
    ) -> None:
        """Make the issue say this; it is opened where there is none.

        Args:
            found: What `find` returned.
            title: Its title.
            body: Its text.
            state: What it should be; none is opened only to be closed.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
        """
        if found is not None:
            if (found.title, found.body, found.state) != (title, body, state):
                self.host.update_issue(found.number, title=title, body=body, state=state)
        elif state == "open" and self.clock() - self._opened_at() > _UNLISTED_S:
            self.host.open_issue(title, body, (self.label,))
            self.marks.mark(self._key, str(self.clock()))

    def _opened_at(self) -> float:
        return float(self.marks.recall(self._key) or -_UNLISTED_S - 1)

    @property
    def _key(self) -> str:
        return f"opened/{self.label}"
