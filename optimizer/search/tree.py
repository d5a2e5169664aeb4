"""The graph of a search: its trials as nodes, and what follows from them."""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from knowledge.outcome import Passed
from optimizer.search.shares import Earned, rate
from optimizer.store import Trial


@dataclass(eq=False)
class Node:
    """A trial in the graph."""

    trial: Trial
    id: str
    """The candidate's, which takes a while to compute."""
    place: int
    """From 0, in the order added."""
    parent: "Node | None"
    """None for a draft, and for one whose parent is of another search."""
    mate: "Node | None"
    """The second parent of a crossover."""
    generation: int
    """0 for a draft, else one more than the later of its parents."""
    failures: int
    """So many in a row failed, up to and with this one: the depth of repairing."""
    children: list["Node"] = field(default_factory=list)
    """In the order added; those of which it is the mate as well."""
    visits: int = 0
    """Trials of this node and of all that were made from it."""
    value_sum: float = 0.0
    """The fitnesses of those trials."""
    descent: int = -1
    """The place of the last node whose trial was counted here."""

    @property
    def fitness(self) -> float:
        """Return the trial's."""
        return self.trial.fitness

    @property
    def rank(self) -> tuple[float, int]:
        """Return what orders nodes, the fittest first."""
        return -self.trial.fitness, self.place

    @property
    def passed(self) -> bool:
        """Return whether its outputs agreed, timed or not."""
        return isinstance(self.trial.evaluation.outcome, Passed)

    def line(self) -> "Iterator[Node]":
        """Yield its parent, that one's parent, and so on to a draft."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


class Tree:
    """Grows by a trial at a time. Its statistics follow from the trials and their order alone.

    So a search that is taken up again has the same tree as one that was never left. To add takes
    time by a node's depth, not by the number of nodes.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self.nodes: list[Node] = []
        """In the order added."""
        self.drafts: list[Node] = []
        """Nodes without a parent here."""
        self.ranked: list[Node] = []
        """Nodes that were timed, the fittest first."""
        self.earned: dict[str, Earned] = {}
        """What each proposer has lately earned, by the origin of its candidates."""
        self.low = 0.0
        """The least fitness so far."""
        self.high = 0.0
        """The greatest."""
        self.curve: list[float] = []
        """The best fitness after each trial."""
        self.generation = 0
        """The latest of any node."""
        self.since_best = 0
        """Trials since the last one that was the best so far."""
        self._by_id: dict[str, Node] = {}
        self._offspring: Counter[tuple[str | None, str]] = Counter()
        for trial in trials:
            self.add(trial)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def __contains__(self, candidate_id: object) -> bool:
        """Return whether a candidate was tried."""
        return candidate_id in self._by_id

    @property
    def trials(self) -> Sequence[Trial]:
        """Return the trials in their order."""
        return tuple(node.trial for node in self.nodes)

    @property
    def best(self) -> Node | None:
        """Return the fittest node; of equal ones the first. None while none was timed."""
        return self.ranked[0] if self.ranked else None

    def find(self, candidate_id: str | None) -> Node | None:
        """Return a candidate's node."""
        return None if candidate_id is None else self._by_id.get(candidate_id)

    def children(self, parent: str | None) -> Sequence[Node]:
        """Return the children of a node; for None the drafts."""
        node = self.find(parent)
        return self.drafts if node is None else node.children

    def offspring(self, parent: str | None, proposer: str) -> int:
        """Return how many children of a node (None: how many drafts) a proposer has made."""
        return self._offspring[parent, proposer]

    def normalised(self, value: float) -> float:
        """Return a fitness between the least (0) and the greatest (1) so far; 0.5 if all equal."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    def add(self, trial: Trial) -> Node:
        """Return the new node of a trial; a candidate's first one, if it is there already."""
        candidate_id = trial.candidate.id
        if known := self.find(candidate_id):
            return known
        node = self._link(trial, candidate_id)
        self._count(node)
        self._rank(node)
        return node

    def _link(self, trial: Trial, candidate_id: str) -> Node:
        parent, mate = self.find(trial.candidate.parent), self.find(trial.candidate.mate)
        parents = [one for one in (parent, mate) if one is not None]
        before = parent.failures if parent else 0
        passed = isinstance(trial.evaluation.outcome, Passed)
        node = Node(
            trial=trial,
            id=candidate_id,
            place=len(self.nodes),
            parent=parent,
            mate=mate,
            generation=max((one.generation + 1 for one in parents), default=0),
            failures=0 if passed else before + 1,
        )
        self.nodes.append(node)
        self._by_id[node.id] = node
        self.generation = max(self.generation, node.generation)
        for one in dict.fromkeys(parents):
            one.children.append(node)
        if parent is None:
            self.drafts.append(node)
        self._offspring[parent.id if parent else None, trial.candidate.origin] += 1
        return node

    def _count(self, node: Node) -> None:
        """Count a trial in itself and in all on its line and its mate's, in each once.

        A mate's own mates are left out: in a population all come from all after some generations.
        """
        lines = [node, *node.line()]
        if node.mate is not None:
            lines += [node.mate, *node.mate.line()]
        for one in lines:
            if one.descent != node.place:
                one.descent = node.place
                one.visits += 1
                one.value_sum += node.fitness

    def _rank(self, node: Node) -> None:
        value = node.fitness
        is_best = value > (self.best.fitness if self.best else 0.0)
        origin = node.trial.candidate.origin
        before = self.earned.get(origin, Earned())
        earning = rate(passed=node.passed, is_best=is_best)
        self.earned[origin] = before.after(earning, at=len(self.nodes))
        self.low = value if len(self.nodes) == 1 else min(self.low, value)
        self.high = max(self.high, value)
        self.curve.append(max(value, self.best.fitness if self.best else 0.0))
        self.since_best = 0 if is_best else self.since_best + 1
        if value > 0:
            insort(self.ranked, node, key=lambda one: one.rank)
