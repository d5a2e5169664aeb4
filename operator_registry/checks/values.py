"""Whether the values that an input asks for can be drawn."""

from collections.abc import Iterator

from operator_registry.checks.draft import FLOATS, INTEGERS, Draft
from operator_registry.fault import Finding, name_one_of
from operator_registry.spec import (
    IdsFrom,
    InputSpec,
    Lengths,
    Made,
    Normal,
    Offsets,
    OneMoreAxis,
    Permutation,
    RangeAxis,
    SortedUniqueIds,
    SumAxis,
    Uniform,
)

GREATEST = {"int64": 2**63, "int32": 2**31, "int16": 2**15, "int8": 2**7, "uint8": 2**8}
"""One more than the greatest number of each integer dtype."""
_ONE_DIMENSIONAL = (SortedUniqueIds, Permutation, Offsets)


def check_values(draft: Draft) -> Iterator[Finding]:
    """Yield what can't be drawn as an input's values."""
    for name, tensor in draft.inputs:
        yield from _check_dtype(draft, name, tensor)
        yield from _check_range(draft, name, tensor)
        yield from _check_source(draft, name, tensor)
        if isinstance(tensor.values, _ONE_DIMENSIONAL) and len(tensor.shape) != 1:
            message = f"inputs.{name} draws {tensor.values.kind}, which have one axis"
            yield Finding(("inputs", name, "shape"), message, "give it one axis")
    yield from _check_circles(draft)


def _check_dtype(draft: Draft, name: str, tensor: InputSpec) -> Iterator[Finding]:
    dtypes = draft.dtypes_of(tensor)
    kind = tensor.values.kind
    where = ("inputs", name, "values" if "values" in tensor.model_fields_set else "dtype")
    if isinstance(tensor.values, Normal) and dtypes - FLOATS:
        message = f"inputs.{name} draws normal values (the default) for a dtype without fractions"
        remedy = "add `values:` of a kind for integers, such as {kind: uniform, low: 0, high: 100}"
        yield Finding(where, message, remedy)
    elif not isinstance(tensor.values, Normal | Uniform | Made) and dtypes - INTEGERS:
        message = f"inputs.{name} draws {kind}, which are integers, for another dtype"
        yield Finding(where, message, "make it int64, or choose other values")


def _check_range(draft: Draft, name: str, tensor: InputSpec) -> Iterator[Finding]:
    where = ("inputs", name, "values")
    least = min((GREATEST[d] for d in draft.dtypes_of(tensor) & INTEGERS), default=2**63)
    match tensor.values:
        case Uniform(low=low, high=high) if low >= high:
            yield Finding(where, f"inputs.{name} has the empty range {low}..{high}", "raise high")
        case Uniform(high=high) if draft.dtypes_of(tensor) & INTEGERS and high > least:
            yield Finding(
                where, f"inputs.{name} draws up to {high}, beyond its dtype", "lower high"
            )
        case Lengths(low=low, high=high) if low > high:
            yield Finding(where, f"inputs.{name} has the empty range {low}..{high}", "raise high")
        case Lengths(high=high) if high >= least:
            yield Finding(
                where, f"inputs.{name} draws up to {high}, beyond its dtype", "lower high"
            )
        case SortedUniqueIds(below=below):
            if below >= least:
                message = f"inputs.{name} draws ids below {below}, beyond its dtype"
                yield Finding(where, message, "lower below")
            axis = draft.axes.entries.get(tensor.shape[0]) if tensor.shape else None
            if isinstance(axis, RangeAxis) and axis.max > below:
                message = f"inputs.{name} can't hold {axis.max} different ids below {below}"
                yield Finding(where, message, f"raise below to {axis.max} at least")
        case _:
            pass


def _check_source(draft: Draft, name: str, tensor: InputSpec) -> Iterator[Finding]:
    match tensor.values:
        case IdsFrom(table=source):
            key = "table"
        case Offsets(of=source):
            key = "of"
        case _:
            return
    where = ("inputs", name, "values", key)
    if source not in draft.inputs.names:
        message = f"inputs.{name}.values.{key} names no input: {source!r}"
        yield Finding(where, message, name_one_of(source, set(draft.inputs.names) - {name}))
        return
    other = draft.inputs.entries.get(source)
    if other is None:
        return
    if draft.dtypes_of(other) - INTEGERS:
        message = f"inputs.{name}.values.{key} names {source}, whose dtype is no integer"
        yield Finding(where, message, "name an integer input")
    if other.list_over not in {None, tensor.list_over}:
        message = f"inputs.{name}.values.{key} names {source}, a list over {other.list_over}"
        yield Finding(where, message, f"add `list_over: {other.list_over}`, or name a tensor")
    if key == "of":
        yield from _check_offsets_axis(draft, name, tensor, other)


def _check_offsets_axis(
    draft: Draft, name: str, tensor: InputSpec, lengths: InputSpec
) -> Iterator[Finding]:
    axis = draft.axes.entries.get(tensor.shape[0]) if len(tensor.shape) == 1 else None
    if axis is None or (isinstance(axis, OneMoreAxis) and (axis.one_more_than,) == lengths.shape):
        return
    wanted = lengths.shape[0] if lengths.shape else "segments"
    message = f"inputs.{name} holds offsets, one more than {wanted}, but {tensor.shape[0]} is not"
    remedy = f"declare the axis as `{tensor.shape[0]}: {{one_more_than: {wanted}}}`"
    yield Finding(("inputs", name, "shape"), message, remedy)


def _check_circles(draft: Draft) -> Iterator[Finding]:
    needs = {name: _needs(draft, tensor) for name, tensor in draft.inputs}
    for name, first in needs.items():
        reached: set[str] = set()
        waiting = set(first)
        while waiting:
            other = waiting.pop()
            reached.add(other)
            waiting |= needs.get(other, frozenset()) - reached
        if name in reached:
            message = f"inputs.{name} needs itself: its size or values come from it in a circle"
            yield Finding(("inputs", name), message, "break the circle")


def _needs(draft: Draft, tensor: InputSpec) -> frozenset[str]:
    """Return the inputs that must be drawn before this one."""
    found = set()
    for axis in tensor.shape:
        kind = draft.axes.entries.get(axis)
        if isinstance(kind, OneMoreAxis):
            kind = draft.axes.entries.get(kind.one_more_than)
        if isinstance(kind, SumAxis):
            found.add(kind.sum_of)
    match tensor.values:
        case IdsFrom(table=source) | Offsets(of=source):
            found.add(source)
    return frozenset(found)
