"""What every forge does, whichever code host is behind it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from daemon.forge import Forge, ForgeRefusedError, PullRequestDraft
from daemon.local_forge import LocalForge
from daemon.origin import Signature
from daemon.workspace import Workspace, make_origin
from tests.fakes import FakeForge
from tests.github.fake import FakeGitHub
from tests.github.hosts import open_forge

ME = Signature("me", "me@localhost", "2026-11-30T12:00:00+00:00")


class Host(Protocol):
    """A code host with branch ``main``, and what people do there with git."""

    @property
    def forge(self) -> Forge: ...
    def push(self, branch: str, content: str = "new") -> str: ...
    def merge(self, branch: str) -> None: ...
    def delete(self, branch: str) -> None: ...


class LocalHost:
    def __init__(self, folder: Path) -> None:
        self.origin = folder / "origin.git"
        make_origin(self.origin)
        self.git = Workspace(str(self.origin), folder / "clone.git")
        first = self.git.commit(None, "", {"readme": b"here"}, message="first", by=ME)
        self.git.push("main", first, expected=None)
        self.forge = LocalForge(folder / "forge", Workspace(str(self.origin), folder / "own.git"))

    def push(self, branch: str, content: str = "new") -> str:
        files = {"file": content.encode()}
        sha = self.git.commit(self.git.fetch("main"), "work", files, message="work", by=ME)
        self.git.push(branch, sha, expected=self.git.find_heads().branches.get(branch))
        return sha

    def merge(self, branch: str) -> None:
        heads = self.git.find_heads().branches
        self.git.push("main", heads[branch], expected=heads["main"])

    def delete(self, branch: str) -> None:
        subprocess.run(["git", "branch", "-q", "-D", branch], cwd=self.origin, check=True)


@dataclass
class FakeHost:
    forge: FakeForge = field(default_factory=FakeForge)

    def push(self, branch: str, content: str = "new") -> str:
        self.forge.branches[branch] = content
        return content

    def merge(self, branch: str) -> None:
        self.forge.merged.add(self.forge.branches[branch])

    def delete(self, branch: str) -> None:
        del self.forge.branches[branch]


@dataclass
class GitHubHost:
    github: FakeGitHub
    forge: Forge

    def push(self, branch: str, content: str = "new") -> str:
        return self.github.push(branch, {"file": content}, "somebody")

    def merge(self, branch: str) -> None:
        before = self.github.git.heads()
        self.github.git.point("refs/heads/main", before[branch])
        self.github.world.moved(before, self.github.world.owner)

    def delete(self, branch: str) -> None:
        self.github.delete_branch(branch, "somebody")


@contextmanager
def open_host(name: str, folder: Path) -> Iterator[Host]:
    match name:
        case "local":
            yield LocalHost(folder)
        case "github":
            with FakeGitHub(folder) as github:
                yield GitHubHost(github, open_forge(github))
        case _:
            yield FakeHost()


@pytest.fixture(params=["local", "fake", "github"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    with open_host(request.param, tmp_path) as host:
        yield host


def make_draft(head: str = "work", **changes: object) -> PullRequestDraft:
    draft = PullRequestDraft(title="Faster", body="By 2x", head=head, base="main", labels=("a",))
    return draft.model_copy(update=changes)


def test_a_pull_request_is_found_again_by_its_branch(host: Host) -> None:
    sha = host.push("work")

    made = host.forge.open_pull_request(make_draft())

    assert host.forge.pull_requests(head="work") == (made,)
    assert host.forge.pull_requests(head="other") == ()
    assert (made.state, made.head_sha, made.title, made.labels) == ("open", sha, "Faster", ("a",))


def test_a_branch_that_is_not_there_gets_no_pull_request(host: Host) -> None:
    with pytest.raises(ForgeRefusedError, match="no branch work"):
        host.forge.open_pull_request(make_draft())

    assert host.forge.pull_requests() == ()


def test_a_branch_has_one_open_pull_request(host: Host) -> None:
    host.push("work")
    host.forge.open_pull_request(make_draft())

    with pytest.raises(ForgeRefusedError, match="already"):
        host.forge.open_pull_request(make_draft(title="Again"))

    assert len(host.forge.pull_requests()) == 1


def test_the_newest_pull_request_comes_first(host: Host) -> None:
    for branch in ("one", "two"):
        host.push(branch, branch)
        host.forge.open_pull_request(make_draft(branch))

    assert [p.head for p in host.forge.pull_requests()] == ["two", "one"]


def test_an_update_changes_title_body_and_labels(host: Host) -> None:
    host.push("work")
    number = host.forge.open_pull_request(make_draft()).number

    host.forge.update_pull_request(number, make_draft(title="T", body="B", labels=()))

    (found,) = host.forge.pull_requests()
    assert (found.title, found.body, found.labels) == ("T", "B", ())


def test_a_draft_becomes_ready_for_review_by_an_update(host: Host) -> None:
    host.push("work")
    made = host.forge.open_pull_request(make_draft(draft=True))

    ready = host.forge.update_pull_request(made.number, make_draft())

    assert (made.draft, ready.draft) == (True, False)


def test_an_update_without_a_change_does_nothing(host: Host) -> None:
    host.push("work")
    made = host.forge.open_pull_request(make_draft())

    assert host.forge.update_pull_request(made.number, make_draft()) == made


def test_a_closed_pull_request_stays_closed(host: Host) -> None:
    host.push("work")
    number = host.forge.open_pull_request(make_draft()).number

    closed = host.forge.close_pull_request(number)

    assert closed.state == "closed"
    assert host.forge.close_pull_request(number) == closed
    assert host.forge.pull_requests() == (closed,)
    with pytest.raises(ForgeRefusedError, match="closed"):
        host.forge.update_pull_request(number, make_draft(title="T"))


def test_after_a_closed_one_the_branch_may_have_another(host: Host) -> None:
    host.push("work")
    host.forge.close_pull_request(host.forge.open_pull_request(make_draft()).number)

    second = host.forge.open_pull_request(make_draft())

    assert [p.number for p in host.forge.pull_requests()] == [second.number, second.number - 1]


def test_a_pull_request_that_does_not_exist_cannot_be_changed(host: Host) -> None:
    with pytest.raises(ForgeRefusedError, match="no pull request #7"):
        host.forge.update_pull_request(7, make_draft())
    with pytest.raises(ForgeRefusedError, match="no pull request #7"):
        host.forge.close_pull_request(7)


def test_a_push_moves_the_pull_requests_head(host: Host) -> None:
    host.push("work")
    host.forge.open_pull_request(make_draft())

    sha = host.push("work", "newer")

    assert host.forge.pull_requests()[0].head_sha == sha


def test_a_merged_branch_makes_its_pull_request_merged(host: Host) -> None:
    host.push("work")
    host.forge.open_pull_request(make_draft())

    host.merge("work")

    assert host.forge.pull_requests()[0].state == "merged"


def test_a_branch_that_is_deleted_after_the_merge_leaves_it_merged(host: Host) -> None:
    host.push("work")
    host.forge.open_pull_request(make_draft())
    host.merge("work")

    host.delete("work")

    assert host.forge.pull_requests()[0].state == "merged"


def test_a_branch_that_is_deleted_unmerged_closes_its_pull_request(host: Host) -> None:
    host.push("work")
    host.forge.open_pull_request(make_draft())

    host.delete("work")

    assert host.forge.pull_requests()[0].state == "closed"


def test_a_branch_without_anything_new_gets_no_pull_request(host: Host) -> None:
    host.push("work")
    host.merge("work")

    with pytest.raises(ForgeRefusedError, match="nothing to merge"):
        host.forge.open_pull_request(make_draft())
