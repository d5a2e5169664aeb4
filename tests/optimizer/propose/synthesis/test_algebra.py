"""Sizes, places and sums: laws that all else stands on."""

from itertools import product as every

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.expression import evaluate
from optimizer.propose.synthesis.affine import Affine, Index, along, constant, row_major
from optimizer.propose.synthesis.extent import ONE, Extent, make_extent
from optimizer.propose.synthesis.graph import Graph, GraphInput, GraphOutput, Kind, Node, Ref
from optimizer.propose.synthesis.lower import joined, number_at, split
from optimizer.propose.synthesis.rename import rename_expression
from optimizer.propose.synthesis.unify import Trace, unify
from optimizer.propose.synthesis.value import Apply, Position, Symbol, Value

NAMES = ("a", "b", "c")
VALUES = {"a": 3, "b": 5, "c": 7}
extents = st.recursive(
    st.one_of(st.sampled_from(NAMES), st.integers(-4, 4).map(str)),
    lambda parts: st.tuples(parts, st.sampled_from("+-*"), parts).map(
        lambda three: f"({three[0]} {three[1]} {three[2]})"
    ),
    max_leaves=6,
)


@given(extents)
def test_an_extent_has_the_value_of_the_expression_that_it_was_made_from(text: str) -> None:
    assert evaluate(str(make_extent(text)), VALUES) == evaluate(text, VALUES)


@given(extents, extents)
def test_equal_polynomials_are_equal_values(a: str, b: str) -> None:
    one, other = make_extent(a), make_extent(b)

    assert one * other == other * one
    assert (one + other) - other == one
    assert hash(one * other) == hash(other * one)


@given(extents)
def test_what_is_multiplied_can_be_divided_again(text: str) -> None:
    size = make_extent(text)

    assert (size * make_extent("a * b")).divide(make_extent("a * b")) == size


def test_a_quotient_with_a_remainder_is_none() -> None:
    assert make_extent("a * b + c").divide(make_extent("b")) is None


@pytest.mark.parametrize("shape", [("a", "b"), ("a", "b", "c"), ("b * c",), ("2", "a")])
def test_splitting_a_place_undoes_row_major(shape: tuple[str, ...]) -> None:
    sizes = tuple(map(make_extent, shape))
    index = tuple(along(Index(f"i{axis}", size)) for axis, size in enumerate(sizes))

    assert split(row_major(index, sizes), sizes) == index


@given(st.permutations([("a", "b", "c"), ("a", "b * c"), ("a * b", "c"), ("a * b * c",)]))
def test_views_of_views_lead_back_to_the_same_element(shapes: list[tuple[str, ...]]) -> None:
    place = along(Index("i", make_extent("a * b * c")))

    through = place
    for shape in shapes:
        sizes = tuple(map(make_extent, shape))
        through = joined(row_major(split(through, sizes), sizes))

    assert through == place


def test_a_place_is_split_rightly_at_every_element() -> None:
    sizes = (make_extent("a"), make_extent("b"))
    flat = Index("i", make_extent("a * b"))
    first, second = split(along(flat), sizes)

    for number in range(15):
        assert (_at(first, number), _at(second, number)) == divmod(number, 5)


def _at(place: Affine, number: int) -> int:
    total = place.offset.number or 0
    for atom, stride in place.terms:
        total += int(stride.number or 0) * (
            number if isinstance(atom, Index) else _of(atom, number)
        )
    return total


def _of(value: Value, number: int) -> int:
    match value:
        case Apply(op=op, args=(Position(place=place), Symbol(text=text))):
            size = int(str(evaluate(text, VALUES)))
            return _at(place, number) // size if op == "floordiv" else _at(place, number) % size
        case _:
            raise TypeError(value)


def test_a_constant_place_is_a_number() -> None:
    assert getattr(number_at(constant(4)), "value", None) == 4


def test_expressions_are_renamed_but_not_their_functions() -> None:
    renamed = rename_expression("max(max_, min(row, a * row))", {"row": "row_", "max": "other"})

    assert renamed == "max(max_, min(row_, a * row_))"


def _trace(rows: int, cols: int, number: int, op: str = "aten.mul.Tensor") -> Trace:
    shape = (str(rows), str(cols))
    kind = Kind(shape=shape, dtype="float32")
    node = Node(name="y", op=op, args=(Ref(node="x"), number), results=(kind,))
    graph = Graph(
        operator="case",
        form="case",
        inputs={"x": GraphInput(shape=shape, dtype="float32")},
        nodes=(node,),
        outputs={"y": GraphOutput(ref=Ref(node="y"))},
    )
    return Trace(graph, {"rows": rows, "cols": cols})


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        (lambda r, c: c, "cols"),
        (lambda r, c: c - 1, "cols - 1"),
        (lambda r, c: r * c, "rows * cols"),
        (lambda r, c: r + c, "rows + cols"),
        (lambda r, c: 3 * r, "3 * rows"),
        (lambda r, c: -c, "-cols"),
    ],
)
def test_numbers_that_follow_sizes_become_expressions(formula: object, wanted: str) -> None:
    assert callable(formula)
    sizes = [(5, 7), (8, 11), (13, 17)]

    graph = unify([_trace(r, c, formula(r, c)) for r, c in sizes])

    assert getattr(graph.nodes[0].args[1], "text", "") == wanted


def test_numbers_that_stay_are_constants() -> None:
    graph = unify([_trace(5, 7, 7), _trace(8, 11, 7)])

    assert graph.nodes[0].args[1] == 7


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_extents_print_as_plain_products(names: list[str]) -> None:
    size = ONE
    for name in names:
        size *= make_extent(name)

    assert str(size) == " * ".join(sorted(names))
    assert size == Extent(((tuple(sorted(names)), 1),))


def test_every_pair_of_axes_multiplies_in_any_order() -> None:
    for a, b in every(NAMES, repeat=2):
        assert make_extent(f"{a} * {b}") == make_extent(f"{b} * {a}")
