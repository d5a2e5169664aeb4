from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.evidence import Ending
from knowledge.outcome import Failed
from operator_registry.spec import OneMoreAxis, SumAxis
from optimizer.candidate import Candidate
from optimizer.propose.proposer import NodeContext, ScriptedProposer
from optimizer.search.endings import (
    ENDINGS,
    Bounds,
    find_ending,
    find_floors_ms,
    is_stalled,
    times_floor,
)
from optimizer.search.tree import Tree
from optimizer.spending import Allowance, Spending
from optimizer.store import Store
from tests.fakes import FakeRunner
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_passed
from tests.optimizer.search.searches import make_search
from tests.optimizer.search.trees import make_tree, make_trial

DRAFTS = [make_candidate(str(i)) for i in range(30)]


def curve(*fitnesses: float) -> list[float]:
    return list(accumulate(fitnesses, max))


@dataclass
class Model:
    """Costs 100 tokens and 0.5 dollars for each candidate that it is asked for."""

    name: str = "model"
    left: list[Allowance] = field(default_factory=list)
    _spent: Spending = field(default_factory=Spending)

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        self.left.append(node.left)
        made = [draft for draft in DRAFTS if draft.id not in node.tried][:count]
        self._spent += Spending(tokens=100 * len(made), money_usd=0.5 * len(made))
        return made

    def take_spending(self) -> Spending:
        spent, self._spent = self._spent, Spending()
        return spent


def test_each_reason_has_words() -> None:
    assert ENDINGS.keys() == set(get_args(Ending))


def test_a_search_stalls_when_its_last_trials_brought_nothing() -> None:
    assert is_stalled(curve(2.0, *[1.0] * 24))
    assert not is_stalled(curve(2.0, *[1.0] * 23, 2.1))
    assert not is_stalled(curve(2.0, *[1.0] * 23))


def test_a_search_without_a_passed_candidate_does_not_stall() -> None:
    assert not is_stalled([0.0] * 100)


@pytest.mark.parametrize(
    ("allowance", "trials"),
    [(Allowance(device_s=5), 5), (Allowance(cpu_s=2.5), 5), (Allowance(device_s=4.5), 5)],
)
def test_seconds_end_a_search_within_one_trial(
    store: Store, allowance: Allowance, trials: int
) -> None:
    search = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))
    search.bounds = Bounds(allowance=allowance)

    assert search.run() == allowance.find_excess(search.account.spent)
    assert len(search.trials) == trials


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("allowance", [Allowance(tokens=500), Allowance(money_usd=2.5)])
def test_what_a_model_costs_ends_a_search_within_one_trial(
    store: Store, allowance: Allowance, batch: int
) -> None:
    search = make_search(store, FakeRunner(), Model())
    search.bounds, search.batch = Bounds(allowance=allowance), batch

    assert search.run() == allowance.find_excess(search.account.spent)
    # The first half batch of 3 is within the limits; the next answer of 6 breaks them.
    assert len(search.trials) == (5 if batch == 1 else 4)


def test_a_model_is_told_what_may_still_be_spent(store: Store) -> None:
    model = Model()
    search = make_search(store, FakeRunner(), model)
    search.bounds, search.batch = Bounds(allowance=Allowance(tokens=300)), 1

    search.run()

    assert [left.tokens for left in model.left] == [300, 200, 100]
    assert {left.money_usd for left in model.left} == {None}


def test_trials_end_a_search_in_the_middle_of_a_batch(store: Store) -> None:
    runner = FakeRunner(builds_ahead=True)
    search = make_search(store, runner, ScriptedProposer(DRAFTS))
    search.bounds = Bounds(trials=5)

    assert search.run() == "trials"
    assert len(runner.ran) == 5


def test_time_ends_a_search_in_the_middle_of_a_batch(store: Store) -> None:
    search = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS), total_s=16)

    assert search.run() == "seconds"
    assert len(search.trials) == 4


def test_a_search_ends_once_it_is_fast_enough(store: Store) -> None:
    runner = FakeRunner(lambda candidate: make_passed(0.5 if candidate == DRAFTS[1] else 2.0))
    search = make_search(store, runner, ScriptedProposer(DRAFTS))
    search.bounds = Bounds(fitness=2.0)

    assert search.run() == "fitness"
    assert len(search.trials) == 2


def test_a_search_ends_near_the_roofline(store: Store) -> None:
    runner = FakeRunner(lambda candidate: make_passed(0.5 if candidate == DRAFTS[2] else 2.0))
    search = make_search(store, runner, ScriptedProposer(DRAFTS))
    search.bounds = Bounds(roofline_percent=10, floors_ms={"w0": 0.46})

    assert search.run() == "roofline"
    assert len(search.trials) == 3


def test_a_search_ends_when_nobody_has_an_idea(store: Store) -> None:
    assert make_search(store, FakeRunner(), ScriptedProposer(DRAFTS[:2])).run() == "nothing_left"


def test_a_search_that_stalls_says_so(store: Store) -> None:
    search = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))
    search.bounds = Bounds(patience=8)

    assert search.run() == "stalled"
    assert len(search.trials) == 9


def test_a_stopped_search_says_so(store: Store) -> None:
    search = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))
    search.stopped = lambda: True

    assert search.run() == "stopped"


@pytest.mark.parametrize("batch", [1, 6])
def test_the_ledger_adds_up(store: Store, batch: int) -> None:
    search = make_search(store, FakeRunner(), Model())
    search.bounds, search.batch = Bounds(trials=10), batch

    search.run()

    spent = store.spent(search.place.search_id)
    assert spent == search.account.spent
    assert (spent.device_s, spent.cpu_s) == (10, 5)
    assert spent.tokens == (1000 if batch == 1 else 1500)
    assert make_search(store, FakeRunner()).account.spent == spent


def test_each_mode_of_spending_adds_to_what_another_process_has_spent(store: Store) -> None:
    bounds = Bounds(allowance=Allowance(device_s=5))
    first = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))
    first.bounds = Bounds(trials=3)
    first.run()

    again = make_search(store, FakeRunner(), ScriptedProposer(DRAFTS))
    again.bounds = bounds

    assert again.run() == "device_s"
    assert len(again.trials) == 5


def test_a_floor_is_each_byte_once_through_memory() -> None:
    """64 rows of float32 read and written are 512 bytes, at 20 GB/s 25.6 ns."""
    assert find_floors_ms(OPERATOR.spec, HARDWARE) == pytest.approx(
        {"w0": 25.6e-6, "w1": 16 * 25.6e-6}
    )


def test_a_workload_whose_data_decide_a_size_has_no_floor() -> None:
    axes = OPERATOR.spec.axes
    x = OPERATOR.spec.inputs["x"]
    offsets = OPERATOR.spec.model_copy(
        update={
            "axes": axes | {"ends": OneMoreAxis(one_more_than="rows")},
            "inputs": {"x": x, "o": x.model_copy(update={"shape": ("ends",)})},
        }
    )
    summed = OPERATOR.spec.model_copy(
        update={
            "axes": axes | {"total": SumAxis(sum_of="x")},
            "inputs": {"x": x, "o": x.model_copy(update={"shape": ("total",)})},
        }
    )

    assert find_floors_ms(offsets, HARDWARE)["w0"] == pytest.approx(25.6e-6 + 65 * 4 / 20e6)
    assert find_floors_ms(summed, HARDWARE) == {}


def test_a_workload_below_its_floor_does_not_make_up_for_another() -> None:
    assert times_floor(make_passed(0.1, 4.0), {"w0": 1.0, "w1": 1.0}) == pytest.approx(2.0)


def test_nothing_is_near_a_floor_that_is_not_known() -> None:
    assert times_floor(make_passed(1.0), {}) is None
    assert times_floor(Failed(stage="build", log=""), {"w0": 1.0}) is None


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_is_left_of_an_allowance_is_never_negative(limit_s: float, spent_s: float) -> None:
    left = Allowance(device_s=limit_s).left_after(Spending(device_s=spent_s))

    assert left == Allowance(device_s=max(0.0, limit_s - spent_s))


def test_without_limits_a_search_goes_on() -> None:
    tree = make_tree(make_trial(1, 1.0))

    assert find_ending(Bounds(), tree, Spending(device_s=1e9, tokens=10**9)) is None
    assert find_ending(Bounds(), Tree(), Spending()) is None
