"""Asks a search's proposers, and keeps account of who refused and what it cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import structlog

from optimizer.candidate import Candidate
from optimizer.errors import ProposalError
from optimizer.propose.proposer import NodeContext, Proposer, Repairer, Spender
from optimizer.search.account import Account
from optimizer.search.memory import make_attempt, pick_memory, recall
from optimizer.search.offers import Expansion, Offers
from optimizer.search.policy import Policy
from optimizer.search.refusals import Refusals
from optimizer.search.tree import Tree
from optimizer.spending import Allowance

log = structlog.get_logger()


@dataclass(frozen=True)
class _Tried:
    """The ids of what is in the tree or under way."""

    tree: Tree
    besides: frozenset[str]

    def __contains__(self, candidate_id: object) -> bool:
        return candidate_id in self.besides or candidate_id in self.tree


@dataclass
class Asking:
    """The proposers of one search, by name."""

    proposers: Mapping[str, Proposer]
    tree: Tree
    policy: Policy
    account: Account
    allowance: Allowance = field(default_factory=Allowance)
    seed: int = 0
    """Of what proposers draw."""
    refusals: Refusals = field(default_factory=Refusals)
    on_refusals: Callable[[Refusals], None] = lambda refusals: None
    """Called with each new one, to keep them."""

    def __post_init__(self) -> None:
        """Take up what is known of refusals."""
        repairers = [
            name
            for name, proposer in self.proposers.items()
            if isinstance(proposer, Repairer) and proposer.repairs
        ]
        self._offers = Offers(tuple(self.proposers), tuple(repairers))
        for expansion in self.refusals.exhausted(self.proposers):
            self._offers.exhaust(expansion)

    def propose(self, count: int, *, under_way: Sequence[Candidate] = ()) -> list[Candidate]:
        """Return at most `count` new candidates; none where nobody has any left.

        Args:
            count: How many.
            under_way: Candidates that are about to be tried.

        Raises:
            StoreError: The database is away.
        """
        found: dict[str, Candidate] = {}
        parent: str | None = None
        while len(found) < count and not self.allowance.find_excess(self.account.spent):
            expansion = self._pick((*under_way, *found.values()))
            if expansion is None:
                break
            room = count - len(found)
            if expansion.children is not None:
                room = min(room, expansion.children)
            elif found and expansion.parent != parent:
                break
            parent = expansion.parent
            found |= {candidate.id: candidate for candidate in self._ask(expansion, room)}
        return list(found.values())

    def _pick(self, under_way: Sequence[Candidate]) -> Expansion | None:
        self._offers.under_way = under_way
        self._offers.resting = self.refusals.resting(self.tree)
        expansion = self.policy.pick(self.tree, self._offers)
        if expansion is None and not under_way and self._offers.resting:
            # Nobody else has anything left: then there is nothing to wait for.
            self._offers.resting &= self.refusals.given_up(self.tree)
            expansion = self.policy.pick(self.tree, self._offers)
        return expansion

    def _ask(self, expansion: Expansion, count: int) -> Sequence[Candidate]:
        name = expansion.proposer
        proposer = self.proposers[name]
        node = self._make_context(expansion)
        try:
            answer = proposer.propose(node, count)
        except ProposalError as error:
            log.warning("proposer is away", proposer=name, error=str(error))
            self._charge(proposer)
            self._refuse(expansion, silent=False)
            return ()
        self._charge(proposer)
        fresh = {c.id: _placed(c, expansion) for c in answer if c.id not in node.tried}
        if not fresh:
            self._offers.exhaust(expansion)
            if isinstance(proposer, Spender):
                self._refuse(expansion, silent=True)
        return tuple(fresh.values())

    def _charge(self, proposer: Proposer) -> None:
        if isinstance(proposer, Spender):
            self.account.add(proposer.take_spending(), source=proposer.name)

    def _refuse(self, expansion: Expansion, *, silent: bool) -> None:
        self.refusals = self.refusals.after(expansion, self.tree, silent=silent)
        self.on_refusals(self.refusals)

    def _make_context(self, expansion: Expansion) -> NodeContext:
        tried = _Tried(self.tree, frozenset(c.id for c in self._offers.under_way))
        left = self.allowance.left_after(self.account.spent)
        node, mate = self.tree.find(expansion.parent), self.tree.find(expansion.mate)
        seed = self._draw_seed(expansion)
        if node is None:
            # Drafts are independent of one another: they are shown nothing.
            return NodeContext(tried=tried, left=left, seed=seed)
        return NodeContext(
            candidate=node.trial.candidate,
            outcome=node.trial.evaluation.outcome,
            fitness=node.fitness,
            tried=tried,
            mate=make_attempt(mate) if mate else None,
            history=recall(node, pick_memory(self.tree, node)),
            left=left,
            seed=seed,
        )

    def _draw_seed(self, expansion: Expansion) -> int:
        at = len(self.tree) + len(self._offers.under_way)
        refused = self.refusals.times(expansion.proposer, self.tree)
        where = f"{expansion.parent}/{expansion.mate}/{expansion.proposer}"
        return Random(f"{self.seed}/{at}/{refused}/{where}").getrandbits(32)  # noqa: S311 - no secret


def _placed(candidate: Candidate, expansion: Expansion) -> Candidate:
    """Return a candidate with the parent that it was asked for, where it names none."""
    if candidate.parent is not None or expansion.parent is None:
        return candidate
    return candidate.model_copy(update={"parent": expansion.parent})
