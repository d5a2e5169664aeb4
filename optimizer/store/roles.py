"""Leases, by which one process alone holds a role, and remembered values."""

from sqlalchemy import delete, or_, update

from optimizer.store.inserting import insert_once
from optimizer.store.sessions import Sessions
from optimizer.store.tables import LeaseRow, MarkRow


class Roles(Sessions):
    """Leases and marks."""

    def take_lease(self, name: str, holder: str, *, ttl_s: float, now: float) -> bool:
        """Take a role until `now + ttl_s`, or prolong one's own; False where another holds it."""
        mine = {"name": name, "holder": holder, "until": now + ttl_s}
        change = (
            update(LeaseRow)
            .where(LeaseRow.name == name, or_(LeaseRow.holder == holder, LeaseRow.until <= now))
            .values(**mine)
            .returning(LeaseRow.name)
        )
        with self._writing() as session:
            if insert_once(session, LeaseRow, mine):
                return True
            return session.scalar(change) is not None

    def drop_lease(self, name: str, holder: str) -> None:
        """Give a role back; nothing happens where `holder` does not hold it."""
        with self._writing() as session:
            session.execute(
                delete(LeaseRow).where(LeaseRow.name == name, LeaseRow.holder == holder)
            )

    def mark(self, key: str, value: str) -> None:
        """Remember a value under a key, in the place of an earlier one."""
        with self._writing() as session:
            if not insert_once(session, MarkRow, {"key": key, "value": value}):
                session.execute(update(MarkRow).where(MarkRow.key == key).values(value=value))

    def recall(self, key: str) -> str | None:
        """Return the remembered value of a key."""
        with self._reading() as session:
            row = session.get(MarkRow, key)
            return None if row is None else row.value
