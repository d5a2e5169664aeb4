"""Drafts first, then always the children of the best node."""

from dataclasses import dataclass

from optimizer.search.offers import Expansion, Offers
from optimizer.search.policy import pick_best, pick_draft, pick_repair
from optimizer.search.tree import Tree


@dataclass(frozen=True)
class Greedy:
    """Tries all drafts, then grows the best node, then the next best; what failed is repaired."""

    seed: int = 0
    drafts: int = 64
    """How many children the root may have."""
    debug_depth: int = 20
    """Failures in a row after which a candidate is not repaired any more."""

    def pick(self, tree: Tree, offers: Offers) -> Expansion | None:
        """See `Policy.pick`."""
        return (
            pick_repair(tree, offers, depth=self.debug_depth)
            or pick_draft(tree, offers, most=self.drafts)
            or pick_best(tree, offers, seed=self.seed)
        )
