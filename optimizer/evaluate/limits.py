"""What a child may see, write and use, as the judge states it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from optimizer.evaluate.guards import ALL_UP, Guard, Guards
from optimizer.evaluate.walls_layout import devices, readable, shown_with
from optimizer.evaluate.walls_terms import Terms

_PROCESSES = 128 + 16 * (os.cpu_count() or 1)
"""Libraries start a thread for each core. A thousand would take seconds to end on two cores."""


@dataclass(frozen=True)
class Limits:
    """What a child may use; None leaves a kind unlimited."""

    wall_s: float = 60.0
    """For the start and one `call`; `Child.ask` has a deadline of its own."""
    memory_bytes: int | None = 8 << 30
    """Private memory. Shared memory that the parent made is not counted."""
    cpu_s: int | None = None
    file_bytes: int | None = 4 << 30
    """The size of one file."""
    processes: int | None = _PROCESSES
    """Processes and threads."""
    scratch_bytes: int | None = 2 << 30
    """What its scratch folder holds, which is memory."""
    disk_bytes: int | None = 4 << 30
    """What it writes into all of `write` and `fill`."""
    read: tuple[Path, ...] = ()
    """What it sees beside Python, the packages, compilers and drivers."""
    write: tuple[Path, ...] = ()
    """Folders and files of the judge that it may write in; they must exist."""
    fill: tuple[Path, ...] = ()
    """Folders of the judge with files that it may write into, but make none and remove none."""
    device: str = "cpu"
    """The kind of device whose driver it may open, as torch names it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the few that are inherited."""
    guards: Guards = ALL_UP


_UNBOUNDED = Limits(
    memory_bytes=None, file_bytes=None, processes=None, scratch_bytes=None, disk_bytes=None
)  # fmt: skip


def terms_of(limits: Limits, scratch: Path, environment: Mapping[str, str]) -> Terms:
    """Return what a child is told of its limits, and where libraries lie by the environment."""
    bounded = limits if limits.guards.up(Guard.LIMITS) else _UNBOUNDED
    private = bounded.memory_bytes
    return Terms(
        scratch=str(scratch),
        parent=os.getpid(),
        read=shown_with(readable(environment), limits.read),
        write=tuple(str(path.resolve()) for path in limits.write),
        fill=tuple(str(path.resolve()) for path in limits.fill),
        devices=devices(limits.device),
        scratch_bytes=bounded.scratch_bytes,
        memory_bytes=private,
        # Shared memory that the judge made is held as well, and copied.
        total_bytes=None if private is None else 2 * private,
        cpu_s=bounded.cpu_s,
        file_bytes=bounded.file_bytes,
        disk_bytes=bounded.disk_bytes,
        processes=bounded.processes,
        down=tuple(sorted(limits.guards.down)),
    )
