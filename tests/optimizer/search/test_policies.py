"""What is each policy's own; `tests/contracts/test_policy.py` has what is all of theirs."""

from collections import Counter

from optimizer.search.offers import Expansion, Offers
from optimizer.search.policies.evolutionary import Evolutionary
from optimizer.search.policies.mcts import Mcts
from optimizer.search.policies.uniform import Uniform
from optimizer.store import Trial
from tests.optimizer.search.trees import drafted, make_tree, make_trial, node_id

LOW, HIGH = make_trial(1, 1.0), make_trial(2, 2.0)


def children_of(parent: int, first: int, fitness: float, *, number: int = 5) -> list[Trial]:
    return [make_trial(first + i, fitness, parent=parent) for i in range(number)]


def test_tree_search_exploits_the_better_branch() -> None:
    assert Mcts().pick(make_tree(LOW, HIGH), drafted("one")) == Expansion(node_id(2), "one")


def test_tree_search_asks_for_the_children_that_a_node_has_room_for() -> None:
    tree = make_tree(LOW, HIGH, make_trial(3, 2.0, parent=2))

    pick = Mcts().pick(tree, drafted("one"))

    assert pick is not None
    assert (pick.parent, pick.children) == (node_id(2), 4)


def test_tree_search_goes_down_from_a_node_that_is_full() -> None:
    tree = make_tree(LOW, HIGH, *children_of(2, 3, 2.0))

    assert Mcts().pick(tree, drafted("one")) == Expansion(node_id(3), "one")


def test_tree_search_explores_where_it_has_hardly_been() -> None:
    """With c great enough the branch with one visit goes before that with six."""
    tree = make_tree(LOW, HIGH, *children_of(2, 3, 2.0))

    assert Mcts(c=5).pick(tree, drafted("one")) == Expansion(node_id(1), "one")


def test_tree_search_passes_by_what_is_exhausted_below() -> None:
    tree = make_tree(LOW, HIGH, *children_of(2, 3, 3.0))
    offers = drafted("one")
    for number in (2, 3, 4, 5, 6, 7):
        offers.exhaust(Expansion(node_id(number), "one"))

    assert Mcts().pick(tree, offers) == Expansion(node_id(1), "one")


def test_tree_search_widens_a_full_node_when_all_below_is_exhausted() -> None:
    tree = make_tree(HIGH, *children_of(2, 3, 3.0))
    offers = drafted("one")
    for number in (3, 4, 5, 6, 7):
        offers.exhaust(Expansion(node_id(number), "one"))

    assert Mcts().pick(tree, offers) == Expansion(node_id(2), "one")


def test_candidates_under_way_fill_a_node() -> None:
    coming = [trial.candidate for trial in children_of(2, 10, 1.0)]
    offers = drafted("one")
    offers.under_way = coming

    assert Mcts().pick(make_tree(LOW, HIGH), offers) == Expansion(node_id(2), "one")
    offers.under_way = [*coming, *(t.candidate for t in children_of(1, 20, 1.0))]
    # All are full: more than that is asked of the best.
    assert Mcts().pick(make_tree(LOW, HIGH), offers) == Expansion(node_id(2), "one")


def breed(policy: Evolutionary | Uniform, *trials: Trial) -> list[Expansion]:
    """Return the pick at each of many seeds."""
    picks = [
        type(policy)(seed=seed).pick(make_tree(*trials), drafted("one", "two"))
        for seed in range(200)
    ]
    return [pick for pick in picks if pick is not None]


def test_the_fitter_breed_more_often_and_the_others_not_never() -> None:
    trials = [make_trial(number, float(number)) for number in range(1, 11)]

    parents = Counter(pick.parent for pick in breed(Evolutionary(), *trials))

    assert parents[node_id(10)] > parents[node_id(5)] > 0


def test_the_first_generation_does_not_cross() -> None:
    assert all(pick.mate is None for pick in breed(Evolutionary(), LOW, HIGH))


def test_later_about_half_of_the_children_cross_two() -> None:
    trials = [LOW, HIGH, *children_of(1, 3, 1.5)]

    crossed = sum(pick.mate is not None for pick in breed(Evolutionary(), *trials))

    # Where a tournament draws one node twice there is no mate.
    assert 50 < crossed < 110


def test_nobody_is_crossed_with_itself() -> None:
    trials = [LOW, HIGH, *children_of(1, 3, 1.5)]

    assert all(pick.mate != pick.parent for pick in breed(Evolutionary(), *trials))


def test_only_the_population_breeds() -> None:
    tree = make_tree(LOW, HIGH, make_trial(3, 3.0))
    picks = [Evolutionary(seed, population=1).pick(tree, drafted("one")) for seed in range(20)]

    assert {pick.parent for pick in picks if pick} == {node_id(3)}


def test_by_lot_all_nodes_and_proposers_are_alike() -> None:
    picks = breed(Uniform(), LOW, HIGH)

    assert 60 < sum(pick.parent == node_id(1) for pick in picks) < 140
    assert 60 < sum(pick.proposer == "one" for pick in picks) < 140


def test_offers_count_what_is_alive_below_a_node() -> None:
    tree = make_tree(LOW, make_trial(2, 2.0, parent=1), make_trial(3, 0.0, parent=1))
    offers = Offers(("one",))

    assert offers.living(tree, tree.nodes[0]) == 2
    offers.exhaust(Expansion(node_id(2), "one"))
    assert offers.living(tree, tree.nodes[0]) == 1
    tree.add(make_trial(4, 1.0, parent=2))
    assert offers.living(tree, tree.nodes[0]) == 2
    assert offers.living(tree, tree.nodes[1]) == 1
