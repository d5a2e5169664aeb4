"""The search of a goal: propose, try, record, and so on until the budget's share is spent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from knowledge.evaluation import Evaluation, evaluation_key
from knowledge.evidence import Ending
from knowledge.fitness import fitness
from optimizer.candidate import Candidate
from optimizer.propose.proposer import Proposer, name_all
from optimizer.runners.runner import Runner
from optimizer.search.account import Account
from optimizer.search.asking import Asking
from optimizer.search.budget import Budget, Pace
from optimizer.search.endings import Bounds, find_ending
from optimizer.search.policies.greedy import Greedy
from optimizer.search.policy import Policy
from optimizer.search.refusals import Refusals
from optimizer.search.tree import Tree
from optimizer.spending import Spending
from optimizer.store import Store, Trial


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
    cpu_s: Callable[[], float] = lambda: 0.0
    """Processor time of this process and of all that it started; 0 where nobody counts."""


class _Enough(BaseException):
    """The search has ended in the middle of a batch; no `Exception`, so that nobody keeps it."""


@dataclass
class Search:
    """One search. All that it knows is in the store, so another process can go on with it.

    With a batch of 1 and nothing built ahead, what it does next depends on the trials alone: one
    that is killed anywhere and taken up again makes the same trials as one that was never killed.
    Otherwise it tries the same kinds of things in another order: candidates of one batch are chosen
    before any of it is seen, a new process begins a new batch, and a batch's size is set by time.
    """

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
    bounds: Bounds = field(default_factory=Bounds)
    seed: int = 0
    """Of what proposers draw; a policy has its own."""
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
        self.tree = Tree(trial for trial in before if self._holds_here(trial.evaluation))
        self.account = Account(self.store, self.place.search_id, self.clock.epoch_s)
        self.ending: Ending | None = None
        """Why it has ended; None while it goes on."""
        self._waiting: list[Candidate] = []

    def begin(self) -> None:
        """Count seconds from here: what was made ready before is not the search's."""
        self._started_s = self.clock.monotonic_s()

    @property
    def trials(self) -> Sequence[Trial]:
        """Return the trials in this environment so far, those of earlier processes too."""
        return self.tree.trials

    @property
    def spent_s(self) -> float:
        """Return the seconds spent on the goal, those of earlier processes too."""
        return self._spent_before_s + self.clock.monotonic_s() - self._started_s

    def run(self) -> Ending:
        """Search until something ends it, and return what.

        Raises:
            RunnerError: The machine failed.
            StoreError: The database is away.
        """
        self.ending = self._run()
        return self.ending

    def _run(self) -> Ending:
        asking = self._make_asking()
        pace = Pace()
        while (ending := self._find_ending()) is None:
            left_s = self.budget.search_left_s(self.spent_s)
            candidates = self._take(asking, pace.batch(left_s, at_most=self.batch))
            if not candidates:
                return self._find_ending() or "nothing_left"
            if self.runner.builds_ahead and not self._waiting:
                # Chosen without what this batch will show: the price of an idle compiler's time.
                self._waiting = asking.propose(self.batch, under_way=candidates)
            began_s = self.clock.monotonic_s()
            tried = self._try(candidates)
            pace = pace.after(tried, self.clock.monotonic_s() - began_s)
        return ending

    def _find_ending(self) -> Ending | None:
        if self.stopped():
            return "stopped"
        if self.budget.search_left_s(self.spent_s) <= 0:
            return "seconds"
        return find_ending(self.bounds, self.tree, self.account.spent)

    def _make_asking(self) -> Asking:
        key = f"search/{self.place.search_id}/refusals"
        kept = self.store.recall(key)
        return Asking(
            name_all(self.proposers),
            self.tree,
            self.policy,
            self.account,
            self.bounds.allowance,
            self.seed,
            refusals=Refusals() if kept is None else Refusals.from_json(kept),
            on_refusals=lambda refusals: self.store.mark(key, refusals.to_json()),
        )

    def _take(self, asking: Asking, count: int) -> list[Candidate]:
        """Return at most `count` candidates, those first that are being built already."""
        if not self._waiting:
            return asking.propose(count)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _try(self, candidates: Sequence[Candidate]) -> int:
        """Record each candidate's evaluation until the search ends; return how many were run."""
        tried = 0
        last_s, last_cpu_s = self.clock.monotonic_s(), self.clock.cpu_s()
        known = [(candidate, self._find(candidate)) for candidate in candidates]
        fresh = {candidate.id: candidate for candidate, found in known if found is None}

        def keep(evaluation: Evaluation) -> None:
            """Record it at once: whatever becomes of the others, this one is not lost."""
            nonlocal tried, last_s, last_cpu_s
            now_s, now_cpu_s = self.clock.monotonic_s(), self.clock.cpu_s()
            took_s, took_cpu_s = now_s - last_s, max(0.0, now_cpu_s - last_cpu_s)
            # First: what was spent is spent, even if nobody comes to know what for.
            self.account.add(Spending(device_s=took_s, cpu_s=took_cpu_s), source="trial")
            self._record(fresh[evaluation.candidate], evaluation, spent_s=took_s)
            tried, last_s, last_cpu_s = tried + 1, now_s, now_cpu_s
            self._heed_ending()

        try:
            for candidate, evaluation in known:
                if evaluation is not None:
                    self._record(candidate, evaluation, spent_s=0.0)
                    self._heed_ending()
            if fresh:
                ahead = [candidate for candidate in self._waiting if self._find(candidate) is None]
                self.runner.evaluate(list(fresh.values()), ahead=ahead, on_done=keep)
        except _Enough:
            pass
        return tried

    def _heed_ending(self) -> None:
        if self._find_ending() is not None:
            raise _Enough

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
        self.tree.add(trial)
        self.on_trial(trial, self.budget.search_left_s(self.spent_s))
