"""Puts a proven kernel before people: one branch, one commit, one open pull request.

Every step looks for its effect before it acts. Killed anywhere and started again, nothing is done
twice; and nothing that a person did is undone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from daemon.config.file import BotConfig
from daemon.forge import Forge, ForgeRefusedError, PullRequest, PullRequestDraft
from daemon.logs import find_log
from daemon.origin import BranchMovedError
from daemon.pulls.body import make_draft
from daemon.pulls.branches import Branches, held_mark, lifted_mark, retired_mark
from daemon.pulls.limits import find_excess, find_push_excess
from daemon.pulls.pull_request import (
    EDITED_LABEL,
    Proposal,
    Site,
    add_notice,
    as_draft,
    branch_name,
    commit_message,
)
from daemon.pulls.standing import Judged, note_standing
from daemon.talk.wishes import answer_wish, find_wish, is_held
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


class HeldBack(Record):
    """The kernel is proven, and is shown once it may be: the goal stays in the queue."""

    kind: Literal["held_back"] = "held_back"
    why: str


Publication = Annotated[
    Opened | Updated | Unchanged | Declined | Merged | LeftAlone | HeldBack,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class Publisher:
    """Publishes to one repository and its forge."""

    branches: Branches
    forge: Forge
    base: str
    """The branch that pull requests go to."""
    site: Site = field(default_factory=Site)
    config: Callable[[], BotConfig] = field(default=BotConfig)
    """The configuration in force."""

    def find_refusal(self, operator: str, hardware: str, operator_digest: str) -> Declined | None:
        """Return people's no to a kernel for this version of the operator, if they said so.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        branch = branch_name(operator, hardware)
        return self._refusal(branch, self._requests(branch), operator_digest)

    def find_hold(self, operator: str, hardware: str) -> HeldBack | None:
        """Return why a kernel that was held back still is; None where it may be shown, or none was.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        branch = branch_name(operator, hardware)
        if not self.branches.memory.recall(held_mark(branch)):
            return None
        requests = self._requests(branch)
        return self._find_hold(branch, requests) or self._find_excess(branch, requests)

    def publish(self, proposal: Proposal, files: Mapping[str, bytes]) -> Publication:
        """Make branch and pull request show the kernel whose folder holds these files.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
            WorkspaceError: The origin can't be reached now.
        """
        with self.branches.lock:
            done = self._publish(proposal, files)
        why = done.why if isinstance(done, HeldBack) else ""
        if why or self.branches.memory.recall(held_mark(proposal.branch)):
            self.branches.memory.mark(held_mark(proposal.branch), why)
        return done

    def _publish(self, proposal: Proposal, files: Mapping[str, bytes]) -> Publication:
        branch, repository = proposal.branch, self.branches.repository
        requests = self._requests(branch)
        digest = proposal.evidence.operator_digest
        if no := self._refusal(branch, requests, digest) or self._find_hold(branch, requests):
            return no
        base_sha = repository.fetch(self.base)
        sha = self._commit(proposal, files, base_sha)
        if self._same(sha, base_sha, proposal.path):
            return Merged()
        remote = repository.find_heads().branches.get(branch)
        is_new = remote is None or remote == sha
        if not (is_new or self.branches.is_ours(branch, remote or "", requests)):
            return self._leave_alone(branch, requests)
        if hold := self._find_excess(branch, requests):
            return hold
        try:
            head = self._push(proposal, sha, remote)
        except BranchMovedError:
            return self._leave_alone(branch, requests)
        done = self._show(proposal, head)
        if isinstance(done, Declined) and remote is None:
            repository.delete(branch, expected=head)  # nobody wants what was pushed just now
        return done

    def _commit(self, proposal: Proposal, files: Mapping[str, bytes], base_sha: str) -> str:
        return self.branches.repository.commit(
            base_sha,
            proposal.path,
            files,
            message=commit_message(proposal),
            by=self.branches.sign(proposal.evidence.measured_at),
        )

    def _push(self, proposal: Proposal, sha: str, remote: str | None) -> str:
        """Return the branch's head, which holds the kernel."""
        if remote is not None:
            self.branches.bring(proposal.branch, remote)
            if self._same(sha, remote, proposal.path):
                return remote
        note_standing(self.branches.memory, sha, Judged())
        self.branches.push(proposal.branch, sha, expected=remote)
        return sha

    def _show(self, proposal: Proposal, head: str) -> Publication:
        requests = self._requests(proposal.branch)
        shown = _find_open(requests)
        if shown is None:
            # Lists lag behind: the one before the push may not have shown yet that it was closed.
            digest = proposal.evidence.operator_digest
            if refusal := self._refusal(proposal.branch, requests, digest):
                return refusal
            draft = self._draft(proposal, head, None)
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
        draft = self._draft(proposal, head, shown)
        if as_draft(shown) == draft:
            return Unchanged(number=shown.number)
        self.forge.update_pull_request(shown.number, draft)
        log.info("pull request updated", number=shown.number, branch=proposal.branch)
        return Updated(number=shown.number)

    def _draft(self, proposal: Proposal, head: str, shown: PullRequest | None) -> PullRequestDraft:
        """Return what the pull request should be; labels that people gave it stay."""
        old = self.branches.marker_of(shown) if shown else None
        draft = make_draft(proposal, head=head, base=self.base, old=old, site=self.site)
        wanted = (*draft.labels, *self.config().labels)
        given = shown.labels if shown else ()
        labels = dict.fromkeys((*(name for name in given if name != EDITED_LABEL), *wanted))
        is_draft = shown.draft if shown else False
        return draft.model_copy(update={"labels": tuple(labels), "draft": is_draft})

    def _leave_alone(self, branch: str, requests: Sequence[PullRequest]) -> LeftAlone:
        log.warning("branch has commits of somebody else", branch=branch)
        shown = _find_open(requests)
        if shown is None:
            return LeftAlone(branch=branch, number=None)
        marker = self.branches.marker_of(shown)
        notice = _NOTICE + (f" to {marker.head}." if marker else " to where the bot had it.")
        draft = add_notice(shown, notice, label=EDITED_LABEL)
        self.forge.update_pull_request(shown.number, draft)
        return LeftAlone(branch=branch, number=shown.number)

    def _find_hold(self, branch: str, requests: Sequence[PullRequest]) -> HeldBack | None:
        if self.config().dry_run:
            return HeldBack(why="a dry run proposes nothing")
        if not is_held(self.branches.memory, branch):
            return None
        where = next((f" of pull request #{p.number}" for p in requests if p.state == "open"), "")
        return HeldBack(why=f"a person asked for the branch{where} to be held")

    def _find_excess(self, branch: str, requests: Sequence[PullRequest]) -> HeldBack | None:
        limits = self.config().limits
        why = find_push_excess(limits, self.branches.pushes_in_the_last_hour())
        if why is None and _find_open(requests) is None:
            # The one look at all of them: it is only taken before another one is opened.
            why = find_excess(limits, self.forge.pull_requests(), now=self.branches.clock())
        if why is None:
            return None
        log.info("pull request held back", branch=branch, why=why)
        return HeldBack(why=why)

    def _same(self, one: str, other: str, path: str) -> bool:
        repository = self.branches.repository
        return repository.tree(one, path) == repository.tree(other, path)

    def _requests(self, branch: str) -> Sequence[PullRequest]:
        return [p for p in self.forge.pull_requests(head=branch) if not p.from_fork]

    def _refusal(
        self, branch: str, requests: Sequence[PullRequest], operator_digest: str
    ) -> Declined | None:
        memory = self.branches.memory
        for request in requests:  # the newest first
            if request.state == "open":
                return None
            if self._digest_of(request) == operator_digest:
                lifted = find_wish(memory, "reopen", branch) is not None
                lifted |= memory.recall(lifted_mark(branch)) == str(request.number)
                refused = request.state == "closed" and not lifted and not self._retired(request)
                return Declined(number=request.number) if refused else None
        return None

    def _retired(self, request: PullRequest) -> bool:
        """Return whether the bot itself closed it."""
        marker = self.branches.marker_of(request)
        known = self.branches.memory.recall(retired_mark(request.number))
        return bool(known) or (marker is not None and marker.retired)

    def _digest_of(self, request: PullRequest) -> str | None:
        """Return the version of the operator that a pull request was for, edited or not."""
        if marker := self.branches.marker_of(request):
            return marker.operator_digest
        return self.branches.memory.recall(_shown(request.number))

    def _remember(self, proposal: Proposal, number: int) -> None:
        memory = self.branches.memory
        memory.mark(_shown(number), proposal.evidence.operator_digest)
        told = f"pull request #{number} is open"
        answer_wish(memory, "reopen", proposal.branch, told, well=True)


_NOTICE = (
    "this branch holds commits that the bot did not make, so it no longer touches it. It has a "
    "newer result; to get it here, set the branch back"
)


def _find_open(requests: Sequence[PullRequest]) -> PullRequest | None:
    return next((request for request in requests if request.state == "open"), None)


def _shown(number: int) -> str:
    return f"pull_request/{number}"
