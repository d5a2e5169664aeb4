from optimizer.search.offers import Expansion, Offers
from optimizer.search.policies.greedy import Greedy
from tests.optimizer.search.trees import drafted, make_tree, make_trial, node_id, pick_all

SLOW, FAST = make_trial(1, 1.0), make_trial(2, 3.0)


def test_drafts_come_first() -> None:
    assert Greedy().pick(make_tree(SLOW, FAST), Offers(("one",))) == Expansion(None, "one")


def test_the_proposers_take_turns_at_drafts() -> None:
    tree = make_tree(make_trial(1, 1.0, origin="one"))

    assert Greedy().pick(tree, Offers(("one", "two"))) == Expansion(None, "two")


def test_candidates_under_way_count_as_drafts() -> None:
    offers = Offers(("one", "two"), under_way=[SLOW.candidate])

    assert Greedy().pick(make_tree(), offers) == Expansion(None, "two")
    assert Greedy(drafts=1).pick(make_tree(), offers) is None


def test_the_best_node_grows_once_the_drafts_are_done() -> None:
    assert Greedy().pick(make_tree(SLOW, FAST), drafted("one")) == Expansion(node_id(2), "one")


def test_the_next_best_grows_when_the_best_has_nothing_left() -> None:
    picks = list(pick_all(Greedy(), make_tree(SLOW, FAST), drafted("one", "two")))

    assert [pick.parent for pick in picks] == [node_id(2)] * 2 + [node_id(1)] * 2
    assert {pick.proposer for pick in picks[:2]} == {"one", "two"}


def test_a_node_that_did_not_pass_never_grows_where_nobody_repairs() -> None:
    assert Greedy().pick(make_tree(make_trial(1, 0.0)), drafted("one")) is None


def test_drafts_are_not_endless() -> None:
    pick = Greedy(drafts=2).pick(make_tree(SLOW, FAST), Offers(("one",)))

    assert pick == Expansion(node_id(2), "one")


def test_who_rests_is_not_asked() -> None:
    offers = Offers(("one", "two"), resting=frozenset({"one"}))

    assert Greedy().pick(make_tree(), offers) == Expansion(None, "two")


def test_the_latest_failure_is_repaired_by_who_made_it() -> None:
    tree = make_tree(FAST, make_trial(3, 0.0), make_trial(4, 0.0), make_trial(5, 0.0, origin="two"))

    pick = Greedy().pick(tree, Offers(("one", "two"), repairers=("one",)))

    assert pick == Expansion(node_id(4), "one")


def test_a_failure_is_repaired_down_to_the_debug_depth() -> None:
    first, second = make_trial(3, 0.0), make_trial(4, 0.0, parent=3)
    offers = drafted("one", repairers=("one",))

    assert Greedy(debug_depth=2).pick(make_tree(FAST, first, second), offers) == Expansion(
        node_id(4), "one"
    )
    offers = drafted("one", repairers=("one",))
    assert Greedy(debug_depth=1).pick(make_tree(FAST, first, second), offers) == Expansion(
        node_id(2), "one"
    )
