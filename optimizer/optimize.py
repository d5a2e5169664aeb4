"""The optimise job: search, prove, write the kernel's folder. Killed anywhere, it can go on."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from knowledge.evidence import (
    Better,
    Evidence,
    NotBetter,
    Unclear,
    Verdict,
)
from knowledge.outcome import Passed
from optimizer.candidate import Candidate
from optimizer.errors import CaptureError, KernelFolderError
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.walls_probe import find_missing
from optimizer.events import Phase, Tell, trial_event
from optimizer.job import Message, OptimizeRequest, OptimizeResult, PhaseEvent
from optimizer.kernel import Kernel, make_kernel, read_kernel
from optimizer.kernel_page import write_kernel
from optimizer.propose.proposer import Proposer, ScriptedProposer
from optimizer.propose.trust import refuse_untrusted
from optimizer.prove import Proving
from optimizer.runners.runner import Runner
from optimizer.search.budget import Budget, search_allowance
from optimizer.search.endings import Bounds, find_floors_ms
from optimizer.search.proof import find_evidence, rank
from optimizer.search.search import Clock, Place, Search
from optimizer.stop import StoppedError
from optimizer.store import Store, Trial
from optimizer.store.engine import file_lock


@dataclass(frozen=True)
class Workshop:
    """What a job works with; a test brings its own."""

    store: Store
    runner: Runner
    make_proposers: Callable[[], Sequence[Proposer]]
    """Called once the job knows that it has to search; captures the reference."""
    judge_version: str
    clock: Clock
    tell: Tell
    stopped: Callable[[], bool] = lambda: False
    missing_walls: Callable[[], Sequence[Guard]] = find_missing


def optimize(request: OptimizeRequest, workshop: Workshop) -> OptimizeResult:
    """Return how the goal's search ended; what is finished already is told again.

    Raises:
        RunnerError: The machine failed.
        StoreError: The database is away.
        KernelFolderError: The kernel's folder can't be written.
    """
    search_id = workshop.store.open_search(
        request.goal_key,
        operator=request.operator.name,
        hardware=request.hardware.name,
        operator_digest=request.operator.digest,
        now=workshop.clock.epoch_s(),
    )
    request.state_folder.mkdir(parents=True, exist_ok=True)
    # A job whose daemon was killed may live for some seconds beside the one that follows it.
    with file_lock(request.state_folder / f"search-{search_id}.lock"):
        if finished := workshop.store.find_result(search_id):
            return _recall(request, OptimizeResult.from_json(finished))
        return _Job(request, workshop, search_id).run()


@dataclass
class _Job:
    request: OptimizeRequest
    workshop: Workshop
    search_id: int

    def __post_init__(self) -> None:
        self._best = 0.0
        self._budget = Budget(total_s=self.request.budget_s)
        self._incumbent = _load_incumbent(self.request.incumbent_folder)
        self._fault = ""

    def run(self) -> OptimizeResult:
        """Return the result, which is in the store before it is told."""
        search = self._open()
        try:
            verdict = self._decide(search)
        except StoppedError:
            verdict = None
        if verdict is None:
            return self._result(search, "stopped", None)
        return self._finish(self._result(search, "finished", verdict))

    def _decide(self, search: Search) -> Verdict | None:
        """Return the verdict, or None where the job was asked to stop before there was one."""
        self._tell("capture")
        search.proposers = self._make_proposers()
        self._tell("baseline")
        # No candidates: the runner makes itself ready, and measures the peers if it never did.
        self.workshop.runner.evaluate(())
        search.begin()
        self._tell("search", left_s=self._budget.search_left_s(search.spent_s))
        search.run()
        if self.workshop.stopped():
            return None
        verdict = self._find_standing(search.trials) or self._prove(search)
        return None if self.workshop.stopped() else verdict

    def _finish(self, result: OptimizeResult) -> OptimizeResult:
        if result.kernel_folder is not None:
            self._tell("write", detail=str(result.kernel_folder))
            _write(self.request, result)
        now = self.workshop.clock.epoch_s()
        self.workshop.store.finish_search(self.search_id, result=result.to_json(), now=now)
        return result

    def _make_proposers(self) -> Sequence[Proposer]:
        known = [v.candidate for v in self._incumbent.variants.values()] if self._incumbent else []
        try:
            made = self.workshop.make_proposers()
        except CaptureError as error:
            self._fault = str(error)
            return (ScriptedProposer(known),)
        if not self.request.accept_weak_sandbox:
            refuse_untrusted(made, missing=self.workshop.missing_walls)
        return (ScriptedProposer(known), *made)

    def _open(self) -> Search:
        request = self.request
        workshop = self.workshop
        search = Search(
            store=workshop.store,
            place=Place(self.search_id, request.operator.digest, workshop.judge_version),
            runner=workshop.runner,
            proposers=(),
            budget=self._budget,
            clock=workshop.clock,
            on_trial=self._tell_trial,
            stopped=workshop.stopped,
            bounds=self._make_bounds(),
        )
        self._best = max((trial.fitness for trial in search.trials), default=0.0)
        return search

    def _prove(self, search: Search) -> Verdict:
        if self._fault and not search.trials:
            return Unclear(reason=f"no candidate could be made: {self._fault}")
        return Proving(self.request, search, self.workshop.tell).run()

    def _make_bounds(self) -> Bounds:
        request = self.request
        near = request.roofline_percent is not None
        return Bounds(
            allowance=search_allowance(request.allowance),
            trials=request.trials,
            fitness=request.fitness,
            roofline_percent=request.roofline_percent,
            floors_ms=find_floors_ms(request.operator.spec, request.hardware) if near else {},
        )

    def _find_standing(self, trials: Sequence[Trial]) -> Verdict | None:
        """Return NotBetter where the published kernel of this very operator is still as good."""
        incumbent = self._incumbent
        if incumbent is None or incumbent.operator.digest != self.request.operator.digest:
            return None
        names = {variant.candidate.id for variant in incumbent.variants.values()}
        theirs = max((t.fitness for t in trials if t.candidate.id in names), default=0.0)
        ours = max((t.fitness for t in rank(trials)), default=0.0)
        if theirs > 0 and ours < theirs * self.request.minimum_gain:
            reason = f"the published kernel stands: {theirs:.3f} beside {ours:.3f} of the best here"
            return NotBetter(reason=reason)
        return None

    def _result(self, search: Search, message: Message, verdict: Verdict | None) -> OptimizeResult:
        trials = search.trials
        evidence = find_evidence(self.workshop.store.confirmations(self.search_id))
        proven = isinstance(verdict, Better)
        outcomes = Counter(trial.evaluation.outcome.kind for trial in trials)
        return OptimizeResult(
            operator=self.request.operator.name,
            hardware=self.request.hardware.name,
            message=message,
            verdict=verdict,
            evidence=evidence,
            candidate=_pick_candidate(trials, evidence),
            kernel_folder=_folder(self.request) if proven else None,
            best_fitness=max((trial.fitness for trial in trials), default=0.0),
            trials=len(trials),
            passed=outcomes["passed"],
            outcomes=dict(outcomes),
            ending=search.ending,
            seconds=search.spent_s,
        )

    def _tell(self, phase: Phase, *, detail: str = "", left_s: float | None = None) -> None:
        self.workshop.tell(PhaseEvent(phase=phase, detail=detail, seconds_left=left_s))

    def _tell_trial(self, trial: Trial, left_s: float) -> None:
        self._best = max(self._best, trial.fitness)
        self.workshop.tell(trial_event(trial, best=self._best, left_s=left_s))


def _recall(request: OptimizeRequest, finished: OptimizeResult) -> OptimizeResult:
    """Return the result of an earlier process; its folder is written again if it is gone."""
    if finished.kernel_folder is not None:
        finished = finished.model_copy(update={"kernel_folder": _folder(request)})
        try:
            read_kernel(_folder(request))
        except KernelFolderError:
            _write(request, finished)
    return finished.model_copy(update={"message": "recalled"})


def _write(request: OptimizeRequest, result: OptimizeResult) -> None:
    if result.candidate is None or result.evidence is None:
        return
    kernel = make_kernel(
        request.operator, request.hardware, candidate=result.candidate, evidence=result.evidence
    )
    write_kernel(_folder(request), kernel)


def _folder(request: OptimizeRequest) -> Path:
    return request.out_folder / request.operator.name / request.hardware.name


def _load_incumbent(folder: Path | None) -> Kernel | None:
    """Return the published kernel; a damaged one is no incumbent."""
    if folder is None or not folder.exists():
        return None
    try:
        return read_kernel(folder)
    except KernelFolderError:
        return None


def _pick_candidate(trials: Sequence[Trial], evidence: Evidence | None) -> Candidate | None:
    if evidence is not None:
        return next((t.candidate for t in trials if t.candidate.id == evidence.candidate), None)
    passed = [t for t in trials if isinstance(t.evaluation.outcome, Passed)]
    return max(passed, key=lambda t: (t.fitness, -t.number)).candidate if passed else None
