import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operator_registry.registry import CATALOG, load_registry, parse_registry
from operator_registry.spec import (
    AttributeSpec,
    InputSpec,
    OperatorSpec,
    RangeAxis,
    Scalar,
    TensorSpec,
    Workload,
)
from operator_registry.workloads import count_ends, draw_workloads, most_elements
from tests.operator_registry.small import FILES

SPECS = [operator.spec for operator in load_registry(CATALOG).operators.values()]
SPECS.append(parse_registry(FILES).operators["cut"].spec)
MAX_ELEMENTS = 100_000


@st.composite
def ranges(draw: st.DrawFn) -> RangeAxis:
    multiple = draw(st.sampled_from([1, 1, 2, 3, 16]))
    low = draw(st.integers(0, 40))
    high = draw(st.integers(low + multiple, 5000))
    return RangeAxis(min=low, max=high, multiple_of=multiple)


def spec_of(rows: RangeAxis, cols: RangeAxis, attribute: AttributeSpec) -> OperatorSpec:
    return OperatorSpec(
        name="any",
        axes={"rows": rows, "cols": cols},
        inputs={"x": InputSpec(shape=("rows", "cols"), dtype="float32")},
        attributes={"a": attribute},
        outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="float32")},
        reference="any",
        workloads=(Workload(name="one", sizes={"rows": 1, "cols": 1}),),
    )


def attributes() -> st.SearchStrategy[AttributeSpec]:
    whole = st.tuples(st.integers(-5, 5), st.integers(5, 50))
    fractions = st.tuples(st.floats(1e-9, 1), st.floats(1, 1e9))
    pairs: st.SearchStrategy[tuple[Scalar, Scalar]] = whole | fractions
    return pairs.map(lambda pair: AttributeSpec(value=pair[0], min=pair[0], max=pair[1]))


@settings(deadline=None)
@given(ranges(), ranges(), attributes(), st.integers(0, 2**63))
def test_drawn_workloads_lie_inside_their_ranges(
    rows: RangeAxis, cols: RangeAxis, attribute: AttributeSpec, seed: int
) -> None:
    spec = spec_of(rows, cols, attribute)

    for workload in draw_workloads(spec, "cpu", seed=seed, count=8, max_elements=10**9):
        for name, axis in (("rows", rows), ("cols", cols)):
            assert axis.min <= workload.sizes[name] <= axis.max
            assert workload.sizes[name] % axis.multiple_of == 0
        assert attribute.min is not None
        assert attribute.max is not None
        assert attribute.min <= workload.attributes["a"] <= attribute.max
        assert type(workload.attributes["a"]) is type(attribute.value)


@settings(deadline=None)
@given(st.sampled_from(SPECS), st.integers(0, 2**63), st.sampled_from(["cpu", "cuda"]))
def test_drawn_inputs_are_bounded(spec: OperatorSpec, seed: int, target: str) -> None:
    drawn = draw_workloads(spec, target, seed=seed, count=12, max_elements=MAX_ELEMENTS)  # type: ignore[arg-type]

    assert all(most_elements(spec, workload.sizes) <= MAX_ELEMENTS for workload in drawn)


@settings(deadline=None)
@given(st.sampled_from(SPECS), st.integers(0, 2**63))
def test_draws_depend_on_the_seed_alone(spec: OperatorSpec, seed: int) -> None:
    once, again = (
        draw_workloads(spec, "cpu", seed=seed, count=5, max_elements=MAX_ELEMENTS) for _ in range(2)
    )

    assert once == again


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_each_axis_is_drawn_at_its_least_size(spec: OperatorSpec) -> None:
    drawn = draw_workloads(spec, "cpu", seed=1, count=20, max_elements=MAX_ELEMENTS)

    for name, axis in spec.axes.items():
        if isinstance(axis, RangeAxis):
            assert min(workload.sizes[name] for workload in drawn) == axis.min


def test_the_greatest_size_is_drawn_where_the_bound_allows_it() -> None:
    spec = spec_of(RangeAxis(max=300), RangeAxis(max=200), AttributeSpec(value=1))

    drawn = draw_workloads(spec, "cpu", seed=1, count=count_ends(spec), max_elements=60_000)

    assert max(workload.sizes["rows"] for workload in drawn) == 300
    assert max(workload.sizes["cols"] for workload in drawn) == 200


def test_a_ranges_true_end_is_drawn_where_its_own_bound_allows_it() -> None:
    spec = spec_of(RangeAxis(max=3000), RangeAxis(max=200), AttributeSpec(value=1))

    drawn = draw_workloads(
        spec, "cpu", seed=1, count=count_ends(spec), max_elements=500, end_elements=3000
    )

    assert max(workload.sizes["rows"] for workload in drawn) == 3000
    assert sum(most_elements(spec, workload.sizes) > 500 for workload in drawn) <= 2


def test_an_axis_that_may_be_empty_is_drawn_at_zero_and_at_one() -> None:
    spec = spec_of(RangeAxis(min=0, max=300), RangeAxis(min=0, max=200), AttributeSpec(value=1))

    drawn = draw_workloads(spec, "cpu", seed=1, count=count_ends(spec), max_elements=10**6)

    for name in ("rows", "cols"):
        assert {0, 1} <= {workload.sizes[name] for workload in drawn}


@settings(deadline=None)
@given(ranges(), ranges(), st.integers(0, 2**63))
def test_each_axis_is_drawn_at_a_size_that_no_block_divides(
    rows: RangeAxis, cols: RangeAxis, seed: int
) -> None:
    spec = spec_of(rows, cols, AttributeSpec(value=1))

    drawn = draw_workloads(spec, "cpu", seed=seed, count=count_ends(spec), max_elements=10**9)

    for name, axis in (("rows", rows), ("cols", cols)):
        units = [workload.sizes[name] // axis.multiple_of for workload in drawn]
        if axis.max // axis.multiple_of >= 150 and axis.min <= 40:
            assert any(unit >= 100 and math.gcd(unit, 210) == 1 for unit in units)


def test_many_drawn_sizes_are_odd() -> None:
    spec = spec_of(RangeAxis(max=4096), RangeAxis(max=4096), AttributeSpec(value=1))

    drawn = draw_workloads(spec, "cpu", seed=1, count=100, max_elements=10**9)

    assert sum(workload.sizes["rows"] % 2 for workload in drawn) > 40


def test_dtypes_are_those_of_the_targets_public_workloads() -> None:
    spec = load_registry(CATALOG).operators["rms_norm"].spec

    on_cpu, on_cuda = (
        {w.dtypes["T"] for w in draw_workloads(spec, t, seed=1, count=9, max_elements=10**6)}
        for t in ("cpu", "cuda")
    )

    assert on_cpu == {"float32"}
    assert on_cuda == {"float32", "bfloat16"}


def test_an_attribute_without_a_range_keeps_its_value() -> None:
    spec = spec_of(RangeAxis(max=9), RangeAxis(max=9), AttributeSpec(value=True))

    assert draw_workloads(spec, "cpu", seed=1, count=1, max_elements=100)[0].attributes == {}


def test_no_sizes_are_drawn_twice_where_there_are_others() -> None:
    spec = spec_of(RangeAxis(min=1, max=4096), RangeAxis(min=1, max=1), AttributeSpec(value=1))

    drawn = draw_workloads(spec, "cpu", seed=3, count=24, max_elements=1 << 14)

    assert len({tuple(w.sizes.values()) for w in drawn}) == 24
