"""The code host, as far as the daemon needs one."""

from typing import Literal, Protocol

from operator_registry.record import Record

State = Literal["open", "closed", "merged"]


class ForgeError(Exception):
    """The root of what a forge raises."""


class ForgeUnavailableError(ForgeError):
    """No network, no quota, or the host is broken: try again later."""


class ForgeRefusedError(ForgeError):
    """The host said no; the reason is in the message."""


class PullRequestDraft(Record):
    """What a pull request should say."""

    title: str
    body: str
    head: str
    """The branch with the change."""
    base: str
    labels: tuple[str, ...] = ()


class PullRequest(Record):
    """A pull request as the forge knows it."""

    number: int
    title: str
    body: str
    head: str
    base: str
    labels: tuple[str, ...] = ()
    state: State
    head_sha: str
    created_at: str
    updated_at: str


class Forge(Protocol):
    """Pull requests of one repository. Branches are pushed with git, not through this."""

    def pull_requests(self, *, head: str | None = None) -> tuple[PullRequest, ...]:
        """Return the pull requests of every state, newest first; only those of branch `head`."""
        ...

    def open_pull_request(self, draft: PullRequestDraft) -> PullRequest:
        """Open a pull request.

        Raises:
            ForgeRefusedError: The branch is absent, or it has an open pull request already.
        """
        ...

    def update_pull_request(self, number: int, draft: PullRequestDraft) -> PullRequest:
        """Make title, body and labels those of the draft; nothing happens if they are already.

        Raises:
            ForgeRefusedError: There is no such pull request, or it is not open.
        """
        ...

    def close_pull_request(self, number: int) -> PullRequest:
        """Close without merging; a closed one stays as it is."""
        ...
