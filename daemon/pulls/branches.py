"""Our branches at the origin: which commits there are ours, and how they are moved.

Ours is what we pushed, by hash: it is marked before the push, and stands in the pull request's
body as well, so that a lost database makes nobody a stranger.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol

from daemon.forge import Person, PullRequest
from daemon.logs import find_log
from daemon.marks import Marks
from daemon.origin import Heads, Signature
from daemon.pulls.pull_request import Marker, find_marker

log = find_log(__name__)
HOUR_S = 3600.0
_PUSHES = "pushes"


class Repository(Protocol):
    """The git side: `daemon.workspace.Workspace`."""

    def find_heads(self) -> Heads:
        """Return the origin's branches."""
        ...

    def fetch(self, branch: str) -> str:
        """Bring a branch into the clone and return its head."""
        ...

    def holds(self, revision: str) -> bool:
        """Return whether the clone holds a commit."""
        ...

    def tree(self, revision: str, path: str) -> str | None:
        """Return the hash of what is at a path."""
        ...

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether `new` holds all that `old` does."""
        ...

    def files(
        self,
        revision: str,
        folder: str = "",
        *,
        under: Sequence[str] = (),
        named: str = "",
        most_bytes: int | None = None,
    ) -> dict[str, bytes]:
        """Return the files of a revision, by their path below `folder`."""
        ...

    def commit(
        self,
        base: str | None,
        path: str,
        files: Mapping[str, bytes],
        *,
        message: str,
        by: Signature,
    ) -> str:
        """Return a commit on top of `base`."""
        ...

    def push(self, branch: str, sha: str, *, expected: str | None) -> None:
        """Move a branch of the origin."""
        ...

    def delete(self, branch: str, *, expected: str) -> None:
        """Remove a branch of the origin."""
        ...


@dataclass(frozen=True)
class Branches:
    """The branches of one repository that begin with our name."""

    repository: Repository
    memory: Marks
    name: str
    """Who makes commits."""
    email: str
    me: Callable[[], Person | None] = lambda: None
    """Who opens pull requests; None where the code host has no people."""
    clock: Callable[[], float] = time.time
    lock: RLock = field(default_factory=RLock)
    """Held while a branch and its pull request are changed."""

    def bring(self, branch: str, sha: str) -> None:
        """Have a commit in the clone.

        Raises:
            OriginUnavailableError: The origin can't be reached now.
        """
        if not self.repository.holds(sha):
            self.repository.fetch(branch)

    def sign(self, at: str) -> Signature:
        """Return who makes a commit, at a time."""
        return Signature(self.name, self.email, at)

    def is_ours(self, branch: str, sha: str, requests: Sequence[PullRequest]) -> bool:
        """Return whether a commit at a branch is one that we pushed there."""
        pushed = (self.memory.recall(_pushed(branch)) or "").split()
        markers = (self.marker_of(request) for request in requests)
        return sha in {*pushed, *(marker.head for marker in markers if marker)}

    def marker_of(self, request: PullRequest) -> Marker | None:
        """Return the marker in a pull request of ours; what others opened has none that counts."""
        me = self.me()
        theirs = me is not None and request.author is not None and request.author.id != me.id
        return None if theirs or request.from_fork else find_marker(request.body)

    def push(self, branch: str, sha: str, *, expected: str | None) -> None:
        """Move a branch, or make it.

        Raises:
            BranchMovedError: It is not where it is expected.
            OriginUnavailableError: The origin can't be reached now.
        """
        # Before the push, so that a kill between the two can't make our own commit a stranger's.
        self.memory.mark(_pushed(branch), f"{expected or ''} {sha}")
        self.memory.mark(
            _PUSHES, " ".join(f"{at:.0f}" for at in (*self._pushed_at(), self.clock()))
        )
        self.repository.push(branch, sha, expected=expected)
        log.info("branch pushed", branch=branch, sha=sha)

    def pushes_in_the_last_hour(self) -> int:
        """Return how often branches were moved."""
        return len(self._pushed_at())

    def _pushed_at(self) -> list[float]:
        since = self.clock() - HOUR_S
        told = map(float, (self.memory.recall(_PUSHES) or "").split())
        return [at for at in told if at > since]


def held_mark(branch: str) -> str:
    """Return the mark that says why a branch's proven kernel is not shown yet."""
    return f"held_back/{branch}"


def lifted_mark(branch: str) -> str:
    """Return the mark that names the pull request whose closing is no longer a no."""
    return f"lifted/{branch}"


def retired_mark(number: int) -> str:
    """Return the mark that says why the bot itself closes a pull request."""
    return f"retired/{number}"


def _pushed(branch: str) -> str:
    return f"pushed/{branch}"
