"""The search of a goal: propose, try, record, and so on until the budget's share is spent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from knowledge.evaluation import Evaluation, evaluation_key
from knowledge.fitness import fitness
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError
from optimizer.propose.proposer import NodeContext, Proposer
from optimizer.runners.runner import Runner
from optimizer.search.budget import Budget, Pace, is_stalled
from optimizer.search.policies.greedy import Greedy
from optimizer.search.policy import Expansion, Growth, Policy
from optimizer.store import Store, Trial

log = structlog.get_logger()


@dataclass(frozen=True)
class Place:
    """Where a search stands in the store, and what its results are keyed by."""

    search_id: int
    operator_digest: str
    judge_version: str


@dataclass(frozen=True)
class Clock:
    """Time as arguments: tests bring their own."""

    monotonic_s: Callable[[], float]
    epoch_s: Callable[[], float]


@dataclass
class Search:
    """One search. All that it knows is in the store, so another process can go on with it."""

    store: Store
    place: Place
    runner: Runner
    proposers: Sequence[Proposer]
    budget: Budget
    clock: Clock
    on_trial: Callable[[Trial, float], None] = lambda trial, left_s: None
    """Called with each trial once it is recorded, and with the search's seconds left."""
    stopped: Callable[[], bool] = lambda: False
    policy: Policy = field(default_factory=Greedy)
    batch: int = 6
    """At most so many candidates are built together."""

    def __post_init__(self) -> None:
        """Take up what an earlier process left."""
        self._started_s = self.clock.monotonic_s()
        before = self.store.trials(self.place.search_id)
        proofs = self.store.confirmations(self.place.search_id)
        self._spent_before_s = sum(t.spent_s for t in before) + sum(p.spent_s for p in proofs)
        self._number = max((trial.number for trial in before), default=0)
        # Times of two environments are never compared: after a change, all is tried again.
        self._trials = [trial for trial in before if self._holds_here(trial.evaluation)]
        self._taken: dict[Expansion, int] = {}
        self._exhausted: set[Expansion] = set()
        self._waiting: list[Candidate] = []

    def begin(self) -> None:
        """Count seconds from here: what was made ready before is not the search's."""
        self._started_s = self.clock.monotonic_s()

    @property
    def trials(self) -> Sequence[Trial]:
        """Return the trials in this environment so far, those of earlier processes too."""
        return tuple(self._trials)

    @property
    def spent_s(self) -> float:
        """Return the seconds spent on the goal, those of earlier processes too."""
        return self._spent_before_s + self.clock.monotonic_s() - self._started_s

    def run(self) -> None:
        """Search until the budget's share is spent, nothing gets better, or it is stopped.

        Raises:
            RunnerError: The machine failed.
            StoreError: The database is away.
        """
        pace = Pace()
        while not self.stopped() and not is_stalled([t.fitness for t in self._trials]):
            left_s = self.budget.search_left_s(self.spent_s)
            candidates = self._take(pace.batch(left_s, at_most=self.batch))
            if not candidates:
                return
            if self.runner.builds_ahead and not self._waiting:
                # Chosen without what this batch will show: the price of an idle compiler's time.
                self._waiting = self._propose(self.batch, besides=candidates)
            began_s = self.clock.monotonic_s()
            tried = self._try(candidates)
            pace = pace.after(tried, self.clock.monotonic_s() - began_s)

    def _take(self, count: int) -> list[Candidate]:
        """Return at most `count` candidates, those first that are being built already."""
        if not self._waiting:
            return self._propose(count)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _propose(self, count: int, *, besides: Sequence[Candidate] = ()) -> list[Candidate]:
        """Return at most `count` new candidates, all of one parent.

        Args:
            count: How many.
            besides: Candidates that are about to be tried.
        """
        taken = frozenset(candidate.id for candidate in besides)
        found: dict[str, Candidate] = {}
        parent: str | None = None
        while len(found) < count and (expansion := self.policy.pick(self._growth())):
            if found and expansion.parent != parent:
                break
            parent = expansion.parent
            fresh = self._ask(expansion, count - len(found), taken | found.keys())
            found |= {candidate.id: candidate for candidate in fresh}
        return list(found.values())

    def _ask(self, expansion: Expansion, count: int, found: frozenset[str]) -> Sequence[Candidate]:
        tried = found | {trial.candidate.id for trial in self._trials}
        node = self._node(expansion.parent, tried)
        try:
            answer = self.proposers[expansion.proposer].propose(node, count)
        except ProposalError as error:
            log.warning("proposer is away", proposer=expansion.proposer, error=str(error))
            answer = ()
        fresh = {c.id: c for c in answer if c.id not in tried}
        self._taken[expansion] = self._taken.get(expansion, 0) + len(fresh)
        if not fresh:
            self._exhausted.add(expansion)
        return tuple(fresh.values())

    def _node(self, parent: str | None, tried: frozenset[str]) -> NodeContext:
        for trial in self._trials:
            if trial.candidate.id == parent:
                outcome = trial.evaluation.outcome
                return NodeContext(trial.candidate, outcome, trial.fitness, tried)
        return NodeContext(tried=tried)

    def _growth(self) -> Growth:
        return Growth(self._trials, len(self.proposers), self._taken, frozenset(self._exhausted))

    def _try(self, candidates: Sequence[Candidate]) -> int:
        """Record each candidate's evaluation; return how many had to be run."""
        known = [(candidate, self._find(candidate)) for candidate in candidates]
        for candidate, evaluation in known:
            if evaluation is not None:
                self._record(candidate, evaluation, spent_s=0.0)
        fresh = {candidate.id: candidate for candidate, found in known if found is None}
        last_s = self.clock.monotonic_s()

        def keep(evaluation: Evaluation) -> None:
            """Record it at once: whatever becomes of the others, this one is not lost."""
            nonlocal last_s
            now_s = self.clock.monotonic_s()
            self._record(fresh[evaluation.candidate], evaluation, spent_s=now_s - last_s)
            last_s = now_s

        if fresh:
            ahead = [candidate for candidate in self._waiting if self._find(candidate) is None]
            self.runner.evaluate(list(fresh.values()), ahead=ahead, on_done=keep)
        return len(fresh)

    def _holds_here(self, evaluation: Evaluation) -> bool:
        return (
            evaluation.environment == self.runner.environment
            and evaluation.judge_version == self.place.judge_version
        )

    def _find(self, candidate: Candidate) -> Evaluation | None:
        key = evaluation_key(
            candidate.id,
            self.place.operator_digest,
            self.runner.environment,
            self.place.judge_version,
        )
        return self.store.find_evaluation(key)

    def _record(self, candidate: Candidate, evaluation: Evaluation, *, spent_s: float) -> None:
        self._number += 1
        trial = Trial(
            number=self._number,
            candidate=candidate,
            evaluation=evaluation,
            fitness=fitness(evaluation.outcome),
            spent_s=spent_s,
        )
        self.store.record(self.place.search_id, trial, now=self.clock.epoch_s())
        self._trials.append(trial)
        self.on_trial(trial, self.budget.search_left_s(self.spent_s))
