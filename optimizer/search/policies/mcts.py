"""Monte Carlo tree search: down the tree by upper confidence bounds, and a leaf grows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.search.offers import Expansion, Offers
from optimizer.search.policy import pick_best, pick_draft, pick_proposer, pick_repair
from optimizer.search.tree import Node, Tree


@dataclass(frozen=True)
class Mcts:
    """Follows, from the root on, the child with the greatest bound until a node has room.

    A child's bound is ``q + c sqrt(ln N / n)``: q is the mean fitness of its trials, between the
    least (0) and the greatest (1) of the search, n their number, N that of its parent's. A node has
    room while it has fewer than `children`; where all below is exhausted, it grows beyond that.
    """

    seed: int = 0
    c: float = 0.25
    children: int = 5
    drafts: int = 64
    """The root's."""
    debug_depth: int = 20

    def pick(self, tree: Tree, offers: Offers) -> Expansion | None:
        """See `Policy.pick`."""
        return (
            pick_repair(tree, offers, depth=self.debug_depth)
            or pick_draft(tree, offers, most=self.drafts)
            or self._descend(tree, offers)
            or pick_best(tree, offers, seed=self.seed)
        )

    def _descend(self, tree: Tree, offers: Offers) -> Expansion | None:
        visits, below = len(tree), _living(tree.drafts, tree, offers)
        while below:
            node = max(below, key=lambda child: self._bound(tree, child, visits))
            room = self.children - len(node.children) - offers.coming(node.id)
            visits, below = node.visits, _living(node.children, tree, offers)
            grows = node.fitness > 0 and (room > 0 or not below)
            if grows and (proposer := pick_proposer(tree, offers, node.id, seed=self.seed)):
                return Expansion(node.id, proposer, children=max(room, 1))
        return None

    def _bound(self, tree: Tree, child: Node, visits: int) -> float:
        mean = child.value_sum / child.visits
        # A node may be a mate's child too: then it has more visits than this parent knows.
        return tree.normalised(mean) + self.c * math.sqrt(math.log(max(visits, 1)) / child.visits)


def _living(children: Sequence[Node], tree: Tree, offers: Offers) -> Sequence[Node]:
    return [child for child in children if offers.living(tree, child) > 0]
