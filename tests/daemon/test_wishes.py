from pathlib import Path

import pytest

from daemon.talk.wishes import (
    Wish,
    answer_wish,
    find_answer,
    find_stop,
    find_wish,
    forget_stop,
    hold,
    is_held,
    stop_job,
    unhold,
    wish,
)
from optimizer.store import Store

ASKED = Wish(by="wendy", at=1.0, command=7)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(f"sqlite:///{tmp_path / 's.sqlite'}")
    store.migrate()
    return store


def test_a_wish_stands_until_it_is_answered(store: Store) -> None:
    wish(store, "rebase", "b", ASKED)
    assert find_wish(store, "rebase", "b") == ASKED
    assert find_answer(store, "rebase", "b") is None

    answer_wish(store, "rebase", "b", "done", well=True)

    assert find_wish(store, "rebase", "b") is None
    answer = find_answer(store, "rebase", "b")
    assert answer is not None
    assert (answer.told, answer.well, answer.command) == ("done", True, 7)


def test_nobody_s_wish_has_no_answer(store: Store) -> None:
    answer_wish(store, "rebase", "b", "done", well=True)

    assert find_answer(store, "rebase", "b") is None


def test_a_new_wish_forgets_the_last_answer(store: Store) -> None:
    wish(store, "rebase", "b", ASKED)
    answer_wish(store, "rebase", "b", "done", well=True)

    wish(store, "rebase", "b", ASKED)

    assert find_answer(store, "rebase", "b") is None


def test_a_wish_of_another_version_is_none(store: Store) -> None:
    store.mark("rebase/b", "please")

    assert find_wish(store, "rebase", "b") is None


def test_holding_and_stopping_are_remembered(store: Store) -> None:
    hold(store, "b", "wendy")
    stop_job(store, "k", "rob")

    assert is_held(store, "b")
    assert (find_stop(store, "k"), find_stop(store, "other")) == ("rob", None)
    unhold(store, "b")
    forget_stop(store, "k")
    assert find_stop(store, "k") is None
    assert not is_held(store, "b")
