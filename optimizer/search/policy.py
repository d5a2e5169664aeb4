"""Which node of the search tree grows next, and from which source of ideas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from optimizer.store import Trial


@dataclass(frozen=True)
class Expansion:
    """Ask a proposer for children of a node."""

    parent: str | None
    """The id of the node's candidate; None for the root, whose children are the drafts."""
    proposer: int
    """Its place among the search's proposers."""


@dataclass(frozen=True)
class Growth:
    """What a policy sees of a search."""

    trials: Sequence[Trial]
    proposers: int
    """How many there are."""
    taken: Mapping[Expansion, int] = field(default_factory=dict)
    """How many candidates each expansion has yielded."""
    exhausted: frozenset[Expansion] = frozenset()
    """Expansions that have nothing left to yield."""


class Policy(Protocol):
    """Decides; it holds no state and draws no randomness of its own."""

    def pick(self, growth: Growth) -> Expansion | None:
        """Return the next expansion; None when there is nothing left that is worth a trial."""
        ...
