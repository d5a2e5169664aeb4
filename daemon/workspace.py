"""The registry's repository: a bare clone, read without a checkout. The one door to git."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import git
import psutil
from git import exc

from daemon.git_trees import Wanted, find_item, read_tree, write_tree
from daemon.origin import (
    BRANCH,
    ENVIRONMENT,
    REVISION,
    SHA,
    URL,
    BranchMovedError,
    Heads,
    OriginUnavailableError,
    Signature,
    WorkspaceError,
    environment_with,
    first_line,
    read_heads,
    require,
)

_NETWORK_TIMEOUT_S = 120


@dataclass(frozen=True)
class Workspace:
    """A bare clone of an origin. Every method opens the repository and closes it again."""

    origin: str
    folder: Path
    credentials: Callable[[], Mapping[str, str]] | None = None
    """Returns the git configuration that lets us into the origin now, or raises
    OriginUnavailableError; None where git needs no help with it."""

    _fetching: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )
    """Of two fetches of one branch at a time one fails: it finds the reference moved."""

    def find_heads(self) -> Heads:
        """Return the origin's branches; one small exchange, nothing is fetched.

        Raises:
            OriginUnavailableError: No network, or no such repository.
        """
        with self._open() as repo, self._speaking():
            text = repo.git.ls_remote(
                "--symref", "--", self.origin, "HEAD", "refs/heads/*",
                env=self._pass(), kill_after_timeout=_NETWORK_TIMEOUT_S,
            )  # fmt: skip
        return read_heads(str(text))

    def fetch(self, branch: str) -> str:
        """Bring a branch into the clone and return its head.

        Raises:
            OriginUnavailableError: No network, or no such branch.
        """
        require(BRANCH, branch)
        with self._fetching, self._open() as repo, self._speaking():
            repo.git.fetch(
                "--no-tags", "--quiet", "--no-write-fetch-head", "--no-auto-gc", "--",
                self.origin, f"+refs/heads/{branch}:refs/remotes/origin/{branch}",
                env=self._pass(), kill_after_timeout=_NETWORK_TIMEOUT_S,
            )  # fmt: skip
            return str(repo.git.rev_parse("--verify", f"refs/remotes/origin/{branch}"))

    def fetch_request(self, number: int) -> str:
        """Bring a pull request's head into the clone, from a fork as well, and return it.

        Raises:
            OriginUnavailableError: No network, or no such pull request.
        """
        theirs, ours = f"refs/pull/{number:d}/head", f"refs/requests/{number:d}"
        with self._fetching, self._open() as repo, self._speaking():
            repo.git.fetch(
                "--no-tags", "--quiet", "--no-write-fetch-head", "--no-auto-gc", "--",
                self.origin, f"+{theirs}:{ours}",
                env=self._pass(), kill_after_timeout=_NETWORK_TIMEOUT_S,
            )  # fmt: skip
            return str(repo.git.rev_parse("--verify", ours))

    def unlock(self) -> None:
        """Remove the locks that a killed git left behind; none while a git works in the clone."""
        if any(_works_in(process, self.folder) for process in psutil.process_iter()):
            return
        for lock in self.folder.rglob("*.lock"):
            lock.unlink(missing_ok=True)

    def holds(self, revision: str) -> bool:
        """Return whether the clone holds a commit."""
        with self._open() as repo:
            return _holds(repo, revision)

    def files(
        self,
        revision: str,
        folder: str = "",
        *,
        under: Sequence[str] = (),
        named: str = "",
        most_bytes: int | None = None,
    ) -> dict[str, bytes]:
        """Return the files of a revision, by their path below `folder`.

        Args:
            revision: A commit that the clone holds.
            folder: A folder of the repository; empty for its root.
            under: Which entries of it to read, files or folders; empty for all.
            named: Which name the files must have; empty for any.
            most_bytes: How large they may be together; None for any size.

        Raises:
            UnknownRevisionError: The clone does not hold the commit.
            TooLargeError: They are larger than that.
        """
        with self._open() as repo:
            return read_tree(repo, revision, folder, Wanted(tuple(under), named, most_bytes))

    def tree(self, revision: str, path: str) -> str | None:
        """Return the hash of what is at a path in a revision; None where there is nothing."""
        with self._open() as repo:
            item = find_item(repo, revision, path)
            return None if item is None else str(item.hexsha)

    def commit(
        self,
        base: str | None,
        path: str,
        files: Mapping[str, bytes],
        *,
        message: str,
        by: Signature,
    ) -> str:
        """Return a commit on top of `base` in which folder `path` holds just these files.

        Equal arguments give the equal commit.

        Args:
            base: The parent; None for a commit without one.
            path: The folder; empty for the whole repository.
            files: Its new content, by path below it.
            message: The commit's message.
            by: Author and committer, and when.
        """
        with self._open() as repo:
            tree = write_tree(repo, base, path, files)
            parents = ["-p", base] if base else []
            return str(repo.git.commit_tree(tree, *parents, "-m", message, env=by.environment))

    def add(self, base: str, files: Mapping[str, bytes], *, message: str, by: Signature) -> str:
        """Return a commit on top of `base` with these files, by path, beside all that it holds."""
        with self._open() as repo:
            tree = write_tree(repo, base, None, files)
            return str(repo.git.commit_tree(tree, "-p", base, "-m", message, env=by.environment))

    def push(self, branch: str, sha: str, *, expected: str | None) -> None:
        """Make a branch of the origin point at a commit.

        Args:
            branch: Its name.
            sha: The commit.
            expected: Where the branch must be now; None where it must not be.

        Raises:
            BranchMovedError: The branch is elsewhere.
            OriginUnavailableError: No network, or the origin refuses.
        """
        require(BRANCH, branch)
        require(SHA, sha)
        lease = f"--force-with-lease=refs/heads/{branch}:{expected or ''}"
        with self._open() as repo, self._speaking(branch):
            repo.git.push(
                lease, "--porcelain", "--no-verify", "--",
                self.origin, f"{sha}:refs/heads/{branch}",
                env=self._pass(), kill_after_timeout=_NETWORK_TIMEOUT_S,
            )  # fmt: skip

    def delete(self, branch: str, *, expected: str) -> None:
        """Remove a branch of the origin.

        Raises:
            BranchMovedError: It does not point at the commit that is expected.
            OriginUnavailableError: No network, or the origin refuses.
        """
        require(BRANCH, branch)
        require(SHA, expected)
        with self._open() as repo, self._speaking(branch):
            repo.git.push(
                f"--force-with-lease=refs/heads/{branch}:{expected}", "--porcelain", "--no-verify",
                "--", self.origin, f":refs/heads/{branch}",
                env=self._pass(), kill_after_timeout=_NETWORK_TIMEOUT_S,
            )  # fmt: skip

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether `new` holds all that `old` does; False where a commit is unknown here."""
        with self._open() as repo:
            if not (_holds(repo, old) and _holds(repo, new)):
                return False
            return _succeeds(repo.git.merge_base, "--is-ancestor", old, new)

    def find_fork(self, one: str, other: str) -> str | None:
        """Return the last commit that two have in common; None where they have none."""
        with self._open() as repo:
            if not (_holds(repo, one) and _holds(repo, other)):
                return None
            status, said, _ = repo.git.merge_base(
                one, other, with_extended_output=True, with_exceptions=False
            )
            return str(said) if status == 0 else None

    def _pass(self) -> dict[str, str] | None:
        """Return the variables of a git that goes to the origin."""
        if self.credentials is None:
            return None
        return environment_with(self.credentials(), self.origin)

    @contextmanager
    def _open(self) -> Iterator[git.Repo]:
        require(URL, self.origin)
        if not self.folder.exists():
            _make_bare(self.folder)
        with git.Repo(self.folder) as repo:
            repo.git.update_environment(**ENVIRONMENT)
            yield repo

    @contextmanager
    def _speaking(self, branch: str | None = None) -> Iterator[None]:
        try:
            yield
        except exc.GitCommandError as error:
            said = f"{error.stderr} {error.stdout}"
            if branch is not None and ("stale info" in said or "[rejected]" in said):
                raise BranchMovedError(branch) from error
            raise OriginUnavailableError(self.origin, first_line(error.stderr)) from error
        except exc.GitCommandNotFound as error:
            raise WorkspaceError(_NO_GIT) from error


_NO_GIT = "git is not on the PATH; install it, for example with: apt-get install git"


def read_revision(folder: Path, revision: str, *, under: Sequence[str]) -> dict[str, bytes] | None:
    """Return the files below a folder of somebody's checkout, as they were at a revision.

    None comes back where the folder is in no repository.

    Raises:
        UnknownRevisionError: The repository has no such revision.
    """
    require(REVISION, revision)
    try:
        with git.Repo(folder, search_parent_directories=True) as repo:
            top = Path(repo.working_tree_dir or folder).resolve()
            inside = folder.resolve().relative_to(top).as_posix()
            return read_tree(repo, revision, "" if inside == "." else inside, Wanted(tuple(under)))
    except (exc.InvalidGitRepositoryError, exc.NoSuchPathError):
        return None


def find_revision(folder: Path) -> str | None:
    """Return the commit that a folder's repository is at, with ``+`` where files differ from it."""
    try:
        with git.Repo(folder, search_parent_directories=True) as repo:
            return repo.head.commit.hexsha + ("+" if repo.is_dirty() else "")
    except (exc.InvalidGitRepositoryError, exc.NoSuchPathError, ValueError):
        return None


def make_origin(folder: Path) -> None:
    """Make an empty bare repository whose default branch is ``main``."""
    _make_bare(folder)


def _make_bare(folder: Path) -> None:
    # Made beside its place and moved there, so that a kill can't leave half a repository.
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        made = Path(scratch) / folder.name
        git.Repo.init(made, bare=True, initial_branch="main").close()
        made.rename(folder)


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.name().startswith("git") and Path(process.cwd()) == folder.resolve()
    except (psutil.Error, OSError):
        return False


def _holds(repo: git.Repo, revision: str) -> bool:
    require(SHA, revision)
    return _succeeds(repo.git.cat_file, "-e", f"{revision}^{{commit}}")


def _succeeds(command: Callable[..., Any], *arguments: str) -> bool:
    status, _, _ = command(*arguments, with_extended_output=True, with_exceptions=False)
    return bool(status == 0)
