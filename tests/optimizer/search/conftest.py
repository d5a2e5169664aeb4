from collections.abc import Iterator
from pathlib import Path

import pytest

from optimizer.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.migrate()
        yield store
