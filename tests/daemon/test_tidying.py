import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from daemon.tidying import Tidying
from optimizer.store import Store
from optimizer.store.artefacts import Artefacts
from tests.fakes import FakeClock

CAP_BYTES = 1500
DAY_S = 86_400.0


@pytest.fixture
def tidying(tmp_path: Path) -> Iterator[Tidying]:
    with Store(f"sqlite:///{tmp_path}/store.sqlite") as store:
        store.migrate()
        yield Tidying(store, Artefacts(tmp_path / "artefacts"), CAP_BYTES, FakeClock(1e9))


def keep(tidying: Tidying, sign: bytes) -> str:
    """Keep a thousand bytes that were used yesterday."""
    name = tidying.artefacts.put(sign * 1000)
    (path,) = tidying.artefacts.folder.glob(f"??/{name}")
    yesterday = tidying.clock() - DAY_S + sign[0]
    os.utime(path, (yesterday, yesterday))
    return name


def test_what_is_removed_is_told(tidying: Tidying) -> None:
    first, second = keep(tidying, b"a"), keep(tidying, b"b")

    with capture_logs() as logs:
        tidying.run()

    assert tidying.artefacts.find(first) is None
    assert tidying.artefacts.find(second) is not None
    assert [(line["event"], line["removed"]) for line in logs] == [("artefacts collected", 1)]


def test_it_is_told_where_what_is_needed_exceeds_the_cap(tidying: Tidying) -> None:
    search = tidying.store.open_search(
        "g", operator="o", hardware="h", operator_digest="0" * 64, now=0
    )
    for sign in (b"a", b"b"):
        tidying.store.need_artefact(search, keep(tidying, sign))

    with capture_logs() as logs:
        tidying.run()

    assert [(line["event"], line["kept_bytes"]) for line in logs] == [
        ("artefacts exceed their cap", 2000)
    ]


def test_it_is_done_once_an_hour(tidying: Tidying) -> None:
    tidying.run()
    names = [keep(tidying, b"a"), keep(tidying, b"b")]

    tidying.run()
    assert all(tidying.artefacts.find(name) for name in names)
