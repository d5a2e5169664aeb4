"""Searches on a device that says what it is told to say."""

from optimizer.propose.proposer import Proposer
from optimizer.search.budget import Budget
from optimizer.search.search import Clock, Place, Search
from optimizer.store import Store
from tests.fakes import FakeRunner
from tests.makers import OPERATOR


def make_search(
    store: Store, runner: FakeRunner, *proposers: Proposer, total_s: float = 1000, goal: str = "g"
) -> Search:
    """Return a search; the processors are busy for half of the device's time."""
    search_id = store.open_search(
        goal, operator="scale", hardware="h", operator_digest=OPERATOR.digest, now=0
    )
    return Search(
        store=store,
        place=Place(search_id, OPERATOR.digest, "1"),
        runner=runner,
        proposers=proposers,
        budget=Budget(total_s=total_s),
        clock=Clock(runner.clock, runner.clock, lambda: runner.clock() / 2),
    )
