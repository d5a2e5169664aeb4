"""The code host, as far as the daemon needs one."""

from typing import Literal, Protocol

from operator_registry.record import Record

State = Literal["open", "closed", "merged"]
Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
"""What a person may do in the repository, least first."""
Reaction = Literal["eyes", "rocket", "+1", "hooray", "confused", "-1"]
Conclusion = Literal["success", "failure", "neutral", "cancelled"]


class ForgeError(Exception):
    """The root of what a forge raises."""


class ForgeUnavailableError(ForgeError):
    """No network, no quota, or the host is broken: try again later."""


class ForgeBusyError(ForgeUnavailableError):
    """Too much was asked: nothing is sent before `retry_at`, in seconds since 1970."""

    def __init__(self, message: str, retry_at: float) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class ForgeRefusedError(ForgeError):
    """The host said no; the reason is in the message."""


class NotThereError(ForgeRefusedError):
    """There is no such thing, or none that we may see."""


class Person(Record):
    """Somebody on the code host; told apart by number, since names change hands."""

    id: int
    login: str
    is_bot: bool = False


class PullRequestDraft(Record):
    """What a pull request should say."""

    title: str
    body: str
    head: str
    """The branch with the change."""
    base: str
    labels: tuple[str, ...] = ()
    draft: bool = False
    """Not for review yet; where the host knows no drafts, it is one like any other."""


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
    draft: bool = False
    author: Person | None = None
    from_fork: bool = False
    """Its head lies in somebody else's repository."""
    mergeable: bool | None = None
    """False where it conflicts with its base; None where the host does not know yet."""


class Comment(Record):
    """What somebody wrote below an issue or a pull request."""

    id: int
    number: int
    """The issue's or pull request's."""
    author: Person
    body: str
    created_at: str
    updated_at: str
    via_app: bool = False
    """A program wrote it on somebody's behalf."""


class Issue(Record):
    """An issue; no pull request."""

    number: int
    title: str
    body: str
    labels: tuple[str, ...] = ()
    state: Literal["open", "closed"]
    author: Person | None = None


class Check(Record):
    """What the bot found out about one commit, as the host shows it beside that commit."""

    name: str
    head_sha: str
    status: Literal["queued", "in_progress", "completed"]
    conclusion: Conclusion | None = None
    """Given where it is completed, and only there."""
    title: str
    summary: str
    """Markdown."""
    text: str = ""
    """More of it."""
    external_id: str = ""
    """By which it is found again."""


class WorkflowRun(Record):
    """A run of a workflow on the code host's own runners."""

    id: int
    name: str
    """With the tag that it was dispatched under."""
    status: Literal["queued", "in_progress", "completed"]
    conclusion: str | None = None
    url: str


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


class CodeHost(Forge, Protocol):
    """A forge with people on it: they comment, have permissions, and see checks and issues.

    All methods raise ForgeUnavailableError where the host can't be asked now, and ForgeBusyError,
    without having sent anything, where it should not be. Those that change something are safe to
    call again: each looks whether its effect is there, as far as the host lets it.
    """

    @property
    def me(self) -> Person:
        """The account that this program acts under."""
        ...

    def pull_request(self, number: int) -> PullRequest:
        """Return one pull request, with `mergeable`.

        Raises:
            NotThereError: There is none of this number.
        """
        ...

    def reopen_pull_request(self, number: int) -> PullRequest:
        """Open a closed one again.

        Raises:
            ForgeRefusedError: It is merged, or its branch is gone.
        """
        ...

    def ask_for_review(self, number: int, people: tuple[str, ...]) -> None:
        """Ask people, by name, or teams, as ``org/team``, but those that the host refuses."""
        ...

    def comments(self, *, since: str | None = None) -> tuple[Comment, ...]:
        """Return all comments of the repository updated since a time, oldest first.

        Args:
            since: ISO 8601 in UTC; None for all.
        """
        ...

    def comment(self, comment_id: int) -> Comment:
        """Return one comment.

        Raises:
            NotThereError: It is gone.
        """
        ...

    def comments_on(self, number: int) -> tuple[Comment, ...]:
        """Return the comments on one issue or pull request, oldest first."""
        ...

    def add_comment(self, number: int, body: str) -> Comment:
        """Write a comment. The one call of which a repetition writes another."""
        ...

    def edit_comment(self, comment_id: int, body: str) -> Comment:
        """Change a comment of one's own.

        Raises:
            NotThereError: It is gone.
            ForgeRefusedError: It is somebody else's.
        """
        ...

    def react(self, comment_id: int, reaction: Reaction) -> None:
        """Put a reaction beside a comment.

        Raises:
            NotThereError: It is gone.
        """
        ...

    def permission(self, login: str) -> Permission:
        """Return what somebody may do, asked now."""
        ...

    def issues(self, *, label: str) -> tuple[Issue, ...]:
        """Return the issues of a label, in every state, oldest first."""
        ...

    def open_issue(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        ...

    def update_issue(
        self, number: int, *, title: str, body: str, state: Literal["open", "closed"]
    ) -> Issue:
        """Make an issue what it should be; nothing happens if it is already."""
        ...

    def show_check(self, check: Check) -> None:
        """Show a check, in the place of the one of the same name and commit."""
        ...

    def find_check(self, head_sha: str, name: str) -> Check | None:
        """Return this program's own check on a commit."""
        ...

    def file(self, path: str, *, ref: str) -> str | None:
        """Return a text file of a revision; None where there is none."""
        ...

    def dispatch(self, workflow: str, *, ref: str, inputs: dict[str, str]) -> None:
        """Start a workflow of a file name such as ``search.yml``."""
        ...

    def workflow_runs(self, workflow: str) -> tuple[WorkflowRun, ...]:
        """Return a workflow's last runs, newest first."""
        ...

    def cancel_run(self, run_id: int) -> None:
        """Ask for a run's end; nothing happens where it has ended."""
        ...

    def artefact(self, run_id: int, name: str) -> bytes | None:
        """Return the one file in a run's artefact; None where there is none."""
        ...
