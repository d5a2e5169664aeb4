"""The daemon's own parts on the days that each switch of the fake makes, one fact each.

Some run of the daemon turns each switch on: the last test looks for that in all tests.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Literal, get_args

import pytest

from daemon.forge import ForgeBusyError, ForgeError, ForgeRefusedError, PullRequestDraft
from daemon.github.forge import GitHubForge
from daemon.web.health import Health
from daemon.web.metrics import Metrics
from daemon.web.server import Reception, Site, serving
from daemon.web.webhooks import Addressee
from optimizer.store import Store
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_clock, open_forge
from tests.github.quirks import Fault, FaultKind, Quirks

TESTS = Path(__file__).parent.parent
OF_THE_FAKE_ITSELF = ("test_quirks.py", "test_people.py")


@pytest.fixture
def clock(host: FakeGitHub) -> FakeClock:
    return make_clock(host)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as host:
        yield host


@pytest.fixture
def forge(host: FakeGitHub, clock: FakeClock) -> GitHubForge:
    return open_forge(host, clock=clock)


def test_lists_are_right_without_etags(host: FakeGitHub, forge: GitHubForge) -> None:
    host.quirks.etags = False
    number = host.open_issue("ann", "T")
    first = host.comment(number, "ann", "one")
    assert [c.id for c in forge.comments_on(number)] == [first]

    second = host.comment(number, "ann", "two")

    assert [c.id for c in forge.comments_on(number)] == [first, second]


def test_an_entry_that_comes_twice_is_one(host: FakeGitHub, forge: GitHubForge) -> None:
    host.quirks.most_per_page, host.quirks.shifted_pages = 2, True
    number = host.open_issue("ann", "T")
    written = [host.comment(number, "ann", str(i)) for i in range(5)]

    assert [c.id for c in forge.comments_on(number)] == written
    assert [c.id for c in forge.comments()] == written


def test_three_hours_of_short_tokens(
    host: FakeGitHub, forge: GitHubForge, clock: FakeClock
) -> None:
    host.quirks.token_life_s = 600
    number = host.open_issue("ann", "T")

    for _ in range(180):
        clock.now_s += 60
        forge.comments_on(number)

    assert {request.status for request in host.requests} <= {200, 201, 304}
    assert host.access.tokens_made < 40


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("says", [True, False])
def test_a_secondary_limit_is_heeded(
    host: FakeGitHub, forge: GitHubForge, clock: FakeClock, *, says: bool, status: Literal[403, 429]
) -> None:
    number = host.open_issue("ann", "T")
    host.quirks.writes_per_minute, host.quirks.says_retry_after = 1, says
    host.quirks.secondary_status = status
    forge.add_comment(number, "one")

    with pytest.raises(ForgeBusyError) as busy:
        forge.add_comment(number, "two")
    asked = len(host.requests)
    with pytest.raises(ForgeBusyError):
        forge.add_comment(number, "two")

    assert len(host.requests) == asked  # it does not even ask
    clock.now_s = busy.value.retry_at
    forge.add_comment(number, "two")
    assert [c.body for c in forge.comments_on(number)] == ["one", "two"]
    assert host.impatient == []


def test_the_points_of_a_minute_are_no_trap(
    host: FakeGitHub, forge: GitHubForge, clock: FakeClock
) -> None:
    host.quirks.points_per_minute = 30
    number = host.open_issue("ann", "T")
    for i in range(12):
        try:
            forge.add_comment(number, str(i))
        except ForgeBusyError as busy:
            clock.now_s = busy.retry_at
            forge.add_comment(number, str(i))

    assert len(host.world.comments) == 12


def test_a_slow_host_is_waited_for(host: FakeGitHub, forge: GitHubForge) -> None:
    number = host.open_issue("ann", "T")
    host.quirks.faults.append(Fault("slow", slow_s=0.3))
    began = time.monotonic()

    assert forge.comments_on(number) == ()

    assert time.monotonic() - began >= 0.3


def test_without_drafts_it_is_one_like_any_other(host: FakeGitHub, forge: GitHubForge) -> None:
    host.quirks.knows_drafts = False
    host.push("work", {"a": "a"}, "octo")
    draft = PullRequestDraft(title="T", body="B", head="work", base="main", draft=True)

    made = forge.open_pull_request(draft)

    assert (made.state, made.draft) == ("open", False)
    assert forge.update_pull_request(made.number, draft).number == made.number


@pytest.mark.parametrize("switch", ["suspended", "archived"])
def test_where_we_may_not_write_a_word_says_so(
    host: FakeGitHub, forge: GitHubForge, switch: str
) -> None:
    number = host.open_issue("ann", "T")
    setattr(host.quirks, switch, True)

    with pytest.raises(ForgeError, match=switch) as error:
        forge.add_comment(number, "hello")

    assert not isinstance(error.value, ForgeBusyError)
    if switch == "archived":
        assert isinstance(error.value, ForgeRefusedError)


@pytest.mark.parametrize(
    ("switches", "kept"),
    [
        ({"drop_deliveries_every": 2}, 2),
        ({"double_deliveries_every": 2}, 4),
        ({"reorder_deliveries": True}, 4),
    ],
)
def test_the_inbox_keeps_each_delivery_once(
    host: FakeGitHub, tmp_path: Path, switches: dict[str, object], kept: int
) -> None:
    for name, value in switches.items():
        setattr(host.quirks, name, value)
    number = host.open_issue("ann", "T")
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        health = Health(time.monotonic)
        addressee = Addressee((host.hook_secret.encode(),), host.full_name, host.installation_id)
        site = Site(
            Reception(addressee, store, time.time, lambda _: None),
            find_health=lambda: health.report(paused=False),
            is_ready=lambda: True,
            render_metrics=Metrics(store, health, clock=time.time).render,
        )
        with serving(site, "127.0.0.1", 0) as port:
            host.hook_url = f"http://127.0.0.1:{port}/webhook"
            for i in range(4):
                host.comment(number, "ann", str(i))
            host.drain_deliveries()
            host.hook_url = None
        found = store.unhandled_deliveries()

    assert len(found) == kept
    assert {delivery.id for delivery in found} <= {delivery.guid for delivery in host.deliveries}


def test_some_run_of_the_daemon_turns_each_switch_on() -> None:
    files = [p for p in TESTS.rglob("*.py") if p.name.startswith(("test_", "machine"))]
    text = "".join(p.read_text("utf-8") for p in files if p.name not in OF_THE_FAKE_ITSELF)
    switches = [field.name for field in fields(Quirks)]

    assert [s for s in switches if not re.search(rf'quirks\.[a-z_, .]*{s}\b|"{s}"', text)] == []
    assert [kind for kind in get_args(FaultKind) if f'"{kind}"' not in text] == []
