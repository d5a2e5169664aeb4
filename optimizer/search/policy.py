"""Which node of the search tree grows next, and from which source of ideas."""

from random import Random
from typing import Protocol

from optimizer.search.offers import Expansion, Offers
from optimizer.search.shares import pick_by_share
from optimizer.search.tree import Tree


class Policy(Protocol):
    """Decides; it holds no state, and what it draws depends on its seed and the tree alone.

    It must prefer one expansion to another whatever the others are. A process that takes up a
    search does not know yet what was exhausted: it asks there once more, gets nothing, picks
    anew, and so comes to the same expansion as the process before it.
    """

    def pick(self, tree: Tree, offers: Offers) -> Expansion | None:
        """Return the next expansion; None when there is nothing left that is worth a trial."""
        ...


def moment(seed: int, tree: Tree, offers: Offers) -> str:
    """Return what seeds the draws of the next pick."""
    return f"{seed}/{len(tree) + len(offers.under_way)}"


def make_random(seed: int, tree: Tree, offers: Offers) -> Random:
    """Return the source of a policy's draws for the next pick."""
    return Random(moment(seed, tree, offers))  # noqa: S311 - no secret


def pick_draft(tree: Tree, offers: Offers, *, most: int) -> Expansion | None:
    """Return who makes the next draft: all in turn, until there are so many or nobody has one."""
    left = most - len(tree.drafts) - offers.coming(None)
    if left <= 0:
        return None

    def made(name: str) -> int:
        return tree.offspring(None, name) + offers.coming(None, proposer=name)

    able = offers.able(None)
    return Expansion(None, min(able, key=made), children=left) if able else None


def pick_repair(tree: Tree, offers: Offers, *, depth: int) -> Expansion | None:
    """Return the repair of the latest candidate that failed; None where nobody repairs any."""
    found = offers.find_broken(tree, depth=depth)
    return Expansion(found[0].id, found[1], children=1) if found else None


def pick_best(tree: Tree, offers: Offers, *, seed: int) -> Expansion | None:
    """Return the growth of the fittest node that somebody can still better."""
    node = offers.find_best(tree)
    proposer = pick_proposer(tree, offers, node.id, seed=seed) if node else None
    return Expansion(node.id, proposer) if node and proposer else None


def pick_proposer(
    tree: Tree, offers: Offers, parent: str, *, mate: str | None = None, seed: int
) -> str | None:
    """Return who grows a node, or crosses two, by what each has lately earned."""
    able = offers.able(parent, mate=mate)
    return pick_by_share(able, tree.earned, at=len(tree), seed=moment(seed, tree, offers))
