"""A search that is killed anywhere and taken up again is the one that was never killed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from knowledge.evidence import Ending
from knowledge.outcome import Failed, Outcome
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError
from optimizer.propose.proposer import NodeContext, Proposer
from optimizer.search.budget import Budget
from optimizer.search.endings import Bounds
from optimizer.search.policies import POLICIES
from optimizer.search.search import Clock, Place, Search
from optimizer.spending import Spending
from optimizer.store import Store
from tests.fakes import FakeRunner
from tests.makers import OPERATOR, make_candidate, make_passed

SIDE = 40


class Crash(BaseException):
    """A SIGKILL at a chosen point, in-process."""


@dataclass
class Crasher:
    """A store that dies before or after the calls of the given numbers."""

    store: Store
    at: frozenset[int] = frozenset()
    touches: int = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of the store with a touch on either side."""
        method = getattr(self.store, name)

        def call(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - stands in for every method
            self.touch()
            answer = method(*args, **named)
            self.touch()
            return answer

        return call

    def touch(self) -> None:
        self.touches += 1
        if self.touches in self.at:
            raise Crash


def at(x: int, y: int, origin: str) -> Candidate:
    return make_candidate(x=x % SIDE, y=y % SIDE).model_copy(update={"origin": origin})


class Stepper:
    """Goes one step in each direction; its drafts lie far apart."""

    name = "stepper"

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        if node.candidate is None:
            offered = [at(13 * i, 7 * i, self.name) for i in range(12)]
        else:
            x, y = node.candidate.chosen["x"], node.candidate.chosen["y"]
            steps = ((1, 0), (0, 1), (-1, 0), (0, -1))
            offered = [at(x + dx, y + dy, self.name) for dx, dy in steps]
        return [c for c in offered if c.id not in node.tried][:count]


@dataclass
class Dreamer:
    """Jumps by lot, crosses, costs tokens, and now and then has nothing or does not answer."""

    name: str = "dreamer"
    repairs: bool = True
    _spent: Spending = field(default_factory=Spending)

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        random = Random(f"{node.seed}/{len(node.history)}")  # noqa: S311 - no secret
        self._spent += Spending(tokens=100)
        luck = random.random()
        if luck < 0.2:
            message = "no answer"
            raise ProposalError(message)
        if luck < 0.3:
            return []
        x, y = random.randrange(SIDE), random.randrange(SIDE)
        if node.candidate is not None and node.mate is not None:
            x, y = node.candidate.chosen["x"], node.mate.candidate.chosen["y"]
        made = at(x, y, self.name)
        mate = node.mate.candidate.id if node.mate else None
        return [made.model_copy(update={"mate": mate})] if made.id not in node.tried else []

    def take_spending(self) -> Spending:
        spent, self._spent = self._spent, Spending()
        return spent


def try_one(candidate: Candidate) -> Outcome:
    x, y = candidate.chosen["x"], candidate.chosen["y"]
    if (x * 7 + y * 3) % 5 == 0:
        return Failed(stage="build", log="no")
    return make_passed(0.1 + ((x - 20) ** 2 + (y - 11) ** 2) / 100 + (x * y % 7) / 50)


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{folder}/store.db") as store:
        store.migrate()
        yield store


def run(store: Store, policy: str, *, trials: int) -> tuple[Search, Ending]:
    runner = FakeRunner(try_one)
    search_id = store.open_search(
        policy, operator="scale", hardware="h", operator_digest=OPERATOR.digest, now=0
    )
    proposers: list[Proposer] = [Stepper(), Dreamer()]
    search = Search(
        store=store,
        place=Place(search_id, OPERATOR.digest, "1"),
        runner=runner,
        proposers=proposers,
        budget=Budget(total_s=1e9),
        clock=Clock(runner.clock, runner.clock),
        policy=POLICIES[policy](3),
        bounds=Bounds(trials=trials, patience=10_000),
        batch=1,
    )
    return search, search.run()


def drill(folder: Path, policy: str, *, trials: int, crashes: int) -> None:
    with opened(folder / "whole") as store:
        counted = Crasher(store)
        whole, ending = run(cast("Store", counted), policy, trials=trials)
    points = Random(policy).sample(range(1, counted.touches), crashes)  # noqa: S311 - no secret
    with opened(folder / "crashed") as store:
        crasher = Crasher(store, frozenset(points))
        resumed = None
        for _ in range(crashes + 1):
            with suppress(Crash):
                resumed, again = run(cast("Store", crasher), policy, trials=trials)
                break

    assert resumed is not None
    assert ending == again == "trials"
    assert {trial.candidate.origin for trial in whole.trials} == {"stepper", "dreamer"}
    assert resumed.trials == whole.trials
    assert resumed.tree.best is not None
    assert whole.tree.best is not None
    assert resumed.tree.best.trial == whole.tree.best.trial


@pytest.mark.parametrize("policy", POLICIES)
def test_a_killed_search_goes_on_as_if_it_had_not_been(tmp_path: Path, policy: str) -> None:
    drill(tmp_path, policy, trials=40, crashes=10)


@pytest.mark.drill
@pytest.mark.parametrize("policy", POLICIES)
def test_three_hundred_trials_killed_at_fifty_points(tmp_path: Path, policy: str) -> None:
    drill(tmp_path, policy, trials=300, crashes=50)
