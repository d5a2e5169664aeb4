"""A population that breeds: the fitter a node, the likelier it has children."""

from dataclasses import dataclass
from random import Random

from optimizer.search.offers import Expansion, Offers
from optimizer.search.policy import (
    make_random,
    pick_best,
    pick_draft,
    pick_proposer,
    pick_repair,
)
from optimizer.search.tree import Node, Tree

_DRAWS = 64
"""After so many pairs of whom nobody can make anything, the best node grows."""


@dataclass(frozen=True)
class Evolutionary:
    """Parents are the winners of tournaments among the fittest; half of the children cross two."""

    seed: int = 0
    drafts: int = 64
    """The first generation."""
    population: int = 500
    """Only so many of the fittest breed."""
    tournament: int = 3
    """How many are drawn for a parent, of whom the fittest is taken."""
    crossover: float = 0.5
    """The probability that a child of the second generation or a later one has a mate."""
    debug_depth: int = 10

    def pick(self, tree: Tree, offers: Offers) -> Expansion | None:
        """See `Policy.pick`."""
        return (
            pick_repair(tree, offers, depth=self.debug_depth)
            or pick_draft(tree, offers, most=self.drafts)
            or self._breed(tree, offers)
            or pick_best(tree, offers, seed=self.seed)
        )

    def _breed(self, tree: Tree, offers: Offers) -> Expansion | None:
        if not tree.ranked:
            return None
        random = make_random(self.seed, tree, offers)
        for _ in range(_DRAWS):
            parent, mate = self._draw_pair(tree, random)
            proposer = pick_proposer(tree, offers, parent.id, mate=mate, seed=self.seed)
            if proposer is not None:
                return Expansion(parent.id, proposer, mate, children=1)
        return None

    def _draw_pair(self, tree: Tree, random: Random) -> tuple[Node, str | None]:
        parent, other = self._draw(tree, random), self._draw(tree, random)
        crossed = random.random() < self.crossover and other is not parent
        return parent, other.id if crossed and tree.generation > 0 else None

    def _draw(self, tree: Tree, random: Random) -> Node:
        adults = min(len(tree.ranked), self.population)
        return tree.ranked[min(random.randrange(adults) for _ in range(self.tournament))]
