"""What searches cost: rows that are only ever added, and sums over them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Integer, cast, func, select

from optimizer.spending import Spending
from optimizer.store.inserting import insert_once
from optimizer.store.rows import Cost
from optimizer.store.sessions import Sessions
from optimizer.store.tables import LedgerRow, SearchRow

_DAY_S = 86_400
_SUMS = (
    func.coalesce(func.sum(LedgerRow.device_s), 0.0),
    func.coalesce(func.sum(LedgerRow.cpu_s), 0.0),
    func.coalesce(func.sum(LedgerRow.tokens), 0),
    func.coalesce(func.sum(LedgerRow.money_usd), 0.0),
)


class Ledger(Sessions):
    """Device seconds, processor seconds, tokens and money, by search."""

    def spend(self, search_id: int, what: Spending, *, source: str, now: float) -> None:
        """Add to the ledger what was spent on a search, and by whom."""
        values = what.model_dump() | {"search_id": search_id, "source": source, "recorded_at": now}
        with self._writing() as session:
            insert_once(session, LedgerRow, values)

    def spent(self, search_id: int) -> Spending:
        """Return what was spent on a search in all."""
        with self._reading() as session:
            sums = session.execute(select(*_SUMS).where(LedgerRow.search_id == search_id)).one()
        return _spending(sums)

    def spent_by(self, goal_key: str) -> dict[str, Spending]:
        """Return what was spent on a goal's search, by source; nothing where it has none."""
        query = (
            select(LedgerRow.source, *_SUMS)
            .join(SearchRow, SearchRow.id == LedgerRow.search_id)
            .where(SearchRow.goal_key == goal_key)
            .group_by(LedgerRow.source)
        )
        with self._reading() as session:
            return {source: _spending(sums) for source, *sums in session.execute(query)}

    def costs(self, *, since: float = 0.0) -> tuple[Cost, ...]:
        """Return what each search cost day by day and source by source, the oldest first.

        Args:
            since: Seconds since 1970; what was spent before is left out.
        """
        day = _day(self._engine.dialect.name)
        by = (SearchRow.operator, SearchRow.hardware, SearchRow.id, day, LedgerRow.source)
        query = (
            select(*by, *_SUMS)
            .join(SearchRow, SearchRow.id == LedgerRow.search_id)
            .where(LedgerRow.recorded_at >= since)
            .group_by(*by)
            .order_by(day, SearchRow.id, LedgerRow.source)
        )
        with self._reading() as session:
            return tuple(
                Cost(
                    operator=operator,
                    hardware=hardware,
                    search=search,
                    day=datetime.fromtimestamp(at * _DAY_S, UTC).date(),
                    source=source,
                    spent=_spending(sums),
                )
                for operator, hardware, search, at, source, *sums in session.execute(query)
            )


def _day(dialect: str) -> ColumnElement[int]:
    """Return how many whole days after 1970 a row was recorded; PostgreSQL's cast would round."""
    days = LedgerRow.recorded_at / _DAY_S
    return cast(days if dialect == "sqlite" else func.floor(days), Integer)


def _spending(sums: Sequence[float]) -> Spending:
    device_s, cpu_s, tokens, money_usd = sums
    return Spending(device_s=device_s, cpu_s=cpu_s, tokens=int(tokens), money_usd=money_usd)
