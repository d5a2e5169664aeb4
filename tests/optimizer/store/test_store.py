"""The store on real databases."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text

from knowledge.outcome import Failed
from optimizer.errors import StoreError
from optimizer.store import Confirmation, QueuedGoal, Store, Trial
from optimizer.store.tables import Table
from tests.makers import OPERATOR, make_candidate, make_evaluation, make_evidence, make_passed

GOAL = QueuedGoal(
    key="scale@cpu",
    operator="scale",
    hardware="cpu",
    operator_digest=OPERATOR.digest,
    reasons=("added",),
)


def open_search(store: Store, goal_key: str = "g") -> int:
    return store.open_search(
        goal_key, operator="scale", hardware="cpu-x86-64-v3", operator_digest=OPERATOR.digest, now=0
    )


def make_trial(number: int = 1, *, name: str = "one") -> Trial:
    candidate = make_candidate(name)
    evaluation = make_evaluation(candidate)
    return Trial(
        number=number, candidate=candidate, evaluation=evaluation, fitness=2.0, spent_s=0.1
    )


def test_the_revisions_make_the_tables_that_the_code_declares(store: Store, url: str) -> None:
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})

        assert compare_metadata(context, Table.metadata) == []
    engine.dispose()


def test_migrating_twice_changes_nothing(store: Store) -> None:
    store.enqueue(GOAL, now=1)

    store.migrate()

    assert store.find_goal(GOAL.key) is not None


def test_a_store_of_a_newer_version_is_refused(store: Store, url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    engine.dispose()

    with pytest.raises(StoreError, match="another version"):
        store.migrate()


def test_what_is_no_url_is_said() -> None:
    with pytest.raises(StoreError, match="is no database URL"):
        Store("store.db")


def test_a_goal_is_enqueued_once(store: Store) -> None:
    assert store.enqueue(GOAL, now=1)
    assert not store.enqueue(GOAL, now=2)
    assert [goal.queued_at for goal in store.pending_goals()] == [1]


def test_goals_come_in_the_order_of_their_share_of_time(store: Store) -> None:
    store.enqueue(GOAL, now=1)
    store.enqueue(GOAL.model_copy(update={"key": "b", "share_of_time": 0.2}), now=2)
    store.enqueue(GOAL.model_copy(update={"key": "c", "share_of_time": 0.1}), now=3)

    assert [goal.key for goal in store.pending_goals()] == ["b", "c", GOAL.key]


def test_a_claimed_goal_is_nobody_elses(store: Store) -> None:
    store.enqueue(GOAL, now=1)

    assert store.claim(GOAL.key, "a", ttl_s=10, now=2)
    assert store.claim(GOAL.key, "a", ttl_s=10, now=3)
    assert not store.claim(GOAL.key, "b", ttl_s=10, now=4)


def test_a_claim_ends_by_itself(store: Store) -> None:
    store.enqueue(GOAL, now=1)
    store.claim(GOAL.key, "a", ttl_s=10, now=2)

    assert store.claim(GOAL.key, "b", ttl_s=10, now=12)


def test_a_released_goal_can_be_claimed(store: Store) -> None:
    store.enqueue(GOAL, now=1)
    store.claim(GOAL.key, "a", ttl_s=10, now=2)
    store.release(GOAL.key, "a")

    assert store.claim(GOAL.key, "b", ttl_s=10, now=3)


def test_a_finished_goal_is_neither_pending_nor_claimed_nor_finished_again(store: Store) -> None:
    store.enqueue(GOAL, now=1)

    assert store.finish(GOAL.key, verdict="better", result="{}", now=2)
    assert not store.finish(GOAL.key, verdict="unclear", result="{}", now=3)
    assert not store.claim(GOAL.key, "a", ttl_s=10, now=4)
    assert store.pending_goals() == ()
    assert [goal.verdict for goal in store.finished_goals(limit=9)] == ["better"]


def test_a_goal_has_one_search(store: Store) -> None:
    assert open_search(store, "g") == open_search(store, "g") != open_search(store, "h")


def test_a_search_is_not_resumed_for_another_spec(store: Store) -> None:
    open_search(store, "g")

    with pytest.raises(StoreError, match="another operator"):
        store.open_search(
            "g", operator="scale", hardware="cpu-x86-64-v3", operator_digest="1" * 64, now=0
        )


def test_a_trial_comes_back_as_it_was_recorded(store: Store) -> None:
    search, trial = open_search(store), make_trial()

    store.record(search, trial, now=1)

    assert store.trials(search) == (trial,)
    assert store.find_evaluation(trial.evaluation.key) == trial.evaluation
    assert store.find_candidate(trial.candidate.id) == trial.candidate
    assert store.outcome_counts("g") == {"passed": 1}


def test_a_trial_is_recorded_once(store: Store) -> None:
    search = open_search(store)

    store.record(search, make_trial(1), now=1)
    store.record(search, make_trial(2), now=2)

    assert [trial.number for trial in store.trials(search)] == [1]


def test_two_trials_never_share_a_number(store: Store) -> None:
    search = open_search(store)
    store.record(search, make_trial(1, name="one"), now=1)

    with pytest.raises(StoreError):
        store.record(search, make_trial(1, name="two"), now=2)


def test_two_searches_share_an_evaluation_but_not_its_origin(store: Store) -> None:
    first, second, trial = open_search(store, "g"), open_search(store, "h"), make_trial()
    moved = trial.candidate.model_copy(update={"origin": "person", "parent": "1" * 64})

    store.record(first, trial, now=1)
    store.record(second, trial.model_copy(update={"candidate": moved, "spent_s": 0.0}), now=2)

    assert store.trials(first)[0].candidate.origin == "test"
    assert store.trials(second)[0].candidate == moved


def test_a_trial_of_no_search_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        store.record(99, make_trial(), now=1)


def test_confirming_runs_come_back_as_they_were(store: Store) -> None:
    search, candidate = open_search(store), make_candidate()
    proof = Confirmation(
        number=1, candidate=candidate.id, alpha=0.1, result=make_evidence(candidate), spent_s=2
    )
    failure = proof.model_copy(update={"number": 2, "result": Failed(stage="run", log="died")})

    store.record_confirmation(search, candidate, proof, now=1)
    store.record_confirmation(search, candidate, failure, now=2)

    assert store.confirmations(search) == (proof, failure)


def test_evidence_of_other_searches_for_the_same_claim_is_found(store: Store) -> None:
    first, second, candidate = open_search(store, "g"), open_search(store, "h"), make_candidate()
    proof = Confirmation(
        number=1, candidate=candidate.id, alpha=0.1, result=make_evidence(candidate), spent_s=2
    )
    failure = proof.model_copy(update={"number": 2, "result": Failed(stage="run", log="died")})
    store.record_confirmation(first, candidate, proof, now=1)
    store.record_confirmation(first, candidate, failure, now=2)

    assert store.other_evidence(second) == (proof.result,)
    assert store.other_evidence(first) == ()


def test_the_first_result_of_a_search_stays(store: Store) -> None:
    search = open_search(store)
    store.finish_search(search, result="first", now=1)
    store.finish_search(search, result="second", now=2)

    assert store.find_result(search) == "first"


def test_a_lease_has_one_holder_until_it_ends(store: Store) -> None:
    assert store.take_lease("writer", "a", ttl_s=10, now=0)
    assert not store.take_lease("writer", "b", ttl_s=10, now=9)
    assert store.take_lease("writer", "b", ttl_s=10, now=10)
    assert not store.take_lease("writer", "a", ttl_s=10, now=11)


def test_a_dropped_lease_is_free(store: Store) -> None:
    store.take_lease("writer", "a", ttl_s=10, now=0)
    store.drop_lease("writer", "b")
    assert not store.take_lease("writer", "c", ttl_s=10, now=1)

    store.drop_lease("writer", "a")

    assert store.take_lease("writer", "c", ttl_s=10, now=1)


def test_a_mark_is_the_last_value(store: Store) -> None:
    assert store.recall("revision") is None

    store.mark("revision", "a")
    store.mark("revision", "b")

    assert store.recall("revision") == "b"


def test_times_survive_as_they_are(store: Store) -> None:
    candidate = make_candidate()
    passed = make_passed(1 / 3, 1e-9)
    trial = make_trial().model_copy(update={"evaluation": make_evaluation(candidate, passed)})
    search = open_search(store)

    store.record(search, trial, now=1)

    assert store.trials(search)[0].evaluation.outcome == passed
