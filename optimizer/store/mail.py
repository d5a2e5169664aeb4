"""What passes between the program and a code host: deliveries in, commands, effects out."""

from sqlalchemy import delete, func, select, update

from optimizer.store.inserting import insert_once
from optimizer.store.rows import (
    OPEN_STATES,
    URGENT,
    Backlog,
    CommandState,
    Delivery,
    Effect,
    NewCommand,
    StoredCommand,
    StoredEffect,
)
from optimizer.store.sessions import Sessions
from optimizer.store.tables import CommandRow, DeliveryRow, EffectRow

_LONGEST_ERROR = 2000


class Mail(Sessions):
    """Deliveries, commands and effects, each once by its key."""

    def receive(self, delivery: Delivery) -> bool:
        """Keep what was delivered; return False where it is here already."""
        with self._writing() as session:
            return insert_once(session, DeliveryRow, delivery.model_dump())

    def unhandled_deliveries(self, *, limit: int = 100) -> tuple[Delivery, ...]:
        """Return what nobody has handled, oldest first."""
        query = (
            select(DeliveryRow)
            .where(DeliveryRow.handled_at.is_(None))
            .order_by(DeliveryRow.received_at, DeliveryRow.id)
            .limit(limit)
        )
        with self._reading() as session:
            return tuple(
                Delivery(id=r.id, event=r.event, body=r.body, received_at=r.received_at)
                for r in session.scalars(query)
            )

    def handle_delivery(self, delivery_id: str, *, now: float) -> None:
        """Note that a delivery is handled."""
        change = (
            update(DeliveryRow)
            .where(DeliveryRow.id == delivery_id, DeliveryRow.handled_at.is_(None))
            .values(handled_at=now)
        )
        with self._writing() as session:
            session.execute(change)

    def forget_deliveries(self, *, before: float) -> None:
        """Delete what was handled before a time."""
        with self._writing() as session:
            session.execute(delete(DeliveryRow).where(DeliveryRow.handled_at < before))

    def note_command(self, command: NewCommand, *, now: float) -> bool:
        """Keep a command; return False where it is here already."""
        values = command.model_dump() | {"received_at": now, "changed_at": now}
        values |= {"state": "received", "told": ""}
        with self._writing() as session:
            return insert_once(session, CommandRow, values, unless=("comment_id", "line"))

    def commands(
        self,
        *,
        states: tuple[CommandState, ...] | None = None,
        number: int | None = None,
        goal_key: str | None = None,
        limit: int = 1000,
    ) -> tuple[StoredCommand, ...]:
        """Return commands, the newest first, those alone that are as asked for."""
        query = select(CommandRow).order_by(CommandRow.id.desc()).limit(limit)
        if states is not None:
            query = query.where(CommandRow.state.in_(states))
        if number is not None:
            query = query.where(CommandRow.number == number)
        if goal_key is not None:
            query = query.where(CommandRow.goal_key == goal_key)
        with self._reading() as session:
            return tuple(
                StoredCommand.model_validate(_values(row)) for row in session.scalars(query)
            )

    def earlier_commands(
        self, command: StoredCommand, *, since: float, limit: int
    ) -> tuple[StoredCommand, ...]:
        """Return the commands that the same person gave before one, the newest first."""
        query = (
            select(CommandRow)
            .where(
                CommandRow.author_id == command.author_id,
                CommandRow.id < command.id,
                CommandRow.received_at >= since,
            )
            .order_by(CommandRow.id.desc())
            .limit(limit)
        )
        with self._reading() as session:
            return tuple(
                StoredCommand.model_validate(_values(row)) for row in session.scalars(query)
            )

    def change_command(
        self,
        command_id: int,
        *,
        state: CommandState,
        told: str,
        now: float,
        goal_key: str | None = None,
    ) -> None:
        """Note what has become of a command; a goal that is known of it stays."""
        values: dict[str, object] = {"state": state, "told": told, "changed_at": now}
        if goal_key is not None:
            values["goal_key"] = goal_key
        with self._writing() as session:
            session.execute(update(CommandRow).where(CommandRow.id == command_id).values(**values))

    def post(self, effect: Effect, *, now: float, not_before: float = 0.0) -> bool:
        """Ask for an effect; return False where it is asked for already, or done."""
        values = effect.model_dump() | {"made_at": now, "not_before": not_before, "attempts": 0}
        with self._writing() as session:
            return insert_once(session, EffectRow, values, unless=("key",))

    def due_effects(
        self, *, now: float, urgent: bool | None = None, limit: int = 50
    ) -> tuple[StoredEffect, ...]:
        """Return what is to be done now, in the order in which it should be.

        Args:
            now: Seconds since 1970.
            urgent: Whether to return what is urgent, or what is not; None for both.
            limit: How many at most.
        """
        query = (
            select(EffectRow)
            .where(EffectRow.done_at.is_(None), EffectRow.not_before <= now)
            .order_by(EffectRow.priority, EffectRow.id)
            .limit(limit)
        )
        if urgent is not None:
            is_urgent = EffectRow.priority <= URGENT
            query = query.where(is_urgent if urgent else ~is_urgent)
        with self._reading() as session:
            return tuple(
                StoredEffect.model_validate(_values(row)) for row in session.scalars(query)
            )

    def find_effect(self, key: str) -> StoredEffect | None:
        """Return the effect of a key, done or not."""
        with self._reading() as session:
            row = session.scalar(select(EffectRow).where(EffectRow.key == key))
            return None if row is None else StoredEffect.model_validate(_values(row))

    def start_effect(self, effect_id: int) -> None:
        """Count an attempt, before it is made."""
        change = (
            update(EffectRow)
            .where(EffectRow.id == effect_id)
            .values(attempts=EffectRow.attempts + 1)
        )
        with self._writing() as session:
            session.execute(change)

    def end_effect(
        self, effect_id: int, *, now: float, remote: str | None = None, error: str | None = None
    ) -> None:
        """Note that an effect is there; or, with an error, that it is given up."""
        told = None if error is None else error[:_LONGEST_ERROR]
        values = {"done_at": now, "remote": remote, "error": told}
        with self._writing() as session:
            session.execute(update(EffectRow).where(EffectRow.id == effect_id).values(**values))

    def put_off_effect(self, effect_id: int, *, not_before: float, error: str) -> None:
        """Note that an effect failed and is to be tried again."""
        values = {"not_before": not_before, "error": error[:_LONGEST_ERROR]}
        with self._writing() as session:
            session.execute(update(EffectRow).where(EffectRow.id == effect_id).values(**values))

    def given_up_effects(self, *, limit: int = 20) -> tuple[StoredEffect, ...]:
        """Return the effects that failed for good, the newest first."""
        query = (
            select(EffectRow)
            .where(EffectRow.done_at.is_not(None), EffectRow.error.is_not(None))
            .order_by(EffectRow.done_at.desc())
            .limit(limit)
        )
        with self._reading() as session:
            return tuple(
                StoredEffect.model_validate(_values(row)) for row in session.scalars(query)
            )

    def backlog(self) -> Backlog:
        """Return how much of each waits, and since when."""
        unhandled = DeliveryRow.handled_at.is_(None)
        waiting = EffectRow.done_at.is_(None)
        given_up = EffectRow.done_at.is_not(None) & EffectRow.error.is_not(None)
        count = func.count()
        with self._reading() as session:
            came, oldest_came = session.execute(
                select(count, func.min(DeliveryRow.received_at)).where(unhandled)
            ).one()
            asked, oldest_asked = session.execute(
                select(count, func.min(EffectRow.made_at)).where(waiting)
            ).one()
            return Backlog(
                deliveries=came,
                oldest_delivery_at=oldest_came,
                commands=session.scalar(select(count).where(CommandRow.state.in_(OPEN_STATES)))
                or 0,
                effects=asked,
                oldest_effect_at=oldest_asked,
                given_up=session.scalar(select(count).where(given_up)) or 0,
            )


def _values(row: CommandRow | EffectRow) -> dict[str, object]:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}
