"""Puts a proven kernel before people: one branch, one commit, one open pull request.

Every step looks for its effect before it acts. Killed anywhere and started again, nothing is done
twice; and nothing that a person did is undone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field

from daemon.forge import Forge, ForgeRefusedError, PullRequest
from daemon.logs import find_log
from daemon.origin import BranchMovedError, Heads, Signature
from daemon.pull_request import (
    EDITED_LABEL,
    Proposal,
    add_notice,
    branch_name,
    commit_message,
    find_marker,
)
from daemon.pull_request_body import make_draft
from operator_registry.record import Record

log = find_log(__name__)


class Opened(Record):
    """There is a new pull request."""

    kind: Literal["opened"] = "opened"
    number: int


class Updated(Record):
    """The open pull request now shows this kernel."""

    kind: Literal["updated"] = "updated"
    number: int


class Unchanged(Record):
    """The open pull request showed this kernel already."""

    kind: Literal["unchanged"] = "unchanged"
    number: int


class Declined(Record):
    """People closed the pull request for this version of the operator: that is a no."""

    kind: Literal["declined"] = "declined"
    number: int


class Merged(Record):
    """The base branch holds this kernel already."""

    kind: Literal["merged"] = "merged"


class LeftAlone(Record):
    """Somebody else's commits are on the branch: it is left as it is, and it is said so."""

    kind: Literal["left_alone"] = "left_alone"
    branch: str
    number: int | None


Publication = Annotated[
    Opened | Updated | Unchanged | Declined | Merged | LeftAlone, Field(discriminator="kind")
]


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


class Memory(Protocol):
    """What must outlive the process: `optimizer.store.Store`."""

    def mark(self, key: str, value: str) -> None:
        """Remember a value."""
        ...

    def recall(self, key: str) -> str | None:
        """Return a remembered value."""
        ...


@dataclass(frozen=True)
class Publisher:
    """Publishes to one repository and its forge."""

    repository: Repository
    forge: Forge
    memory: Memory
    base: str
    """The branch that pull requests go to."""
    name: str
    email: str

    def find_refusal(self, operator: str, hardware: str, operator_digest: str) -> Declined | None:
        """Return people's no to a kernel for this version of the operator, if they said so.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        return self._refusal(self._requests(branch_name(operator, hardware)), operator_digest)

    def publish(self, proposal: Proposal, files: Mapping[str, bytes]) -> Publication:
        """Make branch and pull request show the kernel whose folder holds these files.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
            WorkspaceError: The origin can't be reached now.
        """
        requests = self._requests(proposal.branch)
        if refusal := self._refusal(requests, proposal.evidence.operator_digest):
            return refusal
        base_sha = self.repository.fetch(self.base)
        sha = self._commit(proposal, files, base_sha)
        if self._same(sha, base_sha, proposal.path):
            return Merged()
        remote = self.repository.find_heads().branches.get(proposal.branch)
        if remote is not None and not self._is_ours(remote, proposal.branch, requests, sha):
            return self._leave_alone(proposal.branch, requests)
        try:
            head = self._push(proposal, sha, remote)
        except BranchMovedError:
            return self._leave_alone(proposal.branch, requests)
        return self._show(proposal, head)

    def _commit(self, proposal: Proposal, files: Mapping[str, bytes], base_sha: str) -> str:
        return self.repository.commit(
            base_sha,
            proposal.path,
            files,
            message=commit_message(proposal),
            by=Signature(self.name, self.email, proposal.evidence.measured_at),
        )

    def _push(self, proposal: Proposal, sha: str, remote: str | None) -> str:
        """Return the branch's head, which holds the kernel."""
        if remote is not None:
            if not self.repository.holds(remote):
                self.repository.fetch(proposal.branch)
            if self._same(sha, remote, proposal.path):
                return remote
        # Before the push, so that a kill between the two can't make our own commit a stranger's.
        self.memory.mark(_pushed(proposal.branch), f"{remote or ''} {sha}")
        self.repository.push(proposal.branch, sha, expected=remote)
        log.info("branch pushed", branch=proposal.branch, sha=sha)
        return sha

    def _show(self, proposal: Proposal, head: str) -> Publication:
        draft = make_draft(proposal, head=head, base=self.base)
        shown = _find_open(self._requests(proposal.branch))
        if shown is not None:
            draft = make_draft(proposal, head=head, base=self.base, old=find_marker(shown.body))
        if shown is None:
            try:
                number = self.forge.open_pull_request(draft).number
            except ForgeRefusedError:
                # It may have been opened in the very call that seemed to fail.
                shown = _find_open(self._requests(proposal.branch))
                if shown is None:
                    raise
            else:
                self._remember(proposal, number)
                log.info("pull request opened", number=number, branch=proposal.branch)
                return Opened(number=number)
        self._remember(proposal, shown.number)
        if (shown.title, shown.body, shown.labels) == (draft.title, draft.body, draft.labels):
            return Unchanged(number=shown.number)
        self.forge.update_pull_request(shown.number, draft)
        log.info("pull request updated", number=shown.number, branch=proposal.branch)
        return Updated(number=shown.number)

    def _leave_alone(self, branch: str, requests: Sequence[PullRequest]) -> LeftAlone:
        log.warning("branch has commits of somebody else", branch=branch)
        shown = _find_open(requests)
        if shown is None:
            return LeftAlone(branch=branch, number=None)
        marker = find_marker(shown.body)
        notice = _NOTICE + (f" to {marker.head}." if marker else " to where the bot had it.")
        self.forge.update_pull_request(shown.number, add_notice(shown, notice, label=EDITED_LABEL))
        return LeftAlone(branch=branch, number=shown.number)

    def _is_ours(self, remote: str, branch: str, requests: Sequence[PullRequest], sha: str) -> bool:
        pushed = (self.memory.recall(_pushed(branch)) or "").split()
        markers = [find_marker(request.body) for request in requests]
        return remote in {sha, *pushed, *(marker.head for marker in markers if marker)}

    def _same(self, one: str, other: str, path: str) -> bool:
        return self.repository.tree(one, path) == self.repository.tree(other, path)

    def _requests(self, branch: str) -> Sequence[PullRequest]:
        return self.forge.pull_requests(head=branch)

    def _refusal(self, requests: Sequence[PullRequest], operator_digest: str) -> Declined | None:
        for request in requests:  # the newest first
            if request.state == "open":
                return None
            if self._digest_of(request) == operator_digest:
                refused = request.state == "closed"
                return Declined(number=request.number) if refused else None
        return None

    def _digest_of(self, request: PullRequest) -> str | None:
        """Return the version of the operator that a pull request was for, edited or not."""
        if marker := find_marker(request.body):
            return marker.operator_digest
        return self.memory.recall(_shown(request.number))

    def _remember(self, proposal: Proposal, number: int) -> None:
        self.memory.mark(_shown(number), proposal.evidence.operator_digest)


_NOTICE = (
    "this branch holds commits that the bot did not make, so it no longer touches it. It has a "
    "newer result; to get it here, set the branch back"
)


def _find_open(requests: Sequence[PullRequest]) -> PullRequest | None:
    return next((request for request in requests if request.state == "open"), None)


def _pushed(branch: str) -> str:
    return f"pushed/{branch}"


def _shown(number: int) -> str:
    return f"pull_request/{number}"
