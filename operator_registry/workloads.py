"""Held-out workloads, drawn from the ranges that an operator's spec states (no torch)."""

import math
import random
from collections.abc import Iterator, Mapping

from operator_registry.spec import (
    AttributeSpec,
    InputSpec,
    Lengths,
    OneMoreAxis,
    OperatorSpec,
    RangeAxis,
    Scalar,
    SumAxis,
    TargetName,
    Uniform,
    Workload,
)

ODD_SHARE = 0.5
"""How many of the drawn sizes are made odd where the range allows it: kernels trip on those."""
END_SHARE = 0.15
"""How many of the drawn sizes and attributes are an end of their range."""


def draw_workloads(
    spec: OperatorSpec, target: TargetName, *, seed: int, count: int, max_elements: int
) -> tuple[Workload, ...]:
    """Return `count` workloads drawn from the axes' and attributes' ranges.

    The first ones show each axis at each end of its range, the rest are log-uniform. Sizes are
    bounded so that the inputs hold at most `max_elements` together; where even the smallest sizes
    hold more, they are the smallest. Dtypes are those that public workloads of the target use.
    """
    # Not for secrets: the seed itself is what stays secret.
    rng = random.Random(seed)  # noqa: S311
    dtypes = [w.dtypes for w in spec.workloads_on(target) or spec.workloads]
    ends = list(_ends(spec))
    rng.shuffle(ends)
    drawn = []
    for number in range(count):
        forced = dict([ends[number]]) if number < len(ends) else {}
        sizes = _draw_sizes(spec, rng, forced=forced, max_elements=max_elements)
        attributes = {
            name: _draw_attribute(attribute, rng)
            for name, attribute in spec.attributes.items()
            if attribute.min is not None and attribute.max is not None
        }
        drawn.append(
            Workload(
                name=f"drawn-{number:03d}",
                sizes=sizes,
                dtypes=dtypes[number % len(dtypes)],
                attributes=attributes,
            )
        )
    return tuple(drawn)


def most_elements(spec: OperatorSpec, sizes: Mapping[str, int]) -> int:
    """Return the most elements that the inputs can hold together at these sizes.

    Sizes that the data decide are taken at the upper bound that the values' description gives.
    """
    return sum(
        math.prod(_bound(spec, axis, sizes) for axis in tensor.shape)
        * (_bound(spec, tensor.list_over, sizes) if tensor.list_over else 1)
        for tensor in spec.inputs.values()
    )


def _bound(spec: OperatorSpec, name: str, sizes: Mapping[str, int]) -> int:
    match spec.axes[name]:
        case RangeAxis():
            return sizes[name]
        case OneMoreAxis(one_more_than=other):
            return _bound(spec, other, sizes) + 1
        case SumAxis(sum_of=tensor):
            source = spec.inputs[tensor]
            elements = math.prod(_bound(spec, axis, sizes) for axis in source.shape)
            return elements * _greatest_element(source)


def _greatest_element(tensor: InputSpec) -> int:
    match tensor.values:
        case Lengths(high=high):
            return high
        case Uniform(high=high):
            return max(1, math.ceil(high))
        case _:
            return 1


def _ends(spec: OperatorSpec) -> Iterator[tuple[str, str]]:
    for name, axis in spec.axes.items():
        if isinstance(axis, RangeAxis):
            yield name, "low"
            yield name, "high"


def _draw_sizes(
    spec: OperatorSpec, rng: random.Random, *, forced: Mapping[str, str], max_elements: int
) -> dict[str, int]:
    """Return a size for each range axis, one after another within what the others leave."""
    ranges = {name: axis for name, axis in spec.axes.items() if isinstance(axis, RangeAxis)}
    # The other axes wait at their least size but one, so that an empty axis leaves no false room.
    sizes = {name: max(_lowest(axis), axis.multiple_of) for name, axis in ranges.items()}
    order = sorted(ranges, key=lambda name: (name not in forced, rng.random()))
    for name in order:
        axis = ranges[name]
        greatest = _greatest_size(spec, name, axis, sizes, max_elements)
        sizes[name] = _draw_size(axis, greatest, rng, forced.get(name))
    return {name: sizes[name] for name in ranges}


def _lowest(axis: RangeAxis) -> int:
    return -(-axis.min // axis.multiple_of) * axis.multiple_of


def _greatest_size(
    spec: OperatorSpec, name: str, axis: RangeAxis, sizes: Mapping[str, int], max_elements: int
) -> int:
    """Return the greatest size within the range and the bound; the least one at least."""
    low, high = _lowest(axis) // axis.multiple_of, axis.max // axis.multiple_of
    while low < high:
        middle = (low + high + 1) // 2
        held = most_elements(spec, {**sizes, name: middle * axis.multiple_of})
        low, high = (middle, high) if held <= max_elements else (low, middle - 1)
    return low * axis.multiple_of


def _draw_size(axis: RangeAxis, greatest: int, rng: random.Random, end: str | None) -> int:
    low = _lowest(axis)
    if end is None and rng.random() < END_SHARE:
        end = rng.choice(("low", "high"))
    if end is not None:
        return low if end == "low" else greatest
    size = round(math.exp(rng.uniform(math.log(max(1, low)), math.log(max(1, greatest)))))
    if rng.random() < ODD_SHARE:
        size |= 1
    size -= size % axis.multiple_of
    return min(max(size, low), greatest)


def _draw_attribute(attribute: AttributeSpec, rng: random.Random) -> Scalar:
    low, high = attribute.min, attribute.max
    if low is None or high is None:
        return attribute.value
    if rng.random() < END_SHARE:
        return rng.choice((low, high))
    if isinstance(attribute.value, bool):
        return rng.choice((False, True))
    if isinstance(attribute.value, int):
        return rng.randint(int(low), int(high))
    if low > 0:
        return min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high)
    return rng.uniform(low, high)
