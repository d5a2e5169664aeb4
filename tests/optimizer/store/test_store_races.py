"""What two processes that want the same at the same moment get: one has it, the other is told."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from optimizer.store import Delivery, Effect, NewCommand, QueuedGoal, Store, Trial
from tests.makers import OPERATOR, make_candidate, make_evaluation

RIVALS = 4
ROUNDS = 10
ONE = [False] * (RIVALS - 1) + [True]
Answer = TypeVar("Answer")
GOAL = QueuedGoal(
    key="g", operator="scale", hardware="cpu", operator_digest=OPERATOR.digest, reasons=()
)


def race(url: str, do: Callable[[Store, int], Answer]) -> list[Answer]:
    """Return what each rival was answered; each has connections of its own, as a process has."""
    barrier = Barrier(RIVALS)

    def start(rival: int) -> Answer:
        with Store(url) as store:
            store.recall("")  # a connection is there before the start
            barrier.wait()
            return do(store, rival)

    with ThreadPoolExecutor(RIVALS) as pool:
        return list(pool.map(start, range(RIVALS)))


def open_search(store: Store, key: str) -> int:
    return store.open_search(
        key, operator="o", hardware="h", operator_digest=OPERATOR.digest, now=0
    )


def test_one_of_several_enqueues_a_goal(url: str) -> None:
    def enqueue(goal: QueuedGoal) -> list[bool]:
        return race(url, lambda store, _: store.enqueue(goal, now=1))

    for key in map(str, range(ROUNDS)):
        assert sorted(enqueue(GOAL.model_copy(update={"key": key}))) == ONE


def test_one_of_several_claims_a_goal(url: str, store: Store) -> None:
    def claim(now: float) -> list[bool]:
        return race(url, lambda store, rival: store.claim("g", str(rival), ttl_s=100, now=now))

    store.enqueue(GOAL, now=0)

    for turn in range(ROUNDS):
        assert sorted(claim(100 * turn)) == ONE


def test_one_of_several_takes_a_free_lease_and_one_an_ended_one(url: str) -> None:
    def take(now: float) -> list[bool]:
        return race(url, lambda store, rival: store.take_lease("w", str(rival), ttl_s=100, now=now))

    for turn in range(ROUNDS):
        assert sorted(take(100 * turn)) == ONE


def test_one_of_several_finishes_a_goal(url: str, store: Store) -> None:
    store.enqueue(GOAL, now=0)

    ends = race(url, lambda store, rival: store.finish("g", verdict=str(rival), result="", now=1))

    assert sorted(ends) == ONE


def test_a_goal_has_one_search_whoever_opens_it(url: str) -> None:
    def open_one(key: str) -> list[int]:
        return race(url, lambda store, _: open_search(store, key))

    for key in map(str, range(ROUNDS)):
        assert len(set(open_one(key))) == 1


def test_several_searches_record_the_same_evaluation(url: str, store: Store) -> None:
    candidate = make_candidate()
    evaluation = make_evaluation(candidate)
    trial = Trial(number=1, candidate=candidate, evaluation=evaluation, fitness=1.0, spent_s=0.1)

    def record(searches: list[int]) -> None:
        race(url, lambda store, rival: store.record(searches[rival], trial, now=1))

    for turn in range(ROUNDS):
        searches = [open_search(store, f"{turn}-{rival}") for rival in range(RIVALS)]
        record(searches)

        assert [store.trials(search) for search in searches] == [(trial,)] * RIVALS


def test_what_arrives_or_is_asked_for_twice_at_once_is_kept_once(url: str) -> None:
    delivery = Delivery(id="d", event="push", body="{}", received_at=1)
    command = NewCommand(comment_id=1, line=1, number=1, author_id=1, author="ann", text="/stop")
    effect = Effect(key="e", kind="react", payload="{}")

    for answers in (
        race(url, lambda s, _: s.receive(delivery)),
        race(url, lambda s, _: s.note_command(command, now=1)),
        race(url, lambda s, _: s.post(effect, now=1)),
    ):
        assert sorted(answers) == ONE


def test_a_mark_that_several_set_at_once_is_one_of_theirs(url: str, store: Store) -> None:
    race(url, lambda s, rival: s.mark("m", str(rival)))

    assert store.recall("m") in {"0", "1", "2", "3"}
