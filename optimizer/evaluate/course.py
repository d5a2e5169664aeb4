"""What a candidate goes through in a search: loaded, checked, timed, and looked at once more."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, Passed, TimedOut, WorkloadTime
from optimizer.evaluate import protocol as p
from optimizer.evaluate.borrowed import is_borrowed
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.ledger import Ledger
from optimizer.evaluate.peer_table import PeerTable
from optimizer.evaluate.shrinking import Shrinking
from optimizer.evaluate.statistics import quick, undisturbed
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import Workbench
from optimizer.profilers.trace import Trace

_LEAST_SAMPLES, _MOST_SAMPLES = 5, 21


@dataclass(frozen=True)
class Course:
    """The course of each trial of a batch, the cheap before the dear."""

    bench: Workbench
    ledger: Ledger
    rng: random.Random
    public: Sequence[CheckedCase]
    """The public workloads' cases; none where nothing can be timed."""
    peers: PeerTable | None

    def run(self, trial: Trial, built: Built, drawn: Sequence[CheckedCase]) -> Outcome:
        """Return how a candidate's trial ends."""
        with self.ledger.phase("load"):
            failure = trial.load(built, interpreted=not self.bench.timed)
        if failure is not None:
            return failure
        with self.ledger.phase("check"):
            checked = trial.check([*drawn, *self.public], self.rng)
            if isinstance(checked, Incorrect):
                return Shrinking(trial, self.bench.maker.make, self.rng).shrink(checked)
        if not isinstance(checked, Agreement):
            return checked
        times = self._time(trial)
        if not isinstance(times, list):
            return times
        library_only = is_borrowed(
            trial.candidate, trial.operator.spec, self.public, self.bench.effort.guards
        )
        return (
            trial.probe()
            or self._observe(trial)
            or Passed(times=tuple(times), library_only=library_only)
        )

    def _time(self, trial: Trial) -> "list[WorkloadTime] | Failed | TimedOut | Incorrect | Cheated":
        times = []
        with self.ledger.phase("time"):
            for case in self.public:
                found = self._measure(trial, case)
                if not isinstance(found, WorkloadTime):
                    return found
                times.append(found)
        return times

    def _measure(
        self, trial: Trial, case: CheckedCase
    ) -> WorkloadTime | Failed | TimedOut | Incorrect | Cheated:
        found = trial.measure(
            case.case,
            budget_s=self.bench.effort.measure_s,
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
            peers=self.peers.times[workload.name] if self.peers else (),
        )

    def _observe(self, trial: Trial) -> Outcome | None:
        """Return how a Python host side cheats by what it runs, None where it does not.

        A plan runs what it says; a confirming run looks at both.
        """
        if trial.candidate.host == "plan" or not self.public:
            return None
        seen = trial.observe(self.public[0])
        return None if isinstance(seen, Trace) else seen
