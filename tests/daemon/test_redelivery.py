import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.forge import ForgeError
from daemon.github.deliveries import GitHubDeliveries
from daemon.web.health import Health
from daemon.web.redelivery import Attempt, Redelivery, find_missed
from daemon.web.server import Reception, Site, serving
from daemon.web.webhooks import Addressee
from optimizer.store import Store
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_client, make_clock, make_person

HOUR_S = 3600.0


def attempt(
    number: int,
    delivery_id: str,
    *,
    event: str = "push",
    good: bool = False,
    first: bool = True,
) -> Attempt:
    return Attempt(
        id=number,
        delivery_id=delivery_id,
        event=event,
        at=float(number),
        is_first=first,
        succeeded=good,
    )


def test_what_arrived_in_the_end_was_not_missed() -> None:
    assert find_missed([attempt(1, "a"), attempt(2, "a", good=True, first=False)]) == ()


def test_a_missed_delivery_is_asked_for_once_by_its_last_attempt() -> None:
    missed = find_missed([attempt(3, "a", first=False), attempt(1, "a"), attempt(2, "b")])

    assert {one.id for one in missed} == {2, 3}


def test_a_delivery_whose_first_attempt_is_long_ago_is_given_up() -> None:
    assert find_missed([attempt(3, "a", first=False)]) == ()


def test_what_nobody_handles_is_not_missed() -> None:
    assert find_missed([attempt(1, "a", event="star")]) == ()


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as github:
        yield github


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        yield store


@pytest.fixture
def clock(github: FakeGitHub) -> FakeClock:
    return make_clock(github)


def ids(github: FakeGitHub, *, sent_again: bool) -> list[str]:
    return [d.guid for d in github.deliveries if d.redelivery == sent_again]


def redelivery(github: FakeGitHub, store: Store, clock: FakeClock) -> Redelivery:
    return Redelivery(GitHubDeliveries(make_client(github, clock=clock)), store, clock)


def test_what_was_dropped_is_sent_again_and_kept(
    github: FakeGitHub, store: Store, clock: FakeClock
) -> None:
    """Through the real server: three pages of deliveries, of which each second was dropped."""
    github.quirks.most_per_page = 2
    github.quirks.drop_deliveries_every = 2
    reception = Reception(
        addressee=Addressee((github.hook_secret.encode(),), github.full_name, 77),
        inbox=store,
        clock=clock,
        on_delivery=lambda _: None,
    )
    health = Health(time.monotonic)
    site = Site(reception, lambda: health.report(paused=False), lambda: True, lambda: (b"", ""))
    with serving(site, "127.0.0.1", 0) as port:
        github.hook_url = f"http://127.0.0.1:{port}/webhook"
        for number in range(5):
            github.push("main", {f"{number}.txt": "x"}, "octo")
        github.drain_deliveries()
        assert len(store.unhandled_deliveries()) == 3

        github.quirks.drop_deliveries_every = 0
        redelivery(github, store, clock).run()
        github.drain_deliveries()

    made = ids(github, sent_again=False)
    assert sorted(d.id for d in store.unhandled_deliveries()) == sorted(made)
    assert len(ids(github, sent_again=True)) == 2


def test_what_never_arrives_is_given_up_after_some_hours(
    github: FakeGitHub, store: Store, clock: FakeClock
) -> None:
    github.push("main", {"a.txt": "x"}, "octo")
    clock.now_s += HOUR_S / 2
    looks = redelivery(github, store, clock)
    looks.run()
    assert len(ids(github, sent_again=True)) == 1

    for _ in range(6):
        clock.now_s += HOUR_S
        looks.run()

    # Nobody listens at all: after the overlap it is given up, not sent for ever.
    assert len(ids(github, sent_again=True)) == 4


def test_the_first_look_goes_back_three_days_at_most(
    github: FakeGitHub, store: Store, clock: FakeClock
) -> None:
    github.push("main", {"a.txt": "x"}, "octo")
    clock.now_s += 73 * HOUR_S

    redelivery(github, store, clock).run()

    assert ids(github, sent_again=True) == []


def test_who_is_no_app_may_not_ask(github: FakeGitHub, store: Store, clock: FakeClock) -> None:
    client = make_client(github, make_person(github), clock=clock)

    with pytest.raises(ForgeError):
        Redelivery(GitHubDeliveries(client), store, clock).run()
