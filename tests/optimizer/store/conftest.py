"""Every test of the store runs on each database that it can be kept in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from optimizer.store import Store
from tests.databases import Postgres, find_programs, serving

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    programs = find_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL here: apt-get install postgresql")
    with serving(programs) as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """The name of a database with the newest tables, of which others are copies."""
    name = postgres.make_database()
    with Store(postgres.url(name)) as store:
        store.migrate()
    return name


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/empty.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(server.make_database())


@pytest.fixture(params=DATABASES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes databases with tables, and returns the URL of each."""
    made = iter(range(1000))

    def make() -> str:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path}/folder/store-{next(made)}.db"
        else:
            server: Postgres = request.getfixturevalue("postgres")
            url = server.url(server.make_database(like=request.getfixturevalue("migrated")))
        with Store(url) as store:
            store.migrate()
        return url

    return make


@pytest.fixture
def url(make_url: Callable[[], str]) -> str:
    return make_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as store:
        yield store
