"""What a plan needs at given sizes: argument types, constants, bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operator_registry.spec import OperatorSpec, Scalar
from optimizer.binding import Array, Binding, Number, instances, launched
from optimizer.errors import PlanError
from optimizer.expression import Size
from optimizer.plan import Buffer, Launch, Plan
from optimizer.shapes import Setting
from optimizer.targets.target import Instance
from tests.optimizer.plans import ADD, HEADS, POSITIVE, PRODUCT, RMS

RAGGED: dict[str, Size] = {"features": 2, "rows": 3, "elements": (9, 5)}


def bind_one(
    spec: OperatorSpec, plan: Plan, *, sizes: dict[str, Size], **attributes: Scalar
) -> Instance:
    chosen = {"BLOCK": 128, "WARPS": 8}
    dtypes = {"T": "bfloat16"}
    return instances(spec, plan, chosen, sizes=sizes, dtypes=dtypes, attributes=attributes)[0]


def test_triton_takes_small_sizes_as_i32_and_floats_as_fp32() -> None:
    found = bind_one(RMS.spec, RMS.triton, sizes={"rows": 7, "cols": 64}, eps=1e-6)

    assert found.types == ("*bf16", "*bf16", "*bf16", "i32", "i32", "fp32")


@given(rows=st.integers(0, 2**40))
def test_a_size_is_i64_in_triton_exactly_where_it_does_not_fit_i32(rows: int) -> None:
    found = bind_one(ADD.spec, ADD.triton, sizes={"rows": rows})

    assert (found.types[-1] == "i64") == (rows > 2**31 - 1)


@given(rows=st.integers(0, 2**40))
def test_a_size_is_marked_divisible_exactly_where_it_is_a_multiple_of_16(rows: int) -> None:
    found = bind_one(ADD.spec, ADD.triton, sizes={"rows": rows})

    assert found.divisible == (True, True, True, rows % 16 == 0)


def test_cpp_takes_every_size_as_i64_and_every_other_number_as_fp64() -> None:
    found = bind_one(RMS.spec, RMS.cpp, sizes={"rows": 7, "cols": 64}, eps=1e-6)

    assert found.types[-3:] == ("i64", "i64", "fp64")


def test_cpp_has_tunables_and_dtype_variables_as_constants() -> None:
    found = bind_one(ADD.spec, ADD.cpp, sizes={"rows": 7})

    assert found.constants == (("BLOCK", 128), ("T", "bfloat16"), ("WARPS", 8))


def test_triton_has_only_the_constants_of_the_launch() -> None:
    found = bind_one(RMS.spec, RMS.triton, sizes={"rows": 7, "cols": 100}, eps=1e-6)

    assert (found.constants, found.warps) == ((("BLOCK", 128),), 8)


def test_attributes_are_taken_as_a_call_takes_them() -> None:
    given, default = (
        bind_one(RMS.spec, RMS.cpp, sizes={"rows": 7, "cols": 64}, **attributes)
        for attributes in ({"eps": 1}, {})
    )

    assert given == default


def test_a_dtype_variable_that_no_input_shows_is_no_constant() -> None:
    found = instances(
        ADD.spec, ADD.cpp, {}, sizes={"rows": 1}, dtypes={"T": "float32", "U": "int64"},
        attributes={},
    )  # fmt: skip

    assert found[0].constants == (("T", "float32"),)


def test_equal_sizes_need_one_form_and_other_constants_another() -> None:
    one, same, other = (
        bind_one(RMS.spec, RMS.triton, sizes={"rows": rows, "cols": cols}, eps=1e-6)
        for rows, cols in ((3, 100), (5, 100), (3, 200))
    )

    assert (one.symbol == same.symbol, one.symbol == other.symbol) == (True, False)


def test_a_list_of_tensors_is_a_table_of_addresses() -> None:
    cpp = bind_one(HEADS.spec, HEADS.cpp, sizes=RAGGED, most=2)
    triton = bind_one(HEADS.spec, HEADS.triton, sizes=RAGGED, most=2)

    assert (cpp.types[:2], triton.types[:2]) == (("**i64", "**fp32"), ("*i64", "*i64"))


def test_sizes_of_a_lists_members_are_an_array() -> None:
    binding = Binding(HEADS.spec, HEADS.cpp, {}, Setting(RAGGED, {}, {"most": 2}))

    assert binding.argument("elements") == Array((9, 5))


def test_a_total_over_a_lists_members_is_a_number() -> None:
    binding = Binding(HEADS.spec, HEADS.cpp, {}, Setting(RAGGED, {}, {"most": 2}))

    assert binding.argument("total(elements) * most") == Number(28)


def test_an_argument_that_the_data_decide_is_typed_by_its_bound() -> None:
    def type_at(rows: int) -> str:
        found = instances(
            POSITIVE.spec, POSITIVE.triton, {}, sizes={"rows": rows}, dtypes={}, attributes={}
        )
        return found[-1].types[-1]

    assert (type_at(100), type_at(2**31)) == ("i32", "i64")


def test_a_grid_that_the_data_decide_is_known_after_the_read_only() -> None:
    binding = Binding(POSITIVE.spec, POSITIVE.triton, {}, Setting({"rows": 1000}, {}, {}))
    launch = POSITIVE.triton.steps[-1]
    assert isinstance(launch, Launch)

    bound = binding.launch(launch)

    assert bound is not None
    assert bound.grid is None
    assert binding.scope_after({"found": 300}).grid(launch) == (3,)


def test_a_launch_whose_condition_is_false_needs_no_kernel() -> None:
    step = Launch(kernel="add", arguments=("x",), when="rows > 0")
    plan = Plan(language="cpp", steps=(step,))

    found = instances(ADD.spec, plan, {}, sizes={"rows": 0}, dtypes={"T": "float32"}, attributes={})

    assert found == ()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            {"steps": (Launch(kernel="add", arguments=("rows / 2",)),)},
            "launch of add: argument 'rows / 2'",
        ),
        ({"steps": (Launch(kernel="add", arguments=(), grid=("-1",)),)}, "grid of add is"),
        ({"steps": (Launch(kernel="add", arguments=(), grid=("rows",) * 4),)}, "1 to 3 sizes"),
        (
            {"buffers": {"x": Buffer(shape=(), dtype="T")}},
            "buffer x: an input or output has that name",
        ),
        ({"buffers": {"b": Buffer(shape=(), dtype="U")}}, "b is of dtype U, which no input binds"),
        ({"let": {"half": "cols // 2"}}, "let half: 'cols // 2' names cols"),
    ],
)
def test_a_fault_of_a_plan_names_its_place(plan: dict[str, object], message: str) -> None:
    steps = (Launch(kernel="add", arguments=("x", "y", "z", "rows")),)
    whole = Plan.model_validate({"language": "cpp", "steps": steps, **plan})

    with pytest.raises(PlanError, match=message):
        bind_one(ADD.spec, whole, sizes={"rows": 7})


def test_a_constant_can_not_depend_on_what_the_data_decide() -> None:
    step = Launch(kernel="positive", arguments=(), constants={"N": "found"})
    plan = Plan(language="triton", steps=(*POSITIVE.triton.steps[:2], step))

    with pytest.raises(PlanError, match="constant N: 'found' must be known before the call"):
        instances(POSITIVE.spec, plan, {}, sizes={"rows": 3}, dtypes={}, attributes={})


def test_kernels_and_library_functions_of_a_plan_are_told_once_each() -> None:
    assert launched(POSITIVE.triton) == ("positive", "double_all")
    assert launched(PRODUCT.triton) == ("aten::mm.out", "aten::add.out")
