"""What a node's children are shown of what was tried before (pure)."""

from typing import Final, Literal

from optimizer.propose.proposer import Attempt
from optimizer.search.tree import Node, Tree

Memory = Literal["ancestors", "siblings", "both", "nothing"]
"""A memory operator."""
STAGNANT: Final = 12
"""So many trials without a better one, and every `RESTART`-th expansion starts clean."""
RESTART: Final = 3
MOST: Final = 8
"""Ancestors, and as many siblings, that are shown at most: a prompt has its limits."""


def pick_memory(tree: Tree, node: Node) -> Memory:
    """Return a node's memory operator at this point of the search.

    A first child is shown its ancestors, a later one its siblings as well, so that it is another
    idea. What failed is repaired by what led to it. Where the search stagnates, now and then a
    child is shown nothing: what all have in common may be what holds them back.
    """
    if tree.since_best >= STAGNANT and len(tree) % RESTART == 0 and node.passed:
        return "nothing"
    if not node.children:
        return "ancestors"
    return "both" if node.parent is not None else "siblings"


def recall(node: Node, memory: Memory) -> tuple[Attempt, ...]:
    """Return what a memory operator shows to a node's next child, the oldest first."""
    shown: list[Node] = []
    if memory in {"ancestors", "both"}:
        shown += _ancestors(node)
    if memory in {"siblings", "both"}:
        shown += _siblings(node)
    once = {one.place: one for one in shown}
    return tuple(make_attempt(once[place]) for place in sorted(once))


def make_attempt(node: Node) -> Attempt:
    """Return a node as a proposer sees it."""
    return Attempt(node.trial.candidate, node.trial.evaluation.outcome, node.fitness)


def _ancestors(node: Node) -> list[Node]:
    """Return the nearest ancestors; of a failed node those back to the last one that passed."""
    found: list[Node] = []
    for one in node.line():
        if len(found) == MOST:
            break
        found.append(one)
        if not node.passed and one.passed:
            break
    return found


def _siblings(node: Node) -> list[Node]:
    """Return a node's children so far: the fittest half of what is shown, and the latest."""
    fittest = sorted(node.children, key=lambda child: child.rank)[: MOST // 2]
    return [*fittest, *node.children[-(MOST - MOST // 2) :]]
