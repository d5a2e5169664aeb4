"""Which calls to the kernel are refused: a filter in the kernel's own language (classic BPF).

A list of what no kernel needs, not of what one may need: PyTorch, its compiler, g++ and a vendor's
driver must all run behind it, and each release of them calls something new.
"""

import errno
import struct
from collections.abc import Iterable
from typing import Final

ARCHITECTURE: Final = "x86_64"
"""The only one whose numbers are written down here."""

REFUSED: Final = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "pidfd_getfd": 438, "process_madvise": 440,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "setns": 308, "unshare": 272,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "fanotify_init": 300,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "seccomp": 317,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246,
    "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163,
    "quotactl": 179, "quotactl_fd": 443, "syslog": 103, "vhangup": 153,
    "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "modify_ldt": 154,
    "lookup_dcookie": 212, "mknod": 133, "mknodat": 259,
}  # fmt: skip
"""Refused with EPERM, as if it were a matter of privilege."""
ABSENT: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435,
    "shmget": 29, "memfd_secret": 447,
}  # fmt: skip
"""Answered with ENOSYS: callers then take the older call, which a filter can look into. System V's
shared memory, like secret memory, would count for no limit."""
MEMFD: Final = 319
"""Files in memory count for no limit either; a device's driver may need them."""

_CLONE, _PRCTL, _SOCKET = 56, 157, 41
_NAMESPACES: Final = 0x7E020000
_TRAPS: Final = (22, 59)
"""Of prctl: filters and user dispatch, by which a call's answer can be forged."""
_X86_64: Final = 0xC000003E
_X32: Final = 0x40000000
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST, _FIRST_HIGH = 0, 4, 16, 20


def make_filter(*, calls: bool, families: Iterable[int] | None, memfd: bool = False) -> bytes:
    """Return the filter's program.

    Args:
        calls: Whether it refuses what no kernel needs.
        families: Address families of sockets that it lets through; None for all.
        memfd: Whether files without a name may be made in memory.
    """
    lines = [
        _line(_LOAD, _ARCH),
        _line(_EQUAL, _X86_64, then=1),
        *_refuse(errno.EPERM),
        _line(_LOAD, _NUMBER),
        _line(_AT_LEAST, _X32, other=1),
        *_refuse(errno.ENOSYS),
    ]
    if calls:
        for number in sorted(REFUSED.values()):
            lines += _when(number, _refuse(errno.EPERM))
        for number in sorted([*ABSENT.values(), *(() if memfd else (MEMFD,))]):
            lines += _when(number, _refuse(errno.ENOSYS))
        lines += _when(_CLONE, _flags_refused(_NAMESPACES))
        lines += _when(_PRCTL, _first_refused(_TRAPS))
    if families is not None:
        lines += _when(_SOCKET, _all_but(tuple(families)))
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _line(code: int, value: int, *, then: int = 0, other: int = 0) -> bytes:
    """Return an instruction, and how many to skip if its test holds or fails."""
    return struct.pack("HBBI", code, then, other, value)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """Return a body for one call's number; the number is loaded again behind it."""
    return [_line(_EQUAL, number, other=len(body) + 1), *body, _line(_LOAD, _NUMBER)]


def _refuse(error: int) -> list[bytes]:
    return [_line(_RETURN, _ERRNO | error)]


def _flags_refused(flags: int) -> list[bytes]:
    return [_line(_LOAD, _FIRST), _line(_ANY_BIT, flags, other=1), *_refuse(errno.EPERM)]


def _first_refused(values: tuple[int, ...]) -> list[bytes]:
    body = [_line(_LOAD, _FIRST)]
    for value in values:
        body += [_line(_EQUAL, value, other=1), *_refuse(errno.EPERM)]
    return body


def _all_but(values: tuple[int, ...]) -> list[bytes]:
    body = [_line(_LOAD, _FIRST)]
    for value in values:
        body += [_line(_EQUAL, value, other=1), _line(_RETURN, _ALLOW)]
    return [*body, *_refuse(errno.EAFNOSUPPORT)]
