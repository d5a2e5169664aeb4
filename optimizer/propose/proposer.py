"""A source of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from knowledge.outcome import Outcome
from optimizer.candidate import Candidate


@dataclass(frozen=True)
class Node:
    """A candidate in the search tree with what its trial showed; the root has neither."""

    candidate: Candidate | None = None
    outcome: Outcome | None = None
    fitness: float = 0.0
    tried: frozenset[str] = frozenset()
    """Ids of all candidates of this search, so that a proposer does not repeat them."""


class Proposer(Protocol):
    """A source of ideas: a synthesiser, a parameter sweep, a person's file.

    A proposer only writes source text. It neither builds nor runs it.
    """

    def propose(self, node: Node, count: int) -> Sequence[Candidate]:
        """Return at most `count` children for `node`, the likeliest first; none when done.

        Raises:
            ProposalError: The source of ideas is away, or its reply holds no kernel.
        """
        ...


@dataclass
class ScriptedProposer:
    """Hands out the given candidates in order, whatever it is asked: a person's files."""

    script: Sequence[Candidate]
    _next: int = field(default=0, init=False)

    def propose(self, node: Node, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`."""
        batch = self.script[self._next : self._next + count]
        self._next += len(batch)
        return batch
