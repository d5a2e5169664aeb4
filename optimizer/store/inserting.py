"""Rows that are inserted once, whoever else inserts the same at that moment."""

from collections.abc import Mapping, Sequence

from sqlalchemy import literal_column
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

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
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    change = insert(row).values(**values).on_conflict_do_nothing(index_elements=unless)
    return session.scalar(change.returning(literal_column("1"))) is not None
