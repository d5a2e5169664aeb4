"""A call's arguments, looked at before anything runs: for every host side alike."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from operator_registry.inputs import resolve_sizes
from operator_registry.spec import OperatorSpec, Scalar
from optimizer.errors import CallError, PlanError
from optimizer.expression import Size
from optimizer.list_output import ListOutput, MemberLayout
from optimizer.scope import speaking_of
from optimizer.shapes import Setting, attributes_of, dtypes_of, output_shape

Value = Tensor | list[Tensor]
"""An input or an output."""


def call_key(inputs: Sequence[Value], attributes: Mapping[str, Scalar]) -> object:
    """Return what decides the preparation of a call; made at each call, so kept short.

    Raises:
        CallError: An input is neither a tensor nor a list of tensors.
    """
    parts: list[object] = []
    try:
        for value in inputs:
            if isinstance(value, Tensor):
                parts += (value.shape, value.dtype, value.get_device())
            else:
                parts.append(tuple((m.shape, m.dtype, m.get_device()) for m in value))
    except (AttributeError, TypeError) as error:
        msg = f"inputs are tensors or lists of tensors, not {type(value).__name__}"
        raise CallError(msg) from error
    if attributes:
        parts.append(tuple(attributes.items()))
    return tuple(parts)


def find_setting(
    spec: OperatorSpec,
    inputs: Sequence[Value],
    attributes: Mapping[str, Scalar],
    *,
    device: torch.device,
) -> Setting:
    """Return the sizes, dtypes and attributes of a call.

    Raises:
        CallError: The arguments are not what the operator takes, or lie on another device.
    """
    filled = attributes_of(spec, attributes)
    try:
        sizes = resolve_sizes(spec, inputs, filled)
    except ValueError as error:
        raise CallError(*error.args) from error
    _check_devices(spec, inputs, device)
    return Setting(sizes, dtypes_of(spec, [_dtypes(value) for value in inputs]), filled)


def refuse_gradients(inputs: Sequence[Value]) -> None:
    """Refuse inputs that want a backward pass, while gradients are recorded.

    Raises:
        CallError: An input requires a gradient.
    """
    for value in inputs:
        for tensor in (value,) if isinstance(value, Tensor) else value:
            if tensor.requires_grad:
                msg = "the kernel has no backward pass; call it under torch.no_grad(), or detach()"
                raise CallError(msg)


def output_maker(
    spec: OperatorSpec,
    name: str,
    *,
    sizes: Mapping[str, Size],
    dtype: torch.dtype,
    make: Callable[..., Tensor],
) -> Callable[[], Value | ListOutput]:
    """Return what makes an output of a call, whole: one allocation, for a list as well.

    Args:
        spec: The operator.
        name: The output.
        sizes: The size of each axis, or its upper bound where the data decide it.
        dtype: The output's.
        make: Like `torch.empty`, its device bound already.

    Raises:
        PlanError: An axis has no size.
    """
    with speaking_of("the plan"):
        shape = output_shape(spec, name, sizes)
    make = partial(make, dtype=dtype)
    if isinstance(shape, tuple):
        return partial(make, shape)
    members = MemberLayout(shape, dtype)
    return lambda: ListOutput(members, make((members.elements,)))


def check_size(axis: str, size: Size, bound: Size, *, where: str) -> None:
    """Refuse a size that the data decided, where it is out of its range.

    Raises:
        PlanError: It is negative or above its bound, or there are too many or too few.
    """
    sizes = size if isinstance(size, tuple) else (size,)
    bounds = bound if isinstance(bound, tuple) else (bound,)
    if len(sizes) != len(bounds) or not all(
        0 <= s <= b for s, b in zip(sizes, bounds, strict=True)
    ):
        msg = f"{where} holds {size} for the size of {axis}, wanted 0 to {bound}"
        raise PlanError(msg)


def _check_devices(spec: OperatorSpec, inputs: Sequence[Value], device: torch.device) -> None:
    for name, value in zip(spec.inputs, inputs, strict=True):
        for tensor in (value,) if isinstance(value, Tensor) else value:
            if tensor.device != device:
                msg = f"{name} is on {tensor.device}; this kernel runs on {device}"
                raise CallError(msg)


def _dtypes(value: Value) -> str | list[str]:
    if isinstance(value, Tensor):
        return str(value.dtype).removeprefix("torch.")
    return [str(member.dtype).removeprefix("torch.") for member in value]
