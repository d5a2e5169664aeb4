"""The one scheduler and writer: at most one process has this role, whatever else was killed."""

import fcntl
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_NAME = "scheduler"
TTL_S = 120.0
_RENEWALS = 6
"""A lease is prolonged so often in its time."""


class RoleTakenError(Exception):
    """Another process is the scheduler."""


class Leases(Protocol):
    """Where leases are kept: `optimizer.store.Store`."""

    def take_lease(self, name: str, holder: str, *, ttl_s: float, now: float) -> bool:
        """Take or prolong a role."""
        ...

    def drop_lease(self, name: str, holder: str) -> None:
        """Give a role back."""
        ...


@dataclass
class Role:
    """The role while one has it."""

    leases: Leases
    holder: str
    clock: Callable[[], float]
    ttl_s: float = TTL_S
    _renewed_at: float = field(default=-math.inf, init=False)

    def renew(self) -> bool:
        """Prolong the lease where it is time to; return False where another one has it now."""
        now = self.clock()
        if now - self._renewed_at < self.ttl_s / _RENEWALS:
            return True
        if not self.leases.take_lease(_NAME, self.holder, ttl_s=self.ttl_s, now=now):
            return False
        self._renewed_at = now
        # Where the store took long to answer, what it gave may have ended by now.
        return self.clock() - now < self.ttl_s or self.renew()


@contextmanager
def hold_role(
    leases: Leases,
    folder: Path,
    *,
    clock: Callable[[], float],
    ttl_s: float = TTL_S,
    wait: Callable[[], bool] | None = None,
) -> Iterator[Role]:
    """Be the scheduler of a store and a state folder.

    On one machine the lock tells: the kernel frees it when its holder dies, so that the next one
    need not wait. Between machines it is the lease in the store, which ends by itself.

    Args:
        leases: The store.
        folder: The state folder.
        clock: Seconds since 1970; those of two machines may differ by much less than `ttl_s`.
        ttl_s: A holder that says nothing for so long has lost the role.
        wait: Waits a moment where another process has the role, and returns whether to try again.

    Raises:
        RoleTakenError: Another process is, and nobody wants to wait.
    """
    folder.mkdir(parents=True, exist_ok=True)
    role = Role(leases, f"{socket.gethostname()}:{folder.resolve()}", clock, ttl_s)
    with ExitStack() as stack:
        while fault := _find_fault(role, folder, stack):
            if wait is None or not wait():
                raise RoleTakenError(fault)
        try:
            yield role
        finally:
            leases.drop_lease(_NAME, role.holder)


def _find_fault(role: Role, folder: Path, stack: ExitStack) -> str | None:
    """Return why one is not the scheduler; None where one is, until `stack` is closed."""
    with ExitStack() as attempt:
        lock = attempt.enter_context((folder / "scheduler.lock").open("a", encoding="utf-8"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"another kernelevolve works in {folder}; stop it, or set KERNELEVOLVE_STATE"
        if not role.renew():
            wait = f"stop it and wait for {role.ttl_s:g} s"
            return f"another machine is this store's scheduler; {wait}"
        stack.push(attempt.pop_all())
    return None
