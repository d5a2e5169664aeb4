"""Leases, by which one process alone holds a role, and remembered values."""

from sqlalchemy import delete

from optimizer.store.sessions import Sessions
from optimizer.store.tables import LeaseRow, MarkRow


class Roles(Sessions):
    """Leases and marks."""

    def take_lease(self, name: str, holder: str, *, ttl_s: float, now: float) -> bool:
        """Take a role until `now + ttl_s`, or prolong one's own; False where another holds it."""
        with self._writing() as session:
            lease = session.get(LeaseRow, name, with_for_update=True)
            if lease is None:
                session.add(LeaseRow(name=name, holder=holder, until=now + ttl_s))
                return True
            if lease.holder != holder and lease.until > now:
                return False
            lease.holder = holder
            lease.until = now + ttl_s
            return True

    def drop_lease(self, name: str, holder: str) -> None:
        """Give a role back; nothing happens where `holder` does not hold it."""
        with self._writing() as session:
            session.execute(
                delete(LeaseRow).where(LeaseRow.name == name, LeaseRow.holder == holder)
            )

    def mark(self, key: str, value: str) -> None:
        """Remember a value under a key, in the place of an earlier one."""
        with self._writing() as session:
            session.merge(MarkRow(key=key, value=value))

    def recall(self, key: str) -> str | None:
        """Return the remembered value of a key."""
        with self._reading() as session:
            row = session.get(MarkRow, key)
            return None if row is None else row.value
