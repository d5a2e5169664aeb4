"""What the bot does where nobody cares for what it proposes, and what counts as caring."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.pulls.interest import SILENT_S, STALE_LABEL, STALE_S, find_silence, note_interest
from daemon.pulls.pull_request import as_draft
from tests.daemon.pasture import BRANCH, Pasture, grazing
from tests.daemon.talk import Talk, talking
from tests.daemon.test_shepherd import ask, change_base

HOUR_S = 3600.0


@pytest.fixture
def pasture(tmp_path: Path) -> Iterator[Pasture]:
    with grazing(tmp_path) as made:
        made.publish()
        made.look()
        yield made


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as talk:
        yield talk


def wait(pasture: Pasture, seconds: float) -> None:
    pasture.clock.now_s += seconds
    pasture.look()


def silence(pasture: Pasture) -> str | None:
    return find_silence(pasture.store, pasture.clock())


def test_after_a_month_it_is_stale_and_no_longer_rebased(pasture: Pasture) -> None:
    head = pasture.head()
    wait(pasture, STALE_S + HOUR_S)
    change_base(pasture)
    wait(pasture, HOUR_S)

    assert STALE_LABEL in pasture.shown().labels
    assert (pasture.head(), pasture.shown().state) == (head, "open")


def test_who_asks_has_a_stale_one_rebased(pasture: Pasture) -> None:
    head = pasture.head()
    wait(pasture, STALE_S + HOUR_S)
    change_base(pasture)
    ask(pasture, "rebase")
    wait(pasture, HOUR_S)

    assert pasture.head() != head


def test_a_comment_makes_it_fresh_again(pasture: Pasture) -> None:
    head = pasture.head()
    wait(pasture, STALE_S + HOUR_S)
    change_base(pasture)
    note_interest(pasture.store, pasture.clock(), number=1)
    wait(pasture, HOUR_S)

    assert STALE_LABEL not in pasture.shown().labels
    assert pasture.head() != head


def test_who_takes_the_label_off_cares(pasture: Pasture) -> None:
    wait(pasture, STALE_S + HOUR_S)
    others = tuple(label for label in pasture.shown().labels if label != STALE_LABEL)
    pasture.forge.update_pull_request(1, as_draft(pasture.shown(), labels=others))
    wait(pasture, HOUR_S)
    wait(pasture, HOUR_S)

    assert STALE_LABEL not in pasture.shown().labels


def test_after_three_months_without_anybody_nothing_is_searched(pasture: Pasture) -> None:
    wait(pasture, SILENT_S - HOUR_S)
    before = silence(pasture)
    wait(pasture, 2 * HOUR_S)

    assert before is None
    assert "for 90 days" in (silence(pasture) or "")


def test_whoever_merges_or_closes_one_or_pushes_to_it_cares(pasture: Pasture) -> None:
    wait(pasture, SILENT_S + HOUR_S)
    pasture.github.push(BRANCH, {"notes": "mine"}, "wendy")
    pasture.look()
    after_push = silence(pasture)
    wait(pasture, SILENT_S + HOUR_S)
    later = silence(pasture)
    pasture.github.merge(1, "wendy")
    pasture.look()

    assert after_push is None
    assert later is not None
    assert silence(pasture) is None


def test_without_open_pull_requests_there_is_nobody_to_wait_for(pasture: Pasture) -> None:
    pasture.github.merge(1, "wendy")
    pasture.look()
    pasture.clock.now_s += 10 * SILENT_S

    assert silence(pasture) is None


def test_the_bots_own_closing_is_no_interest(pasture: Pasture) -> None:
    before = pasture.store.recall("interest")
    assert pasture.registry is not None
    pasture.registry = replace(pasture.registry, operators={})
    pasture.look()
    wait(pasture, HOUR_S)
    pasture.look()

    (pull,) = pasture.github.pulls()
    assert pull.state == "closed"
    assert pasture.store.recall("interest") == before


def test_a_persons_command_is_heard_and_a_bots_comment_is_not(talk: Talk) -> None:
    talk.forge.add_comment(talk.request, "measured again")
    talk.intake.run()
    silent = talk.store.recall("interest")
    talk.say("/status", on=talk.issue)
    talk.intake.run()

    assert silent is None
    assert talk.store.recall("interest") is not None
