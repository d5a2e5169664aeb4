"""Which choices can't be built or launched, as far as is known before a trial (pure)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from knowledge.outcome import Failed, Outcome, Passed, TimedOut
from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Choice
from optimizer.expression import ExpressionError, integer, names_in
from optimizer.plan import Launch, Plan
from optimizer.propose.proposer import Attempt

MOST_THREADS: Final = 1024
"""Of a block, on every device of today."""
_TOO_MUCH: Final = re.compile(
    r"shared memory|out of resources|OUT_OF_RESOURCES|too many registers", re.IGNORECASE
)


@dataclass(frozen=True)
class Validity:
    """What siblings' failures and the device's limits say of a source's choices.

    What a block takes of shared memory and registers grows with the tunables that the compiled form
    depends on. So a choice that is nowhere below one that took too much, takes too much as well;
    unless one that passed was not below it either, which shows that this source is otherwise.
    """

    plan: Plan
    hardware: HardwareSpec | None
    shaping: tuple[str, ...]
    """The tunables that shape the compiled form; the number of warps does not count."""
    too_much: tuple[Choice, ...]

    def admits(self, chosen: Choice) -> bool:
        """Return whether nothing is known against a choice."""
        return self._can_be_launched(chosen) and not any(
            _nowhere_below(chosen, known, self.shaping) for known in self.too_much
        )

    def _can_be_launched(self, chosen: Choice) -> bool:
        """Return whether each launch's warps are a power of two, and fit into a block.

        Where they depend on sizes as well, nothing is known.
        """
        if self.plan.language != "triton":
            return True
        for step in _launches(self.plan):
            try:
                warps = integer(step.warps, chosen)
            except ExpressionError:
                continue
            width = self.hardware.compile.warp_size if self.hardware else 1
            if warps < 1 or warps & (warps - 1) or warps * width > MOST_THREADS:
                return False
        return True


def learn(
    plan: Plan,
    tunables: Mapping[str, Sequence[int]],
    attempts: Sequence[Attempt],
    hardware: HardwareSpec | None,
) -> Validity:
    """Return what attempts of one source say of its other choices."""
    shaping = tuple(name for name in tunables if name in _shaping(plan))
    passed = [a.candidate.chosen for a in attempts if isinstance(a.outcome, Passed)]
    refused = [a.candidate.chosen for a in attempts if took_too_much(a.outcome)]
    too_much = tuple(
        one for one in refused if not any(_nowhere_below(p, one, shaping) for p in passed)
    )
    return Validity(plan, hardware, shaping, too_much if shaping else ())


def took_too_much(outcome: Outcome) -> bool:
    """Return whether a trial failed because the device has not as much, or the compiler gave up."""
    match outcome:
        case Failed(stage="build" | "load" | "run", log=log):
            return _TOO_MUCH.search(log) is not None
        case TimedOut(stage="build"):
            return True
        case _:
            return False


def _nowhere_below(one: Choice, other: Choice, names: Sequence[str]) -> bool:
    return all(one.get(name, 0) >= other.get(name, 0) for name in names)


def _shaping(plan: Plan) -> frozenset[str]:
    """Return the names on which constants and stages depend, through the plan's `let` as well."""
    direct = (text for step in _launches(plan) for text in (*step.constants.values(), step.stages))
    found = {name for text in direct for name in _names(text)}
    for name, text in reversed(plan.let.items()):
        if name in found:
            found |= _names(text)
    return frozenset(found)


def _names(text: str) -> frozenset[str]:
    try:
        return names_in(text)
    except ExpressionError:
        return frozenset()


def _launches(plan: Plan) -> Iterator[Launch]:
    return (step for step in plan.steps if isinstance(step, Launch))
