from optimizer.search.policies.greedy import Greedy
from optimizer.search.policy import Expansion, Growth
from optimizer.store import Trial
from tests.makers import make_candidate, make_evaluation


def make_trial(number: int, fitness: float) -> Trial:
    candidate = make_candidate(str(number))
    evaluation = make_evaluation(candidate)
    return Trial(
        number=number, candidate=candidate, evaluation=evaluation, fitness=fitness, spent_s=1
    )


SLOW, FAST = make_trial(1, 1.0), make_trial(2, 3.0)
DRAFTED = frozenset({Expansion(None, 0), Expansion(None, 1)})


def test_drafts_come_first() -> None:
    assert Greedy().pick(Growth([SLOW, FAST], 2)) == Expansion(None, 0)


def test_the_best_node_grows_once_the_drafts_are_done() -> None:
    growth = Growth([SLOW, FAST], 2, exhausted=DRAFTED)

    assert Greedy().pick(growth) == Expansion(FAST.candidate.id, 0)


def test_the_proposers_take_turns() -> None:
    first = Expansion(FAST.candidate.id, 0)
    growth = Growth([SLOW, FAST], 2, taken={first: 3}, exhausted=DRAFTED)

    assert Greedy().pick(growth) == Expansion(FAST.candidate.id, 1)


def test_the_next_best_grows_when_the_best_has_nothing_left() -> None:
    done = {Expansion(FAST.candidate.id, place) for place in range(2)}
    growth = Growth([SLOW, FAST], 2, exhausted=DRAFTED | done)

    assert Greedy().pick(growth) == Expansion(SLOW.candidate.id, 0)


def test_a_node_that_did_not_pass_never_grows() -> None:
    growth = Growth([make_trial(1, 0.0)], 2, exhausted=DRAFTED)

    assert Greedy().pick(growth) is None


def test_drafts_are_not_endless() -> None:
    growth = Growth([FAST], 1, taken={Expansion(None, 0): 64})

    assert Greedy().pick(growth) == Expansion(FAST.candidate.id, 0)
