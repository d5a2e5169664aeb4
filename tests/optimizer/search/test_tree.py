from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from knowledge.outcome import Cheated, Passed
from optimizer.search.shares import FOR_PASSING
from optimizer.search.tree import Tree
from optimizer.store import Trial
from tests.optimizer.search.trees import make_tree, make_trial, node_id


@st.composite
def histories(draw: st.DrawFn) -> Sequence[Trial]:
    """Trials in an order in which a search may have made them; some parents are of another one."""
    trials: list[Trial] = []
    for number in range(draw(st.integers(0, 25))):
        parents = st.none() | st.integers(0, number + 3)
        fitness = draw(st.sampled_from((0.0, 0.5, 1.0, 1.5, 2.0)))
        parent, mate = draw(parents), draw(parents)
        origin = draw(st.sampled_from(("one", "two")))
        trials.append(make_trial(number, fitness, parent=parent, mate=mate, origin=origin))
    return trials


def seen(tree: Tree) -> object:
    """Return all that a policy may look at."""
    nodes = [
        (
            node.id,
            node.parent.id if node.parent else None,
            node.mate.id if node.mate else None,
            [child.id for child in node.children],
            (node.generation, node.failures, node.visits, node.value_sum),
        )
        for node in tree.nodes
    ]
    ranked = [node.id for node in tree.ranked]
    drafts = [node.id for node in tree.drafts]
    span = (tree.low, tree.high, tree.since_best, tree.generation, tree.curve)
    return nodes, ranked, drafts, span, tree.earned


@given(histories(), st.integers(0, 25))
def test_a_tree_built_anew_is_the_one_that_grew_by_and_by(
    trials: Sequence[Trial], before: int
) -> None:
    grown = Tree(trials[:before])
    for trial in trials[before:]:
        grown.add(trial)

    assert seen(grown) == seen(Tree(trials))


@given(histories())
def test_statistics_are_what_their_definitions_say(trials: Sequence[Trial]) -> None:
    tree = Tree(trials)

    fitnesses = [trial.fitness for trial in trials]
    for node in tree.nodes:
        below = [
            other
            for other in tree.nodes
            if node in {other, *other.line()}
            or (other.mate and node in {other.mate, *other.mate.line()})
        ]
        assert node.visits == len(below)
        assert node.value_sum == sum(other.fitness for other in below)
    assert tree.curve == [max(fitnesses[: i + 1]) for i in range(len(fitnesses))]
    assert [-node.rank[0] for node in tree.ranked] == sorted(f for f in fitnesses if f)[::-1]


def test_a_mate_is_a_second_parent() -> None:
    tree = make_tree(make_trial(1, 1.0), make_trial(2, 2.0), make_trial(3, 3.0, parent=1, mate=2))

    assert [child.id for child in tree.children(node_id(2))] == [node_id(3)]
    assert [node.id for node in tree.drafts] == [node_id(1), node_id(2)]
    assert tree.nodes[2].generation == 1


def test_failures_in_a_row_are_counted_up_to_one_that_passed() -> None:
    failed = make_trial(2, 0.0, parent=1)
    tree = make_tree(
        make_trial(1, 1.0), failed, make_trial(3, 0.0, parent=2), make_trial(4, 1.0, parent=3)
    )

    assert [node.failures for node in tree.nodes] == [0, 1, 2, 0]


def test_what_passed_but_was_not_timed_has_not_failed_and_has_no_rank() -> None:
    tree = make_tree(make_trial(1, 0.0, outcome=Passed(times=())))

    assert tree.nodes[0].failures == 0
    assert tree.best is None


def test_a_candidate_tried_twice_is_one_node() -> None:
    assert len(make_tree(make_trial(1, 1.0), make_trial(1, 1.0))) == 1


def test_children_are_counted_by_who_made_them() -> None:
    tree = make_tree(make_trial(1, 1.0), make_trial(2, 1.0, parent=1, origin="two"))

    assert tree.offspring(node_id(1), "two") == 1
    assert tree.offspring(node_id(1), "one") == 0
    assert tree.offspring(None, "one") == 1


def test_who_has_found_the_best_has_earned_most() -> None:
    cheated = Cheated(guard="screen", detail="no")
    tree = make_tree(
        make_trial(1, 2.0, origin="best"),
        make_trial(2, 1.0, origin="passed"),
        make_trial(3, 0.0, origin="cheat", outcome=cheated),
    )

    assert tree.earned["best"].sum == 1
    assert tree.earned["passed"].sum == FOR_PASSING
    assert tree.earned["cheat"].sum == 0
