"""The one place where a database engine is made, and where its schema is brought up to date."""

import fcntl
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from optimizer.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_S = 30
"""How long a writer waits for another one before it gives up."""
_MIGRATING = 0x6B65726E
"""The number of the lock that PostgreSQL keeps for whoever changes the schema."""


def make_engine(url: str) -> Engine:
    """Return an engine; the folder of an SQLite file is made.

    Raises:
        StoreError: The URL is none, or what speaks to that database is not installed.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        msg = f"{url!r} is no database URL; write for example sqlite:////var/lib/store.db"
        raise StoreError(msg) from error
    if parsed.get_backend_name() != "sqlite":
        return _make_remote(parsed)
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": BUSY_S})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_remote(url: URL) -> Engine:
    if url.drivername in {"postgres", "postgresql"}:
        url = url.set(drivername="postgresql+psycopg")
    try:
        # A connection that the server has closed meanwhile is noticed before it is used.
        return create_engine(url, pool_pre_ping=True)
    except (ImportError, NoSuchModuleError) as error:
        msg = f"the store at {url} can't be opened: {error}; for PostgreSQL there is the extra "
        raise StoreError(msg + "'postgres': pip install 'kernelevolve[postgres]'") from error


def upgrade(engine: Engine) -> None:
    """Bring the schema to its newest revision; two processes may do so at once.

    Raises:
        StoreError: The database is away, or a newer version of this program has changed it.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    try:
        with _alone(engine):
            if engine.dialect.name == "sqlite":
                _keep_a_write_ahead_log(engine)
            with writing(engine).begin() as connection:
                if engine.dialect.name == "postgresql":
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
    except (SQLAlchemyError, OSError) as error:
        msg = f"the store at {engine.url} can't be opened: {error}"
        raise StoreError(msg) from error
    except CommandError as error:
        msg = f"the store at {engine.url} is of another version of this program: {error}"
        raise StoreError(msg) from error


def writing(engine: Engine) -> Engine:
    """Return the engine whose transactions take the write lock when they begin.

    SQLite refuses at once, whatever its timeout, to turn a reader into a writer when another one
    has written meanwhile; a transaction that means to write must say so first.
    """
    return engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")


def _set_up_sqlite(connection: SQLiteConnection, record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    connection.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql(str(options.get("sqlite_begin", "BEGIN")))


def _keep_a_write_ahead_log(engine: Engine) -> None:
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()


def _alone(engine: Engine) -> AbstractContextManager[None]:
    path = engine.url.database
    if engine.dialect.name != "sqlite" or not path or path == ":memory:":
        return nullcontext()
    return file_lock(Path(path + ".lock"))


@contextmanager
def file_lock(path: Path) -> Generator[None]:
    """Hold a lock that the kernel frees when the process dies."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
