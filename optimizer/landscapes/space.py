"""A schedule space: some sources of one operator, and every choice of their tunables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from operator_registry.record import Record, Slug
from operator_registry.registry import Operator
from operator_registry.spec import DType, PrecisionPolicy
from optimizer.candidate import Candidate, Choice, load_tunables
from optimizer.plan import Plan

Tunables = Mapping[str, tuple[int, ...]]


class Structure(Record):
    """A source with its plan: one point of the space for each choice of its tunables."""

    name: Slug
    code: str
    plan: Plan

    @cached_property
    def tunables(self) -> Tunables:
        """Return the tunables with their values, as the code states them.

        Raises:
            CandidateError: They can't be read.
        """
        return load_tunables(self.code, language=self.plan.language)

    @property
    def size(self) -> int:
        """Return how many points there are."""
        return prod(len(values) for values in self.tunables.values())

    def choices(self) -> Iterator[Choice]:
        """Yield every choice; the last tunable changes fastest."""
        for chosen in product(*self.tunables.values()):
            yield dict(zip(self.tunables, chosen, strict=True))

    def candidate(self, chosen: Choice, *, origin: str = "bench", note: str = "") -> Candidate:
        """Return a point as a candidate."""
        return Candidate(code=self.code, plan=self.plan, chosen=chosen, origin=origin, note=note)


@dataclass(frozen=True)
class Space:
    """What is tried as a whole."""

    name: str
    operator: Operator
    """With one public workload only, so that a point has one time."""
    structures: tuple[Structure, ...]

    @property
    def size(self) -> int:
        """Return how many points there are."""
        return sum(structure.size for structure in self.structures)

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every point in order."""
        return tuple(points(self.structures))


def points(structures: Sequence[Structure]) -> Iterator[Candidate]:
    """Yield every point of some structures in their order."""
    for structure in structures:
        for chosen in structure.choices():
            yield structure.candidate(chosen, note=structure.name)


def precision_of_sums(dtype: DType) -> PrecisionPolicy:
    """Return how far a sum of products over thousands of terms may stray.

    In float32 the terms are added one after the other, which loses more places than the trees of a
    library do; a half format's result is rounded far above that.
    """
    return PrecisionPolicy(k=128.0) if dtype == "float32" else PrecisionPolicy()


def at_workload(operator: Operator, name: str) -> Operator:
    """Return the operator with one of its public workloads only.

    Raises:
        KeyError: It has none of that name.
    """
    alone = {w.name: w for w in operator.spec.workloads}[name].model_copy(update={"targets": ()})
    return operator.model_copy(
        update={"spec": operator.spec.model_copy(update={"workloads": (alone,)})}
    )
