"""A landscape replayed: what the runner tells, and how each way of searching goes through it."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.errors import RunnerError
from optimizer.landscapes.courses import Course, RandomCourse, SearchCourse, race
from optimizer.landscapes.landscape import Landscape
from optimizer.landscapes.replay import Drafter, ReplayRunner
from optimizer.landscapes.tpe import TpeCourse
from optimizer.propose.proposer import Attempt, NodeContext
from optimizer.search.policies import POLICIES
from optimizer.search.policy import Policy
from tests.makers import make_candidate, make_evaluation
from tests.optimizer.landscapes.synthetic import (
    PRODUCT,
    WIDE,
    bowl,
    cliff,
    make_landscape,
    rugged,
    tiled_product,
)

TINY = {"A": (1, 2, 4, 8), "B": (8, 16, 32)}
OTHER = {"B": (8, 16, 32), "C": (1, 2)}
LANDSCAPE = make_landscape(
    "tiny",
    (TINY, cliff(rugged(bowl(A=2, B=16), by=0.1), most=64, names=("A", "B"))),
    (OTHER, bowl(B=8, C=1)),
)


def start(make: Callable[[int], Policy], landscape: Landscape, seed: int) -> Course:
    return SearchCourse(landscape, make(seed), seed)


COURSES: dict[str, Callable[[Landscape, int], Course]] = {
    "points": RandomCourse,
    "tpe": TpeCourse,
    **{name: partial(start, make) for name, make in POLICIES.items()},
}


def walk(course: Course, *, most: int = 1 << 30) -> list[int]:
    places: list[int] = []
    while len(places) < most and (place := course.ask()) is not None:
        places.append(place)
        course.tell(place)
    return places


def test_the_runner_tells_what_was_recorded() -> None:
    told: list[object] = []

    done = ReplayRunner(LANDSCAPE).evaluate(LANDSCAPE.candidates, on_done=told.append)

    assert [e.outcome for e in done] == [LANDSCAPE.outcome(p) for p in range(LANDSCAPE.size)]
    assert {e.outcome.kind for e in done} == {"passed", "failed"}
    assert told == done


def test_what_is_no_point_of_the_landscape_is_a_fault_of_the_caller() -> None:
    with pytest.raises(RunnerError, match="no point of tiny"):
        ReplayRunner(LANDSCAPE).evaluate([make_candidate("stranger")])


def test_a_recording_confirms_nothing() -> None:
    with pytest.raises(RunnerError, match="nothing can be confirmed"):
        ReplayRunner(LANDSCAPE).confirm(
            LANDSCAPE.candidates[0], deadline_s=1.0, alpha=0.1, handed_back=()
        )


def test_each_structure_has_a_draft_and_few_have_several() -> None:
    drafts = Drafter(LANDSCAPE, seed=3).propose(NodeContext(), 99)

    assert len(drafts) == 4
    assert {draft.note for draft in drafts} == {"s0", "s1"}
    assert all(draft.id in LANDSCAPE.places for draft in drafts)


def test_a_node_may_change_its_structure_with_the_choices_that_fit() -> None:
    node = LANDSCAPE.candidates[4]  # A=2, B=16

    children = Drafter(LANDSCAPE, seed=3).propose(NodeContext(node), 99)

    assert children
    assert {child.chosen["B"] for child in children} == {16}
    assert {child.parent for child in children} == {node.id}
    assert all(child.id in LANDSCAPE.places for child in children)


def test_the_drafter_crosses_nothing() -> None:
    mate = Attempt(LANDSCAPE.candidates[1], make_evaluation(LANDSCAPE.candidates[1]).outcome, 1.0)

    assert not Drafter(LANDSCAPE, seed=3).propose(
        NodeContext(LANDSCAPE.candidates[0], mate=mate), 9
    )


@pytest.mark.parametrize("name", COURSES)
def test_a_course_takes_no_point_twice_and_goes_the_same_way_again(name: str) -> None:
    first, again, other = (walk(COURSES[name](LANDSCAPE, seed), most=9) for seed in (1, 1, 2))

    assert len(set(first)) == len(first) <= LANDSCAPE.size
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", ["points", "tpe"])
def test_a_course_over_points_takes_all_of_them(name: str) -> None:
    assert sorted(walk(COURSES[name](LANDSCAPE, 0))) == list(range(LANDSCAPE.size))


def test_a_race_ends_with_the_first_point_within_5_percent() -> None:
    course = RandomCourse(LANDSCAPE, 5)
    order = walk(RandomCourse(LANDSCAPE, 5))

    count = race(LANDSCAPE, course)

    assert LANDSCAPE.is_near(order[count - 1])
    assert not any(LANDSCAPE.is_near(place) for place in order[: count - 1])


def test_a_course_that_gives_up_counts_as_many_as_there_are() -> None:
    class GivesUp:
        def ask(self) -> int | None:
            return None

        def tell(self, place: int) -> None: ...

    assert race(LANDSCAPE, GivesUp()) == LANDSCAPE.size


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_random_search_takes_what_the_share_of_good_points_says(seed: int) -> None:
    """Of n points with k good ones it takes (n + 1) / (k + 1) on average."""
    landscape = make_landscape("p", (TINY, rugged(bowl(A=2), by=1.0)), seed=seed)
    good = sum(landscape.is_near(place) for place in range(landscape.size))

    counts = [race(landscape, RandomCourse(landscape, s)) for s in range(200)]

    assert sum(counts) / 200 == pytest.approx((landscape.size + 1) / (good + 1), rel=0.35)


@pytest.mark.drill
@pytest.mark.parametrize("policy", ["greedy", "mcts", "evolutionary"])
def test_a_policy_beats_random_search_where_neighbours_are_alike(policy: str) -> None:
    landscapes = [
        make_landscape("smooth", (WIDE, rugged(bowl(BLOCK=64, TILE=128, WARPS=4), by=0.05))),
        make_landscape("product", (PRODUCT, tiled_product(2048, 2048, 2048))),
    ]

    for landscape in landscapes:
        searched = [race(landscape, COURSES[policy](landscape, seed)) for seed in range(5)]
        drawn = [race(landscape, RandomCourse(landscape, seed)) for seed in range(5)]
        assert sum(searched) < sum(drawn)
