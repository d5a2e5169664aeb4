import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.expression import ExpressionError, cdiv, evaluate, integer, names_in, next_power_of_2

positive = st.integers(min_value=1, max_value=2**40)
small = st.integers(min_value=1, max_value=2**30)


@given(a=positive, b=positive)
def test_cdiv_is_the_least_count_of_blocks_that_covers(a: int, b: int) -> None:
    blocks = cdiv(a, b)

    assert (blocks - 1) * b < a <= blocks * b


@given(a=st.integers(min_value=0, max_value=2**40))
def test_next_power_of_2_is_the_least_power_that_covers(a: int) -> None:
    power = next_power_of_2(a)

    assert power >= max(a, 1)
    assert power & (power - 1) == 0
    assert power == 1 or power // 2 < a


@given(a=small, b=small, c=small)
def test_arithmetic_means_what_it_means_in_python(a: int, b: int, c: int) -> None:
    names = {"a": a, "b": b, "c": c}

    assert integer("a * b + c // 2 - max(a, 3) % 7", names) == a * b + c // 2 - max(a, 3) % 7


def test_a_list_axis_has_a_total_and_a_largest_size() -> None:
    names = {"values": (3, 0, 5)}

    assert integer("total(values)", names) == 8
    assert integer("largest(values)", names) == 5


def test_a_bare_name_returns_what_it_stands_for() -> None:
    thing = object()

    assert evaluate("x", {"x": thing}) is thing


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "().__class__", "x.real", "x[0]", "lambda: 1", "[1]", "'a'", "2 ** 64",
        "open('f')", "min(a, key=b)", "1 if", "f'{a}'", "a := 3", "(" * 500, "a and b",
    ],
)  # fmt: skip
def test_what_is_not_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"a": 1, "b": 2, "x": 3})


def test_an_unknown_name_is_named_with_the_known_ones() -> None:
    with pytest.raises(ExpressionError, match=r"names cols; known are rows"):
        integer("rows * cols", {"rows": 4})


def test_a_division_by_zero_is_an_expression_error() -> None:
    with pytest.raises(ExpressionError, match="no value"):
        integer("rows // cols", {"rows": 4, "cols": 0})


def test_a_number_that_no_size_can_be_is_refused() -> None:
    with pytest.raises(ExpressionError, match="64 bits"):
        evaluate("a * a", {"a": 2**40})


def test_an_endless_expression_is_refused() -> None:
    with pytest.raises(ExpressionError, match="characters"):
        evaluate("1" + " + 1" * 2000, {})


def test_names_leave_out_functions() -> None:
    assert names_in("cdiv(rows, BLOCK) + max(cols, 1)") == {"rows", "BLOCK", "cols"}
