"""Ways through a landscape: by lot, and by the search's own tree, policy and proposers."""

import random
from typing import Final, Protocol

from knowledge.fitness import fitness
from optimizer.candidate import Candidate
from optimizer.landscapes.landscape import Landscape
from optimizer.landscapes.replay import Drafter, ReplayRunner
from optimizer.propose.proposer import Proposer
from optimizer.propose.tuner import Tuner
from optimizer.search.account import Account
from optimizer.search.asking import Asking
from optimizer.search.policy import Policy
from optimizer.search.tree import Tree
from optimizer.spending import Spending
from optimizer.store import Trial

TUNER: Final = "tuner"


class Course(Protocol):
    """Chooses one point after the other, and learns what each was worth."""

    def ask(self) -> int | None:
        """Return the place to try next, none twice; None when nothing is left."""
        ...

    def tell(self, place: int) -> None:
        """Take note that this one was tried."""
        ...


class RandomCourse:
    """Every point once, in an order by lot."""

    def __init__(self, landscape: Landscape, seed: int) -> None:
        """Draw the order."""
        self._order = list(range(landscape.size))
        random.Random(seed).shuffle(self._order)  # noqa: S311 - an order, no secret
        self._next = 0

    def ask(self) -> int | None:
        """See `Course.ask`."""
        return self._order[self._next] if self._next < len(self._order) else None

    def tell(self, place: int) -> None:
        """See `Course.tell`: nothing is learnt."""
        self._next += 1


class SearchCourse:
    """The search itself, but for the clock and the store: one candidate at a time."""

    def __init__(
        self, landscape: Landscape, policy: Policy, seed: int, *, tuner: Proposer | None = None
    ) -> None:
        """Begin with an empty tree.

        Args:
            landscape: What is searched.
            policy: Decides which node grows.
            seed: Of the drafts and of all that proposers draw.
            tuner: Another one than the search's own.
        """
        self._places = landscape.places
        self._runner = ReplayRunner(landscape)
        self._tree = Tree()
        drafter = Drafter(landscape, seed)
        self._asking = Asking(
            proposers={drafter.name: drafter, TUNER: tuner or Tuner()},
            tree=self._tree,
            policy=policy,
            account=_NoAccount(),
            seed=seed,
        )
        self._asked = dict[int, Candidate]()

    def ask(self) -> int | None:
        """See `Course.ask`."""
        self._asked = {self._places[one.id]: one for one in self._asking.propose(1)}
        return next(iter(self._asked), None)

    def tell(self, place: int) -> None:
        """See `Course.tell`."""
        candidate = self._asked[place]
        (evaluation,) = self._runner.evaluate([candidate])
        trial = Trial(
            number=len(self._tree) + 1,
            candidate=candidate,
            evaluation=evaluation,
            fitness=fitness(evaluation.outcome),
            spent_s=0.0,
        )
        self._tree.add(trial)


class _NoAccount(Account):
    """Of a search that costs nothing."""

    def __init__(self) -> None:
        self.spent = Spending()

    def add(self, what: Spending, *, source: str) -> None:
        """Nothing here spends."""


def race(landscape: Landscape, course: Course) -> int:
    """Return after how many points a course is within 5 % of the optimum.

    A course that ends before it has found one has taken as many as there are.
    """
    for count in range(1, landscape.size + 1):
        place = course.ask()
        if place is None:
            break
        if landscape.is_near(place):
            return count
        course.tell(place)
    return landscape.size
