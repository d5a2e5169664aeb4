"""Dtypes, attributes and output shapes of one call, as its arguments show them (no torch)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operator_registry.spec import AttributeSpec, OneMoreAxis, OperatorSpec, Scalar
from optimizer.errors import CallError
from optimizer.expression import Size

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """What is known of a call before it runs."""

    sizes: Mapping[str, Size]
    dtypes: Mapping[str, str]
    attributes: Mapping[str, Scalar]


def dtypes_of(spec: OperatorSpec, dtypes: Sequence[str | Sequence[str]]) -> dict[str, str]:
    """Return the dtype of each variable of the spec.

    Args:
        spec: The operator.
        dtypes: One for each input; for a list of tensors, one for each member.

    Raises:
        CallError: An input has another dtype than the spec says.
    """
    bound: dict[str, str] = {}
    for (name, tensor), given in zip(spec.inputs.items(), dtypes, strict=True):
        for dtype in (given,) if isinstance(given, str) else given:
            admitted = tuple(spec.dtypes.get(tensor.dtype, (tensor.dtype,)))
            if dtype in admitted and tensor.dtype in spec.dtypes:
                admitted = (bound.setdefault(tensor.dtype, dtype),)
            if dtype not in admitted:
                msg = f"{name} is {dtype}; {spec.name} takes {' or '.join(admitted)} here"
                raise CallError(msg)
    return bound


def attributes_of(spec: OperatorSpec, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return every attribute, the given ones in the kind (bool, int, float) of the spec's value.

    Raises:
        CallError: No such attribute, or a value that does not fit its kind.
    """
    if unknown := sorted(given.keys() - spec.attributes.keys()):
        known = ", ".join(spec.attributes) or "none"
        msg = f"{spec.name} has no attribute {', '.join(unknown)}; it has {known}"
        raise CallError(msg)
    return {name: _fit(name, a, given.get(name, a.value)) for name, a in spec.attributes.items()}


def output_shape(spec: OperatorSpec, name: str, sizes: Mapping[str, Size]) -> Shape | list[Shape]:
    """Return the shape of an output, or one for each member of a list.

    Raises:
        CallError: An axis of the output has no size.
    """
    tensor = spec.outputs[name]
    along = [_size(spec, axis, sizes, name) for axis in tensor.shape]
    if tensor.list_over is None:
        return tuple(_of_member(size, None, name) for size in along)
    members = _of_member(_size(spec, tensor.list_over, sizes, name), None, name)
    return [tuple(_of_member(size, m, name) for size in along) for m in range(members)]


def _size(spec: OperatorSpec, axis: str, sizes: Mapping[str, Size], output: str) -> Size:
    kind = spec.axes.get(axis)
    if axis not in sizes and isinstance(kind, OneMoreAxis):
        return _of_member(_size(spec, kind.one_more_than, sizes, output), None, output) + 1
    if axis not in sizes:
        msg = f"output {output}: no input, attribute or step of the plan tells the size of {axis}"
        raise CallError(msg)
    return sizes[axis]


def _of_member(size: Size, member: int | None, output: str) -> int:
    if isinstance(size, int):
        return size
    if member is None or member >= len(size):
        msg = f"output {output}: an axis has {len(size)} sizes, one for each member of a list"
        raise CallError(msg)
    return size[member]


def _fit(name: str, attribute: AttributeSpec, value: Scalar) -> Scalar:
    kind = type(attribute.value)
    try:
        fitted = kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"attribute {name} is {value!r}, wanted is a {kind.__name__}"
        raise CallError(msg) from error
    if kind is not float and fitted != value:
        msg = f"attribute {name} is {value!r}, wanted is a {kind.__name__}"
        raise CallError(msg)
    return fitted
