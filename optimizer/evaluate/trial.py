"""A candidate in a worker process: loaded, checked case by case, and measured."""

import random
from collections.abc import Mapping, Sequence
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
from optimizer.evaluate.outputs import judge_outputs
from optimizer.evaluate.process import Process, attempt
from optimizer.evaluate.repeat import find_difference
from optimizer.evaluate.shelf import Shelf
from optimizer.evaluate.tray import Taken
from optimizer.evaluate.visits import Visit, Visits, plan_visits
from optimizer.profilers.trace import Trace, find_undeclared

QUICK_ELEMENTS = 1 << 18
"""Elements of a case's outputs up to which its runs take no time to speak of."""
_OBSERVE_S = 60.0
"""For the profiler to be loaded and set up."""
_STILL = "in the memory of the run before, as that run left it"
_ASIDE = "at inputs that begin at an odd address"


@dataclass(frozen=True)
class Trial:
    """A candidate and the process that it is loaded in."""

    operator: Operator
    hardware: HardwareSpec
    candidate: Candidate
    process: Process
    run_s: float
    """Seconds that one run may take."""
    thorough: bool = False
    """Whether large cases are run again too, as in a confirming run."""

    def load(
        self, built: Built, *, interpreted: bool = False
    ) -> Failed | TimedOut | Cheated | None:
        """Load the candidate's kernels; None where all is well.

        Args:
            built: Where they lie, and what they were when they were built.
            interpreted: Run the code under Triton's interpreter instead.
        """
        guards = self.process.place.guards
        fraud = find_fraud(built, self.candidate, guards)
        if fraud is not None:
            return fraud
        message = p.LoadCandidate(
            spec=self.operator.spec,
            hardware=self.hardware,
            plan=self.candidate.plan,
            chosen=self.candidate.chosen,
            folder=str(built.folder),
            interpreted=self.candidate.code if interpreted else None,
            reference=None if guards.up(Guard.SEPARATION) else self.operator,
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
        return self._find_change(found) or found if isinstance(found, p.Samples) else found

    def probe(self) -> Failed | TimedOut | None:
        """Return how the candidate has broken the device's context, None where all is well."""
        if self.process.place.device == "cpu":
            return None
        return attempt("run", self.process.probe)

    def weigh(self, case: CheckedCase) -> p.Weighed | Failed | TimedOut:
        """Return how much memory a call on a case takes."""
        message = p.Weigh(case=case.case.key, subject=p.CANDIDATE)

        def tell() -> p.Weighed:
            self.shelf(case)
            return self.process.tell(message, p.Weighed, deadline_s=self.run_s + _OBSERVE_S)

        return attempt("run", tell)

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
        shelf = attempt("load", lambda: self.shelf(case))
        if not isinstance(shelf, Shelf):
            return shelf
        spec, guards = self.operator.spec, self.process.place.guards
        visits = plan_visits(spec, len(case.case.sets), guards, rng)
        left: dict[int, Taken] = {}
        for visit in visits.first:
            taken = self._visit(case, visit, shelf, rng)
            if not isinstance(taken, Taken):
                return taken
            left[visit.number] = taken
        found = judge_outputs(self.operator, case, left)
        if not isinstance(found, Agreement) or not self._looks_closer(case):
            return found
        return self._check_again(case, visits, left, shelf, rng) or found

    def _looks_closer(self, case: CheckedCase) -> bool:
        """Return whether a case's sets are run again: in a search not where that takes long."""
        elements = sum(
            member.oracle.numel()
            for expectation in case.expectations
            for standard in expectation.standards
            for member in standard.members
        )
        return self.thorough or elements <= QUICK_ELEMENTS

    def _check_again(
        self,
        case: CheckedCase,
        visits: Visits,
        left: Mapping[int, Taken],
        shelf: Shelf,
        rng: random.Random,
    ) -> Outcome | None:
        """Return how a run elsewhere fails, or differs; None where all is well."""
        # The first of them because a candidate may keep its process from telling of an input that
        # it changed.
        for visit, where in ((visits.still, _STILL), (visits.aside, _ASIDE)):
            found = self._judge_again(case, visit, left, shelf, rng) if visit else None
            if isinstance(found, Incorrect):
                return found.model_copy(update={"reason": f"{found.reason}; {where}"})
            if found is not None:
                return found
        for visit in visits.again:
            taken = self._visit(case, visit, shelf, rng)
            if not isinstance(taken, Taken):
                return taken
            number = visit.number
            differs = find_difference(self.operator, case, number, left[number], taken)
            if differs is not None:
                return differs
        return None

    def _judge_again(
        self,
        case: CheckedCase,
        visit: Visit,
        left: Mapping[int, Taken],
        shelf: Shelf,
        rng: random.Random,
    ) -> Outcome | None:
        """Return how one more run of a set fails, None where all is well."""
        taken = self._visit(case, visit, shelf, rng)
        if not isinstance(taken, Taken):
            return taken
        found = judge_outputs(self.operator, case, {**left, visit.number: taken})
        return None if isinstance(found, Agreement) else found

    def _visit(
        self, case: CheckedCase, visit: Visit, shelf: Shelf, rng: random.Random
    ) -> Taken | Outcome:
        shelf.move(rng)
        ran = self._run(case, visit, shelf, rng)
        if not isinstance(ran, p.Ran):
            return ran
        return self._find_change(ran) or shelf.take(visit.number, ran.outputs)

    def shelf(self, case: CheckedCase) -> Shelf:
        """Return where calls on a case leave their outputs, with its inputs taken.

        Raises:
            ChildError: The process did not answer.
            RunnerError: There is no room for the outputs.
        """
        self.process.take(case.case)
        sized = self.candidate.host == "python"
        return Shelf(self.process, self.operator.spec, case, sized=sized)

    def _run(
        self, case: CheckedCase, visit: Visit, shelf: Shelf, rng: random.Random
    ) -> p.Ran | Failed | TimedOut:
        shelf.clear(visit.number, rng.randrange(256))
        message = p.Run(
            case=case.case.key,
            set=visit.number,
            subject=p.CANDIDATE,
            outputs=shelf.files(visit.number),
            shift=shelf.shift,
            poison=rng.getrandbits(48),
            seat=visit.seat,
        )
        return attempt("run", lambda: self.process.tell(message, p.Ran, deadline_s=self.run_s))

    def _find_change(self, ran: p.Ran | p.Samples) -> Incorrect | None:
        """Return what was written that nobody may write."""
        names = list(self.operator.spec.inputs)
        if ran.changed:
            return Incorrect(reason=f"the input {names[ran.changed[0]]} is written to")
        if ran.trampled:
            reason = f"memory beside the input {names[ran.trampled[0]]} is written to"
            return Incorrect(reason=reason)
        if isinstance(ran, p.Ran) and ran.overrun:
            return Incorrect(reason="memory beside an output or scratch buffer is written to")
        return None
