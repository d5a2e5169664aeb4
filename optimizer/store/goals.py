"""The queue of goals: put in, claimed, given back, finished."""

from pydantic import TypeAdapter
from sqlalchemy import or_, select, update

from optimizer.store.inserting import insert_once
from optimizer.store.rows import QueuedGoal, StoredGoal
from optimizer.store.sessions import Sessions
from optimizer.store.tables import GoalRow

_REASONS = TypeAdapter(tuple[str, ...])


class Goals(Sessions):
    """The queue of goals. A claim ends by itself, so that a dead holder blocks nothing."""

    def enqueue(self, goal: QueuedGoal, *, now: float) -> bool:
        """Put a goal into the queue; return False where its key is known already."""
        values = goal.model_dump() | {"queued_at": now}
        values["reasons"] = _REASONS.dump_json(goal.reasons).decode()
        with self._writing() as session:
            return insert_once(session, GoalRow, values)

    def pending_goals(self) -> tuple[StoredGoal, ...]:
        """Return the unfinished goals, the greatest share of time first, then the oldest."""
        query = (
            select(GoalRow)
            .where(GoalRow.finished_at.is_(None))
            .order_by(GoalRow.share_of_time.desc(), GoalRow.queued_at, GoalRow.key)
        )
        with self._reading() as session:
            return tuple(_stored(row) for row in session.scalars(query))

    def finished_goals(self, *, limit: int) -> tuple[StoredGoal, ...]:
        """Return the goals that finished last, newest first."""
        query = (
            select(GoalRow)
            .where(GoalRow.finished_at.is_not(None))
            .order_by(GoalRow.finished_at.desc(), GoalRow.key)
            .limit(limit)
        )
        with self._reading() as session:
            return tuple(_stored(row) for row in session.scalars(query))

    def find_goal(self, key: str) -> StoredGoal | None:
        """Return the goal of a key, if there is one."""
        with self._reading() as session:
            row = session.get(GoalRow, key)
            return None if row is None else _stored(row)

    def claim(self, key: str, holder: str, *, ttl_s: float, now: float) -> bool:
        """Take a goal until `now + ttl_s`, or prolong one's own claim; False where it is taken."""
        free = or_(GoalRow.holder.is_(None), GoalRow.holder == holder, GoalRow.held_until <= now)
        change = (
            update(GoalRow)
            .where(GoalRow.key == key, GoalRow.finished_at.is_(None), free)
            .values(holder=holder, held_until=now + ttl_s)
            .returning(GoalRow.key)
        )
        with self._writing() as session:
            return session.scalar(change) is not None

    def release(self, key: str, holder: str) -> None:
        """Give a goal back; nothing happens where `holder` does not hold it."""
        change = (
            update(GoalRow)
            .where(GoalRow.key == key, GoalRow.holder == holder)
            .values(holder=None, held_until=None)
        )
        with self._writing() as session:
            session.execute(change)

    def release_all(self) -> None:
        """Give every claimed goal back; only the holder of the scheduler's lease may do so."""
        with self._writing() as session:
            session.execute(update(GoalRow).values(holder=None, held_until=None))

    def finish(self, key: str, *, verdict: str, result: str, now: float) -> bool:
        """Set a goal's result; False where it has one already or there is no such goal."""
        change = (
            update(GoalRow)
            .where(GoalRow.key == key, GoalRow.finished_at.is_(None))
            .values(finished_at=now, verdict=verdict, result=result, holder=None, held_until=None)
            .returning(GoalRow.key)
        )
        with self._writing() as session:
            return session.scalar(change) is not None


def _stored(row: GoalRow) -> StoredGoal:
    return StoredGoal(
        key=row.key,
        operator=row.operator,
        hardware=row.hardware,
        operator_digest=row.operator_digest,
        reasons=_REASONS.validate_json(row.reasons),
        share_of_time=row.share_of_time,
        payload=row.payload,
        queued_at=row.queued_at,
        holder=row.holder,
        held_until=row.held_until,
        finished_at=row.finished_at,
        verdict=row.verdict,
        result=row.result,
    )
