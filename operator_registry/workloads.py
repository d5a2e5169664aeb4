"""Held-out workloads, drawn from the ranges that an operator's spec states (no torch)."""

import math
import random
from collections.abc import Iterator, Mapping
from typing import Literal

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
_Place = Literal["low", "high", "one", "odd"]
"""Where in its range a size must lie."""
_BLOCK = 128
_SMALL_PRIMES = 2 * 3 * 5 * 7
_TRIES = 8
"""How often sizes are drawn until they are new; a narrow range may hold no others."""
_SEARCHED = 16
"""So far from any number there is one without a small prime factor."""


def draw_workloads(  # noqa: PLR0913 - what a draw depends on
    spec: OperatorSpec,
    target: TargetName,
    *,
    seed: int,
    count: int,
    max_elements: int,
    end_elements: int = 0,
) -> tuple[Workload, ...]:
    """Return `count` workloads drawn from the axes' and attributes' ranges.

    The first ones show each axis at each end of its range, at 1 where it admits that, and at a
    size that no block divides; the rest are log-uniform. No sizes come twice, nor do public ones,
    as long as there are others. Sizes are bounded so that the inputs hold
    at most `max_elements` together; where even the smallest sizes hold more, they are the smallest.
    Dtypes are those that public workloads of the target use.

    Args:
        spec: The operator.
        target: Where it is measured.
        seed: Decides all.
        count: How many workloads.
        max_elements: How many elements the inputs may hold.
        end_elements: How many they may hold where an axis is at its greatest size, if more: a
            range's true end is shown where that bound lets it.
    """
    # Not for secrets: the seed itself is what stays secret.
    rng = random.Random(seed)  # noqa: S311
    dtypes = [w.dtypes for w in spec.workloads_on(target) or spec.workloads]
    ends = list(_ends(spec))
    rng.shuffle(ends)
    drawn: list[Workload] = []
    seen = {frozenset(workload.sizes.items()) for workload in spec.workloads_on(target)}
    for number in range(count):
        forced = dict([ends[number]]) if number < len(ends) else {}
        most = max(max_elements, end_elements) if "high" in forced.values() else max_elements
        for _ in range(_TRIES):
            sizes = _draw_sizes(spec, rng, forced=forced, max_elements=most)
            if frozenset(sizes.items()) not in seen:
                break
        seen.add(frozenset(sizes.items()))
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


def count_ends(spec: OperatorSpec) -> int:
    """Return how many workloads it takes to show each axis at each place that must be seen."""
    return sum(1 for _ in _ends(spec))


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


def _ends(spec: OperatorSpec) -> Iterator[tuple[str, _Place]]:
    for name, axis in spec.axes.items():
        if isinstance(axis, RangeAxis):
            yield name, "low"
            yield name, "high"
            if _lowest(axis) == 0 and axis.multiple_of == 1:
                yield name, "one"
            yield name, "odd"


def _draw_sizes(
    spec: OperatorSpec, rng: random.Random, *, forced: Mapping[str, _Place], max_elements: int
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


def _draw_size(axis: RangeAxis, greatest: int, rng: random.Random, end: _Place | None) -> int:
    low = _lowest(axis)
    if end is None and rng.random() < END_SHARE:
        end = "low" if rng.random() < 0.5 else "high"  # noqa: PLR2004 - even odds
    match end:
        case "low":
            return low
        case "high":
            return greatest
        case "one":
            return min(1, greatest)
        case "odd":
            return _draw_undivided(axis, greatest, rng)
        case None:
            pass
    size = round(math.exp(rng.uniform(math.log(max(1, low)), math.log(max(1, greatest)))))
    if rng.random() < ODD_SHARE:
        size |= 1
    size -= size % axis.multiple_of
    return min(max(size, low), greatest)


def _draw_undivided(axis: RangeAxis, greatest: int, rng: random.Random) -> int:
    """Return a size of which no block is a divisor, nor a multiple; the nearest there is.

    In units of what it must be a multiple of, it has no small prime factor, and where the range
    allows it is greater than a row of common blocks.
    """
    unit = axis.multiple_of
    low, high = _lowest(axis) // unit, greatest // unit
    wanted = rng.randint(max(low, min(_BLOCK, high)), max(low, min(8 * _BLOCK, high)))
    near = range(max(low, wanted - _SEARCHED), min(high, wanted + _SEARCHED) + 1)
    coprime = [size for size in near if size > 1 and math.gcd(size, _SMALL_PRIMES) == 1]
    return unit * min(coprime or [min(max(wanted, low), high)], key=lambda s: abs(s - wanted))


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
