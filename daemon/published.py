"""Copies of published kernels out of the registry's repository, for a search to begin with."""

from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from pydantic import ValidationError

from daemon.planner import Work
from operator_registry.registry import Operator
from optimizer.likeness import likeness

MOST_KIN: Final = 4
"""So many operators that are alike are looked at."""
KERNELS: Final = "kernels"


class Files(Protocol):
    """The part of `Workspace` that is needed here."""

    def files(self, revision: str, folder: str = "", *, named: str = "") -> dict[str, bytes]:
        """Return the files of a revision, by their path below `folder`."""
        ...


def copy_kernel(workspace: Files, revision: str, path: str, folder: Path) -> Path | None:
    """Return a copy of a published kernel's folder, if there is one.

    Args:
        workspace: The clone.
        revision: Of the registry.
        path: ``OPERATOR/HARDWARE``.
        folder: Where the copy goes.
    """
    files = workspace.files(revision, f"{KERNELS}/{path}")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder if files else None


def copy_kin(workspace: Files, revision: str, work: Work, folder: Path) -> tuple[Path, ...]:
    """Return copies of the kernels of other operators that are like a goal's, on its hardware."""
    wanted = likeness(work.operator.spec)
    found = []
    for path, content in sorted(workspace.files(revision, KERNELS, named="operator.json").items()):
        operator, *middle, _ = PurePosixPath(path).parts
        if middle != [work.hardware.name] or operator == work.operator.name:
            continue
        if _likeness(content) == wanted:
            copy = copy_kernel(workspace, revision, f"{operator}/{middle[0]}", folder / operator)
            found += [copy] if copy is not None else []
        if len(found) == MOST_KIN:
            break
    return tuple(found)


def _likeness(operator: bytes) -> str | None:
    try:
        return likeness(Operator.from_json(operator).spec)
    except (ValidationError, SyntaxError, ValueError):
        return None  # a damaged folder is no kernel
