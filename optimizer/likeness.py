"""Which operators are alike: those whose specs differ in names, sizes and values alone (pure).

What they compute is not compared, so a kernel of an operator that is alike may well be wrong for
this one; the judge finds out by one trial.
"""

import json
import math
from collections.abc import Iterator, Mapping

from operator_registry.record import digest
from operator_registry.spec import (
    OneMoreAxis,
    OperatorSpec,
    SumAxis,
    TargetName,
    TensorSpec,
)

SAME_SIZE = 16.0
"""Two operators are of one size where the greatest tensor of one is less than so many times that of
the other."""


def likeness(spec: OperatorSpec) -> str:
    """Return a hash that is equal for operators that are alike."""
    places = {name: place for place, name in enumerate(_axes(spec))}
    tensors = {name: place for place, name in enumerate((*spec.inputs, *spec.outputs))}
    form = {
        "axes": [_axis(spec, axis, places, tensors) for axis in places],
        "inputs": [_tensor(tensor, places) for tensor in spec.inputs.values()],
        "outputs": [_tensor(tensor, places) for tensor in spec.outputs.values()],
        # Kernels know a dtype by the variable's name, so that one must be the same.
        "dtypes": sorted(spec.dtypes),
        "attributes": [type(a.value).__name__ for a in spec.attributes.values()],
    }
    return digest(json.dumps(form))


def find_renaming(theirs: OperatorSpec, ours: OperatorSpec) -> Mapping[str, str] | None:
    """Return our name for each of their axes, tensors and attributes; None where they differ.

    A name stays where it means the same here, in two versions of one operator for example.
    """
    if likeness(theirs) != likeness(ours):
        return None
    return {
        their: our for their, our in zip(_names(theirs), _names(ours), strict=True) if their != our
    }


def greatest_elements(spec: OperatorSpec, target: TargetName) -> int:
    """Return the elements of the greatest tensor in any public workload.

    A size that the data decide counts as 1.
    """
    tensors = (*spec.inputs.values(), *spec.outputs.values())
    return max(
        (
            math.prod(workload.sizes.get(axis, 1) for axis in tensor.shape)
            for workload in spec.workloads_on(target)
            for tensor in tensors
        ),
        default=1,
    )


def is_of_size(theirs: OperatorSpec, ours: OperatorSpec, target: TargetName) -> bool:
    """Return whether the public workloads of both are of one size."""
    one, other = greatest_elements(theirs, target), greatest_elements(ours, target)
    return max(one, other) < SAME_SIZE * max(1, min(one, other))


def _names(spec: OperatorSpec) -> Iterator[str]:
    yield from _axes(spec)
    yield from spec.inputs
    yield from spec.outputs
    yield from spec.attributes


def _axes(spec: OperatorSpec) -> list[str]:
    """Return the axes in the order in which the tensors name them, then the others."""
    named = [axis for t in (*spec.inputs.values(), *spec.outputs.values()) for axis in t.shape]
    return list(dict.fromkeys((*named, *spec.axes)))


def _tensor(tensor: TensorSpec, places: Mapping[str, int]) -> object:
    over = tensor.list_over
    shape = [places[axis] for axis in tensor.shape]
    return [shape, tensor.dtype, None if over is None else places[over]]


def _axis(
    spec: OperatorSpec, name: str, places: Mapping[str, int], tensors: Mapping[str, int]
) -> object:
    match spec.axes[name]:
        case SumAxis(sum_of=tensor, at_most=bound):
            return ["sum", tensors[tensor], None if bound is None else places[bound]]
        case OneMoreAxis(one_more_than=other):
            return ["one more", places[other]]
        case _:
            return ["range"]
