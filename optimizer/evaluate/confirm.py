"""The confirming run: held-out sizes, then process pairs, then the evidence."""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from knowledge.evidence import Better, Evidence
from knowledge.fitness import find_best_peer, pick_figure
from knowledge.outcome import Incorrect, Outcome, WorkloadTime
from knowledge.verdict import judge
from optimizer.errors import RunnerError
from optimizer.evaluate import summary
from optimizer.evaluate.abreast import bytes_of_inputs, count_abreast
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.conditions import glance
from optimizer.evaluate.conduct import find_unseen
from optimizer.evaluate.contenders import let_sit_out, pick_contenders
from optimizer.evaluate.draws import SEED_BITS, count_confirmed
from optimizer.evaluate.findings import Claim, Findings
from optimizer.evaluate.pairs import PairPlan, PairProcesses, PairRun
from optimizer.evaluate.peer_table import PeerTable
from optimizer.evaluate.peers import needs_graph
from optimizer.evaluate.process import Process
from optimizer.evaluate.profiling import Profiling
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.rounds import NEW_SETS, WARM_SETS
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.shrinking import Shrinking
from optimizer.evaluate.statistics import least_pairs, relative_width
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import Workbench
from optimizer.plan import ReadSize
from optimizer.profilers.trace import Trace

_MOST_PAIRS = 24
"""Process pairs of one confirming run: a second one of the same candidate goes on from there."""


@dataclass
class Confirmation:
    """One confirming run of one candidate."""

    bench: Workbench
    claim: Claim
    table: PeerTable
    """The peers and their times for ranking."""
    until: float
    """When the run must have ended, on the monotonic clock."""

    def __post_init__(self) -> None:
        """Make the source of all that is drawn in this run: the candidate is frozen."""
        self._rng = random.Random(self.claim.seed)  # noqa: S311 - the seed is secret until the end

    def run(self) -> Evidence | Outcome:
        """Return the evidence, or the outcome of a candidate that fails.

        Raises:
            RunnerError: The machine failed.
        """
        fault = self.bench.screen(self.claim.candidate)
        if fault is not None:
            return fault
        with ExitStack() as stack:
            # Beside a device there are cores to spare, on which a pair's processes import torch.
            early = self._start_pair(stack) if self.bench.place.device != "cpu" else None
            public = self.bench.public_cases(sets=WARM_SETS + NEW_SETS)
            checks = [*self._drawn(), *self.bench.telling_cases(self._rng)]
            for case in [*checks, *public]:
                stack.callback(case.discard)
            built = self._build([*checks, *public])
            if not isinstance(built, Built):
                return built
            findings = self._begin(public)
            failure = self._check(built, checks, findings)
            failure = failure or self._measure(built, findings, early, stack)
            if failure is not None:
                return failure
            evidence = findings.evidence(built, checked=[*checks, *public])
            return self._profile(built, findings, evidence)

    def _profile(self, built: Built, findings: Findings, evidence: Evidence) -> Evidence:
        """Return a winner's evidence with its profile; nobody looks into the others."""
        allowed_s = self.bench.effort.profile_s
        if not allowed_s or not isinstance(judge(evidence), Better):
            return evidence
        until = time.monotonic() + allowed_s
        look = Profiling(self.bench, self.claim.candidate, built, findings, until)
        return evidence.model_copy(update={"profile": look.take(evidence)})

    def _drawn(self) -> list[CheckedCase]:
        effort = self.bench.effort
        return self.bench.drawn_cases(
            count_confirmed(self.bench.operator.spec, effort.confirmed_sizes),
            seed=self._rng.getrandbits(SEED_BITS),
            most=effort.confirmed_elements,
            most_at_end=effort.end_elements,
        )

    def _build(self, cases: Sequence[CheckedCase]) -> Built | Outcome:
        try:
            return self.bench.build([self.claim.candidate], cases, anew=True)[0]
        except ChildError as error:
            msg = f"nothing can be built here: {error}"
            raise RunnerError(msg) from error

    def _begin(self, public: Sequence[CheckedCase]) -> Findings:
        """Return findings that are empty, with the figure and the twins chosen beforehand."""
        times = {
            case.workload.name: WorkloadTime(
                workload=case.workload.name,
                weight=case.workload.weight,
                device_ms=1,
                call_ms=1,
                peers=tuple(
                    time
                    for time in self.table.times[case.workload.name]
                    if self._is_fair(time.name)
                ),
            )
            for case in public
        }
        figure = pick_figure(list(times.values()))
        best = {name: find_best_peer(time, figure) for name, time in times.items()}
        twins = {name: peer.name for name, peer in best.items() if peer is not None}
        absent = list(self.table.absent)
        findings = Findings(self.bench, self.claim, figure, twins, public, absent=absent)
        findings.recall()
        return findings

    def _is_fair(self, peer: str) -> bool:
        """Return whether a peer counts; one in a graph only if the candidate could be in one."""
        waits = any(isinstance(step, ReadSize) for step in self.claim.candidate.plan.steps)
        return not (waits and needs_graph(peer))

    def _check(
        self, built: Built, checks: Sequence[CheckedCase], findings: Findings
    ) -> Outcome | None:
        """Note the errors on each public workload, or return how the candidate fails."""
        with Process(self.bench.place) as process:
            process.greet(timed=False)
            trial = self._trial(process)
            failure = trial.load(built)
            if failure is not None:
                return failure
            failed = findings.weights.weigh_candidate(trial, findings.public)
            if failed is not None:
                return failed
            found = _check_all(trial, checks, findings, self._rng)
            if isinstance(found, Incorrect):
                return Shrinking(trial, self.bench.maker.make, self._rng).shrink(found)
            if found is not None:
                return found
            return _observe(trial, findings) or trial.probe()

    def _measure(
        self, built: Built, findings: Findings, early: PairProcesses | None, stack: ExitStack
    ) -> Outcome | None:
        """Take the pairs; return how the candidate fails in one, None where it does not.

        Only the interval's width and the budget, of time and of pairs, end it. The first pair is
        alone, for it tells which peers can sit out; then several get ready side by side.

        Args:
            built: The candidate.
            findings: Take what is measured.
            early: The processes of the first pair, where they have been started.
            stack: Ends the processes if all else fails.
        """
        device = self.bench.place.device
        pairs = findings.earlier_pairs + (self.bench.effort.pairs or _MOST_PAIRS)
        peers: Mapping[str, Sequence[str]] = {
            case.workload.name: pick_contenders(
                findings,
                case.workload.name,
                [t for t in self.table.times[case.workload.name] if self._is_fair(t.name)],
            )
            for case in findings.public
        }
        findings.glances.append(glance(device))
        while len(findings.pairs) < pairs and not self._is_enough(findings):
            began = time.monotonic()
            first = len(findings.pairs) == findings.earlier_pairs
            cases = self._measured(findings, first=first)
            plan = PairPlan(cases, peers, findings.twins, self.claim.handed_back)
            if first:
                batch = [early or self._start_pair(stack)]
            else:
                left = pairs - len(findings.pairs)
                batch = [self._start_pair(stack) for _ in range(min(left, self._abreast(cases)))]
            failure = self._run_batch(built, findings, plan, batch)
            if failure is not None:
                return failure
            if first:
                peers = let_sit_out(findings, self.table, peers)
            took_s = time.monotonic() - began
            # The first pair has all peers, most of which then sit out.
            next_s = took_s / 2 if first else took_s
            if time.monotonic() + next_s > self.until:
                break
        findings.glances.append(glance(device))
        return self._find_unseen(findings)

    def _abreast(self, cases: Sequence[CheckedCase]) -> int:
        room = count_abreast(self.bench.place, self.bench.hardware, bytes_of_inputs(cases))
        return self.bench.effort.abreast or room

    def _start_pair(self, stack: ExitStack) -> PairProcesses:
        return stack.enter_context(PairProcesses(self.bench))

    def _measured(self, findings: Findings, *, first: bool) -> Sequence[CheckedCase]:
        """Return the cases of a pair: of one that is handed back, the first pair tells enough.

        Its ratio is 1 by the dispatch table, and its peers take as long to compile as others.
        """
        handed_back = self.claim.handed_back
        served = [c for c in findings.public if c.workload.name not in handed_back]
        return findings.public if first or not served else served

    def _find_unseen(self, findings: Findings) -> Outcome | None:
        """Return what a profiler saw of a call that its events do not show."""
        for name, trace in findings.traces.items():
            pairs = [pair.get(name, {}) for pair in findings.pairs]
            readings = [r for pair in pairs for r in pair.get(CANDIDATE, ())]
            if readings:
                device_ms = summary.median_of(readings, "device_ms")
                unseen = find_unseen(trace, device_ms, self.bench.effort.guards)
                if unseen is not None:
                    return unseen
        return None

    def _run_batch(
        self,
        built: Built,
        findings: Findings,
        plan: PairPlan,
        batch: Sequence[PairProcesses],
    ) -> Outcome | None:
        """Take pairs that get ready side by side and are measured one after another.

        Return how the candidate fails in one, None where it does not.
        """
        pairs = [PairRun(self._trial(b.candidate), plan, self._rng, b.peers, b.twin) for b in batch]
        with _closing(pairs, batch), ThreadPoolExecutor(len(pairs)) as pool:
            # Nothing is timed before the last one is ready.
            for unfit in list(pool.map(lambda pair: _make_ready(pair, built), pairs)):
                if unfit is not None:
                    return unfit
            for pair in pairs:
                failure = self._run_pair(findings, pair, alone=len(pairs) == 1)
                if failure is not None or self._is_enough(findings):
                    return failure
        return None

    def _run_pair(self, findings: Findings, pair: PairRun, *, alone: bool) -> Outcome | None:
        left_s = max(0.0, self.until - time.monotonic())
        found = pair.measure(budget_s=min(self.bench.effort.pair_s, left_s / 2))
        findings.absent += pair.absent
        if not isinstance(found, dict):
            return found
        broken = pair.trial.probe()
        if broken is not None:
            return broken
        findings.pairs.append(found)
        findings.weights.weigh_peers(pair.peers, findings.public, _peers_of(found))
        if alone:  # first calls compile, and side by side they wait for each other
            findings.first_ms.append(pair.first_ms)
        for workload, bursts in pair.bursts.items():
            findings.bursts.setdefault(workload, []).append(bursts)
        return None

    def _is_enough(self, findings: Findings) -> bool:
        """Return whether the interval is narrow, whatever it shows.

        Fewer pairs than the level asks for may be alike by chance alone.
        """
        if len(findings.pairs) < max(2, least_pairs(self.claim.alpha)):
            return False
        return relative_width(findings.ratio()) <= self.bench.effort.narrow_enough

    def _trial(self, process: Process) -> Trial:
        bench = self.bench
        return Trial(
            bench.operator,
            bench.hardware,
            self.claim.candidate,
            process,
            bench.run_s(self.claim.candidate),
            thorough=True,
        )


def _make_ready(pair: PairRun, built: Built) -> Outcome | None:
    """Load the candidate and compile the peers; return how the candidate fails."""
    pair.trial.process.greet()
    return pair.trial.load(built) or pair.prepare()


@contextmanager
def _closing(pairs: Sequence[PairRun], batch: Sequence[PairProcesses]) -> Iterator[None]:
    """End the processes, then the threads of which some were started."""
    try:
        yield
    finally:
        for processes in batch:
            processes.close()
        for pair in pairs:
            pair.close()


def _peers_of(pair: summary.Pair) -> Mapping[str, Sequence[str]]:
    return {workload: summary.peers_in(readings) for workload, readings in pair.items()}


def _check_all(
    trial: Trial, checks: Sequence[CheckedCase], findings: Findings, rng: random.Random
) -> Outcome | None:
    """Note the errors on each public workload, or return how the candidate fails on any case."""
    held_out = trial.check(checks, rng)
    if not isinstance(held_out, Agreement):
        return held_out
    for case in findings.public:
        found = trial.check([case], rng)
        if not isinstance(found, Agreement):
            return found
        findings.errors[case.workload.name] = found
    return None


def _observe(trial: Trial, findings: Findings) -> Outcome | None:
    """Note what runs in a call on each public workload, or return how the candidate cheats."""
    for case in findings.public:
        seen = trial.observe(case)
        if not isinstance(seen, Trace):
            return seen
        findings.traces[case.workload.name] = seen
    return None
