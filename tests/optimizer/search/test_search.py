from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from knowledge.outcome import Outcome
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError, RunnerError
from optimizer.propose.proposer import NodeContext, Proposer, ScriptedProposer
from optimizer.search.budget import Budget
from optimizer.search.search import Clock, Place, Search
from optimizer.store import Store
from tests.fakes import FakeRunner
from tests.makers import OPERATOR, make_candidate, make_passed

DRAFTS = [make_candidate(str(i)) for i in range(9)]


class Doubler:
    """Proposes the node with its block doubled, up to 64; drafts block 1."""

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        if node.candidate is None:
            return [c for c in [make_candidate(block=1)] if c.id not in node.tried]
        block = node.candidate.chosen["block"] * 2
        child = make_candidate(parent=node.candidate.id, block=block)
        return [] if block > 64 or child.id in node.tried else [child]


class Absent:
    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        message = "no answer"
        raise ProposalError(message)


def best_at_16(candidate: Candidate) -> Outcome:
    return make_passed(abs(candidate.chosen["block"] - 16) / 16 + 0.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.migrate()
        yield store


def make_search(
    store: Store, runner: FakeRunner, *proposers: Proposer, total_s: float = 1000, goal: str = "g"
) -> Search:
    search_id = store.open_search(
        goal, operator="scale", hardware="h", operator_digest=OPERATOR.digest, now=0
    )
    return Search(
        store=store,
        place=Place(search_id, OPERATOR.digest, "1"),
        runner=runner,
        proposers=proposers,
        budget=Budget(total_s=total_s),
        clock=Clock(runner.clock, runner.clock),
    )


def test_every_draft_is_tried_once_and_recorded(store: Store) -> None:
    runner = FakeRunner()
    search = make_search(store, runner, ScriptedProposer([*DRAFTS, *DRAFTS]))

    search.run()

    assert runner.ran == [draft.id for draft in DRAFTS]
    assert store.trials(search.place.search_id) == search.trials


def test_the_best_node_is_followed_to_the_optimum(store: Store) -> None:
    search = make_search(store, FakeRunner(best_at_16), Doubler())

    search.run()

    best = max(search.trials, key=lambda trial: trial.fitness)
    assert best.candidate.chosen == {"block": 16}


def test_a_search_ends_with_its_share_of_the_budget(store: Store) -> None:
    runner = FakeRunner()
    search = make_search(store, runner, ScriptedProposer(DRAFTS), total_s=10)

    search.run()

    assert 2.5 <= search.spent_s <= 4


def test_a_resumed_search_tries_nothing_twice(store: Store) -> None:
    first, second = FakeRunner(), FakeRunner()
    make_search(store, first, ScriptedProposer(DRAFTS[:4])).run()

    resumed = make_search(store, second, ScriptedProposer(DRAFTS))
    resumed.run()

    assert second.ran == [draft.id for draft in DRAFTS[4:]]
    assert [trial.number for trial in resumed.trials] == list(range(1, 10))


def test_a_resumed_search_has_only_the_time_that_is_left(store: Store) -> None:
    make_search(store, FakeRunner(), ScriptedProposer(DRAFTS[:4])).run()

    resumed = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))

    assert resumed.spent_s == 4


def test_another_search_takes_known_results_from_the_store(store: Store) -> None:
    make_search(store, FakeRunner(), ScriptedProposer(DRAFTS)).run()
    runner = FakeRunner()

    search = make_search(store, runner, ScriptedProposer(DRAFTS), goal="h")
    search.run()

    assert runner.ran == []
    assert {trial.spent_s for trial in search.trials} == {0}


def test_a_search_goes_on_without_a_proposer_that_is_away(store: Store) -> None:
    search = make_search(store, FakeRunner(), Absent(), ScriptedProposer(DRAFTS))

    search.run()

    assert len(search.trials) == len(DRAFTS)


def test_a_stopped_search_begins_no_trial(store: Store) -> None:
    runner = FakeRunner()
    search = make_search(store, runner, ScriptedProposer(DRAFTS))
    search.stopped = lambda: len(runner.ran) > 0

    search.run()

    assert 0 < len(search.trials) < len(DRAFTS)


def test_an_evaluation_is_kept_before_the_next_trial_begins(store: Store) -> None:
    search = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))

    def fail_at_the_third(candidate: Candidate) -> Outcome:
        if candidate == DRAFTS[2]:
            message = "the device is gone"
            raise RunnerError(message)
        return make_passed(0.5)

    search.runner = FakeRunner(fail_at_the_third)

    with pytest.raises(RunnerError):
        search.run()

    kept = [trial.candidate.id for trial in store.trials(search.place.search_id)]
    assert kept == [draft.id for draft in DRAFTS[:2]]


def test_the_next_batch_is_built_while_a_device_is_at_work(store: Store) -> None:
    runner = FakeRunner(builds_ahead=True)
    search = make_search(store, runner, ScriptedProposer(DRAFTS))

    search.run()

    ids = [draft.id for draft in DRAFTS]
    assert runner.ran == ids
    # The first batch is half of a full one.
    assert runner.built_ahead == [ids[3:9], []]


def test_nothing_is_built_ahead_where_that_would_disturb(store: Store) -> None:
    runner = FakeRunner()
    search = make_search(store, runner, ScriptedProposer(DRAFTS))

    search.run()

    assert runner.built_ahead == [[], []]


def test_what_is_known_already_is_not_built_ahead(store: Store) -> None:
    make_search(store, FakeRunner(), ScriptedProposer(DRAFTS[4:])).run()
    runner = FakeRunner(builds_ahead=True)

    make_search(store, runner, ScriptedProposer(DRAFTS), goal="h").run()

    assert runner.built_ahead[0] == [DRAFTS[3].id]


def test_a_search_that_looks_ahead_still_finds_the_optimum(store: Store) -> None:
    search = make_search(store, FakeRunner(best_at_16, builds_ahead=True), Doubler())

    search.run()

    best = max(search.trials, key=lambda trial: trial.fitness)
    assert best.candidate.chosen == {"block": 16}
