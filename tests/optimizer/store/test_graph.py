"""The database's answers about a search's graph beside those of a plain walk in memory."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimizer.store import Store, Trial
from tests.makers import OPERATOR, make_candidate, make_evaluation

Shape = list[tuple[int | None, int | None]]
"""For each node its parent and its mate, by number; -1 for a candidate of no search."""
SIZE = 12


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    made: Shape = []
    for number in range(draw(st.integers(1, SIZE))):
        earlier = st.none() | st.integers(-1, number - 1)
        made.append((draw(earlier), draw(earlier)))
    return made


def grow(store: Store, shape: Shape, *, goal_key: str = "g") -> tuple[int, list[Trial]]:
    search = store.open_search(
        goal_key, operator="scale", hardware="cpu", operator_digest=OPERATOR.digest, now=0
    )
    trials: list[Trial] = []
    elsewhere = make_candidate("elsewhere").id
    for number, parents in enumerate(shape):
        parent, mate = (
            None if p is None else elsewhere if p < 0 else trials[p].candidate.id for p in parents
        )
        candidate = make_candidate(str(number)).model_copy(update={"parent": parent, "mate": mate})
        trials.append(
            Trial(
                number=number + 1,
                candidate=candidate,
                evaluation=make_evaluation(candidate),
                fitness=float(number % 5),
                spent_s=0.0,
            )
        )
        store.record(search, trials[-1], now=0)
    return search, trials


def parents_of(trial: Trial) -> set[str]:
    return {p for p in (trial.candidate.parent, trial.candidate.mate) if p is not None}


def reach(trials: Sequence[Trial], starts: set[str]) -> set[str]:
    """Return all that is reached upwards from some candidates."""
    known = {trial.candidate.id: trial for trial in trials}
    found: set[str] = set()
    open_ones = set(starts)
    while open_ones:
        found |= open_ones
        above = {p for one in open_ones if one in known for p in parents_of(known[one])}
        open_ones = above - found
    return found


@given(shape=shapes())
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_relatives_are_those_of_a_plain_walk(store: Store, shape: Shape) -> None:
    # The candidates of all searches here are the same; what they were made from is not.
    search, trials = grow(store, shape, goal_key=str(shape)[:200])
    for trial in trials:
        mine = trial.candidate.id
        above = reach(trials, parents_of(trial))

        assert store.ancestors(search, mine) == tuple(
            t for t in reversed(trials) if t.candidate.id in above
        )
        assert store.siblings(search, mine) == tuple(
            t for t in trials if t != trial and parents_of(t) & parents_of(trial)
        )
        assert store.subtree(search, mine) == tuple(
            t for t in trials if mine in reach(trials, {t.candidate.id})
        )


def test_a_search_without_nodes_has_no_best(store: Store) -> None:
    search, _ = grow(store, [])

    assert store.best(search) is None
    assert store.best_of(OPERATOR.digest, "cpu") is None


def test_the_best_is_the_fittest_and_the_first_of_equals(store: Store) -> None:
    first, trials = grow(store, [(None, None)] * 10)
    grow(store, [(None, None)] * 5, goal_key="later")

    assert store.best(first) == trials[4]
    assert store.best_of(OPERATOR.digest, "cpu") == trials[4]
    assert store.best_of(OPERATOR.digest, "h200") is None


def test_what_was_never_timed_is_no_best(store: Store) -> None:
    search, _ = grow(store, [(None, None)])

    assert store.best(search) is None
