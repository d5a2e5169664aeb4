from hypothesis import given
from hypothesis import strategies as st

from operator_registry.spec import (
    AttributeSpec,
    InputSpec,
    OneMoreAxis,
    OperatorSpec,
    RangeAxis,
    SumAxis,
    TensorSpec,
    Workload,
)
from optimizer.likeness import find_renaming, greatest_elements, is_of_size, likeness
from optimizer.propose.synthesis.rename import rename_spec
from tests.makers import OPERATOR

SPEC = OperatorSpec(
    name="pool",
    axes={
        "rows": RangeAxis(max=64),
        "bounds": OneMoreAxis(one_more_than="rows"),
        "items": SumAxis(sum_of="lengths"),
        "cols": RangeAxis(max=4096),
    },
    dtypes={"T": ("float32",)},
    inputs={
        "table": InputSpec(shape=("items", "cols"), dtype="T"),
        "lengths": InputSpec(shape=("rows",), dtype="int64"),
        "offsets": InputSpec(shape=("bounds",), dtype="int64"),
    },
    attributes={"factor": AttributeSpec(value=2.0)},
    outputs={"pooled": TensorSpec(shape=("rows", "cols"), dtype="T")},
    reference="pool",
    workloads=(
        Workload(name="w0", sizes={"rows": 8, "cols": 1024}, dtypes={"T": "float32"}),
        Workload(name="w1", sizes={"rows": 64, "cols": 4096}, dtypes={"T": "float32"}),
    ),
)
NAMES = [*SPEC.axes, *SPEC.inputs, *SPEC.outputs, *SPEC.attributes]
RENAMINGS = st.permutations([*NAMES, "a", "b", "c", "d"]).map(
    lambda names: dict(zip(NAMES, names, strict=False))
)


@given(RENAMINGS)
def test_an_operator_with_other_names_is_alike_and_its_names_are_found(
    renaming: dict[str, str],
) -> None:
    renamed = rename_spec(SPEC, renaming)

    assert likeness(renamed) == likeness(SPEC)
    assert find_renaming(SPEC, renamed) == {old: new for old, new in renaming.items() if old != new}


def test_other_sizes_and_values_change_nothing() -> None:
    axes = {**SPEC.axes, "cols": RangeAxis(min=8, max=99)}
    other = SPEC.model_copy(
        update={"axes": axes, "attributes": {"factor": AttributeSpec(value=3.0)}, "name": "other"}
    )

    assert likeness(other) == likeness(SPEC)


def test_other_ranks_dtypes_or_attributes_are_not_alike() -> None:
    table = SPEC.inputs["table"]
    others: tuple[dict[str, object], ...] = (
        {"inputs": {**SPEC.inputs, "table": table.model_copy(update={"shape": ("items",)})}},
        {"inputs": {**SPEC.inputs, "table": table.model_copy(update={"dtype": "int32"})}},
        {"inputs": {**SPEC.inputs, "table": table.model_copy(update={"shape": ("rows", "cols")})}},
        {"attributes": {}},
        {"attributes": {"factor": AttributeSpec(value=2)}},
        {"axes": {**SPEC.axes, "bounds": RangeAxis(max=65)}},
    )

    assert all(likeness(SPEC.model_copy(update=other)) != likeness(SPEC) for other in others)
    assert find_renaming(SPEC, OPERATOR.spec) is None


def test_the_size_is_that_of_the_greatest_tensor() -> None:
    assert greatest_elements(SPEC, "cpu") == 64 * 4096


def test_sizes_within_a_factor_of_16_are_one() -> None:
    def of(rows: int) -> OperatorSpec:
        workload = OPERATOR.spec.workloads[0].model_copy(update={"sizes": {"rows": rows}})
        return OPERATOR.spec.model_copy(update={"workloads": (workload,)})

    assert is_of_size(of(1024), of(1024 * 15), "cpu")
    assert is_of_size(of(1024 * 15), of(1024), "cpu")
    assert not is_of_size(of(1024), of(1024 * 16), "cpu")
