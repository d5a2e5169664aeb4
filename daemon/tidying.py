"""Keeps what is kept outside the database under its cap."""

from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.logs import find_log
from optimizer.store import Store
from optimizer.store.artefacts import Artefacts
from optimizer.store.collecting import collect

log = find_log(__name__)
_EVERY_S = 3600.0


@dataclass
class Tidying:
    """Collects, once in a while, the artefacts that nothing needs."""

    store: Store
    artefacts: Artefacts
    cap_bytes: int
    clock: Callable[[], float]
    """Seconds since 1970."""
    _due_at: float = field(default=0.0, init=False)

    def run(self) -> None:
        """Collect, unless that was done lately; what can't be removed is told and left.

        Raises:
            StoreError: The database is away.
        """
        now = self.clock()
        if now < self._due_at:
            return
        self._due_at = now + _EVERY_S
        needed = self.store.needed_artefacts()
        try:
            found = collect(self.artefacts, cap_bytes=self.cap_bytes, needed=needed, now=now)
        except OSError as error:
            log.exception("artefacts can't be collected", error=str(error))
            return
        if found.removed:
            log.info("artefacts collected", cap_bytes=self.cap_bytes, **found.model_dump())
        if found.kept_bytes > self.cap_bytes:
            log.warning(
                "artefacts exceed their cap", cap_bytes=self.cap_bytes, **found.model_dump()
            )
