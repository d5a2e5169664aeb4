"""Rights to files by path (Landlock), which the kernel gives up to anybody who asks.

Beside a root of one's own it says what a mount can't: that files may be filled and none be made.
Where a container refuses such a root, it is what keeps foreign code from the user's files.
"""

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Calls to the kernel; the same on every architecture."""
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_RIGHTS: Final = ((1, 13), (2, 14), (3, 15), (5, 16))
"""From which version on so many of the rights are known."""
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_SCOPES_FROM: Final = 6

SOCKETS, SIGNALS = 1, 2
"""Scopes: abstract sockets of others, and signals to others, who are not behind the same wall."""
READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
FILL: Final = READ | _WRITE_FILE | _TRUNCATE | _IOCTL
ALL: Final = (1 << 16) - 1

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the version that the kernel has; 0 where it has none, or switched it off."""
    told: int = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, told)


def restrict(rights: Iterable[tuple[str, int]], *, scopes: int) -> None:
    """Give up all rights to files but those named, for this process and all that it starts.

    Args:
        rights: Paths, and what may be done with them and with what is in them. A path that does
            not exist is passed over.
        scopes: `SOCKETS` and `SIGNALS`, as far as this process gives them up.

    Raises:
        OSError: The kernel refuses.
    """
    known = version()
    handled = (1 << max((count for since, count in _RIGHTS if since <= known), default=0)) - 1
    if not handled:
        raise OSError(0, "there is no Landlock")
    attributes = struct.pack("QQQ", handled, 0, scopes if known >= _SCOPES_FROM else 0)
    size = ctypes.c_size_t(24 if known >= _SCOPES_FROM else 8)
    rules = _check(_libc.syscall(_CREATE, attributes, size, 0))
    try:
        for path, allowed in rights:
            with contextlib.suppress(FileNotFoundError):
                _allow(rules, path, allowed & handled)
        _check(_libc.syscall(_RESTRICT, rules, 0))
    finally:
        os.close(rules)


def _allow(rules: int, path: str, allowed: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            allowed &= _OF_FILES
        if allowed:
            _check(_libc.syscall(_ADD, rules, _BENEATH, struct.pack("=Qi", allowed, place), 0))
    finally:
        os.close(place)


def _check(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned
