"""What every policy keeps to."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.outcome import Cheated
from optimizer.search.offers import Expansion, Offers
from optimizer.search.policies import POLICIES
from optimizer.search.policy import Policy
from optimizer.search.tree import Tree
from optimizer.store import Trial
from tests.optimizer.search.trees import make_trial, node_id, pick_all

NAMES = ("one", "two")
Make = Callable[[int], Policy]


@pytest.fixture(params=POLICIES)
def make(request: pytest.FixtureRequest) -> Make:
    return POLICIES[request.param]


@st.composite
def histories(draw: st.DrawFn) -> Sequence[Trial]:
    trials: list[Trial] = []
    for number in range(draw(st.integers(1, 14))):
        parents = st.none() | st.integers(0, number - 1) if number else st.none()
        fitness = draw(st.sampled_from((0.0, 1.0, 1.5, 2.0)))
        origin = draw(st.sampled_from(NAMES))
        parent, mate = draw(parents), draw(parents)
        trials.append(make_trial(number, fitness, parent=parent, mate=mate, origin=origin))
    return trials


@given(trials=histories(), seed=st.integers(0, 9), silent=st.data())
@pytest.mark.parametrize("name", POLICIES)
def test_one_that_learns_anew_what_is_exhausted_comes_to_the_same_pick(
    name: str, trials: Sequence[Trial], seed: int, silent: st.DataObject
) -> None:
    policy, tree = POLICIES[name](seed), Tree(trials)
    parents = [None, *(node.id for node in tree.nodes)]
    places = st.tuples(st.sampled_from(parents), st.sampled_from(NAMES))
    known = silent.draw(st.sets(places, max_size=2 * len(parents)))
    old, new = Offers(NAMES, ("two",)), Offers(NAMES, ("two",))
    for parent, proposer in known:
        old.exhaust(Expansion(parent, proposer))

    wanted = policy.pick(tree, old)
    found = policy.pick(tree, new)
    while found is not None and found.mate is None and (found.parent, found.proposer) in known:
        new.exhaust(found)
        found = policy.pick(tree, new)

    assert found == wanted


@given(trials=histories(), seed=st.integers(0, 9))
@pytest.mark.parametrize("name", POLICIES)
def test_equal_trees_and_seeds_make_equal_picks(
    name: str, trials: Sequence[Trial], seed: int
) -> None:
    picks = [
        list(pick_all(POLICIES[name](seed), Tree(trials), Offers(NAMES, ("two",)), most=30))
        for _ in range(2)
    ]

    assert picks[0] == picks[1]


def test_the_first_pick_is_a_draft(make: Make) -> None:
    pick = make(0).pick(Tree(), Offers(NAMES))

    assert pick == Expansion(None, "one")


def test_nothing_is_picked_where_nobody_proposes(make: Make) -> None:
    assert make(0).pick(Tree([make_trial(1, 1.0)]), Offers(())) is None


def test_everything_is_exhausted_in_the_end(make: Make) -> None:
    """Each proposer is asked at each node; where two are crossed, some pairs besides."""
    tree = Tree([make_trial(1, 1.0), make_trial(2, 2.0, parent=1), make_trial(3, 1.5, parent=2)])
    offers = Offers(NAMES)

    picks = list(pick_all(make(1), tree, offers, most=200))

    assert make(1).pick(tree, offers) is None
    asked = {(pick.parent, pick.proposer) for pick in picks if pick.mate is None}
    wanted = {(parent, name) for parent in (None, *map(node_id, (1, 2, 3))) for name in NAMES}
    assert asked == wanted


def test_who_rests_is_not_picked(make: Make) -> None:
    tree = Tree([make_trial(1, 1.0)])
    offers = Offers(NAMES, resting=frozenset(NAMES[:1]))

    picks = list(pick_all(make(0), tree, offers, most=50))

    assert {pick.proposer for pick in picks} == {"two"}


def test_a_cheat_is_not_repaired(make: Make) -> None:
    cheated = make_trial(1, 0.0, outcome=Cheated(guard="screen", detail="no"))
    offers = Offers(NAMES, NAMES)

    assert all(pick.parent is None for pick in pick_all(make(0), Tree([cheated]), offers, most=50))


def test_the_children_asked_for_are_at_least_one(make: Make) -> None:
    tree = Tree([make_trial(1, 1.0), *(make_trial(n, 1.0, parent=1) for n in range(2, 12))])
    for pick in pick_all(make(0), tree, Offers(NAMES), most=50):
        assert pick.children is None or pick.children >= 1
        assert replace(pick, children=None) == pick
