"""In which order a case's sets are run, and where their inputs lie each time (pure).

Every set is run once, all at the same addresses: an output kept from the run before is wrong. Then
the first set is run again elsewhere, and must give the same bytes; and the last one at an address
that is a multiple of nothing but its elements' size.
"""

import random
from dataclasses import dataclass

from operator_registry.spec import OperatorSpec
from optimizer.evaluate.guards import Guard, Guards
from optimizer.evaluate.held import ALIGNMENT
from optimizer.evaluate.protocol import Seat

_SHIFTS = 16


@dataclass(frozen=True)
class Visit:
    """One run of one set."""

    number: int
    seat: Seat


@dataclass(frozen=True)
class Visits:
    """The runs of one case."""

    first: tuple[Visit, ...]
    """Each set once."""
    still: Visit | None
    """The last set at once again, in memory that nobody filled anew meanwhile."""
    again: tuple[Visit, ...]
    """The first set twice more: what changes with every call must not come round in between."""
    aside: Visit | None
    """The last set, misaligned, and strided where the spec admits it."""


def plan_visits(spec: OperatorSpec, sets: int, guards: Guards, rng: random.Random) -> Visits:
    """Return the runs of a case with so many sets."""
    fresh = guards.up(Guard.FRESH)
    slot, shift = rng.randrange(sets), rng.randrange(_SHIFTS) * ALIGNMENT
    here = Seat(slot=slot, shift=shift)
    there = Seat(slot=slot + 1, shift=(shift + ALIGNMENT) % (_SHIFTS * ALIGNMENT))
    first = tuple(Visit(n, here if fresh else Seat(slot=n)) for n in range(sets))
    once_more = Visit(0, there if fresh else first[0].seat)
    again = (once_more, once_more) if guards.up(Guard.REPEAT) else ()
    aside = None
    if guards.up(Guard.STRIDES):
        seat = Seat(slot=slot, shift=shift + 1, strided=_strided(spec))
        aside = Visit(sets - 1, seat)
    still = first[-1] if guards.up(Guard.INPUTS) else None
    return Visits(first, still, again, aside)


def _strided(spec: OperatorSpec) -> tuple[int, ...]:
    names = list(spec.inputs)
    return tuple(names.index(name) for name in spec.precision.strides)
