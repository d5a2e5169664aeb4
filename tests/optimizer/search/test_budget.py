from hypothesis import given
from hypothesis import strategies as st

from optimizer.search.budget import Budget, Pace

SECONDS = st.floats(0.1, 1e5)


def test_half_is_kept_for_the_confirming_run() -> None:
    assert Budget(total_s=400).search_left_s(0) == 200


def test_at_least_ninety_seconds_are_kept() -> None:
    assert Budget(total_s=130).search_left_s(0) == 40


@given(SECONDS)
def test_the_search_keeps_a_quarter_of_however_little(total_s: float) -> None:
    assert Budget(total_s=total_s).search_left_s(0) >= total_s * 0.2499


@given(SECONDS, SECONDS)
def test_no_time_left_is_ever_negative(total_s: float, spent_s: float) -> None:
    budget = Budget(total_s=total_s)

    assert 0 <= budget.search_left_s(spent_s) <= budget.left_s(spent_s)


@given(SECONDS, st.integers(1, 100), SECONDS)
def test_a_batch_overruns_the_time_left_by_one_trial_at_most(
    left_s: float, trials: int, seconds: float
) -> None:
    pace = Pace().after(trials, seconds)

    assert (pace.batch(left_s, at_most=8) - 1) * seconds / trials <= left_s


def test_no_batch_is_begun_without_time() -> None:
    assert Pace().batch(0, at_most=8) == 0


def test_the_last_batch_sets_the_pace() -> None:
    pace = Pace().after(3, 60).after(3, 3).after(0, 0.1)

    assert pace.batch(4, at_most=8) == 4
