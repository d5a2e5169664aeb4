"""What a call's arguments tell: dtypes, attributes, shapes of outputs."""

import pytest

from operator_registry.spec import AttributeSpec, Scalar
from optimizer.errors import CallError
from optimizer.shapes import attributes_of, dtypes_of, output_shape
from tests.optimizer.plans import ADD, HEADS, RMS


def test_a_dtype_variable_is_bound_by_the_inputs() -> None:
    assert dtypes_of(ADD.spec, ["bfloat16", "bfloat16"]) == {"T": "bfloat16"}


def test_each_member_of_a_list_has_the_specs_dtype() -> None:
    with pytest.raises(CallError, match="values is float64; heads takes float32"):
        dtypes_of(HEADS.spec, [["int64", "int64"], ["float32", "float64"]])


def test_an_attribute_not_given_has_the_specs_value() -> None:
    assert attributes_of(RMS.spec, {}) == {"eps": 1e-6}


@pytest.mark.parametrize(
    ("kind", "given", "wanted"), [(1.0, 2, 2.0), (1, 2.0, 2), (True, 0, False)]
)
def test_an_attribute_takes_the_kind_of_the_specs_value(
    kind: Scalar, given: Scalar, wanted: Scalar
) -> None:
    spec = RMS.spec.model_copy(update={"attributes": {"eps": AttributeSpec(value=kind)}})

    found = attributes_of(spec, {"eps": given})["eps"]

    assert (found, type(found)) == (wanted, type(kind))


@pytest.mark.parametrize(("kind", "given"), [(1, 2.5), (1, float("inf")), (True, 2)])
def test_an_attribute_that_would_change_by_that_is_refused(kind: Scalar, given: Scalar) -> None:
    spec = RMS.spec.model_copy(update={"attributes": {"eps": AttributeSpec(value=kind)}})

    with pytest.raises(CallError, match="wanted is a"):
        attributes_of(spec, {"eps": given})


def test_a_list_output_has_a_shape_for_each_member() -> None:
    sizes: dict[str, int | tuple[int, ...]] = {"features": 2, "rows": 3, "kept_elements": (9, 5)}

    assert output_shape(HEADS.spec, "kept", sizes) == [(9,), (5,)]
    assert output_shape(HEADS.spec, "kept_lengths", sizes) == [(3,), (3,)]
