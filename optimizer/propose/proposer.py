"""A source of candidates."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from knowledge.document import Document
from knowledge.outcome import Outcome
from optimizer.candidate import Candidate
from optimizer.spending import Allowance, Spending


@dataclass(frozen=True)
class Attempt:
    """A candidate with what its trial showed."""

    candidate: Candidate
    outcome: Outcome
    fitness: float


@dataclass(frozen=True)
class NodeContext:
    """What a proposer is told of the node whose children it is asked for.

    The root has no candidate: its children are drafts, made without feedback.
    """

    candidate: Candidate | None = None
    outcome: Outcome | None = None
    fitness: float = 0.0
    tried: Container[str] = frozenset()
    """Ids of all candidates of this search, so that a proposer does not repeat them."""
    mate: Attempt | None = None
    """The second parent, where the children are to cross two."""
    history: Sequence[Attempt] = ()
    """What the node's memory operator shows of what was tried, the oldest first."""
    documents: Sequence[Document] = ()
    """What is known that may help, the likeliest first."""
    left: Allowance = field(default_factory=Allowance)
    """What may still be spent."""
    seed: int = 0
    """Of whatever a proposer draws; equal contexts and seeds make equal children."""


class Proposer(Protocol):
    """A source of ideas: a synthesiser, a parameter sweep, a person's file.

    A proposer only writes source text. It neither builds nor runs it.
    """

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """Return at most `count` children for `node`, the likeliest first; none when done.

        Raises:
            ProposalError: The source of ideas is away, or its reply holds no kernel.
        """
        ...


@runtime_checkable
class Spender(Protocol):
    """A proposer that costs more than a moment."""

    name: str
    """As the ledger calls it."""

    def take_spending(self) -> Spending:
        """Return what was spent since this was asked last."""
        ...


@runtime_checkable
class Named(Protocol):
    """A proposer that says what the origin of its candidates is."""

    @property
    def name(self) -> str:
        """Return the origin."""
        ...


@runtime_checkable
class Repairer(Protocol):
    """A proposer that may know what to do with a candidate that failed: it heeds the outcome."""

    @property
    def repairs(self) -> bool:
        """Return whether it does."""
        ...


def name_all(proposers: Sequence[Proposer]) -> dict[str, Proposer]:
    """Return proposers by their names, in order; who has none is called after its class."""
    named: dict[str, Proposer] = {}
    for proposer in proposers:
        name = proposer.name if isinstance(proposer, Named) else type(proposer).__name__.lower()
        same = sum(other == name or other.startswith(f"{name} ") for other in named)
        named[f"{name} {same + 1}" if same else name] = proposer
    return named


@dataclass(frozen=True)
class ScriptedProposer:
    """Hands out the given candidates in order, as drafts: a person's files."""

    script: Sequence[Candidate]
    name: str = "person"

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`; a node has no further children."""
        if node.candidate is not None:
            return ()
        return [candidate for candidate in self.script if candidate.id not in node.tried][:count]
