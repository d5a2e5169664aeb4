"""Keeps artefacts and builds under a cap: what was used least lately goes first."""

import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from operator_registry.record import Record
from optimizer.store.artefacts import FRESH, Artefacts
from optimizer.store.engine import file_lock

BUILDS: Final = "artefacts"
"""In the state folder: a folder for each build. One that is gone is built again."""
GRACE_S: Final = 6 * 3600.0
"""What was used so lately stays: it may be wanted by a search that has not said so yet."""
_GONE: Final = ".gone-"


class Collected(Record):
    """What a collection found and did."""

    kept_bytes: int
    needed_bytes: int
    """Of what is kept, by open searches and by evidence; it stays whatever the cap."""
    removed: int
    removed_bytes: int


def collect(
    artefacts: Artefacts, *, cap_bytes: int, needed: Collection[str], now: float
) -> Collected:
    """Remove what was used least lately until all together takes no more than the cap.

    Whoever is killed meanwhile leaves nothing that the next collection doesn't remove.

    Args:
        artefacts: Of a state folder, whose builds count as well.
        cap_bytes: How much may be kept.
        needed: Hashes that stay whatever happens.
        now: Seconds since 1970.

    Raises:
        OSError: Something can't be removed.
    """
    builds = artefacts.state / BUILDS
    _sweep(artefacts.folder, builds, now=now)
    found = [*_kept(artefacts, needed), *_built(builds)]
    kept_bytes = sum(one.size_bytes for one in found)
    removed = removed_bytes = 0
    for one in sorted(found, key=lambda one: one.used_at):
        if kept_bytes - removed_bytes <= cap_bytes or one.used_at > now - GRACE_S:
            break
        if not one.is_needed and one.remove():
            removed += 1
            removed_bytes += one.size_bytes
    return Collected(
        kept_bytes=kept_bytes - removed_bytes,
        needed_bytes=sum(one.size_bytes for one in found if one.is_needed),
        removed=removed,
        removed_bytes=removed_bytes,
    )


@dataclass(frozen=True)
class _Entry:
    size_bytes: int
    used_at: float
    is_needed: bool
    remove: Callable[[], bool]
    """Returns False where somebody has used it meanwhile, and leaves it then."""


def _kept(artefacts: Artefacts, needed: Collection[str]) -> Iterator[_Entry]:
    for path in artefacts.folder.glob("??/[!.]*"):
        size_bytes, used_at = _look(path)

        def remove(path: Path = path, used_at: float = used_at) -> bool:
            with file_lock(artefacts.lock):
                if _look(path)[1] != used_at:
                    return False
                path.unlink()
                return True

        yield _Entry(size_bytes, used_at, path.name in needed, remove)


def _built(builds: Path) -> Iterator[_Entry]:
    for path in builds.glob("[!.]*"):
        size_bytes = sum(_look(file)[0] for file in path.rglob("*"))
        used_at = _look(path)[1]

        def remove(path: Path = path, used_at: float = used_at) -> bool:
            if _look(path)[1] != used_at:
                return False
            gone = path.with_name(f"{_GONE}{path.name}")
            path.rename(gone)  # a build is there as a whole, or not at all
            shutil.rmtree(gone)
            return True

        yield _Entry(size_bytes, used_at, is_needed=False, remove=remove)


def _sweep(kept: Path, builds: Path, *, now: float) -> None:
    """Remove what killed writers and killed collections have left."""
    for path in kept.glob(f"??/{FRESH}*"):
        if _look(path)[1] < now - GRACE_S:
            path.unlink(missing_ok=True)
    for path in builds.glob(f"{_GONE}*"):
        shutil.rmtree(path)


def _look(path: Path) -> tuple[int, float]:
    """Return the size in bytes and when it was used; zeros where it has gone meanwhile."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0.0
    return status.st_size, status.st_mtime
