"""What stands in git's trees, read and written: the part of `daemon.workspace` below a commit."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import git
from git import exc

from daemon.origin import REVISION, SHA, TooLargeError, UnknownRevisionError, require

_FILE_BYTES = 1024
"""What a file counts beside its content: very many empty ones are no small thing either."""


@dataclass(frozen=True)
class Wanted:
    """Which files are read."""

    under: Sequence[str] = ()
    """Which entries of the folder; empty for all."""
    named: str = ""
    """Which name the files must have; empty for any."""
    most_bytes: int | None = None
    """How large they may be together; None for any size."""


def find_item(repo: git.Repo, revision: str, path: str) -> Any:  # noqa: ANN401 - git's objects
    """Return what is at a path in a revision; None where there is nothing.

    Raises:
        UnknownRevisionError: There is no such revision.
    """
    require(REVISION, revision)
    try:
        tree = repo.commit(revision).tree
    except (ValueError, exc.BadName, exc.BadObject, IndexError) as error:
        msg = f"there is no revision {revision} in {repo.git_dir}"
        raise UnknownRevisionError(msg) from error
    try:
        return tree / path if path else tree
    except KeyError:
        return None


def read_tree(repo: git.Repo, revision: str, folder: str, wanted: Wanted) -> dict[str, bytes]:
    """Return the files below a folder, by their path from there; links are no files.

    Raises:
        UnknownRevisionError: There is no such revision.
        TooLargeError: They are larger than is wanted.
    """
    top = find_item(repo, revision, folder)
    files: dict[str, bytes] = {}
    if top is None or top.type != "tree":
        return files

    def pruned(item: Any, depth: int) -> bool:  # noqa: ANN401 - git's objects
        return bool(wanted.under) and depth == 1 and item.name not in wanted.under

    left = wanted.most_bytes
    for item in top.traverse(predicate=lambda item, _: item.type == "blob", prune=pruned):
        if item.mode != git.Blob.link_mode and wanted.named in ("", item.name):
            if left is not None and wanted.most_bytes is not None:
                left -= item.size + _FILE_BYTES
                if left < 0:
                    raise TooLargeError(wanted.most_bytes)
            inside = PurePosixPath(item.path).relative_to(top.path or ".").as_posix()
            files[inside] = item.data_stream.read()
    return files


def write_tree(
    repo: git.Repo, base: str | None, path: str | None, files: Mapping[str, bytes]
) -> str:
    """Return a tree as that of a commit, but for these files.

    Args:
        repo: Where it is written.
        base: The commit; None for none.
        path: The folder that holds nothing else afterwards, empty for the root; with None, all
            other files stay, and `files` are named from the root.
        files: What is new, by path below it.
    """
    lines = []
    if base is not None:
        require(SHA, base)
    if base is not None and path is not None:
        listed = repo.git.ls_tree(
            "-r", "-z", "--name-only", base, "--", f"{path}/" if path else "."
        )
        lines += [f"0 {'0' * 40}\t{old}" for old in listed.split("\0") if old]
    for name, content in sorted(files.items()):
        with _file_of(content) as stdin:
            blob = repo.git.hash_object("-w", "--stdin", istream=stdin)
        lines.append(f"100644 {blob}\t{path}/{name}" if path else f"100644 {blob}\t{name}")
    listing = "".join(f"{line}\0" for line in lines).encode()
    with TemporaryDirectory(dir=repo.git_dir) as scratch, _file_of(listing) as stdin:
        index = {"GIT_INDEX_FILE": f"{scratch}/index"}
        repo.git.read_tree(base or "--empty", env=index)
        repo.git.update_index("-z", "--index-info", env=index, istream=stdin)
        return str(repo.git.write_tree(env=index))


@contextmanager
def _file_of(content: bytes) -> Iterator[IO[bytes]]:
    with TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file
