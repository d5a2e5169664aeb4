"""A candidate in a worker process: loaded, checked case by case, and measured."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, TimedOut
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.evaluate import protocol as p
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.chain import find_fraud
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.guards import Guard
from optimizer.evaluate.memory import scrub
from optimizer.evaluate.outputs import Forms, judge_outputs
from optimizer.evaluate.process import Process, attempt
from optimizer.profilers.trace import Trace, find_undeclared

POISONS = (0xFF, 0x5A, 0x00, 0x7F)
"""What memory holds before a checked run: NaN and -1, large numbers, zeros, great numbers."""

_OBSERVE_S = 60.0
"""For the profiler to be loaded and set up."""


@dataclass(frozen=True)
class Trial:
    """A candidate and the process that it is loaded in."""

    operator: Operator
    hardware: HardwareSpec
    candidate: Candidate
    process: Process
    run_s: float
    """Seconds that one run may take."""

    def load(
        self, built: Built, *, interpreted: bool = False
    ) -> Failed | TimedOut | Cheated | None:
        """Load the candidate's kernels; None where all is well.

        Args:
            built: Where they lie, and what they were when they were built.
            interpreted: Run the code under Triton's interpreter instead.
        """
        fraud = find_fraud(built, self.candidate, self.process.place.guards)
        if fraud is not None:
            return fraud
        message = p.LoadCandidate(
            spec=self.operator.spec,
            hardware=self.hardware,
            plan=self.candidate.plan,
            chosen=self.candidate.chosen,
            folder=str(built.folder),
            interpreted=self.candidate.code if interpreted else None,
        )
        done = attempt("load", lambda: self.process.tell(message, p.Done, deadline_s=30.0))
        return None if isinstance(done, p.Done) else done

    def check(self, cases: Sequence[CheckedCase], rng: random.Random) -> Outcome | Agreement:
        """Return the worst error over all cases, or how the first case that fails does."""
        worst = Agreement()
        for case in cases:
            found = self._check(case, rng)
            if not isinstance(found, Agreement):
                return found
            worst = Agreement(
                max(worst.error, found.error), max(worst.reference_error, found.reference_error)
            )
        return worst

    def measure(
        self, case: p.Case, *, budget_s: float, least: int, most: int
    ) -> p.Samples | Failed | TimedOut | Incorrect:
        """Return samples of the candidate on a case, after it has been warmed up."""
        deadline_s = self.run_s + 8 * budget_s
        prepare = p.Prepare(case=case.key, subject=p.CANDIDATE)
        measure = p.Measure(
            case=case.key, subject=p.CANDIDATE, budget_s=budget_s, least=least, most=most
        )
        ready = attempt(
            "run", lambda: self.process.tell(prepare, p.Prepared, deadline_s=deadline_s)
        )
        if not isinstance(ready, p.Prepared):
            return ready
        found = attempt("run", lambda: self.process.tell(measure, p.Samples, deadline_s=deadline_s))
        return self._find_change(found.changed) or found if isinstance(found, p.Samples) else found

    def observe(self, case: CheckedCase) -> Trace | Failed | TimedOut | Cheated:
        """Return what one call on a case runs; a candidate that runs the undeclared is a cheat."""
        message = p.Observe(case=case.case.key, set=0, subject=p.CANDIDATE)

        def run() -> p.Observed:
            self.process.take(case.case)
            return self.process.tell(message, p.Observed, deadline_s=_OBSERVE_S + self.run_s)

        seen = attempt("run", run)
        if not isinstance(seen, p.Observed):
            return seen
        undeclared = find_undeclared(seen.trace, self.candidate)
        if undeclared is not None and self.process.place.guards.up(Guard.LAUNCHED):
            return Cheated(guard=Guard.LAUNCHED, detail=undeclared)
        return seen.trace

    def _check(self, case: CheckedCase, rng: random.Random) -> Outcome | Agreement:
        forms: dict[int, Forms] = {}
        for number in range(len(case.case.sets)):
            ran = self._run(case, number, poison=rng.choice(POISONS))
            if not isinstance(ran, p.Ran):
                return ran
            changed = self._find_change(ran.changed)
            if changed is not None:
                return changed
            forms[number] = ran.outputs
        return judge_outputs(self.operator, case, forms)

    def _run(self, case: CheckedCase, number: int, *, poison: int) -> p.Ran | Failed | TimedOut:
        message = p.Run(
            case=case.case.key,
            set=number,
            subject=p.CANDIDATE,
            outputs=case.outputs[number],
            poison=poison,
        )

        def run() -> p.Ran:
            scrub(case.outputs[number], poison)
            self.process.take(case.case)
            return self.process.tell(message, p.Ran, deadline_s=self.run_s)

        return attempt("run", run)

    def _find_change(self, changed: Sequence[int]) -> Incorrect | None:
        names = list(self.operator.spec.inputs)
        if not changed:
            return None
        return Incorrect(reason=f"the input {names[changed[0]]} is written to")
