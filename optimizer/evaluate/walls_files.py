"""The file system of a child: read-only but for its scratch and the folders it is given."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from optimizer.evaluate import walls_kernel as kernel
from optimizer.evaluate import walls_landlock as landlock
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.walls_terms import Terms

_HARMLESS: Final = ("null", "zero", "full", "random", "urandom")
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_TEMPORARY: Final = "/tmp"  # noqa: S108 - in the child's own root; nobody else writes there
_VISIBLE: Final = ("/proc", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
"""What is read beside `Terms.read` where there is no root of one's own."""
_SHARED: Final = "/dev/shm"  # noqa: S108 - likewise


def enter_root(terms: Terms) -> None:
    """Move into a root of one's own, in the scratch folder.

    Raises:
        OSError: The kernel refuses a step; the old root is still there then.
    """
    kernel.make_private()
    flags = kernel.NO_SUID | kernel.NO_DEVICES
    kernel.mount("tmpfs", terms.scratch, flags, "size=16m,mode=755")
    try:
        _fill_root(terms, terms.scratch)
        kernel.change_root(terms.scratch)
    except OSError:
        kernel.umount(terms.scratch)
        raise
    kernel.protect("/", kernel.READ_ONLY | flags, recursive=False)
    os.chdir(terms.scratch)


def give_up_files(terms: Terms, *, own_root: bool) -> None:
    """Give up all rights to files that the terms don't name, in whatever root there is.

    Raises:
        OSError: The kernel refuses.
    """
    guards = terms.guards
    # A driver writes there. A process under a counter tool has an own folder that is not there yet.
    processes = "/proc/self" if guards.up(Guard.SYSCALLS) else "/proc"
    visible = ("/",) if own_root else (*terms.read, *_VISIBLE)
    # Rights to a folder are rights to all in it, so to none of the judge's folders to fill.
    own = [
        folder
        for folder in (_TEMPORARY, _SHARED)
        if own_root and not any(path.startswith(f"{folder}/") for path in terms.fill)
    ]
    landlock.restrict(
        [
            *((path, landlock.READ) for path in visible),
            *((f"/dev/{name}", landlock.FILL) for name in _HARMLESS),
            *((path, landlock.FILL) for path in (*terms.devices, *terms.fill)),
            *((path, landlock.ALL) for path in (terms.scratch, *terms.write)),
            *((path, landlock.ALL) for path in own),
            *((processes, landlock.FILL) for _ in terms.devices[:1]),
        ],
        scopes=landlock.SIGNALS * guards.up(Guard.PROCESSES)
        | landlock.SOCKETS * guards.up(Guard.NETWORK),
    )


def hide_processes(terms: Terms) -> None:
    """Show only the processes of this namespace, in the root that is there.

    Raises:
        OSError: The kernel refuses.
    """
    kernel.make_private()
    _mount_processes("/proc", writable=bool(terms.devices))


def _fill_root(terms: Terms, root: str) -> None:
    _make_temporary(terms, root)  # first: the judge's folders may lie in what it stands for
    for path in terms.read:
        _show(path, root, read_only=True)
    _make_devices(terms.devices, root)
    for path in (*terms.write, *terms.fill):
        _show(path, root, read_only=False)
    _make_folder(f"{root}/var")
    with contextlib.suppress(FileExistsError):
        os.symlink(_TEMPORARY, f"{root}/var/tmp")  # noqa: PTH211, S108 - likewise
    own, writable = terms.guards.up(Guard.PROCESSES), bool(terms.devices)
    _make_processes(root, own=own, writable=writable)


def _make_temporary(terms: Terms, root: str) -> None:
    """Make memory that is the scratch folder, the usual temporary one and the shared memory."""
    here = root + _TEMPORARY
    size = "" if terms.scratch_bytes is None else f"size={terms.scratch_bytes},"
    _make_folder(here)
    kernel.mount("tmpfs", here, kernel.NO_SUID | kernel.NO_DEVICES, f"{size}mode=1777")
    if not terms.scratch.startswith(f"{_TEMPORARY}/"):
        _make_folder(root + terms.scratch)
        kernel.bind(here, root + terms.scratch, read_only=False)
    _make_folder(root + terms.scratch)
    shared = f"{here}/.shared-memory"
    _make_folder(shared)
    _make_folder(root + _SHARED)
    kernel.bind(shared, root + _SHARED, read_only=False)


def _make_devices(devices: Iterable[str], root: str) -> None:
    for path in (*(f"/dev/{name}" for name in _HARMLESS), *devices):
        _show(path, root, read_only=False)
    for name, target in _LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")  # noqa: PTH211 - paths are texts here


def _make_processes(root: str, *, own: bool, writable: bool) -> None:
    """Show the processes, read-only: who is root outside could switch the machine off by a file.

    Where a container hides a part of /proc, the kernel gives no new one to whom it is not root.
    The old one shows others' processes then; looking into them is still another matter.

    NVIDIA's driver must write there: it names its threads, and gives up where it can't. Then all
    but the processes' own folders is read-only, and Landlock leaves a process only its own.
    """
    here = f"{root}/proc"
    _make_folder(here)
    if own:
        with contextlib.suppress(OSError):
            _mount_processes(here, writable=writable)
            return
    kernel.bind("/proc", here, read_only=not writable)
    if writable:
        _protect_machine(here)


def _mount_processes(folder: str, *, writable: bool) -> None:
    flags = kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXEC
    kernel.mount("proc", folder, flags)
    if writable:
        _protect_machine(folder)
    else:
        kernel.protect(folder, kernel.READ_ONLY | flags, recursive=False)


def _protect_machine(folder: str) -> None:
    """Make read-only what /proc holds beside processes: the machine's own settings."""
    for entry in os.scandir(folder):
        if not entry.name.isdecimal() and not entry.is_symlink():
            kernel.bind(entry.path, entry.path, read_only=True)


def _show(path: str, root: str, *, read_only: bool) -> None:
    """Show a file or folder in the new root; a link at its top stays one."""
    there = root + path
    if not os.path.exists(path):  # noqa: PTH110 - thousands of starts a run; texts are quicker
        return
    if os.path.islink(path) and path.count("/") == 1:  # noqa: PTH114 - likewise
        os.symlink(os.readlink(path), there)  # noqa: PTH115, PTH211 - likewise
        return
    if os.path.isdir(path):  # noqa: PTH112 - likewise
        _make_folder(there)
    else:
        _make_folder(str(Path(there).parent))
        with contextlib.suppress(FileExistsError):
            os.close(os.open(there, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    kernel.bind(path, there, read_only=read_only)


def _make_folder(path: str) -> None:
    os.makedirs(path, exist_ok=True)  # noqa: PTH103 - likewise
