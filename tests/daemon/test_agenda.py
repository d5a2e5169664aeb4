from hypothesis import given
from hypothesis import strategies as st

from daemon.agenda import in_order, worth_per_s
from operator_registry.diff import Goal


def make_goal(operator: str, share: float = 0.0) -> Goal:
    return Goal(
        operator=operator, hardware="h200", reasons=("operator added",), share_of_time=share
    )


def names(*goals: Goal, kernels: tuple[tuple[str, str], ...] = ()) -> list[str]:
    return [g.operator for g in in_order(goals, kernels=kernels, budget_s=60)]


def test_what_a_model_spends_more_time_on_comes_first() -> None:
    assert names(make_goal("a", 0.1), make_goal("b", 0.3), make_goal("c")) == ["b", "a", "c"]


def test_what_has_no_kernel_yet_comes_before_an_equal_that_has_one() -> None:
    found = names(make_goal("a", 0.1), make_goal("b", 0.1), kernels=(("a", "h200"),))

    assert found == ["b", "a"]


def test_equals_come_by_name() -> None:
    assert names(make_goal("b"), make_goal("a")) == ["a", "b"]


@given(st.floats(0, 1), st.floats(1, 1e6), st.booleans())
def test_a_cheaper_search_is_worth_more_a_second(share: float, budget_s: float, has: bool) -> None:  # noqa: FBT001 - hypothesis fills it
    cheap = worth_per_s(share, has_kernel=has, budget_s=budget_s)

    assert cheap > worth_per_s(share, has_kernel=has, budget_s=2 * budget_s) > 0
