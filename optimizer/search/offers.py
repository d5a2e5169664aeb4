"""What may be asked of whom: the other half, beside the tree, of what a policy sees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from optimizer.candidate import Candidate
from optimizer.search.tree import Node, Tree


@dataclass(frozen=True)
class Expansion:
    """Ask a proposer for children of a node."""

    parent: str | None
    """The id of the node's candidate; None for the root, whose children are the drafts."""
    proposer: str
    mate: str | None = None
    """The second parent's id, where the children are to cross two."""
    children: int | None = field(default=None, compare=False)
    """At most so many; None for a whole batch, of which all have this parent."""


@dataclass(eq=False)
class Offers:
    """Which proposers there are, and what each may still be asked for.

    One of it goes with one tree. What it keeps of the tree only spares it to look at all nodes
    anew: its answers depend on the tree, on what was exhausted, and on who rests.
    """

    proposers: Sequence[str]
    """Their names, which are the origins of their candidates; the first goes first."""
    repairers: Sequence[str] = ()
    """Those that know what to do with a candidate that failed."""
    resting: frozenset[str] = frozenset()
    """Those that are not asked for the time being."""
    under_way: Sequence[Candidate] = ()
    """Candidates that were proposed and are not in the tree yet."""

    def __post_init__(self) -> None:
        """Begin with nothing exhausted."""
        self._exhausted: set[Expansion] = set()
        self._silent: dict[str, set[str]] = {}
        self._open = {name: _Queue() for name in self.proposers}
        self._broken: dict[tuple[str, int], _Queue] = {}
        self._living = _Living()

    def exhaust(self, expansion: Expansion) -> None:
        """Take note that nothing more comes of an expansion, ever."""
        if expansion in self._exhausted:
            return
        self._exhausted.add(expansion)
        if expansion.parent is not None and expansion.mate is None:
            silent = self._silent.setdefault(expansion.parent, set())
            silent.add(expansion.proposer)
            if silent.issuperset(self.proposers):
                self._living.close(expansion.parent)

    def is_exhausted(self, parent: str | None, proposer: str, *, mate: str | None = None) -> bool:
        """Return whether a proposer has nothing left for a node, or for a pair."""
        return Expansion(parent, proposer, mate) in self._exhausted

    def able(self, parent: str | None, *, mate: str | None = None) -> Sequence[str]:
        """Return who may be asked for children of a node, or of a pair."""
        return [
            name
            for name in self.proposers
            if name not in self.resting and not self.is_exhausted(parent, name, mate=mate)
        ]

    def coming(self, parent: str | None, *, proposer: str | None = None) -> int:
        """Return how many candidates under way are children of a node, or drafts."""
        return sum(
            candidate.parent == parent and proposer in (None, candidate.origin)
            for candidate in self.under_way
        )

    def find_best(self, tree: Tree) -> Node | None:
        """Return the fittest node that somebody may still be asked to better."""
        found = [
            self._open[name].first(
                tree,
                wanted=lambda node: node.fitness > 0,
                gone=lambda node, name=name: self.is_exhausted(node.id, name),  # type: ignore[misc]
                key=lambda node: node.rank,
            )
            for name in self.proposers
            if name not in self.resting
        ]
        return min((node for node in found if node), key=lambda node: node.rank, default=None)

    def find_broken(self, tree: Tree, *, depth: int) -> tuple[Node, str] | None:
        """Return the latest node that failed and may be repaired, and who does it.

        It has no children yet, comes of a proposer that can repair, and is at most the `depth`-th
        failure in a row. Who cheated is not helped.
        """
        for name in self.repairers:
            if name in self.resting:
                continue
            queue = self._broken.setdefault((name, depth), _Queue())
            node = queue.first(
                tree,
                wanted=lambda node: 0 < node.failures <= depth and _may_be_repaired(node, name),  # noqa: B023 - called at once
                gone=lambda node: bool(node.children) or self.is_exhausted(node.id, name),  # noqa: B023 - called at once
                key=lambda node: (-node.place, 0),
            )
            if node is not None and not self.coming(node.id):
                return node, name
        return None

    def living(self, tree: Tree, node: Node) -> int:
        """Return for how many of a node and all that were made from it somebody has ideas."""
        return self._living.count(tree, node)


class _Queue:
    """Nodes in some order; those that are gone for good fall out at the top."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[float, int], int]] = []
        self._seen = 0

    def first(
        self,
        tree: Tree,
        *,
        wanted: Callable[[Node], bool],
        gone: Callable[[Node], bool],
        key: Callable[[Node], tuple[float, int]],
    ) -> Node | None:
        for node in tree.nodes[self._seen :]:
            if wanted(node):
                heappush(self._heap, (key(node), node.place))
        self._seen = len(tree)
        while self._heap and gone(tree.nodes[self._heap[0][1]]):
            heappop(self._heap)
        return tree.nodes[self._heap[0][1]] if self._heap else None


class _Living:
    """For each node, how many of it and its descendants are not closed."""

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._closed: list[str] = []

    def close(self, candidate_id: str) -> None:
        self._closed.append(candidate_id)

    def count(self, tree: Tree, node: Node) -> int:
        for new in tree.nodes[len(self._counts) :]:
            self._counts.append(0)
            self._add(new, 1)
        for closed in self._closed:
            if gone := tree.find(closed):
                self._add(gone, -1)
        self._closed.clear()
        return self._counts[node.place]

    def _add(self, node: Node, change: int) -> None:
        # Nothing says how to better a node that was not timed.
        if node.fitness > 0:
            for one in (node, *node.line()):
                self._counts[one.place] += change


def _may_be_repaired(node: Node, name: str) -> bool:
    kind = node.trial.evaluation.outcome.kind
    return kind != "cheated" and node.trial.candidate.origin == name
