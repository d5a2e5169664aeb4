"""The devices of all hosts: seen, leased to one holder at a time, cordoned and freed again."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from optimizer.store.rows import DeviceRule, NewDevice, Ruler, StoredDevice
from optimizer.store.sessions import Sessions
from optimizer.store.tables import DeviceRow


class Devices(Sessions):
    """Devices. A lease ends by itself, so that a dead holder blocks nothing."""

    def note_devices(self, hosts: Sequence[str], seen: Sequence[NewDevice], *, now: float) -> None:
        """Keep what is seen on some hosts; what is there no longer is forgotten.

        What somebody has said of a device that is gone stays: it may come back as it went.
        """
        names = [device.name for device in seen]
        gone = delete(DeviceRow).where(
            DeviceRow.host.in_(hosts), DeviceRow.name.not_in(names), DeviceRow.rule.is_(None)
        )
        with self._writing() as session:
            session.execute(gone)
            for device in seen:
                if (known := session.get(DeviceRow, device.name)) is None:
                    fresh = DeviceRow(
                        **device.model_dump(), why="", ruled_by="health", since=now, task=""
                    )
                    session.add(fresh)
                else:
                    for name, value in device.model_dump().items():
                        setattr(known, name, value)

    def devices(self) -> tuple[StoredDevice, ...]:
        """Return all devices, by name."""
        with self._reading() as session:
            return tuple(map(_stored, session.scalars(select(DeviceRow).order_by(DeviceRow.name))))

    def find_device(self, name: str) -> StoredDevice | None:
        """Return a device, if it is known."""
        with self._reading() as session:
            row = session.get(DeviceRow, name)
            return None if row is None else _stored(row)

    def lease_device(
        self, names: Sequence[str], holder: str, *, task: str, ttl_s: float, now: float
    ) -> StoredDevice | None:
        """Take the first of some devices that is free, until `now + ttl_s`; None where none is."""
        with self._writing() as session:
            for name in names:
                free = or_(DeviceRow.holder.is_(None), DeviceRow.held_until <= now)
                query = select(DeviceRow).where(
                    DeviceRow.name == name, DeviceRow.rule.is_(None), free
                )
                row = session.scalar(query.with_for_update())
                if row is not None:
                    row.holder, row.task, row.held_until = holder, task, now + ttl_s
                    row.since, row.ruled_by = now, "health"
                    return _stored(row)
        return None

    def renew_device(self, name: str, holder: str, *, ttl_s: float, now: float) -> bool:
        """Prolong one's lease; False where the device is lost to it, or is to be drained."""
        with self._writing() as session:
            row = session.get(DeviceRow, name, with_for_update=True)
            if row is None or row.holder != holder:
                return False
            row.held_until = now + ttl_s
            return row.rule != "draining"

    def free_device(self, name: str, holder: str, *, now: float) -> None:
        """Give a device back; nothing happens where `holder` does not hold it."""
        mine = DeviceRow.name == name, DeviceRow.holder == holder
        self._change(update(DeviceRow).where(*mine).values(**_FREE, since=now))

    def free_devices_of(self, holder: str, *, now: float) -> None:
        """Give back all leases of a holder, who names them ``HOLDER#...``.

        Only whoever holds its role may say so.
        """
        theirs = or_(
            DeviceRow.holder == holder, DeviceRow.holder.startswith(f"{holder}#", autoescape=True)
        )
        with self._writing() as session:
            session.execute(update(DeviceRow).where(theirs).values(**_FREE, since=now))

    def rule_device(self, name: str, rule: DeviceRule, *, why: str, by: Ruler, now: float) -> bool:
        """Have a device leased no more; False where there is none of that name.

        A health check takes nothing back that a person has said, this included.
        """
        said = {"rule": rule, "why": why, "ruled_by": by, "since": now}
        which = [DeviceRow.name == name]
        if by == "health":
            which.append(DeviceRow.rule.is_(None))
        return self._change(update(DeviceRow).where(*which).values(**said))

    def uncordon_device(self, name: str, *, now: float, by: Ruler = "person") -> bool:
        """Have a device leased again; False where there is none, see `rule_device`."""
        said = {"rule": None, "why": "", "ruled_by": by, "since": now}
        which = [DeviceRow.name == name]
        if by == "health":
            which.append(DeviceRow.ruled_by == "health")
        return self._change(update(DeviceRow).where(*which).values(**said))

    def _change(self, change: Any) -> bool:  # noqa: ANN401 - an update's type names its table
        with self._writing() as session:
            return _changed(session, change)


_FREE: dict[str, Any] = {"holder": None, "task": "", "held_until": None}


def _changed(session: Session, change: Any) -> bool:  # noqa: ANN401 - as above
    return session.scalar(change.returning(DeviceRow.name)) is not None


def _stored(row: DeviceRow) -> StoredDevice:
    return StoredDevice.model_validate(
        {column.name: getattr(row, column.name) for column in DeviceRow.__table__.columns}
    )
