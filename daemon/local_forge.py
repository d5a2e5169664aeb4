"""The embedded code host: a bare repository, and pull requests as JSON records beside it.

People merge with git, as any branch: a pull request whose head the base branch holds is merged.
One whose branch is gone, or that is closed by `close_pull_request`, is closed.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field, ValidationError

from daemon.forge import (
    ForgeError,
    ForgeRefusedError,
    ForgeUnavailableError,
    PullRequest,
    PullRequestDraft,
    State,
)
from daemon.origin import Heads, WorkspaceError
from operator_registry.record import Record


class Branches(Protocol):
    """The branches of the repository whose pull requests these are."""

    def find_heads(self) -> Heads:
        """Return what the branches point at."""
        ...

    def holds(self, revision: str) -> bool:
        """Return whether a commit is known here."""
        ...

    def fetch(self, branch: str) -> str:
        """Make a branch's commits known here and return its head."""
        ...

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether `new` holds all that `old` does."""
        ...


class _Stored(Record):
    schema_version: Literal[1] = Field(default=1, alias="schema")
    pull_request: PullRequest


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class LocalForge:
    """Implements `daemon.forge.Forge` for a repository that any git reaches."""

    folder: Path
    branches: Branches
    now: Callable[[], datetime] = field(default=_now)

    def pull_requests(self, *, head: str | None = None) -> tuple[PullRequest, ...]:
        """See `Forge.pull_requests`."""
        with self._locked():
            known = self._refreshed()
        return tuple(p for p in known if head is None or p.head == head)

    def open_pull_request(self, draft: PullRequestDraft) -> PullRequest:
        """See `Forge.open_pull_request`."""
        with self._locked():
            known = self._refreshed()
            sha = self._head_to_merge(draft)
            if taken := [p for p in known if p.head == draft.head and p.state == "open"]:
                msg = f"{draft.head} has an open pull request already: #{taken[0].number}"
                raise ForgeRefusedError(msg)
            at = self.now().isoformat(timespec="seconds")
            made = PullRequest(
                number=max((p.number for p in known), default=0) + 1,
                state="open",
                head_sha=sha,
                created_at=at,
                updated_at=at,
                **draft.model_dump(),
            )
            self._store(made)
            return made

    def update_pull_request(self, number: int, draft: PullRequestDraft) -> PullRequest:
        """See `Forge.update_pull_request`."""
        with self._locked():
            old = self._find(number)
            if old.state != "open":
                msg = f"pull request #{number} is {old.state}: it can't be changed"
                raise ForgeRefusedError(msg)
            wanted = {name: getattr(draft, name) for name in ("title", "body", "labels", "draft")}
            return self._changed(old, **wanted)

    def close_pull_request(self, number: int) -> PullRequest:
        """See `Forge.close_pull_request`."""
        with self._locked():
            old = self._find(number)
            return self._changed(old, state="closed") if old.state == "open" else old

    def _find(self, number: int) -> PullRequest:
        for known in self._refreshed():
            if known.number == number:
                return known
        msg = f"there is no pull request #{number}"
        raise ForgeRefusedError(msg)

    def _head_to_merge(self, draft: PullRequestDraft) -> str:
        heads = self._heads().branches
        for branch in (draft.head, draft.base):
            if branch not in heads:
                msg = f"there is no branch {branch}"
                raise ForgeRefusedError(msg)
        if self._is_merged(heads[draft.head], draft, heads[draft.base]):
            msg = f"{draft.base} holds all of {draft.head} already: there is nothing to merge"
            raise ForgeRefusedError(msg)
        return heads[draft.head]

    def _refreshed(self) -> tuple[PullRequest, ...]:
        """Return all pull requests, newest first, after a look at what became of the open ones."""
        known = self._load()
        if not any(p.state == "open" for p in known):
            return known
        heads = self._heads()
        return tuple(self._seen(p, heads) if p.state == "open" else p for p in known)

    def _seen(self, known: PullRequest, heads: Heads) -> PullRequest:
        sha = heads.branches.get(known.head, known.head_sha)
        base = heads.branches.get(known.base)
        state: State = "open"
        if base is not None and self._is_merged(sha, known, base):
            state = "merged"
        elif known.head not in heads.branches or base is None:
            state = "closed"
        return self._changed(known, state=state, head_sha=sha)

    def _is_merged(self, sha: str, of: PullRequest | PullRequestDraft, base_sha: str) -> bool:
        with _speaking():
            if not self.branches.holds(base_sha):
                self.branches.fetch(of.base)
            return self.branches.is_ancestor(sha, base_sha)

    def _changed(self, old: PullRequest, **changes: object) -> PullRequest:
        new = old.model_copy(update=changes)
        if new == old:
            return old
        new = new.model_copy(update={"updated_at": self.now().isoformat(timespec="seconds")})
        self._store(new)
        return new

    def _heads(self) -> Heads:
        with _speaking():
            return self.branches.find_heads()

    def _load(self) -> tuple[PullRequest, ...]:
        files = sorted(self.folder.glob("[0-9]*.json"), reverse=True)
        return tuple(_read(file) for file in files)

    def _store(self, pull_request: PullRequest) -> None:
        file = self.folder / f"{pull_request.number:06}.json"
        scratch = file.with_suffix(".new")
        with scratch.open("w", encoding="utf-8") as stream:
            stream.write(_Stored(pull_request=pull_request).to_json(indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel frees it when the process dies
            yield


def _read(file: Path) -> PullRequest:
    try:
        return _Stored.from_json(file.read_text(encoding="utf-8")).pull_request
    except (ValidationError, UnicodeDecodeError) as error:
        msg = f"{file}: no pull request record; restore it from a backup or delete it"
        raise ForgeError(msg) from error


@contextmanager
def _speaking() -> Iterator[None]:
    try:
        yield
    except WorkspaceError as error:
        raise ForgeUnavailableError(str(error)) from error
