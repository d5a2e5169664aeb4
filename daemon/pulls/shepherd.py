"""Looks after the open pull requests of ours, from the day they are opened to the day they end.

Everything is read anew at each look and every step looks for its effect before it acts. A look
that fails says nothing: nothing is closed, opened or moved because of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from daemon.config.file import Configured
from daemon.forge import (
    CodeHost,
    ForgeBusyError,
    ForgeError,
    ForgeRefusedError,
    NotThereError,
    PullRequest,
)
from daemon.logs import find_log
from daemon.origin import BranchMovedError, TooLargeError, WorkspaceError
from daemon.pulls.branches import Branches, lifted_mark
from daemon.pulls.interest import STALE_LABEL, is_stale, note_interest
from daemon.pulls.kernel_commits import KernelCommits
from daemon.pulls.limits import find_push_excess
from daemon.pulls.obsolete import Pair, find_better, find_reason, is_outdated
from daemon.pulls.pull_request import as_draft, find_pair, tell_rebase
from daemon.pulls.retiring import Retiring
from daemon.pulls.reviewers import CODEOWNERS, find_owners, pick_reviewers
from daemon.pulls.standing import Replayed, Standing, find_standing, sum_up
from daemon.pulls.strangers import Strangers
from daemon.pulls.verify_check import make_check
from daemon.pulls.watched import Watched, find_watched, note_watched, opened_at
from daemon.talk.wishes import answer_wish, find_wish, is_held
from operator_registry.record import digest
from operator_registry.registry import Registry
from optimizer.store import OPEN_STATES, Store

log = find_log(__name__)
_LARGEST_CODEOWNERS_BYTES = 3_000_000
"""As GitHub has it; larger ones are not read there either."""


@dataclass(frozen=True)
class Scenery:
    """What all of one look sees."""

    base_sha: str
    registry: Registry | None
    """None where it can't be read now: nothing is known to be obsolete then."""
    pending: frozenset[Pair]
    """What is being searched for."""


@dataclass
class Shepherd:
    """Makes one look a run."""

    host: CodeHost
    branches: Branches
    store: Store
    find_registry: Callable[[], Registry | None]
    config: Configured
    base: str = ""
    """The branch that pull requests go to; empty for the origin's default."""

    def __post_init__(self) -> None:
        """Bring the parts together."""
        self._strangers = Strangers(self.host, self.branches, self.store)
        self._retiring = Retiring(self.host, self.branches, self.store)

    def run(self) -> None:
        """Look at every branch of ours. What fails of one does not keep the others.

        Raises:
            ForgeError: The code host can't be asked now; the first of what it refused.
            WorkspaceError: The origin can't be reached now.
        """
        heads = self.branches.repository.find_heads()
        base = self.base or heads.default
        base_sha = heads.branches.get(base)
        if base_sha is None:
            return
        self.branches.bring(base, base_sha)
        pending = frozenset((g.operator, g.hardware) for g in self.store.pending_goals())
        scenery = Scenery(base_sha, self.find_registry(), pending)
        watched, failures = [], []
        for branch, sha in (*sorted(heads.branches.items()), *self._gone(heads.branches)):
            if (pair := find_pair(branch)) is None:
                continue
            try:
                with self.branches.lock:
                    seen = self._look_after(branch, sha, pair, scenery)
            except ForgeBusyError:
                raise
            except BranchMovedError:
                continue  # somebody was quicker; the next look sees what is there then
            except (ForgeError, WorkspaceError) as error:
                log.warning("pull request not looked after", branch=branch, error=str(error))
                failures.append(error)
                continue
            if seen is not None:
                watched.append(seen)
        if failures:
            note_watched(self.store, tuple(watched))
            raise failures[0]
        self._note_ends({one.number for one in watched})
        note_watched(self.store, tuple(watched))

    def _gone(self, heads: Mapping[str, str]) -> Iterator[tuple[str, None]]:
        """Yield the branches that are gone and that somebody wants open again."""
        for command in self.store.commands(states=OPEN_STATES):
            if "reopen" not in command.text.lower():
                continue
            try:
                branch = self.host.pull_request(command.number).head
            except NotThereError:
                continue  # an issue's
            if branch not in heads and find_wish(self.store, "reopen", branch):
                yield branch, None

    def _note_ends(self, still_open: set[int]) -> None:
        """Note that people merged or closed what was open at the last look."""
        for one in find_watched(self.store):
            if one.number not in still_open and not self._retiring.has_closed(one.number):
                note_interest(self.store, self.branches.clock(), number=one.number)

    def _look_after(
        self, branch: str, sha: str | None, pair: Pair, scenery: Scenery
    ) -> Watched | None:
        """Return the open pull request of a branch, if it is to be watched further."""
        requests = [p for p in self.host.pull_requests(head=branch) if not p.from_fork]
        shown = next((p for p in requests if p.state == "open"), None)
        if shown is None or sha is None:
            if requests:
                self._see_off(branch, sha, requests)
            return None
        self.branches.bring(branch, sha)
        commits = KernelCommits(self.branches, *pair)
        if not self.branches.is_ours(branch, sha, requests):
            shown = self._strangers.respect(shown, sha)
            self._show_check(shown, sha, pair, scenery)
            return Watched(number=shown.number, branch=branch, sha=sha, opened_at=opened_at(shown))
        shown = self._mark_stale(self._strangers.forget(shown))
        if not is_held(self.store, branch):
            reason = self._find_reason(shown, sha, commits, scenery)
            if self._retiring.consider(shown, sha, reason):
                return None
            sha = self._rebase(shown, sha, commits, scenery)
            shown = self._mend(shown, sha, commits)
            self._ask_for_review(shown, sha, commits, scenery)
        self._show_check(shown, sha, pair, scenery)
        return Watched(number=shown.number, branch=branch, sha=sha, opened_at=opened_at(shown))

    def _mark_stale(self, shown: PullRequest) -> PullRequest:
        """Return the pull request with the label that fits; who takes it off, cares."""
        mark, now = f"stale/{shown.number}", self.branches.clock()
        was_labelled, is_labelled = bool(self.store.recall(mark)), STALE_LABEL in shown.labels
        if was_labelled and not is_labelled:
            note_interest(self.store, now, number=shown.number)
        wanted = is_stale(self.store, shown, now)
        if wanted != was_labelled:
            others = tuple(label for label in shown.labels if label != STALE_LABEL)
            labels = (*others, STALE_LABEL) if wanted else others
            shown = self.host.update_pull_request(shown.number, as_draft(shown, labels=labels))
            self.store.mark(mark, STALE_LABEL if wanted else "")
        return shown

    def _see_off(self, branch: str, sha: str | None, requests: Sequence[PullRequest]) -> None:
        """Do what is left to be done for a branch without an open pull request."""
        last = requests[0]
        if last.state == "merged":
            answer_wish(self.store, "reopen", branch, "it is merged", well=False)
            ours = sha == last.head_sha and self.branches.is_ours(branch, last.head_sha, requests)
            if ours:
                self.branches.repository.delete(branch, expected=last.head_sha)
                log.info("branch of a merged pull request deleted", branch=branch)
            return
        self._retiring.finish(last, sha)
        if last.state == "open" or find_wish(self.store, "reopen", branch) is None:
            return
        try:
            if sha is None and self.branches.repository.holds(last.head_sha):
                self.branches.push(branch, last.head_sha, expected=None)
            self.host.reopen_pull_request(last.number)
            told = f"pull request #{last.number} is open again"
        except ForgeRefusedError as error:
            self.store.mark(lifted_mark(branch), str(last.number))
            told = f"closing it is no longer a no; it can't be opened again itself: {error}"
        answer_wish(self.store, "reopen", branch, told, well=True)

    def _find_reason(
        self, shown: PullRequest, sha: str, commits: KernelCommits, scenery: Scenery
    ) -> str | None:
        """Return why nobody needs the pull request any more; None where it is wanted."""
        if scenery.registry is None:
            return None
        base = scenery.base_sha
        if commits.tree(sha) == commits.tree(base):
            return "the base branch holds this kernel already"
        pair = (commits.operator, commits.hardware)
        version = self._version_of(shown)
        is_pending = pair in scenery.pending
        return find_reason(pair, version, scenery.registry, is_pending=is_pending) or find_better(
            commits.evidence(sha), commits.evidence(base)
        )

    def _version_of(self, shown: PullRequest) -> str | None:
        marker = self.branches.marker_of(shown)
        return marker.operator_digest if marker else None

    def _rebase(
        self, shown: PullRequest, sha: str, commits: KernelCommits, scenery: Scenery
    ) -> str:
        """Return the branch's head, on top of the base where it conflicted or somebody asked."""
        branch, base = shown.head, scenery.base_sha
        asked = find_wish(self.store, "rebase", branch)
        # What the base holds already does not conflict with it.
        conflicts = commits.tree(base) not in (commits.tree(sha), commits.tree(f"{sha}^"))
        is_left = is_stale(self.store, shown, self.branches.clock())
        if not (asked or (conflicts and not is_left)):
            return sha
        if asked and asked.sha and not sha.startswith(asked.sha):
            told = "the branch has moved since; look at it, and comment again"
            answer_wish(self.store, "rebase", branch, told, well=False)
            return sha
        if self.branches.repository.is_ancestor(base, sha):
            answer_wish(self.store, "rebase", branch, "it is on top of its base", well=True)
            return sha
        excess = find_push_excess(self.config().limits, self.branches.pushes_in_the_last_hour())
        if excess:
            log.info("rebase held back", branch=branch, why=excess)
            return sha
        new = commits.rebase(branch, sha, base)
        if new is None:
            told = "there is no evidence in its kernel's folder, so that nothing is known of it"
            answer_wish(self.store, "rebase", branch, told, well=False)
            return sha
        told = f"it is on top of {base[:12]} now, and is measured again"
        answer_wish(self.store, "rebase", branch, told, well=True)
        return new

    def _mend(self, shown: PullRequest, sha: str, commits: KernelCommits) -> PullRequest:
        """Return the pull request with its body telling of the head that it has."""
        marker = self.branches.marker_of(shown)
        if marker is None or marker.head == sha:
            return shown
        evidence = commits.evidence(sha)
        if evidence is None or evidence.candidate != marker.candidate:
            return shown  # another kernel: the publisher is about to tell of it
        at = datetime.fromtimestamp(self.branches.clock(), UTC).isoformat(timespec="seconds")
        return self.host.update_pull_request(shown.number, tell_rebase(shown, head=sha, at=at))

    def _ask_for_review(
        self, shown: PullRequest, sha: str, commits: KernelCommits, scenery: Scenery
    ) -> None:
        """Ask owners once, whatever they do with it."""
        mark = f"asked/{shown.number}"
        if self.store.recall(mark):
            return
        by_file = find_owners(self._read_codeowners(scenery.base_sha), f"{commits.path}/README.md")
        names = (*commits.owners(sha), *by_file, *self.config().reviewers)
        people = pick_reviewers(names, me=self.host.me.login)
        if people:
            self.host.ask_for_review(shown.number, people)
        self.store.mark(mark, " ".join(people) or "nobody")

    def _read_codeowners(self, revision: str) -> str:
        for folder in CODEOWNERS:
            try:
                files = self.branches.repository.files(
                    revision, folder, under=["CODEOWNERS"], most_bytes=_LARGEST_CODEOWNERS_BYTES
                )
            except TooLargeError:
                return ""
            if "CODEOWNERS" in files:
                return files["CODEOWNERS"].decode("utf-8", errors="replace")
        return ""

    def _show_check(self, shown: PullRequest, sha: str, pair: Pair, scenery: Scenery) -> None:
        """Show what is known of the head, and have it no draft unless that is too little."""
        standing = find_standing(self.store, sha)
        registry = scenery.registry
        outdated = registry is not None and is_outdated(pair, self._version_of(shown), registry)
        evidence = KernelCommits(self.branches, *pair).evidence(sha)
        check = make_check(sha, standing, evidence, outdated=outdated)
        mark, shows = f"check/{sha}", digest(check.to_json())
        if self.store.recall(mark) != shows:
            self.host.show_check(check)
            self.store.mark(mark, shows)
        self._make_draft(shown, is_draft=outdated or _is_unproven(standing))

    def _make_draft(self, shown: PullRequest, *, is_draft: bool) -> None:
        """Make it a draft or no draft, where that changes: what people make of it stays."""
        mark, wanted = f"draft/{shown.number}", str(is_draft)
        if (self.store.recall(mark) or "False") != wanted:
            if shown.draft != is_draft:
                self.host.update_pull_request(shown.number, as_draft(shown, draft=is_draft))
            self.store.mark(mark, wanted)


def _is_unproven(standing: Standing | None) -> bool:
    if isinstance(standing, Replayed):
        return sum_up(standing)[0] == "cannot_tell"
    return standing is None
