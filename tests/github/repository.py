"""A bare repository of the fake of GitHub: what people and the API do to it, by git itself."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

_WHERE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "PATH": os.environ.get("PATH", ""),
}


@dataclass(frozen=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    message: str


@dataclass(frozen=True)
class Change:
    """A file that differs between two commits."""

    path: str
    status: str
    additions: int
    deletions: int
    blob: str


@dataclass
class Repository:
    path: Path
    _fixed: dict[str, bool] = field(default_factory=dict, init=False)
    """What can't change of two commits: whether one holds the other, or conflicts with it."""
    _changes: dict[tuple[str, str], tuple[Change, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Make it, with ``main`` as its default branch and anybody's pushes over HTTP let in."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", ".")
        self.git("config", "http.receivepack", "true")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.git("config", "gc.auto", "0")
        self.git("config", "receive.autogc", "false")

    def git(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] = _WHERE) -> str:
        return self._run(*arguments, stdin=stdin, check=True, env=env).stdout.decode().strip()

    def succeeds(self, *arguments: str) -> bool:
        return self._run(*arguments, check=False).returncode == 0

    def heads(self) -> dict[str, str]:
        listed = self.git(
            "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"
        )
        return dict(line.split(" ", 1) for line in listed.splitlines())

    def find(self, revision: str) -> str | None:
        """Return the commit that a branch, tag or hash names."""
        for name in (f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
            done = self._run("rev-parse", "-q", "--verify", f"{name}^{{commit}}", check=False)
            if done.returncode == 0:
                return done.stdout.decode().strip()
        return None

    def commit(
        self, parents: tuple[str, ...], files: Mapping[str, str | bytes | None], *, by: str,
        message: str, at: float,
    ) -> str:  # fmt: skip
        """Commit the first parent's files with some changed; None deletes one."""
        with TemporaryDirectory(dir=self.path) as scratch:
            where = _WHERE | {"GIT_INDEX_FILE": f"{scratch}/index"}
            self.git("read-tree", parents[0] if parents else "--empty", env=where)
            for path, content in files.items():
                if content is None:
                    gone = f"0 {'0' * 40}\t{path}\n".encode()
                    self.git("update-index", "--index-info", stdin=gone, env=where)
                    continue
                data = content.encode() if isinstance(content, str) else content
                blob = self.git("hash-object", "-w", "--stdin", stdin=data)
                entry = f"100644,{blob},{path}"
                self.git("update-index", "--add", "--cacheinfo", entry, env=where)
            tree = self.git("write-tree", env=where)
        return self.commit_tree(tree, parents, by=by, message=message, at=at)

    def commit_tree(
        self, tree: str, parents: tuple[str, ...], *, by: str, message: str, at: float
    ) -> str:
        who = {f"GIT_{role}_NAME": by for role in ("AUTHOR", "COMMITTER")}
        who |= {f"GIT_{role}_EMAIL": email_of(by) for role in ("AUTHOR", "COMMITTER")}
        who |= {f"GIT_{role}_DATE": f"{int(at)} +0000" for role in ("AUTHOR", "COMMITTER")}
        named = [part for parent in parents for part in ("-p", parent)]
        return self.git("commit-tree", tree, *named, "-m", message, env=_WHERE | who)

    def point(self, ref: str, sha: str | None) -> None:
        """Make a full ref name a commit; None deletes it."""
        if sha is None:
            self.git("update-ref", "-d", ref)
        else:
            self.git("update-ref", ref, sha)

    def holds(self, new: str, old: str) -> bool:
        """Return whether a commit has another among its ancestors, or is it."""
        key = f"holds {new} {old}"
        if key not in self._fixed:
            self._fixed[key] = self.succeeds("merge-base", "--is-ancestor", old, new)
        return self._fixed[key]

    def merges(self, base: str, head: str) -> bool:
        """Return whether two commits merge without a conflict."""
        key = f"merges {base} {head}"
        if key not in self._fixed:
            self._fixed[key] = self.succeeds("merge-tree", "--write-tree", base, head)
        return self._fixed[key]

    def merged_tree(self, base: str, head: str) -> str:
        return self.git("merge-tree", "--write-tree", base, head).splitlines()[0]

    def merge_base(self, one: str, two: str) -> str | None:
        done = self._run("merge-base", one, two, check=False)
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def read(self, revision: str, path: str) -> bytes | None:
        done = self._run("cat-file", "blob", f"{revision}:{path}", check=False)
        return done.stdout if done.returncode == 0 else None

    def blob_of(self, revision: str, path: str) -> str:
        return self.git("rev-parse", f"{revision}:{path}")

    def names(self, revision: str, folder: str) -> tuple[tuple[str, str, str], ...]:
        """Return type, hash and name of what lies in a folder; nothing if it is absent."""
        done = self._run("ls-tree", "-z", f"{revision}:{folder}", check=False)
        entries = [e for e in done.stdout.decode().split("\0") if e and done.returncode == 0]
        split = [entry.split("\t", 1) for entry in entries]
        return tuple((left.split()[1], left.split()[2], name) for left, name in split)

    def log(self, new: str, old: str | None = None, *, most: int = 250) -> tuple[Commit, ...]:
        """Return the commits that `new` has beyond `old`, oldest first."""
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%B%x01"
        span = new if old is None else f"{old}..{new}"
        out = self.git("log", "--reverse", f"--max-count={most}", f"--format={form}", span)
        found = []
        for entry in out.split("\x01"):
            if entry.strip():
                sha, tree, parents, author, email, date, message = entry.strip().split("\0", 6)
                whole = message.strip()
                found.append(Commit(sha, tree, tuple(parents.split()), author, email, date, whole))
        return tuple(found)

    def show(self, sha: str) -> Commit:
        return self.log(sha, most=1)[0]

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return the files that differ, by path."""
        if (old, new) not in self._changes:
            self._changes[old, new] = self._compare(old, new)
        return self._changes[old, new]

    def _compare(self, old: str, new: str) -> tuple[Change, ...]:
        listed = self.git("diff-tree", "-r", "--no-renames", "--raw", "--no-abbrev", old, new)
        counted = self.git("diff-tree", "-r", "--no-renames", "--numstat", old, new)
        split = [line.split("\t", 2) for line in counted.splitlines()]
        counts = {path: (_count(added), _count(deleted)) for added, deleted, path in split}
        found = []
        words = {"A": "added", "D": "removed", "M": "modified", "T": "changed"}
        for line in listed.splitlines():
            left, path = line.split("\t", 1)
            _, _, before, after, kind = left.split()
            blob = before if kind == "D" else after
            added, deleted = counts[path]
            found.append(Change(path, words[kind[0]], added, deleted, blob))
        return tuple(found)

    def _run(
        self, *arguments: str, check: bool, stdin: bytes = b"", env: Mapping[str, str] = _WHERE
    ) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            check=check,
            env=env,
        )


def email_of(login: str) -> str:
    """Return the address under which somebody's commits stand."""
    return f"{login.removesuffix('[bot]')}@users.noreply.github.com"


def _count(lines: str) -> int:
    return 0 if lines == "-" else int(lines)  # of a binary file, git counts none
