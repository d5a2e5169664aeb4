"""The kernel's calls behind the walls, through the C library; each raises what it is refused.

Python 3.11 has no names for them, and a tool that has them is not on every image.
"""

import ctypes
import os
import struct
from pathlib import Path
from typing import Final

NEW_MOUNTS: Final = 0x00020000
NEW_NAMES: Final = 0x04000000
NEW_IPC: Final = 0x08000000
NEW_USER: Final = 0x10000000
NEW_PIDS: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000

READ_ONLY: Final = 0x1
NO_SUID: Final = 0x2
NO_DEVICES: Final = 0x4
NO_EXEC: Final = 0x8
_REMOUNT: Final = 0x20
_BIND: Final = 0x1000
_MOVE: Final = 0x2000
_RECURSIVE: Final = 0x4000
_PRIVATE: Final = 0x40000
_DETACH: Final = 0x2
_KEPT: Final = READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC
"""Flags that a mount made by somebody more privileged may not lose; statvfs has the same bits."""
_AT_RECURSIVE: Final = 0x8000
_AT_FDCWD: Final = -100
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR: Final = 442
"""The same on every architecture, like all calls since Linux 5.1."""

_SET_PARENT_DEATH: Final = 1
_SET_DUMPABLE: Final = 4
_DROP_BOUND: Final = 24
_SET_NO_NEW_PRIVILEGES: Final = 38
_CAPABILITIES_V3: Final = 0x20080522
_SET_FLAGS: Final = 0x8914
_IS_UP: Final = 0x1

_libc = ctypes.CDLL(None, use_errno=True)


def leave(namespaces: int) -> None:
    """Leave namespaces for new ones; those of process ids hold for what is started from now on.

    Raises:
        OSError: The kernel refuses.
    """
    _check(_libc.unshare(namespaces), "unshare")


def leave_users() -> None:
    """Enter a user namespace, in which this user has its own name and all capabilities.

    Raises:
        OSError: The kernel refuses.
    """
    user, group = os.geteuid(), os.getegid()  # nobody has a name in there until it is given one
    leave(NEW_USER)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")
    (own / "uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def mount(kind: str, target: str, flags: int = 0, options: str = "") -> None:
    """Mount a new file system.

    Raises:
        OSError: The kernel refuses.
    """
    _mount(kind, target, kind, flags, options)


def bind(source: str, target: str, *, read_only: bool) -> None:
    """Show a file or a folder, with all that is mounted in it, in another place too.

    Raises:
        OSError: The kernel refuses; where only the second step is refused, nothing is shown.
    """
    _mount(source, target, None, _BIND | _RECURSIVE, None)
    try:
        protect(target, READ_ONLY | NO_SUID if read_only else NO_SUID, recursive=True)
    except OSError:
        umount(target)
        raise


def protect(target: str, flags: int, *, recursive: bool) -> None:
    """Add flags to a mount, and to those in it.

    Raises:
        OSError: The kernel refuses.
    """
    wanted = struct.pack("QQQQ", flags, 0, 0, 0)
    mode = _AT_RECURSIVE if recursive else 0
    done = _libc.syscall(
        _MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), mode, wanted, ctypes.c_size_t(len(wanted))
    )
    if done == 0:
        return
    # Before Linux 5.12, and under gVisor: one mount at a time.
    for each in _mounts_in(target) if recursive else [target]:
        kept = os.statvfs(each).f_flag & _KEPT
        _mount(None, each, None, _REMOUNT | _BIND | kept | flags, None)


def make_private() -> None:
    """Let no mount of this namespace show outside, nor any from outside in it.

    Raises:
        OSError: The kernel refuses.
    """
    _mount(None, "/", None, _RECURSIVE | _PRIVATE, None)


def umount(target: str) -> None:
    """Take a mount away, with all that is mounted in it, once nobody uses it.

    Raises:
        OSError: The kernel refuses.
    """
    _check(_libc.umount2(os.fsencode(target), _DETACH), f"umount {target}")


def change_root(folder: str) -> None:
    """Make a mount the root, and forget the old one.

    Raises:
        OSError: The kernel refuses.
    """
    os.chdir(folder)
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is not None and _libc.syscall(number, b".", b".") == 0:
        umount(".")
    else:  # the first file system of a machine can't be turned
        _mount(".", "/", None, _MOVE, None)
        os.chroot(".")
    os.chdir("/")


def die_with_parent(signal: int) -> None:
    """Let the kernel send a signal once the parent, or its thread that started this, has ended."""
    _libc.prctl(_SET_PARENT_DEATH, signal, 0, 0, 0)


def hide_memory() -> None:
    """Let no process of the same user look into this one."""
    _libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def forgo_privileges() -> None:
    """Give all capabilities up, also those that running a program could bring.

    Raises:
        OSError: The kernel refuses.
    """
    _check(_libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    number = 0
    while _libc.prctl(_DROP_BOUND, number, 0, 0, 0) == 0:
        number += 1
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def raise_loopback() -> None:
    """Switch on the loopback device of a new network namespace.

    Raises:
        OSError: The kernel refuses.
    """
    import fcntl  # noqa: PLC0415 - both for this call alone, and most children make it once
    import socket  # noqa: PLC0415

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", _IS_UP))


def install_filter(program: bytes) -> None:
    """Let a BPF program decide of each call to the kernel, from now on and for all started later.

    Raises:
        OSError: The kernel refuses.
    """
    memory = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(memory))
    # seccomp(2) rather than prctl: only it can leave memory as fast as it was on older kernels.
    number = {"x86_64": 317, "aarch64": 277}.get(os.uname().machine, -1)
    _check(_libc.syscall(number, 1, 4, head), "seccomp")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None) -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    done = _libc.mount(
        encoded(source), encoded(target), encoded(kind), ctypes.c_ulong(flags), encoded(data)
    )
    _check(done, f"mount {source or kind} on {target}")


def _mounts_in(folder: str) -> list[str]:
    own = os.path.realpath(folder)
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in points if point == own or point.startswith(f"{own}/")]


def _check(returned: int, what: str) -> None:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
