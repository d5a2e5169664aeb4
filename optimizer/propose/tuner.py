"""A proposer that changes only what is chosen for a candidate's tunables."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate, Choice, load_tunables
from optimizer.propose.proposer import Attempt, NodeContext
from optimizer.propose.validity import Validity, learn

Tunables = Mapping[str, tuple[int, ...]]
_CROSSINGS: Final = 32
"""Draws of a mixture of two, after which they are taken to have no other."""


@dataclass(frozen=True)
class Tuner:
    """Moves one tunable at a time to its neighbouring values, then farther, then two at once.

    Of two candidates of one source it makes mixtures. What siblings' failures show to take more
    than the device has is not proposed.
    """

    hardware: HardwareSpec | None = None
    """The device, for what a block may have there."""

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`; a node without tunables, and the root, have no neighbours."""
        if node.candidate is None:
            return ()
        parent = node.candidate
        tunables = load_tunables(parent.code, language=parent.plan.language)
        mate = node.mate.candidate if node.mate else None
        if mate is not None and (mate.code, mate.plan) != (parent.code, parent.plan):
            return ()
        choices = (
            neighbours(tunables, parent.chosen)
            if mate is None
            else mixtures(parent.chosen, mate.chosen, seed=node.seed)
        )
        validity = learn(parent.plan, tunables, _siblings(node, parent), self.hardware)
        return _children(choices, parent, mate, node, count=count, validity=validity)


def neighbours(tunables: Tunables, chosen: Choice) -> Iterator[Choice]:
    """Yield other choices, the nearest first, none twice."""
    moves = {name: _nearest(values, chosen[name]) for name, values in tunables.items()}
    for distance in range(max(map(len, moves.values()), default=0)):
        for name, values in moves.items():
            if distance < len(values):
                yield {**chosen, name: values[distance]}
    for one, other in combinations(moves, 2):
        for first in moves[one][:2]:
            for second in moves[other][:2]:
                yield {**chosen, one: first, other: second}


def mixtures(one: Choice, other: Choice, *, seed: int) -> Iterator[Choice]:
    """Yield choices that take each tunable from one of two, by lot; none twice, neither of them."""
    rng = random.Random(seed)  # noqa: S311 - which mixture, no secret
    seen = [one, other]
    for _ in range(_CROSSINGS):
        mixed = {name: rng.choice((value, other[name])) for name, value in one.items()}
        if mixed not in seen:
            seen.append(mixed)
            yield mixed


def _children(  # noqa: PLR0913 - what a child is made of, and what it must not be
    choices: Iterator[Choice],
    parent: Candidate,
    mate: Candidate | None,
    node: NodeContext,
    *,
    count: int,
    validity: Validity,
) -> Sequence[Candidate]:
    batch: list[Candidate] = []
    for chosen in choices:
        if len(batch) >= count:
            break
        if not validity.admits(chosen):
            continue
        child = parent.model_copy(
            update={
                "chosen": chosen,
                "parent": parent.id,
                "mate": mate.id if mate else None,
                "origin": "tuner",
                "note": _difference(parent.chosen, chosen),
            }
        )
        if child.id not in node.tried:
            batch.append(child)
    return batch


def _siblings(node: NodeContext, parent: Candidate) -> Sequence[Attempt]:
    """Return what is known of the node's own source, the node itself included."""
    known = [*node.history, *([node.mate] if node.mate else [])]
    if node.outcome is not None:
        known.append(Attempt(parent, node.outcome, node.fitness))
    return [a for a in known if (a.candidate.code, a.candidate.plan) == (parent.code, parent.plan)]


def _nearest(values: Sequence[int], chosen: int) -> list[int]:
    """Return the other values, those beside the chosen one first, the greater before the lesser."""
    ordered = sorted(values)
    place = ordered.index(chosen) if chosen in ordered else 0
    others = [p for p in range(len(ordered)) if ordered[p] != chosen]
    return [ordered[p] for p in sorted(others, key=lambda p: (abs(p - place), p < place))]


def _difference(before: Choice, after: Choice) -> str:
    changed = [n for n in after if before.get(n) != after[n]]
    return ", ".join(f"{n} {before.get(n)} -> {after[n]}" for n in changed)
