"""The walls around a child, built by the child itself before it imports anything foreign.

Each layer is had alone: where the kernel or a container refuses one, the others still stand, and
`walls_probe` tells which is missing.

The process that the judge started becomes a *porter*, which only waits. Behind it, in namespaces
of their own, are the *watch*, the first process there, and the worker, which answers the judge.
"""

import contextlib
import os
import resource
import select
import signal
from pathlib import Path
from typing import Final, NoReturn

from optimizer.evaluate import seccomp
from optimizer.evaluate import walls_kernel as kernel
from optimizer.evaluate.guards import Guard, Guards
from optimizer.evaluate.walls_files import enter_root, give_up_files, hide_processes
from optimizer.evaluate.walls_terms import Terms
from optimizer.evaluate.walls_watch import watch

_OWN_HIGHEST_ID_FROM: Final = (6, 14)
"""Before this Linux the highest process id was the machine's, not the namespace's."""
_OWN_COUNT_FROM: Final = (5, 14)
"""Before this one a user's processes were counted over all user namespaces."""
_RESERVED_IDS: Final = 300
"""Given out once, before a namespace's ids begin again behind them."""
_OWN_PROCESSES: Final = 3
"""Porter, watch and worker."""
_LOCAL: Final = 1
_INTERNET: Final = (2, 10)
_OPEN_FILES: Final = 4096
_FIRST_TO_GO: Final = "1000"


def enter(terms: Terms, *, status: int) -> None:
    """Build the walls; return in the worker's process only.

    Args:
        terms: What the child may see and use.
        status: A pipe to the judge, which no foreign code gets: who the watch is, and how the
            worker ended.
    """
    with contextlib.suppress(OSError):
        # If the machine runs out of memory, this goes before the judge.
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    had = _leave_namespaces(terms.guards)
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != terms.parent:  # it died before the line above
        os._exit(1)
    if had & kernel.NEW_NETWORK:
        with contextlib.suppress(OSError):
            kernel.raise_loopback()
    if had & kernel.NEW_PIDS:
        own_root = _pass_the_porter(terms, had, status)
    else:
        own_root = _change_files(terms, had)
    os.close(status)
    _settle(terms, had, own_root=own_root)


def _leave_namespaces(guards: Guards) -> int:
    """Return the namespaces that could be left; each is tried alone."""
    wanted = [kernel.NEW_USER]
    if guards.up(Guard.FILES) or guards.up(Guard.PROCESSES):
        wanted.append(kernel.NEW_MOUNTS)
    if guards.up(Guard.PROCESSES):
        wanted += [kernel.NEW_PIDS, kernel.NEW_IPC, kernel.NEW_NAMES]
    if guards.up(Guard.NETWORK):
        wanted.append(kernel.NEW_NETWORK)
    had = 0
    for namespace in wanted:
        with contextlib.suppress(OSError):
            if namespace == kernel.NEW_USER:
                kernel.leave_users()
            else:
                kernel.leave(namespace)
            had |= namespace
    return had


def _pass_the_porter(terms: Terms, had: int, status: int) -> bool:
    """Start the watch, and from it the worker, in which alone this returns: see `_change_files`."""

    def tell(line: str) -> None:
        os.write(status, f"{line}\n".encode())

    alive, held = os.pipe()
    if pid := os.fork():
        tell(f"watch {pid}")
        _wait_for(pid)
    os.close(held)
    _outlive_nobody(alive)
    bounded = _bound_processes(terms)
    own_root = _change_files(terms, had)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    if worker := os.fork():
        kernel.hide_memory()
        watch(worker, terms, count=not bounded, tell=tell)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    return own_root


def _wait_for(watch_pid: int) -> NoReturn:
    """Be the porter. Once it has ended, the kernel has ended all processes behind it."""
    _, ended = os.waitpid(watch_pid, 0)
    os._exit(0 if ended == 0 else 1)


def _outlive_nobody(alive: int) -> None:
    """Die with the parent; `alive` is a pipe of which only the parent has the other end."""
    kernel.die_with_parent(signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:  # it died before the line above
        os._exit(1)
    os.close(alive)


def _change_files(terms: Terms, had: int) -> bool:
    """Return whether the files are seen in a root of the child's own."""
    if not had & kernel.NEW_MOUNTS:
        return False
    if terms.guards.up(Guard.FILES):
        with contextlib.suppress(OSError):
            enter_root(terms)
            return True
    with contextlib.suppress(OSError):
        hide_processes(terms)
    return False


def _bound_processes(terms: Terms) -> bool:
    """Let the kernel bound the processes; False where it can't for whom it takes for root."""
    if terms.processes is None or os.getuid() != 0:  # all others it holds to their RLIMIT_NPROC
        return True
    if _kernel_version() < _OWN_HIGHEST_ID_FROM:
        return False
    settings = Path("/proc/sys/kernel")
    highest = str(terms.processes + _RESERVED_IDS)
    try:
        (settings / "pid_max").write_text(highest, encoding="ascii")
    except OSError:
        return False
    with contextlib.suppress(OSError):  # else some hundreds more can be had, once
        (settings / "ns_last_pid").write_text(str(_RESERVED_IDS), encoding="ascii")
    return True


def _kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdecimal, minor)) or 0)


def _settle(terms: Terms, had: int, *, own_root: bool) -> None:
    """Give up, in the worker, what it does not need."""
    _take_limits_on(terms, own_user=bool(had & kernel.NEW_USER))
    with contextlib.suppress(OSError):
        kernel.forgo_privileges()
    if terms.guards.up(Guard.FILES):
        with contextlib.suppress(OSError):
            give_up_files(terms, own_root=own_root)
    if os.uname().machine == seccomp.ARCHITECTURE:
        _filter_calls(terms, own_network=bool(had & kernel.NEW_NETWORK))


def _filter_calls(terms: Terms, *, own_network: bool) -> None:
    calls, network = (terms.guards.up(guard) for guard in (Guard.SYSCALLS, Guard.NETWORK))
    families: tuple[int, ...] | None = None
    if network and not own_network:
        families = (_LOCAL,)
    elif network and calls:
        families = (_LOCAL, *_INTERNET)  # of a network where nobody else is
    if calls or families:
        program = seccomp.make_filter(calls=calls, families=families, memfd=bool(terms.devices))
        with contextlib.suppress(OSError):
            kernel.install_filter(program)


def _take_limits_on(terms: Terms, *, own_user: bool) -> None:
    # Not the address space: CUDA reserves far more of it than it ever uses.
    _limit(resource.RLIMIT_DATA, terms.memory_bytes)
    _limit(resource.RLIMIT_CPU, terms.cpu_s)
    _limit(resource.RLIMIT_FSIZE, terms.file_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    if terms.processes is not None:
        counted_alone = own_user and _kernel_version() >= _OWN_COUNT_FROM
        others = _OWN_PROCESSES if counted_alone else _tasks_of_this_user()
        _limit(resource.RLIMIT_NPROC, terms.processes + others)
        _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
        _limit(resource.RLIMIT_MSGQUEUE, 0)


def _limit(kind: int, most: int | None) -> None:
    if most is None:
        return
    with contextlib.suppress(OSError, ValueError):
        _, highest = resource.getrlimit(kind)
        most = most if highest == resource.RLIM_INFINITY else min(most, highest)
        resource.setrlimit(kind, (most, most))


def _tasks_of_this_user() -> int:
    """Return how many threads the user runs now."""
    tasks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it ended meanwhile
                if entry.stat().st_uid == os.getuid():
                    tasks += sum(1 for _ in (entry / "task").iterdir())
    return tasks
