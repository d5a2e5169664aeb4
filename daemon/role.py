"""The one scheduler and writer: at most one process has this role, whatever else was killed."""

import fcntl
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_NAME = "scheduler"
_TTL_S = 120.0
_RENEW_S = 20.0


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
    _renewed_at: float = field(default=0.0, init=False)

    def renew(self) -> bool:
        """Prolong the lease where it is time to; return False where another one has it now."""
        now = self.clock()
        if now - self._renewed_at < _RENEW_S:
            return True
        if not self.leases.take_lease(_NAME, self.holder, ttl_s=_TTL_S, now=now):
            return False
        self._renewed_at = now
        return True


@contextmanager
def hold_role(leases: Leases, folder: Path, *, clock: Callable[[], float]) -> Iterator[Role]:
    """Be the scheduler of a store and a state folder.

    On one machine the lock tells: the kernel frees it when its holder dies, so that the next one
    need not wait. Between machines it is the lease in the store, which ends by itself.

    Raises:
        RoleTakenError: Another process is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scheduler.lock").open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"another kernelevolve works in {folder}; stop it, or set KERNELEVOLVE_STATE"
            raise RoleTakenError(msg) from error
        role = Role(leases, f"{socket.gethostname()}:{folder.resolve()}", clock)
        if not role.renew():
            msg = f"another machine is this store's scheduler; stop it and wait for {_TTL_S:g} s"
            raise RoleTakenError(msg)
        try:
            yield role
        finally:
            leases.drop_lease(_NAME, role.holder)
