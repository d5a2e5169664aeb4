"""A smaller counterexample than the one that was found, so that a person can look at it."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from knowledge.outcome import Counterexample, Incorrect
from operator_registry.spec import DType, OperatorSpec, RangeAxis, Workload
from operator_registry.workloads import most_elements
from optimizer.evaluate.cases import CheckedCase, Request
from optimizer.evaluate.draws import SEED_BITS
from optimizer.evaluate.trial import Trial

MOST_TRIES = 10
MOST_ELEMENTS = 1 << 16
_DRAWS = 2
_STEP = 4
"""By how much sizes are divided from one try to the next."""
MakeCases = Callable[[Sequence[Request]], list[CheckedCase]]


@dataclass(frozen=True)
class Shrinking:
    """Looks for the smallest sizes at which a loaded candidate is still wrong."""

    trial: Trial
    make: MakeCases
    """The oracle's cases; see `CaseMaker.make`."""
    rng: random.Random

    def shrink(self, found: Incorrect) -> Incorrect:
        """Return the disagreement at the smallest sizes that were tried, or the one given.

        What runs there must be built already: nothing is compiled for it.

        Raises:
            RunnerError: The reference fails.
        """
        example = found.counterexample
        if example is None or not self.trial.process.alive:
            return found
        spec = self.trial.operator.spec
        requests = [self._ask(example, w) for w in smaller_workloads(spec, example)]
        cases = self.make(requests) if requests else []
        try:
            return self._first_wrong(cases) or found
        finally:
            for case in cases:
                case.discard()

    def _first_wrong(self, cases: Sequence[CheckedCase]) -> Incorrect | None:
        for case in cases:
            if not self.trial.process.alive:
                return None
            outcome = self.trial.check([case], self.rng)
            if isinstance(outcome, Incorrect) and outcome.counterexample is not None:
                return outcome
        return None

    def _ask(self, example: Counterexample, workload: Workload) -> Request:
        """Return a request under the seed that was told, and fresh ones."""
        fresh = tuple(self.rng.getrandbits(SEED_BITS) for _ in range(_DRAWS - 1))
        return Request(workload, (example.seed, *fresh), example.scale, example.distribution)


def smaller_workloads(spec: OperatorSpec, example: Counterexample) -> list[Workload]:
    """Return workloads below a counterexample's sizes, the smallest first, each once.

    All axes are divided together, and each alone is brought down to its least size.
    """
    ranges = {name: axis for name, axis in spec.axes.items() if isinstance(axis, RangeAxis)}
    attributes = {n: v for n, v in example.attributes.items() if n in spec.attributes}
    dtypes = TypeAdapter(dict[str, DType]).validate_python(example.dtypes)
    seen: dict[tuple[int, ...], Workload] = {}
    for sizes in _smaller(ranges, example.sizes):
        workload = Workload(name="smaller", sizes=sizes, dtypes=dtypes, attributes=attributes)
        if most_elements(spec, sizes) <= MOST_ELEMENTS:
            seen.setdefault(tuple(sizes.values()), workload)
    ordered = sorted(seen.values(), key=lambda workload: most_elements(spec, workload.sizes))
    return ordered[:MOST_TRIES]


def _smaller(ranges: dict[str, RangeAxis], sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    first = {name: sizes[name] for name in ranges}
    divisor = _STEP
    while divisor < _STEP * max(first.values(), default=0):
        smaller = {n: _at_least(ranges[n], size // divisor) for n, size in first.items()}
        if smaller != first:
            yield smaller
        for name, size in smaller.items():
            if size != first[name]:
                yield {**first, name: size}
        divisor *= _STEP


def _at_least(axis: RangeAxis, size: int) -> int:
    """Return the size, brought into the axis' range; 1 rather than 0, at which nothing is wrong."""
    unit = axis.multiple_of
    least = max(-(-axis.min // unit) * unit, unit)
    return max(size - size % unit, least)
