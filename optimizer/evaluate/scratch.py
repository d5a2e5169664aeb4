"""Folders that go with the process that made them, even where it was killed."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import psutil

_PREFIX = "kernelevolve-of-"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps it; each folder inside is private

LEAST_FREE_BYTES = 4 << 30
"""Containers often have 64 MB of shared memory; files on a disk are then the better place."""


def make_scratch(*, shared: bool = False) -> Path:
    """Return a new folder that carries this process's id; in shared memory where asked for."""
    parent = SHARED_MEMORY if shared and _has_room(SHARED_MEMORY) else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))


def _has_room(folder: Path) -> bool:
    return folder.is_dir() and shutil.disk_usage(folder).free >= LEAST_FREE_BYTES


def remove_stale() -> None:
    """Remove the folders of processes that are gone."""
    for parent in (SHARED_MEMORY, Path(tempfile.gettempdir())):
        for path in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(ValueError, OSError):
                if not psutil.pid_exists(int(path.name.removeprefix(_PREFIX).split("-")[0])):
                    shutil.rmtree(path, ignore_errors=True)
