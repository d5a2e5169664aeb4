"""The fake of GitHub, and somebody who asks it, for the tests of the fake itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from tests.github.asker import Asker
from tests.github.fake import FakeGitHub


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_800_000_000.0)


@pytest.fixture
def host(tmp_path: Path, clock: FakeClock) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path, clock=clock) as host:
        yield host


@pytest.fixture
def asker(host: FakeGitHub) -> Iterator[Asker]:
    with Asker(host, host.installation_token()) as asker:
        yield asker
