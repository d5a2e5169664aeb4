"""Which cases are to be made: sizes, seeds, scales and distributions (pure)."""

import math
import random
from collections.abc import Iterator, Sequence

from operator_registry.spec import Distribution, OperatorSpec, TargetName, Workload
from operator_registry.workloads import count_ends, draw_workloads, most_elements
from optimizer.evaluate.cases import POOLED_ELEMENTS, Request
from optimizer.evaluate.guards import Guard, Guards

SEED_BITS = 48
_LEAST_DRAWS, _MOST_DRAWS = 2, 8
"""Two at least: with one draw, an output kept from the first run would serve in the second."""


def distributions_under(guards: Guards) -> tuple[Distribution, ...]:
    """Return the distributions that values come from, the most telling ones first."""
    hostile: tuple[Distribution, ...] = ("hostile",) if guards.up(Guard.HOSTILE) else ()
    others: tuple[Distribution, ...] = ("skewed", "flat") if guards.up(Guard.DISTRIBUTIONS) else ()
    return (*hostile, *others, "stated")


def draw_requests(  # noqa: PLR0913 - what a draw depends on
    spec: OperatorSpec,
    target: TargetName,
    *,
    seed: int,
    count: int,
    most: int,
    most_at_end: int = 0,
    distributions: Sequence[Distribution],
) -> list[Request]:
    """Return requests at held-out sizes, the small ones first.

    The largest size is drawn from each distribution but the usual one: a small case may hold
    nothing of what tells them apart. Distributions and scales go round over the other sizes.

    Args:
        spec: The operator.
        target: Where it is measured.
        seed: Decides sizes and values.
        count: How many sizes.
        most: How many elements the inputs of one may hold.
        most_at_end: How many, if more, where an axis is at its greatest size.
        distributions: Those that values come from, the usual one last.
    """
    rng = random.Random(seed)  # noqa: S311 - the seed is what stays secret
    drawn = sorted(
        draw_workloads(
            spec,
            target,
            seed=rng.getrandbits(SEED_BITS),
            count=count,
            max_elements=most,
            end_elements=most_at_end,
        ),
        key=lambda workload: most_elements(spec, workload.sizes),
    )
    telling = drawn[-1:] * max(1, len(distributions) - 1)
    requests = [
        Request(
            workload,
            tuple(rng.getrandbits(SEED_BITS) for _ in range(_draws(spec, workload))),
            scale,
            distribution,
        )
        for workload, (distribution, scale) in zip(
            [*telling, *reversed(drawn[:-1])],
            _rounds(distributions, spec.precision.input_scales),
            strict=False,
        )
    ]
    return requests[::-1]


def telling_requests(
    spec: OperatorSpec,
    target: TargetName,
    *,
    rng: random.Random,
    distributions: Sequence[Distribution],
) -> list[Request]:
    """Return the public workloads at other scales, and from other distributions, one draw each."""
    stated: Distribution = "stated"
    wanted: list[tuple[Distribution, float]] = [
        *((stated, scale) for scale in spec.precision.input_scales if scale != 1.0),
        *((name, 1.0) for name in distributions if name != stated),
    ]
    return [
        Request(workload, (rng.getrandbits(SEED_BITS),), scale, name)
        for workload in spec.workloads_on(target)
        for name, scale in wanted
    ]


def count_confirmed(spec: OperatorSpec, least: int) -> int:
    """Return how many sizes a confirming run draws: each end of each range is among them."""
    return max(least, count_ends(spec))


def _draws(spec: OperatorSpec, workload: Workload) -> int:
    elements = max(1, most_elements(spec, workload.sizes))
    return min(_MOST_DRAWS, max(_LEAST_DRAWS, math.ceil(POOLED_ELEMENTS / elements)))


def _rounds(
    distributions: Sequence[Distribution], scales: Sequence[float]
) -> Iterator[tuple[Distribution, float]]:
    """Yield distributions in turn, each time round with the next scale."""
    number = 0
    while True:
        place = number % len(distributions)
        turn = number // len(distributions) + place
        yield distributions[place], scales[turn % len(scales)]
        number += 1
