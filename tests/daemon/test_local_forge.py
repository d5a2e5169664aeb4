from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon.forge import ForgeError, ForgeUnavailableError, PullRequestDraft
from daemon.local_forge import LocalForge
from daemon.workspace import Workspace
from tests.daemon.origins import ME, Origin


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin(tmp_path)
    head = origin.git.fetch("main")
    for number in range(8):
        sha = origin.git.commit(head, f"work{number}", {"x": b"x"}, message="x", by=ME)
        origin.git.push(f"work{number}", sha, expected=None)
    return origin


def make_forge(origin: Origin) -> LocalForge:
    return LocalForge(origin.folder / "forge", Workspace(str(origin.path), origin.folder / "own"))


def make_draft(number: int = 0) -> PullRequestDraft:
    return PullRequestDraft(title="Faster", body="By 2x", head=f"work{number}", base="main")


def test_pull_requests_outlive_the_process(origin: Origin) -> None:
    made = make_forge(origin).open_pull_request(make_draft())

    assert make_forge(origin).pull_requests() == (made,)


def test_numbers_are_given_once_however_many_ask(origin: Origin) -> None:
    forge = make_forge(origin)
    forge.pull_requests()

    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda n: forge.open_pull_request(make_draft(n)).number, range(8)))

    assert sorted(made) == list(range(1, 9))


def test_what_a_kill_left_half_written_is_no_pull_request(origin: Origin) -> None:
    made = make_forge(origin).open_pull_request(make_draft())
    (origin.folder / "forge" / "000002.new").write_text('{"schema": 1, "pull')

    assert make_forge(origin).pull_requests() == (made,)


def test_a_damaged_record_is_named(origin: Origin) -> None:
    make_forge(origin).open_pull_request(make_draft())
    (origin.folder / "forge" / "000001.json").write_text("{}")

    with pytest.raises(ForgeError, match=r"000001\.json: no pull request record"):
        make_forge(origin).pull_requests()


def test_an_origin_that_is_away_is_unknown_rather_than_closed(origin: Origin) -> None:
    forge = make_forge(origin)
    forge.open_pull_request(make_draft())
    away = origin.path.rename(origin.path.with_suffix(".away"))

    with pytest.raises(ForgeUnavailableError):
        forge.pull_requests()

    away.rename(origin.path)
    assert forge.pull_requests()[0].state == "open"
