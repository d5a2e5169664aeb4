"""Every test of the store runs on each database that it can be kept in."""

from collections.abc import Callable, Iterator
from itertools import count
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
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/folder/empty.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = server.make_database()
    yield server.url(name)
    server.drop_database(name)


@pytest.fixture(params=DATABASES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes databases with tables, and returns the URL of each."""
    if request.param == "sqlite":
        numbers = count()

        def make_file() -> str:
            url = f"sqlite:///{tmp_path}/folder/store-{next(numbers)}.db"
            with Store(url) as store:
                store.migrate()
            return url

        yield make_file
        return
    server: Postgres = request.getfixturevalue("postgres")
    migrated: str = request.getfixturevalue("migrated")
    made: list[str] = []

    def make_copy() -> str:
        made.append(server.make_database(like=migrated))
        return server.url(made[-1])

    yield make_copy
    for name in made:
        server.drop_database(name)


@pytest.fixture
def url(make_url: Callable[[], str]) -> str:
    return make_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as store:
        yield store
