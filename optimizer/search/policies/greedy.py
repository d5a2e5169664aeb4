"""Drafts first, then always the children of the best node."""

from dataclasses import dataclass

from optimizer.search.policy import Expansion, Growth


@dataclass(frozen=True)
class Greedy:
    """Tries all drafts, then grows the best node by each proposer in turn, then the next best."""

    drafts: int = 64
    """How many children the root may have."""

    def pick(self, growth: Growth) -> Expansion | None:
        """See `Policy.pick`."""
        drafted = sum(taken for e, taken in growth.taken.items() if e.parent is None)
        if drafted < self.drafts and (draft := _next_of(None, growth)):
            return draft
        # A node that was only checked, not timed, has fitness 0: nothing says how to better it.
        timed = (trial for trial in growth.trials if trial.fitness > 0)
        for trial in sorted(timed, key=lambda trial: (-trial.fitness, trial.number)):
            if expansion := _next_of(trial.candidate.id, growth):
                return expansion
        return None


def _next_of(parent: str | None, growth: Growth) -> Expansion | None:
    able = [
        expansion
        for place in range(growth.proposers)
        if (expansion := Expansion(parent, place)) not in growth.exhausted
    ]
    return min(able, key=lambda e: (growth.taken.get(e, 0), e.proposer), default=None)
