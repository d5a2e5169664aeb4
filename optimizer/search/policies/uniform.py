"""Any node grows: the least that another policy must beat."""

from dataclasses import dataclass

from optimizer.search.offers import Expansion, Offers
from optimizer.search.policy import make_random, pick_best, pick_draft
from optimizer.search.tree import Tree

_DRAWS = 64
"""After so many draws of nodes that nobody can better, the best node grows."""


@dataclass(frozen=True)
class Uniform:
    """Drafts first, then a timed node and a proposer by lot, all alike."""

    seed: int = 0
    drafts: int = 64

    def pick(self, tree: Tree, offers: Offers) -> Expansion | None:
        """See `Policy.pick`."""
        return (
            pick_draft(tree, offers, most=self.drafts)
            or self._draw(tree, offers)
            or pick_best(tree, offers, seed=self.seed)
        )

    def _draw(self, tree: Tree, offers: Offers) -> Expansion | None:
        random = make_random(self.seed, tree, offers)
        for _ in range(_DRAWS if tree.ranked and offers.proposers else 0):
            parent, proposer = random.choice(tree.ranked), random.choice(offers.proposers)
            if proposer in offers.able(parent.id):
                return Expansion(parent.id, proposer, children=1)
        return None
