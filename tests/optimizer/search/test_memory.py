from optimizer.search.memory import MOST, RESTART, STAGNANT, pick_memory, recall
from optimizer.search.tree import Node, Tree
from tests.optimizer.search.trees import make_tree, make_trial, node_id


def chain(*fitnesses: float) -> Tree:
    """Return a tree in which each trial's parent is the one before."""
    return make_tree(
        *(make_trial(n, f, parent=n - 1 if n else None) for n, f in enumerate(fitnesses))
    )


def shown(node: Node, memory: str) -> list[str]:
    match memory:
        case "ancestors" | "siblings" | "both" | "nothing":
            return [attempt.candidate.id for attempt in recall(node, memory)]
    raise AssertionError(memory)


def test_ancestors_are_those_before_the_node_the_oldest_first() -> None:
    assert shown(chain(1.0, 1.1, 1.2).nodes[2], "ancestors") == [node_id(0), node_id(1)]


def test_what_failed_is_shown_the_failures_back_to_the_last_that_passed() -> None:
    tree = chain(1.0, 1.1, 0.0, 0.0)

    assert shown(tree.nodes[3], "ancestors") == [node_id(1), node_id(2)]


def test_siblings_are_the_nodes_other_children() -> None:
    tree = make_tree(*(make_trial(n, 1.0, parent=0 if n else None) for n in range(3)))

    assert shown(tree.nodes[0], "siblings") == [node_id(1), node_id(2)]


def test_both_are_shown_in_the_order_of_their_trials() -> None:
    tree = make_tree(make_trial(0, 1.0), make_trial(1, 1.1, parent=0), make_trial(2, 1.2, parent=1))

    assert shown(tree.nodes[1], "both") == [node_id(0), node_id(2)]


def test_a_clean_start_shows_nothing() -> None:
    assert shown(chain(1.0, 1.1).nodes[1], "nothing") == []


def test_of_many_siblings_the_fittest_and_the_latest_are_shown() -> None:
    children = [make_trial(n, 1 + 1 / n, parent=0) for n in range(1, 21)]
    tree = make_tree(make_trial(0, 1.0), *children)

    ids = shown(tree.nodes[0], "siblings")

    assert ids == [node_id(n) for n in (1, 2, 3, 4, 17, 18, 19, 20)]
    assert len(ids) == MOST


def test_of_a_long_line_the_nearest_are_shown() -> None:
    ids = shown(chain(*[1.0] * 20).nodes[19], "ancestors")

    assert ids == [node_id(n) for n in range(19 - MOST, 19)]


def test_a_first_child_sees_ancestors_and_a_later_one_siblings_too() -> None:
    tree = chain(1.0, 1.1, 1.2)

    assert pick_memory(tree, tree.nodes[2]) == "ancestors"
    assert pick_memory(tree, tree.nodes[1]) == "both"
    assert pick_memory(tree, tree.nodes[0]) == "siblings"


def test_where_the_search_stagnates_some_children_start_clean() -> None:
    tree = chain(2.0, *[1.0] * (STAGNANT + RESTART))

    memories = []
    for number in range(100, 100 + 2 * RESTART):
        memories.append(pick_memory(tree, tree.nodes[0]))
        tree.add(make_trial(number, 1.0))

    assert memories.count("nothing") == 2


def test_a_repair_never_starts_clean() -> None:
    tree = chain(2.0, *[0.0] * (STAGNANT + RESTART))
    memories = set()
    for number in range(100, 100 + RESTART):
        memories.add(pick_memory(tree, tree.nodes[3]))
        tree.add(make_trial(number, 0.0))

    assert "nothing" not in memories
