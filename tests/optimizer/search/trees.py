"""Trials and trees for the tests of policies."""

from collections.abc import Iterable, Sequence

from knowledge.outcome import Failed, Outcome
from optimizer.candidate import Candidate
from optimizer.search.offers import Expansion, Offers
from optimizer.search.policy import Policy
from optimizer.search.tree import Tree
from optimizer.store import Trial
from tests.makers import make_candidate, make_evaluation, make_passed

BROKEN = Failed(stage="build", log="no")


def node_id(number: int) -> str:
    """Return the id of the candidate that `make_trial` gives this number."""
    return make_candidate(block=number).id


def make_trial(  # noqa: PLR0913 - a trial is many things
    number: int,
    fitness: float,
    *,
    parent: int | None = None,
    mate: int | None = None,
    origin: str = "one",
    outcome: Outcome | None = None,
) -> Trial:
    """Return a trial whose candidate is told by its number; fitness 0 is a failure."""
    candidate = make_candidate(block=number).model_copy(
        update={
            "parent": None if parent is None else node_id(parent),
            "mate": None if mate is None else node_id(mate),
            "origin": origin,
        }
    )
    outcome = outcome or (make_passed(1 / fitness) if fitness else BROKEN)
    return Trial(
        number=number,
        candidate=candidate,
        evaluation=make_evaluation(candidate, outcome),
        fitness=fitness,
        spent_s=1,
    )


def make_tree(*trials: Trial) -> Tree:
    """Return the tree of these trials."""
    return Tree(trials)


def drafted(*proposers: str, repairers: Sequence[str] = ()) -> Offers:
    """Return offers of proposers that have no drafts left."""
    offers = Offers(proposers, repairers)
    for name in proposers:
        offers.exhaust(Expansion(None, name))
    return offers


def pick_all(
    policy: Policy, tree: Tree, offers: Offers, *, most: int = 1000
) -> Iterable[Expansion]:
    """Yield each pick, of which nothing comes, until there is none."""
    for _ in range(most):
        expansion = policy.pick(tree, offers)
        if expansion is None:
            return
        yield expansion
        offers.exhaust(expansion)


def ids(candidates: Iterable[Candidate]) -> list[str]:
    """Return the candidates' ids."""
    return [candidate.id for candidate in candidates]
