"""The judge of one goal: the only part that says correct or faster."""

import random
import time
import weakref
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Incorrect, Outcome, Passed, TimedOut, WorkloadTime
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate import protocol as p
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.confirm import Confirmation
from optimizer.evaluate.findings import Claim
from optimizer.evaluate.peer_table import PeerTable
from optimizer.evaluate.process import Process
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.screen import is_library_only
from optimizer.evaluate.statistics import quick, undisturbed
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import JUDGE_VERSION, Effort, Workbench, fresh_seed

__all__ = ["JUDGE_VERSION", "Effort", "Evaluator"]
_SETS = 2
_LEAST_SAMPLES, _MOST_SAMPLES = 5, 21


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
        self._process: Process | None = None
        self._public: list[CheckedCase] | None = None
        self._rng = random.Random(fresh_seed())  # noqa: S311 - its seed is secret
        self._close = weakref.finalize(self, self._bench.close)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End all processes and free the shared memory."""
        self._kill()
        self._close()

    @property
    def environment(self) -> Environment:
        """Return the environment in which results hold."""
        return self._bench.environment

    @property
    def shared_folder(self) -> Path:
        """Return the folder of shared memory through which tensors pass."""
        return self._bench.shared.path

    def evaluate(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """Return one evaluation for each candidate, in order; see `Runner.evaluate`.

        The peers are measured first, if they never were: also where there is no candidate.
        """
        public = self._public_cases()
        peers = self._bench.peer_table(public) if public else None
        if not candidates:
            return []
        began = time.monotonic()
        effort = self._bench.effort
        drawn = self._bench.drawn_cases(
            effort.drawn_sizes if self._bench.timed else 2 * effort.drawn_sizes,
            seed=fresh_seed(),
            most=effort.drawn_elements if self._bench.timed else effort.interpreted_elements,
        )
        built = self._build(candidates, [*drawn, *public])
        shared_s = (time.monotonic() - began) / max(1, len(candidates))
        evaluations = []
        for candidate, done in zip(candidates, built, strict=True):
            began = time.monotonic()
            outcome = self._try(candidate, done, drawn, peers)
            took_s = shared_s + time.monotonic() - began
            evaluations.append(self._record(candidate, outcome, took_s))
        self._forget(drawn)
        return evaluations

    def confirm(
        self,
        candidate: Candidate,
        *,
        deadline_s: float,
        alpha: float,
        handed_back: Collection[str],
    ) -> Evidence | Outcome:
        """Return the evidence of a confirming run; see `Runner.confirm`."""
        if not self._bench.timed:
            msg = f"there is no {self._bench.hardware.name} here, so nothing can be confirmed"
            raise RunnerError(msg)
        until = time.monotonic() + deadline_s
        self._kill()  # nothing else of ours runs beside a confirming run
        peers = self._bench.peer_table(self._public_cases())
        dispatch = frozenset(handed_back)
        claim = Claim(candidate, dispatch, alpha, self._minimum_gain, seed=fresh_seed())
        return Confirmation(self._bench, claim, peers, until).run()

    def _public_cases(self) -> list[CheckedCase]:
        """Return the public workloads' cases; none where nothing can be timed."""
        if self._public is None:
            self._public = self._bench.public_cases(sets=_SETS) if self._bench.timed else []
        return self._public

    def _build(
        self, candidates: Sequence[Candidate], cases: Sequence[CheckedCase]
    ) -> list[Built | Failed | TimedOut]:
        faults = [self._bench.screen(candidate) for candidate in candidates]
        sound = [c for c, fault in zip(candidates, faults, strict=True) if fault is None]
        try:
            built = iter(self._bench.build(sound, cases))
        except ChildError as error:
            msg = f"nothing can be built here: {error}"
            raise RunnerError(msg) from error
        return [next(built) if fault is None else fault for fault in faults]

    def _try(
        self,
        candidate: Candidate,
        built: Built | Failed | TimedOut,
        drawn: Sequence[CheckedCase],
        peers: PeerTable | None,
    ) -> Outcome:
        if not isinstance(built, Built):
            return built
        trial = self._make_trial(candidate)
        outcome = self._run(trial, built, drawn, peers)
        if not isinstance(outcome, Passed):
            # It may have left anything behind: memory written to, threads, a broken device.
            self._kill()
        return outcome

    def _run(
        self,
        trial: Trial,
        built: Built,
        drawn: Sequence[CheckedCase],
        peers: PeerTable | None,
    ) -> Outcome:
        failure = trial.load(built, interpreted=not self._bench.timed)
        if failure is not None:
            return failure
        public = self._public_cases()
        checked = trial.check([*drawn, *public], self._rng)
        if not isinstance(checked, Agreement):
            return checked
        library_only = is_library_only(trial.candidate)
        times = []
        for case in public:
            time_or_failure = self._measure(trial, case, peers)
            if not isinstance(time_or_failure, WorkloadTime):
                return time_or_failure
            times.append(time_or_failure)
        return Passed(times=tuple(times), library_only=library_only)

    def _measure(
        self, trial: Trial, case: CheckedCase, peers: PeerTable | None
    ) -> WorkloadTime | Failed | TimedOut | Incorrect:
        found = trial.measure(
            case.case,
            budget_s=self._bench.effort.measure_s,
            least=_LEAST_SAMPLES,
            most=_MOST_SAMPLES,
        )
        if not isinstance(found, p.Samples):
            return found
        workload, samples = case.workload, undisturbed(found.samples)
        return WorkloadTime(
            workload=workload.name,
            weight=workload.weight,
            device_ms=quick([sample.device_ms for sample in samples]),
            call_ms=quick([sample.call_ms for sample in samples]),
            peers=peers.times[workload.name] if peers else (),
        )

    def _make_trial(self, candidate: Candidate) -> Trial:
        bench = self._bench
        if self._process is None or not self._process.alive:
            self._kill()
            self._process = Process(bench.place)
            self._process.greet(timed=bench.timed)
        return Trial(bench.operator, bench.hardware, candidate, self._process, bench.run_s)

    def _forget(self, cases: Sequence[CheckedCase]) -> None:
        for case in cases:
            if self._process is not None and self._process.alive:
                self._process.drop(case.case)
            case.discard()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

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
