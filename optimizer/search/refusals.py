"""Who was asked in vain, and is therefore asked more rarely for a while."""

from collections.abc import Collection
from typing import Final

from operator_registry.record import Record
from optimizer.search.offers import Expansion
from optimizer.search.tree import Tree

LONGEST_REST: Final = 64
"""In trials of the search."""
GIVEN_UP: Final = 6
"""After so many refusals in a row a proposer is not asked any more while it rests."""


class Refused(Record):
    """A proposer's refusals in a row: it raised, or cost something and yielded nothing."""

    times: int
    at: int
    """The number of trials at the last one."""
    silent_at: tuple[tuple[str | None, str | None], ...] = ()
    """The nodes, or pairs, at which it has yielded nothing, in this row or before."""


class Refusals(Record):
    """The refusals of a search's proposers. They are kept, for no trial tells of them.

    A row ends with the proposer's next trial; so the tree is asked whether one goes on.
    """

    refused: dict[str, Refused] = {}

    def after(self, expansion: Expansion, tree: Tree, *, silent: bool) -> "Refusals":
        """Return them with one more.

        Args:
            expansion: What the proposer was asked for.
            tree: The trials so far.
            silent: It did answer, but had nothing.
        """
        name = expansion.proposer
        before = self.refused[name].silent_at if name in self.refused else ()
        now = Refused(
            times=self.times(name, tree) + 1,
            at=len(tree),
            silent_at=(*before, (expansion.parent, expansion.mate)) if silent else before,
        )
        return Refusals(refused={**self.refused, name: now})

    def times(self, proposer: str, tree: Tree) -> int:
        """Return how often in a row a proposer has refused."""
        row = self.refused.get(proposer)
        if row is None:
            return 0
        earned = tree.earned.get(proposer)
        return 0 if earned is not None and earned.at > row.at else row.times

    def resting(self, tree: Tree) -> frozenset[str]:
        """Return who is not asked now: for 1 trial after the first refusal, then for 2, 4, ..."""
        return frozenset(
            name
            for name, row in self.refused.items()
            if (times := self.times(name, tree))
            and len(tree) < row.at + min(1 << (times - 1), LONGEST_REST)
        )

    def given_up(self, tree: Tree) -> frozenset[str]:
        """Return who has refused so often that nobody waits for it."""
        return frozenset(name for name in self.refused if self.times(name, tree) >= GIVEN_UP)

    def exhausted(self, proposers: Collection[str]) -> tuple[Expansion, ...]:
        """Return of which expansions it is known that they yield nothing."""
        return tuple(
            Expansion(parent, name, mate)
            for name, row in self.refused.items()
            if name in proposers
            for parent, mate in row.silent_at
        )
