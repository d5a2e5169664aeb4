"""Whether an operator's precision policy names what there is, and can be met."""

from collections.abc import Iterator

from operator_registry.checks.draft import FLOATS, Draft
from operator_registry.fault import Finding, name_one_of
from operator_registry.spec import Normal

LARGEST = {"float64": 1.7e308, "float32": 3.4e38, "bfloat16": 3.3e38, "float16": 65504.0}
"""The greatest magnitude of each floating dtype, rounded down."""


def check_precision(draft: Draft) -> Iterator[Finding]:
    """Yield what disagrees between the precision policy and the tensors."""
    shown = {
        axis
        for _, tensor in draft.outputs
        for axis in (*tensor.shape, *([tensor.list_over] if tensor.list_over else []))
    }
    for place, axis in enumerate(draft.precision.row_axes):
        where = ("precision", "row_axes", place)
        if axis not in shown and draft.outputs.known:
            message = f"precision.row_axes names {axis!r}, which is no axis of an output"
            yield Finding(where, message, name_one_of(axis, shown))
    scales = draft.precision.input_scales
    if not scales or not all(scale > 0 for scale in scales):
        message = "precision.input_scales must hold factors above 0"
        yield Finding(("precision", "input_scales"), message, "write [1.0] at least")
    yield from _check_strides(draft)
    yield from _check_greatest(draft)


def _check_strides(draft: Draft) -> Iterator[Finding]:
    for place, name in enumerate(draft.precision.strides):
        where = ("precision", "strides", place)
        tensor = draft.inputs.entries.get(name)
        if name not in draft.inputs.names:
            if draft.inputs.known:
                message = f"precision.strides names no input: {name!r}"
                yield Finding(where, message, name_one_of(name, draft.inputs.names))
        elif tensor is not None and not tensor.shape:
            message = f"precision.strides names {name}, a scalar, which has no strides"
            yield Finding(where, message, "remove it")


def _check_greatest(draft: Draft) -> Iterator[Finding]:
    greatest = draft.precision.domain.greatest
    if greatest is None:
        return
    where = ("precision", "domain", "greatest")
    normal = [(n, t, t.values) for n, t in draft.inputs if isinstance(t.values, Normal)]
    if not normal and set(draft.inputs.names) == set(draft.inputs.entries) and draft.inputs.known:
        message = "precision.domain.greatest bounds normal values, and no input draws such"
        yield Finding(where, message, "remove it")
    for name, tensor, values in normal:
        drawn = max(draft.precision.input_scales, default=1.0) * (abs(values.mean) + values.std)
        least = min((LARGEST[d] for d in draft.dtypes_of(tensor) & FLOATS), default=greatest)
        if greatest < drawn:
            message = (
                f"precision.domain.greatest is {greatest:g}, but {name} draws around {drawn:g}"
            )
            yield Finding(where, message, "raise it, or lower input_scales")
        elif greatest > least:
            message = f"precision.domain.greatest is {greatest:g}, more than {name} can hold"
            yield Finding(where, message, f"write {least:g} at most")
