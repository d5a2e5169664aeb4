import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from daemon.origin import (
    BranchMovedError,
    OriginUnavailableError,
    Signature,
    TooLargeError,
    UnknownRevisionError,
    WorkspaceError,
)
from daemon.workspace import Workspace, find_revision, make_origin, read_revision

ME = Signature("me", "me@localhost", "2026-11-30T12:00:00+00:00")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A clone of an origin with one commit: ``a/one``, ``a/two`` and ``b``."""
    origin = tmp_path / "origin.git"
    make_origin(origin)
    workspace = Workspace(str(origin), tmp_path / "clone.git")
    first = workspace.commit(
        None, "", {"a/one": b"1", "a/two": b"2", "b": b"3"}, message="first", by=ME
    )
    workspace.push("main", first, expected=None)
    return workspace


def make_commit(workspace: Workspace, content: bytes = b"new") -> str:
    head = workspace.fetch("main")
    return workspace.commit(head, "a", {"three": content}, message="more", by=ME)


def test_the_heads_are_seen_without_a_fetch(workspace: Workspace, tmp_path: Path) -> None:
    other = Workspace(workspace.origin, tmp_path / "other.git")

    heads = other.find_heads()

    assert heads.default == "main"
    assert not other.holds(heads.branches["main"])


def test_an_empty_origin_has_no_heads(tmp_path: Path) -> None:
    make_origin(tmp_path / "origin.git")

    heads = Workspace(str(tmp_path / "origin.git"), tmp_path / "clone.git").find_heads()

    assert dict(heads.branches) == {}


def test_files_are_read_from_a_revision_below_a_folder(workspace: Workspace) -> None:
    head = workspace.fetch("main")

    assert workspace.files(head, under=["a"]) == {"a/one": b"1", "a/two": b"2"}
    assert workspace.files(head, "a", under=["one"]) == {"one": b"1"}
    assert workspace.files(head, "nowhere", under=["one"]) == {}


def test_a_symbolic_link_is_not_followed(tmp_path: Path, workspace: Workspace) -> None:
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "--quiet", workspace.origin, str(checkout))
    (checkout / "a" / "link").symlink_to("/etc/passwd")
    git(checkout, "add", "a/link")
    git(checkout, "commit", "--quiet", "--message", "link")
    git(checkout, "push", "--quiet")

    assert set(workspace.files(workspace.fetch("main"), under=["a"])) == {"a/one", "a/two"}


def test_a_commit_replaces_a_folder_and_leaves_the_rest(workspace: Workspace) -> None:
    sha = make_commit(workspace)

    assert workspace.files(sha, under=["a", "b"]) == {"a/three": b"new", "b": b"3"}


def test_equal_arguments_make_the_equal_commit(workspace: Workspace) -> None:
    assert make_commit(workspace) == make_commit(workspace)


def test_a_push_makes_a_branch(workspace: Workspace) -> None:
    sha = make_commit(workspace)

    workspace.push("kernelevolve/x/cpu", sha, expected=None)

    assert workspace.find_heads().branches["kernelevolve/x/cpu"] == sha


def test_a_branch_that_somebody_else_moved_is_not_overwritten(workspace: Workspace) -> None:
    ours, theirs = make_commit(workspace), make_commit(workspace, b"theirs")
    workspace.push("work", ours, expected=None)
    workspace.push("work", theirs, expected=ours)

    with pytest.raises(BranchMovedError):
        workspace.push("work", make_commit(workspace, b"newer"), expected=ours)

    assert workspace.find_heads().branches["work"] == theirs


def test_a_branch_that_should_not_be_there_is_not_overwritten(workspace: Workspace) -> None:
    workspace.push("work", make_commit(workspace), expected=None)

    with pytest.raises(BranchMovedError):
        workspace.push("work", make_commit(workspace, b"other"), expected=None)


def test_files_are_added_beside_all_that_is_there(workspace: Workspace) -> None:
    head = workspace.fetch("main")

    sha = workspace.add(head, {"a/four": b"4", "b": b"new"}, message="more", by=ME)

    assert workspace.files(sha) == {"a/one": b"1", "a/two": b"2", "a/four": b"4", "b": b"new"}


def test_what_a_stranger_made_too_large_is_not_read(workspace: Workspace) -> None:
    head = workspace.fetch("main")
    large = workspace.add(head, {"a/large": b"x" * 9000}, message="large", by=ME)
    many = workspace.add(head, {f"a/{n}": b"" for n in range(20)}, message="many", by=ME)

    assert workspace.files(head, "a", most_bytes=8192)
    for revision in (large, many):
        with pytest.raises(TooLargeError, match="more than 8 KiB"):
            workspace.files(revision, "a", most_bytes=8192)
    assert workspace.files(large, under=["b"], most_bytes=8192)


def test_the_head_of_a_pull_request_is_fetched(workspace: Workspace) -> None:
    sha = make_commit(workspace)
    git(Path(workspace.origin), "update-ref", "refs/pull/7/head", push(workspace, sha))

    assert workspace.fetch_request(7) == sha
    assert workspace.find_fork(workspace.fetch("main"), sha) == workspace.fetch("main")


def test_what_has_nothing_in_common_has_no_fork(workspace: Workspace) -> None:
    other = workspace.commit(None, "", {"c": b"1"}, message="other", by=ME)

    assert workspace.find_fork(workspace.fetch("main"), other) is None
    assert workspace.find_fork(workspace.fetch("main"), "0" * 40) is None


def test_the_hash_at_a_path_tells_equal_content(workspace: Workspace) -> None:
    head = workspace.fetch("main")
    same = workspace.commit(head, "c", {"one": b"1", "two": b"2"}, message="m", by=ME)

    assert workspace.tree(same, "c") == workspace.tree(head, "a")
    assert workspace.tree(head, "c") is None


def test_a_commit_comes_before_those_on_top_of_it(workspace: Workspace) -> None:
    head, above = workspace.fetch("main"), make_commit(workspace)

    assert workspace.is_ancestor(head, above)
    assert not workspace.is_ancestor(above, head)
    assert not workspace.is_ancestor("0" * 40, above)


def test_an_origin_that_is_away_is_said_to_be_away(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path / "nowhere.git"), tmp_path / "clone.git")

    with pytest.raises(OriginUnavailableError, match=r"nowhere\.git can't be reached"):
        workspace.find_heads()


@pytest.mark.parametrize(
    "origin", ["--upload-pack=touch /tmp/x", "ext::sh -c id", "-v", "fd::17", "https://a b"]
)
def test_an_origin_that_is_no_url_never_reaches_git(tmp_path: Path, origin: str) -> None:
    with pytest.raises(WorkspaceError, match="is no name that is handed to git"):
        Workspace(origin, tmp_path / "clone.git").find_heads()


@pytest.mark.parametrize(
    "branch", ["--force", "a..b", "a/../b", "x.lock", "-x/y", "a b", "a\nb", ""]
)
def test_a_branch_that_is_no_name_never_reaches_git(workspace: Workspace, branch: str) -> None:
    with pytest.raises(UnknownRevisionError):
        workspace.push(branch, "0" * 40, expected=None)


def test_an_unknown_revision_is_said_to_be_unknown(workspace: Workspace) -> None:
    with pytest.raises(UnknownRevisionError, match="no revision"):
        workspace.files("0" * 40, under=["a"])


def test_the_lock_of_a_killed_git_is_removed(workspace: Workspace) -> None:
    lock = workspace.folder / "refs" / "remotes" / "origin" / "main.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(WorkspaceError):
        workspace.fetch("main")

    workspace.unlock()

    assert workspace.fetch("main")


def test_threads_may_fetch_the_same_branch_at_once(workspace: Workspace) -> None:
    seen: list[str] = []

    def fetch() -> None:
        seen.extend(workspace.fetch("main") for _ in range(4))

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    other = Workspace(workspace.origin, workspace.folder.with_name("other.git"))
    for thread in threads:
        thread.start()
    for number in range(4):
        head = other.fetch("main")
        moved = other.add(head, {"x": b"%d" % number}, message="moved", by=ME)
        other.push("main", moved, expected=head)
    for thread in threads:
        thread.join()

    assert len(seen) == 12


def test_nothing_stays_open(workspace: Workspace) -> None:
    head = workspace.fetch("main")
    me = psutil.Process()
    before, children = me.num_fds(), me.children()

    for _ in range(5):
        workspace.files(head, under=["a", "b"])
        workspace.find_heads()

    assert me.num_fds() == before
    assert me.children() == children  # a database of other tests may run below this process


def test_a_checkout_is_read_at_a_revision(tmp_path: Path, workspace: Workspace) -> None:
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "--quiet", workspace.origin, str(checkout))
    (checkout / "a" / "one").write_bytes(b"changed")

    assert read_revision(checkout / "a", "HEAD", under=["one"]) == {"one": b"1"}
    assert (find_revision(checkout) or "").endswith("+")


def test_a_folder_in_no_repository_has_no_revisions(tmp_path: Path) -> None:
    assert read_revision(tmp_path, "HEAD", under=["a"]) is None
    assert find_revision(tmp_path) is None


def push(workspace: Workspace, sha: str) -> str:
    workspace.push("theirs", sha, expected=None)
    return sha


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)
