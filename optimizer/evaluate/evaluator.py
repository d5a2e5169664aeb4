"""The judge of one goal: the only part that says correct or faster."""

import random
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Outcome, Passed, TimedOut
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate.batch import Batch, open_batch
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.confirm import Confirmation
from optimizer.evaluate.course import Course
from optimizer.evaluate.findings import Claim
from optimizer.evaluate.health import Watch, name_device
from optimizer.evaluate.ledger import Ledger
from optimizer.evaluate.peer_table import PeerTable
from optimizer.evaluate.process import Process
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import JUDGE_VERSION, Effort, Workbench, fresh_seed
from optimizer.evaluate.workers import Workers

__all__ = ["JUDGE_VERSION", "Effort", "Evaluator"]
_SETS = 2
_ATTEMPTS = 2
"""A worker that is killed from outside says nothing of its candidate, which is tried once more."""


class Evaluator:
    """Tries candidates for one operator on one hardware, in processes of their own.

    Where there is no device, Triton candidates are built and checked under the interpreter at
    small sizes; they pass without a time.
    """

    def __init__(
        self,
        operator: Operator,
        hardware: HardwareSpec,
        *,
        folder: Path,
        minimum_gain: float = 1.05,
        effort: Effort | None = None,
    ) -> None:
        """Look at the machine.

        Args:
            operator: What is to be computed.
            hardware: On what.
            folder: For artefacts and caches; may be deleted between two evaluators.
            minimum_gain: The ratio that a win must surpass; stands in the evidence.
            effort: How much is done.

        Raises:
            RunnerError: Nothing of this hardware can be run or checked here.
        """
        self._bench = Workbench(operator, hardware, folder=folder, effort=effort or Effort())
        self._minimum_gain = minimum_gain
        self._public: list[CheckedCase] | None = None
        self._rng = random.Random(fresh_seed())  # noqa: S311 - its seed is secret
        spares = self._bench.effort.spares if self.builds_ahead else 1
        self._workers = Workers(self._bench.place, timed=self._bench.timed, spares=spares)
        self._watch = _make_watch(self._bench)
        self._foreseen: Batch | None = None
        self.ledger = Ledger()
        self._close = weakref.finalize(self, self._bench.close)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End all processes and free the shared memory."""
        self._workers.close()
        self._close()

    @property
    def environment(self) -> Environment:
        """Return the environment in which results hold."""
        return self._bench.environment

    @property
    def shared_folder(self) -> Path:
        """Return the folder of shared memory through which tensors pass."""
        return self._bench.shared.path

    @property
    def builds_ahead(self) -> bool:
        """Return whether builds go on while a candidate is tried; see `Runner.builds_ahead`.

        Not where the processor itself is what is timed.
        """
        return not (self._bench.timed and self._bench.place.device == "cpu")

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        *,
        ahead: Sequence[Candidate] = (),
        on_done: Callable[[Evaluation], None] = lambda _: None,
    ) -> list[Evaluation]:
        """Return one evaluation for each candidate, in order; see `Runner.evaluate`.

        The peers are measured first, if they never were: also where there is no candidate.
        """
        public = self._public_cases()
        peers = self._bench.peer_table(public) if public else None
        self._warm_up()
        if not candidates:
            return []
        batch = self._open(candidates)
        if ahead and self.builds_ahead:
            self._foreseen = open_batch(self._bench, ahead, public, self.ledger)
        if not self.builds_ahead:
            self._settle(batch)
        evaluations = []
        try:
            for candidate in candidates:
                evaluation = self._evaluate(candidate, batch, peers)
                evaluations.append(evaluation)
                on_done(evaluation)
        finally:
            # Also where a search has ended in the middle of its batch.
            self._forget(batch)
        return evaluations

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
        earlier: Sequence[Evidence] = (),
    ) -> Evidence | Outcome:
        """Return the evidence of a confirming run; see `Runner.confirm`."""
        if not self._bench.timed:
            msg = f"there is no {self._bench.hardware.name} here, so nothing can be confirmed"
            raise RunnerError(msg)
        until = time.monotonic() + deadline_s
        if self._watch is not None:
            self._watch.refuse_cordoned()
        self._rest()
        self._bench.refuse_degenerate()
        peers = self._bench.peer_table(self._public_cases())
        dispatch = frozenset(handed_back)
        claim = Claim(
            candidate,
            dispatch,
            alpha,
            self._minimum_gain,
            seed=fresh_seed(),
            earlier=tuple(earlier),
        )
        return Confirmation(self._bench, claim, peers, until).run()

    def _public_cases(self) -> list[CheckedCase]:
        """Return the public workloads' cases; none where nothing can be timed."""
        if self._public is None:
            self._public = self._bench.public_cases(sets=_SETS) if self._bench.timed else []
        return self._public

    def _warm_up(self) -> None:
        """Start workers that will be wanted, while nothing is timed."""
        if self.builds_ahead or not self._workers.alive:
            self._workers.refill()

    def _settle(self, batch: Batch) -> None:
        """Wait until nothing is built or started any more, so that a processor can be timed."""
        with self.ledger.phase("build"):
            batch.settle()
        with self.ledger.phase("start"):
            self._workers.settle()

    def _rest(self) -> None:
        """End all that is at work: nothing else of ours runs beside a confirming run."""
        self._workers.close()
        self._bench.builder.abandon()
        if self._foreseen is not None:
            self._forget(self._foreseen)
            self._foreseen = None

    def _open(self, candidates: Sequence[Candidate]) -> Batch:
        """Return the batch that was foreseen, or a new one where others are asked for."""
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and foreseen.holds(candidates):
            return foreseen
        if foreseen is not None:
            self._forget(foreseen)
        return open_batch(self._bench, candidates, self._public_cases(), self.ledger)

    def _evaluate(self, candidate: Candidate, batch: Batch, peers: PeerTable | None) -> Evaluation:
        began = time.monotonic()
        with self.ledger.phase("build"):
            built = batch.built(candidate.id)
        outcome = self._try(candidate, built, batch.drawn, peers)
        self.ledger.trials += 1
        return self._record(candidate, outcome, batch.shared_s + time.monotonic() - began)

    def _try(
        self,
        candidate: Candidate,
        built: Built | Failed | TimedOut,
        drawn: Sequence[CheckedCase],
        peers: PeerTable | None,
    ) -> Outcome:
        if not isinstance(built, Built):
            return built
        course = Course(self._bench, self.ledger, self._rng, self._public_cases(), peers)
        for _ in range(_ATTEMPTS):
            with self.ledger.phase("start"):
                trial = self._make_trial(candidate)
            with self.ledger.lease(partial(self._worked_s, trial)):
                outcome = course.run(trial, built, drawn)
            if not isinstance(outcome, Passed) or candidate.host == "python":
                # It may have left anything behind: memory written to, threads, a broken device,
                # a changed torch, or the traces of the profiler that looked at it.
                self._workers.end()
            if isinstance(outcome, Passed) or not trial.process.was_killed:
                break
        return outcome

    def _worked_s(self, trial: Trial) -> float:
        """Return for how long the device's processes have been at work so far."""
        lender = self._bench.place.lender
        return trial.process.busy_s + (lender.busy_s if lender is not None else 0.0)

    def _make_trial(self, candidate: Candidate) -> Trial:
        bench = self._bench
        process = self._open_worker()
        if self.builds_ahead:
            self._workers.refill()
        run_s = bench.run_s(candidate)
        return Trial(bench.operator, bench.hardware, candidate, process, run_s)

    def _open_worker(self) -> Process:
        if self._watch is None:
            return self._workers.open()
        return self._watch.open(self._workers.open, self._workers.end)

    def _forget(self, batch: Batch) -> None:
        for case in batch.drawn:
            self._workers.forget(case.case)
            case.discard()

    def _record(self, candidate: Candidate, outcome: Outcome, took_s: float) -> Evaluation:
        bench = self._bench
        return Evaluation(
            candidate=candidate.id,
            operator=bench.operator.name,
            operator_digest=bench.operator.digest,
            hardware=bench.hardware.name,
            environment=bench.environment,
            judge_version=JUDGE_VERSION,
            outcome=outcome,
            took_s=took_s,
        )


def _make_watch(bench: Workbench) -> Watch | None:
    """Return what watches the device; a processor needs nobody."""
    if bench.place.device == "cpu":
        return None
    return Watch(bench.folder, name_device(bench.hardware.name))
