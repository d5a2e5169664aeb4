"""Which walls stand on this machine: found out by a child that tries them."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from optimizer.evaluate.guards import Guard
from optimizer.evaluate.sandbox import Limits, call

LOST: Final[Mapping[Guard, str]] = {
    Guard.NETWORK: "foreign code can reach the network, and send away what it sees",
    Guard.FILES: "foreign code can read the files of this user, and write them",
    Guard.PROCESSES: "foreign code can see and end this user's processes, and leave its own behind",
    Guard.SYSCALLS: "foreign code can make calls to the kernel that trace, mount and load",
    Guard.LIMITS: "foreign code can start more processes, and take more memory in all, than it may",
}
"""What is lost without each wall that a kernel or a container may refuse."""
REMEDY: Final = (
    "allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a container: "
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined), on x86-64; or accept"
    " the loss by KERNELEVOLVE_ACCEPT_WEAK_SANDBOX=1"
)
_FEW: Final = 10
_LOOK: Final = f"{__name__}:look"
_LIMITS: Final = Limits(wall_s=60.0)


@cache
def find_missing() -> tuple[Guard, ...]:
    """Return the walls that can't be had here. Found out once a process.

    Raises:
        ChildError: No child can be started at all.
    """
    standing = json.loads(call(_LOOK, "", limits=_LIMITS))
    return tuple(guard for guard in LOST if guard not in standing)


def look(_: str) -> str:
    """Return the names of the walls around this process; runs in a child."""
    return json.dumps([guard for guard, stands in _CHECKS.items() if stands()])


def _no_network() -> bool:
    try:
        socket.socket(socket.AF_INET).close()
    except OSError:
        return True
    lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    return {line.partition(":")[0].strip() for line in lines} <= {"lo"}


def _no_files() -> bool:
    if os.statvfs("/").f_flag & os.ST_RDONLY:
        return True
    try:  # by rights alone, in the old root
        os.listdir("/")  # noqa: PTH208 - for its refusal
    except PermissionError:
        return True
    return False


def _no_processes() -> bool:
    seen = [name for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - texts do
    # The session's head is the porter, which has no id in here.
    return os.getsid(0) == 0 and len(seen) < _FEW


def _no_calls() -> bool:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    told = dict(line.split(":", 1) for line in lines)
    return (
        told["Seccomp"].strip() == "2"
        and told["NoNewPrivs"].strip() == "1"
        and int(told["CapEff"], 16) == 0
    )


_CHECKS: Final[Mapping[Guard, Callable[[], bool]]] = {
    Guard.NETWORK: _no_network,
    Guard.FILES: _no_files,
    Guard.PROCESSES: _no_processes,
    Guard.SYSCALLS: _no_calls,
    Guard.LIMITS: _no_processes,  # who watches them is the first process of their namespace
}
