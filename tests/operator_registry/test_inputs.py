import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from operator_registry.inputs import Value, load_reference, make_inputs, resolve_sizes
from operator_registry.registry import CATALOG, Operator, load_registry, parse_registry
from operator_registry.spec import (
    DType,
    IdsFrom,
    InputSpec,
    Made,
    OperatorSpec,
    Permutation,
    RangeAxis,
    SortedUniqueIds,
    TensorSpec,
    Uniform,
    Values,
    Workload,
)
from operator_registry.workloads import draw_workloads
from tests.operator_registry.small import FILES

CUT = parse_registry(FILES).operators["cut"]
TRUNCATE = load_registry(CATALOG).operators["batch_event_truncate"]
OPERATORS = [*load_registry(CATALOG).operators.values(), CUT]
SEEDS = st.integers(0, 2**63)


def operator_of(source: str = "", **inputs: InputSpec) -> Operator:
    spec = OperatorSpec(
        name="any",
        axes={"rows": RangeAxis(min=0, max=9999), "entries": RangeAxis(min=0, max=9999)},
        inputs=inputs,
        outputs={"y": TensorSpec(shape=("rows",), dtype="int64")},
        reference="any",
        workloads=(Workload(name="one", sizes={"rows": 400, "entries": 300}),),
    )
    return Operator(spec=spec, source=source)


def drawn(values: Values, dtype: str = "int64", *, seed: int = 1, source: str = "") -> Tensor:
    operator = operator_of(source, x=InputSpec(shape=("rows",), dtype=dtype, values=values))
    (value,) = make_inputs(operator, operator.spec.workloads[0], seed=seed)
    assert isinstance(value, Tensor)
    return value


def flat(inputs: tuple[Value, ...]) -> list[Tensor]:
    return [t for value in inputs for t in ([value] if isinstance(value, Tensor) else value)]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(OPERATORS), SEEDS)
def test_inputs_depend_on_the_seed_alone(operator: Operator, seed: int) -> None:
    (workload,) = draw_workloads(operator.spec, "cpu", seed=seed, count=1, max_elements=20_000)

    once, again = (make_inputs(operator, workload, seed=seed) for _ in range(2))

    assert all(torch.equal(a, b) for a, b in zip(flat(once), flat(again), strict=True))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(OPERATORS), SEEDS)
def test_inputs_have_the_shapes_that_the_spec_states(operator: Operator, seed: int) -> None:
    (workload,) = draw_workloads(operator.spec, "cpu", seed=seed, count=1, max_elements=20_000)

    sizes = resolve_sizes(operator.spec, make_inputs(operator, workload, seed=seed))

    assert workload.sizes.items() <= sizes.items()


def test_another_seed_gives_other_values() -> None:
    assert not torch.equal(drawn(Uniform(high=1e6), seed=1), drawn(Uniform(high=1e6), seed=2))


def test_a_scale_multiplies_fractions_and_leaves_integers() -> None:
    workload = CUT.spec.workloads[0]

    lengths, offsets, x = make_inputs(CUT, workload, seed=1)
    same_lengths, same_offsets, scaled = make_inputs(CUT, workload, seed=1, scale=8.0)

    assert isinstance(x, Tensor)
    torch.testing.assert_close(scaled, x * 8.0)
    assert torch.equal(torch.stack(flat((lengths,))), torch.stack(flat((same_lengths,))))
    assert torch.equal(torch.stack(flat((offsets,))), torch.stack(flat((same_offsets,))))


def test_offsets_are_the_running_sum_of_their_lengths() -> None:
    lengths, offsets, x = flat(make_inputs(CUT, CUT.spec.workloads[0], seed=1))

    assert offsets[0] == 0
    assert torch.equal(offsets.diff(), lengths)
    assert offsets[-1] == x.shape[0]


def test_sorted_unique_ids_increase_strictly() -> None:
    ids = drawn(SortedUniqueIds(below=410))

    assert bool((ids.diff() > 0).all())
    assert int(ids[0]) >= 0
    assert int(ids[-1]) < 410


def test_a_permutation_holds_each_index_once() -> None:
    assert torch.equal(drawn(Permutation()).sort().values, torch.arange(400))


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool", "float16", "float64"])
def test_uniform_values_stay_in_their_range(dtype: str) -> None:
    values = drawn(Uniform(low=0, high=3), dtype)

    assert values.dtype == getattr(torch, dtype)
    assert int(values.min()) >= 0
    assert float(values.max()) <= (2 if dtype.endswith(("8", "64")) and "f" not in dtype else 3)


@pytest.mark.parametrize(
    ("entries", "dtype", "below"),
    [(0, "int64", 9), (1, "int64", 9), (300, "int32", 1000), (300, "int64", 2**63 - 1)],
)
def test_ids_hit_the_table_as_often_as_the_spec_says(
    entries: int, dtype: DType, below: int
) -> None:
    operator = operator_of(
        ids=InputSpec(shape=("rows",), dtype=dtype, values=IdsFrom(table="t", hit_share=0.75)),
        t=InputSpec(shape=("entries",), dtype=dtype, values=SortedUniqueIds(below=below)),
    )
    workload = Workload(name="one", sizes={"rows": 9999, "entries": entries})

    ids, table = flat(make_inputs(operator, workload, seed=1))

    hit_share = torch.isin(ids, table).float().mean().item()
    assert hit_share == pytest.approx(0.75 if entries else 0.0, abs=0.03)


def test_members_of_a_list_have_sizes_of_their_own() -> None:
    inputs = make_inputs(TRUNCATE, TRUNCATE.spec.workloads[0], seed=1)
    _, inner, values = inputs

    sizes = resolve_sizes(TRUNCATE.spec, inputs)

    assert sizes["elements"] == tuple(int(lengths.sum()) for lengths in inner)
    assert sizes["elements"] == tuple(member.shape[0] for member in values)
    assert len(set(sizes["elements"])) > 1
    assert sizes["events"] == inner[0].shape[0]


def test_a_function_beside_the_reference_makes_values() -> None:
    source = """
import torch
def countdown(generator, sizes, dtype):
    return torch.arange(sizes["rows"], 0, -1, dtype=dtype)
"""

    assert torch.equal(drawn(Made(function="countdown"), source=source), torch.arange(400, 0, -1))


def test_a_function_that_makes_another_shape_is_told_so() -> None:
    source = "import torch\ndef one(generator, sizes, dtype):\n    return torch.ones(1)\n"

    with pytest.raises(ValueError, match=r"any: one made \(1,\) torch.float32, wanted \(400,\)"):
        drawn(Made(function="one"), source=source)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b, c: (a, b), r"takes 3 inputs \(lengths, offsets, x\), got 2"),
        (lambda a, b, c: ([a], b, c), "lengths must be a tensor, got list"),
        (lambda a, b, c: (a[None], b, c), r"lengths has the shape \(1, 64\), wanted \[segments\]"),
    ],
)
def test_inputs_unlike_the_spec_are_refused(change: object, message: str) -> None:
    assert callable(change)
    inputs = make_inputs(CUT, CUT.spec.workloads[0], seed=1)

    with pytest.raises(ValueError, match=message):
        resolve_sizes(CUT.spec, change(*inputs))


def test_members_that_disagree_are_refused() -> None:
    outer, inner, values = make_inputs(TRUNCATE, TRUNCATE.spec.workloads[0], seed=1)
    assert isinstance(inner, list)

    with pytest.raises(ValueError, match=r"inner_lengths has \d+ along events, which is \d+ else"):
        resolve_sizes(TRUNCATE.spec, (outer, [inner[0], inner[1][1:], *inner[2:]], values))
    with pytest.raises(ValueError, match="values has 8 along features, which is 9 elsewhere"):
        resolve_sizes(TRUNCATE.spec, (outer, inner, values[1:]))


def test_a_reference_that_fails_to_load_leaves_nothing_behind() -> None:
    operator = operator_of("import no_such_module")

    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module"):
            load_reference(operator)
