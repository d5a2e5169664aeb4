from collections.abc import Sequence

import pytest

from knowledge.outcome import Outcome
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError, RunnerError
from optimizer.propose.proposer import NodeContext, ScriptedProposer
from optimizer.search.endings import Bounds
from optimizer.search.policies import POLICIES
from optimizer.store import Store
from tests.fakes import FakeRunner
from tests.makers import make_candidate, make_passed
from tests.optimizer.search.searches import make_search

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


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch", [1, 6])
def test_each_policy_finds_the_optimum(store: Store, policy: str, batch: int) -> None:
    search = make_search(store, FakeRunner(best_at_16), Doubler(), Doubler())
    search.policy, search.batch = POLICIES[policy](0), batch

    search.run()

    assert search.tree.best is not None
    assert search.tree.best.trial.candidate.chosen == {"block": 16}


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


def test_drafts_are_shown_nothing_and_their_children_what_led_to_them(store: Store) -> None:
    seen: list[NodeContext] = []

    class Watching(Doubler):
        def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
            seen.append(node)
            return super().propose(node, count)

    make_search(store, FakeRunner(best_at_16), Watching()).run()

    assert not seen[0].history
    eight = next(n for n in seen if n.candidate is not None and n.candidate.chosen["block"] == 8)
    assert [a.candidate.chosen["block"] for a in eight.history] == [1, 2, 4]


def test_a_childs_parent_is_the_node_that_was_asked_about(store: Store) -> None:
    class Careless(Doubler):
        def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
            made = super().propose(node, count)
            return [candidate.model_copy(update={"parent": None}) for candidate in made]

    search = make_search(store, FakeRunner(best_at_16), Careless())
    search.run()

    assert [t.candidate.parent for t in search.trials][1] == search.trials[0].candidate.id


def test_a_proposer_that_is_away_is_asked_more_rarely_and_comes_back(store: Store) -> None:
    asked: list[int] = []

    class Sleeper:
        name = "sleeper"

        def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
            asked.append(len(search.trials))
            if len(search.trials) < 20:
                message = "asleep"
                raise ProposalError(message)
            return [c for c in [make_candidate("woken")] if c.id not in node.tried]

    drafts = [make_candidate(str(i)) for i in range(40)]
    search = make_search(store, FakeRunner(), Sleeper(), ScriptedProposer(drafts))
    search.batch = 1
    search.bounds = Bounds(patience=100)

    search.run()

    assert asked[:5] == [0, 1, 3, 7, 15]
    assert make_candidate("woken").id in search.tree


def test_a_search_with_only_a_proposer_that_is_away_gives_up(store: Store) -> None:
    assert make_search(store, FakeRunner(), Absent()).run() == "nothing_left"
