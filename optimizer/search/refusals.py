"""Who was asked in vain, and is therefore asked more rarely for a while."""

from collections.abc import Mapping
from typing import Final

from operator_registry.record import Record
from optimizer.search.offers import Expansion

LONGEST_REST: Final = 64
"""In trials of the search."""
GIVEN_UP: Final = 6
"""After so many refusals in a row a proposer is not asked any more while it rests."""


class Refused(Record):
    """A proposer's refusals in a row: it raised, or cost something and yielded nothing."""

    times: int
    at: int
    """The number of trials at the last one."""
    at_nodes: tuple[tuple[str | None, str | None], ...] = ()
    """The nodes, or pairs, at which it yielded nothing, of all its rows."""

    @property
    def until(self) -> int:
        """Return the number of trials at which it is asked again: 1 later, then 2, 4, ..."""
        return self.at + min(1 << max(0, self.times - 1), LONGEST_REST)


class Refusals(Record):
    """The refusals of a search's proposers. They are kept, for no trial tells of them."""

    refused: dict[str, Refused] = {}

    def after(self, expansion: Expansion, *, at: int, silent: bool) -> "Refusals":
        """Return them with one more.

        Args:
            expansion: What the proposer was asked for.
            at: The number of trials so far.
            silent: It did answer, but had nothing.
        """
        before = self.refused.get(expansion.proposer, Refused(times=0, at=at))
        nodes = (*before.at_nodes, (expansion.parent, expansion.mate)) if silent else ()
        now = Refused(times=before.times + 1, at=at, at_nodes=nodes or before.at_nodes)
        return Refusals(refused={**self.refused, expansion.proposer: now})

    def after_answer(self, proposer: str) -> "Refusals":
        """Return them once a proposer has answered: its row has ended."""
        before = self.refused.get(proposer)
        if before is None or before.times == 0:
            return self
        ended = before.model_copy(update={"times": 0})
        return Refusals(refused={**self.refused, proposer: ended})

    def times(self, proposer: str) -> int:
        """Return how often in a row a proposer has refused."""
        return self.refused[proposer].times if proposer in self.refused else 0

    def resting(self, *, at: int) -> frozenset[str]:
        """Return who is not asked at this number of trials."""
        return frozenset(name for name, row in self.refused.items() if row.times and at < row.until)

    def given_up(self) -> frozenset[str]:
        """Return who has refused so often that nobody waits for it."""
        return frozenset(n for n, row in self.refused.items() if row.times >= GIVEN_UP)

    def exhausted(self, proposers: Mapping[str, object]) -> tuple[Expansion, ...]:
        """Return what is known to yield nothing."""
        return tuple(
            Expansion(parent, name, mate)
            for name, row in self.refused.items()
            if name in proposers
            for parent, mate in row.at_nodes
        )
