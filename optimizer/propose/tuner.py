"""A proposer that changes only what is chosen for a candidate's tunables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from optimizer.candidate import Candidate, Choice, load_tunables
from optimizer.propose.proposer import NodeContext

Tunables = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Tuner:
    """Moves one tunable at a time to its neighbouring values, then farther, then two at once."""

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`; a node without tunables, and the root, have no neighbours."""
        if node.candidate is None:
            return ()
        candidate = node.candidate
        tunables = load_tunables(candidate.code, language=candidate.plan.language)
        batch: list[Candidate] = []
        for chosen in neighbours(tunables, candidate.chosen):
            if len(batch) >= count:
                break
            child = candidate.model_copy(
                update={
                    "chosen": chosen,
                    "parent": candidate.id,
                    "origin": "tuner",
                    "note": _difference(candidate.chosen, chosen),
                }
            )
            if child.id not in node.tried:
                batch.append(child)
        return batch


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


def _nearest(values: Sequence[int], chosen: int) -> list[int]:
    """Return the other values, those beside the chosen one first, the greater before the lesser."""
    ordered = sorted(values)
    place = ordered.index(chosen) if chosen in ordered else 0
    others = [p for p in range(len(ordered)) if ordered[p] != chosen]
    return [ordered[p] for p in sorted(others, key=lambda p: (abs(p - place), p < place))]


def _difference(before: Choice, after: Choice) -> str:
    changed = [n for n in after if before.get(n) != after[n]]
    return ", ".join(f"{n} {before.get(n)} -> {after[n]}" for n in changed)
