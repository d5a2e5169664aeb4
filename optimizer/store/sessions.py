"""Transactions on the store's engine, and the one error that leaves them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from optimizer.errors import StoreError
from optimizer.store.engine import make_engine, upgrade, writing


class Sessions:
    """What the store's parts share: an engine, and a transaction for each call."""

    def __init__(self, url: str) -> None:
        self._engine: Engine = make_engine(url)

    def __enter__(self) -> Self:
        """Return the store; its connections are closed at the end."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def migrate(self) -> None:
        """Make the tables, or bring them to the newest schema; safe when two start at once.

        Raises:
            StoreError: The database is away, or is of a newer version of this program.
        """
        upgrade(self._engine)

    @contextmanager
    def _reading(self) -> Generator[Session]:
        with _told_as_ours(self._engine), Session(self._engine) as session:
            yield session

    @contextmanager
    def _writing(self) -> Generator[Session]:
        engine = writing(self._engine)
        with _told_as_ours(engine), Session(engine) as session, session.begin():
            yield session


@contextmanager
def _told_as_ours(engine: Engine) -> Generator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        msg = f"the store at {engine.url} failed: {error}"
        raise StoreError(msg) from error
