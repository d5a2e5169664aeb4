"""Rows that are inserted once, whoever else inserts the same at that moment."""

from collections.abc import Mapping, Sequence
from functools import cache

from sqlalchemy import Integer, literal_column
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningInsert

from optimizer.store.tables import Table


def insert_once(
    session: Session,
    row: type[Table],
    values: Mapping[str, object],
    *,
    unless: Sequence[str] | None = None,
) -> bool:
    """Insert a row; return False where there is one with one of its keys already.

    Looking first would not do: between the look and the insertion another process may insert.

    Args:
        session: A writing transaction.
        row: The table.
        values: By column.
        unless: The columns of the one key that counts; None for any primary or unique key.

    Raises:
        IntegrityError: The row offends in another way than by a key that counts.
    """
    dialect = session.get_bind().dialect.name
    statement = _statement(row, dialect, None if unless is None else tuple(unless))
    return session.connection().execute(statement, dict(values)).first() is not None


@cache
def _statement(
    row: type[Table], dialect: str, unless: tuple[str, ...] | None
) -> ReturningInsert[int]:
    """Return the statement, made once: to make it takes longer than to execute it."""
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    change = insert(Table.metadata.tables[row.__tablename__]).on_conflict_do_nothing(
        index_elements=unless
    )
    return change.returning(literal_column("1", Integer))
