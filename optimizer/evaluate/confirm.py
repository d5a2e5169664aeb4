"""The confirming run: held-out sizes, then process pairs, then the evidence."""

import hashlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from knowledge.evidence import Evidence, Figure, KernelResources, WorkloadEvidence
from knowledge.fitness import find_best_peer, pick_figure
from knowledge.outcome import Outcome, WorkloadTime
from knowledge.roofline import impossible_below_ms, memory_bound_ms
from optimizer.binding import launched
from optimizer.candidate import Candidate
from optimizer.errors import RunnerError
from optimizer.evaluate import summary
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.pairs import PairPlan, PairRun
from optimizer.evaluate.peer_table import AbsentPeer, PeerProcess, PeerTable, tell_absent
from optimizer.evaluate.peers import EAGER, needs_graph
from optimizer.evaluate.process import Process
from optimizer.evaluate.sandbox import ChildError
from optimizer.evaluate.screen import is_library_only
from optimizer.evaluate.statistics import relative_width
from optimizer.evaluate.trial import Trial
from optimizer.evaluate.workbench import JUDGE_VERSION, Workbench, fresh_seed
from optimizer.plan import ReadSize

_SETS = 2
_LEAST_PAIRS = 4
"""Below it, a narrow interval is luck."""
_HOST_PAIRS, _DEVICE_PAIRS = 6, 5


@dataclass
class Confirmation:
    """One confirming run of one candidate."""

    bench: Workbench
    candidate: Candidate
    handed_back: Mapping[str, str]
    alpha: float
    minimum_gain: float
    table: PeerTable
    """The peers' times for ranking."""
    until: float
    """When the run must have ended, on the monotonic clock."""
    _pairs: list[summary.Pair] = field(default_factory=list)
    _absent: list[AbsentPeer] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _errors: dict[str, Agreement] = field(default_factory=dict)
    """By public workload."""

    def __post_init__(self) -> None:
        """Draw the secrets of this run: the candidate is frozen."""
        self._seed = fresh_seed()
        self._rng = random.Random(self._seed)  # noqa: S311 - the seed is secret until the end
        self._figure: Figure = pick_figure(_as_times(self.table))

    def run(self) -> Evidence | Outcome:
        """Return the evidence, or the outcome of a candidate that fails.

        Raises:
            RunnerError: The machine failed.
        """
        fault = self.bench.screen(self.candidate)
        if fault is not None:
            return fault
        public = self.bench.public_cases(sets=_SETS)
        checks = [*self._drawn(), *self._scaled()]
        try:
            built = self._build([*checks, *public])
            if not isinstance(built, Built):
                return built
            failure = self._check(built, checks, public) or self._measure(built, public)
            if failure is not None:
                return failure
            return self._evidence(built, public, checked=len(checks) + len(public))
        finally:
            for case in [*checks, *public]:
                case.discard()

    def _drawn(self) -> list[CheckedCase]:
        effort = self.bench.effort
        return self.bench.drawn_cases(
            effort.confirmed_sizes,
            seed=self._rng.getrandbits(48),
            most=effort.confirmed_elements,
        )

    def _scaled(self) -> list[CheckedCase]:
        """Return the public workloads at the other magnitudes of the operator's domain."""
        scales = self.bench.operator.spec.precision.input_scales
        return [
            case
            for scale in scales
            if scale != 1.0
            for case in self.bench.public_cases(sets=1, scale=scale)
        ]

    def _build(self, cases: Sequence[CheckedCase]) -> Built | Outcome:
        try:
            return self.bench.build([self.candidate], cases)[0]
        except ChildError as error:
            msg = f"nothing can be built here: {error}"
            raise RunnerError(msg) from error

    def _check(
        self, built: Built, checks: Sequence[CheckedCase], public: Sequence[CheckedCase]
    ) -> Outcome | None:
        """Keep the errors on each public workload, or return how the candidate fails."""
        with Process(self.bench.place) as process:
            process.greet(timed=False)
            trial = self._trial(process)
            failure = trial.load(built.folder)
            if failure is not None:
                return failure
            held_out = trial.check(checks, self._rng)
            if not isinstance(held_out, Agreement):
                return held_out
            for case in public:
                found = trial.check([case], self._rng)
                if not isinstance(found, Agreement):
                    return found
                self._errors[case.workload.name] = found
        return None

    def _measure(self, built: Built, public: Sequence[CheckedCase]) -> Outcome | None:
        """Take the pairs; return how the candidate fails in one, None where it does not."""
        device = self.bench.place.device
        pairs = self.bench.effort.pairs or (_HOST_PAIRS if device == "cpu" else _DEVICE_PAIRS)
        peers: Mapping[str, Sequence[str]] = {
            case.workload.name: self._fair_peers(case) for case in public
        }
        while len(self._pairs) < pairs and not self._is_enough(public):
            began = time.monotonic()
            plan = PairPlan(public, peers, self._twins(), self.handed_back)
            failure = self._run_pair(built, plan)
            if failure is not None:
                return failure
            if len(self._pairs) == 1:
                peers = self._let_sit_out(peers)
            took_s = time.monotonic() - began
            if time.monotonic() + took_s > self.until:
                break
        return None

    def _run_pair(self, built: Built, plan: PairPlan) -> Outcome | None:
        bench = self.bench
        sides = [PeerProcess(bench.operator, bench.hardware, bench.place) for _ in range(2)]
        with Process(bench.place) as process, ExitStack() as stack:
            for side in sides:
                stack.callback(side.close)
                side.start()
            process.greet()
            trial = self._trial(process)
            failure = trial.load(built.folder)
            if failure is not None:
                return failure
            pair = PairRun(trial, plan, self._rng, sides[0], sides[1])
            left_s = max(0.0, self.until - time.monotonic())
            found = pair.run(budget_s=min(bench.effort.pair_s, left_s / 2))
        self._absent += pair.absent
        if not isinstance(found, dict):
            return found
        self._pairs.append(found)
        return None

    def _trial(self, process: Process) -> Trial:
        bench = self.bench
        return Trial(bench.operator, bench.hardware, self.candidate, process, bench.run_s)

    def _fair_peers(self, case: CheckedCase) -> tuple[str, ...]:
        """Return the peers; those under a CUDA graph only where the candidate could be as well."""
        waits = any(isinstance(step, ReadSize) for step in self.candidate.plan.steps)
        names = self.table.names(case.workload.name)
        return tuple(name for name in names if not (waits and needs_graph(name)))

    def _twins(self) -> dict[str, str]:
        """Return the best peer of each workload by the ranking: chosen before the run."""
        found = {}
        for time_ in _as_times(self.table):
            peer = find_best_peer(time_, self._figure)
            if peer is not None:
                found[time_.workload] = peer.name
        return found

    def _let_sit_out(self, peers: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
        first = self._pairs[0]
        kept: dict[str, Sequence[str]] = {}
        twins = self._twins()
        for workload, names in peers.items():
            stay = {*summary.staying(first[workload], self._figure), twins[workload]}
            kept[workload] = [name for name in names if name in stay]
            out = [name for name in names if name not in stay and name in first[workload]]
            if out:
                self._notes.append(
                    f"slower than {summary.SIT_OUT} times the best peer on {workload} in the first "
                    f"pair, and left out of the others: {', '.join(out)}"
                )
        return kept

    def _is_enough(self, public: Sequence[CheckedCase]) -> bool:
        if len(self._pairs) < _LEAST_PAIRS:
            return False
        rows = self._workloads(public)
        width = relative_width(summary.describe_ratio(rows, alpha=self.alpha))
        return width <= self.bench.effort.narrow_enough

    def _workloads(self, public: Sequence[CheckedCase]) -> list[WorkloadEvidence]:
        served = sum(case.workload.name not in self.handed_back for case in public)
        return [
            summary.describe_workload(
                self._pairs,
                self._describe(case),
                served_by=self.candidate.id,
                figure=self._figure,
                workloads=served,
            )
            for case in public
        ]

    def _describe(self, case: CheckedCase) -> summary.Measured:
        workload, spec = case.workload, self.bench.operator.spec
        sizes = case.sizes[0] | case.output_sizes[0]
        hardware = self.bench.hardware
        agreement = self._errors[workload.name]
        return summary.Measured(
            workload=workload.name,
            sizes=workload.sizes,
            dtypes=dict(workload.dtypes),
            weight=workload.weight,
            roofline_ms=memory_bound_ms(spec, sizes, hardware, dtypes=workload.dtypes),
            impossible_below_ms=impossible_below_ms(spec, sizes, hardware, dtypes=workload.dtypes),
            handed_to=self.handed_back.get(workload.name),
            error=agreement.error,
            reference_error=agreement.reference_error,
        )

    def _evidence(
        self,
        built: Built,
        public: Sequence[CheckedCase],
        *,
        checked: int,
    ) -> Evidence:
        rows = self._workloads(public)
        bench = self.bench
        weights = {row.workload: row.weight for row in rows}
        return Evidence(
            candidate=self.candidate.id,
            operator=bench.operator.name,
            operator_digest=bench.operator.digest,
            hardware=bench.hardware.name,
            environment=bench.environment,
            judge_version=JUDGE_VERSION,
            figure=self._figure,
            minimum_gain=self.minimum_gain,
            alpha=self.alpha,
            workloads=tuple(rows),
            ratio=summary.describe_ratio(rows, alpha=self.alpha),
            versus_eager=summary.versus(self._pairs, rows, EAGER, self._figure),
            null=summary.describe_null(
                self._pairs, self._twins(), weights, figure=self._figure, alpha=self.alpha
            ),
            source_sha256=hashlib.sha256(self.candidate.code.encode()).hexdigest(),
            resources=tuple(_resources(built)),
            launched=launched(self.candidate.plan),
            library_only=is_library_only(self.candidate),
            checked_sizes=checked,
            seed=self._seed,
            faults=tuple(self._faults(public, rows)),
            not_tested=(*tell_absent([*self.table.absent, *self._absent]), *self._notes),
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _faults(
        self, public: Sequence[CheckedCase], rows: Sequence[WorkloadEvidence]
    ) -> Iterator[str]:
        host_clock = self.bench.place.device == "cpu"
        for case, row in zip(public, rows, strict=True):
            measured = self._describe(case)
            yield from summary.find_faults(
                self._pairs, measured, row.best_peer, host_clock=host_clock
            )


def _as_times(table: PeerTable) -> list[WorkloadTime]:
    """Return the peers' table in the form that fitness knows; the candidate's times are none."""
    return [
        WorkloadTime(workload=workload, weight=1, device_ms=1, call_ms=1, peers=peers)
        for workload, peers in table.times.items()
        if peers
    ]


def _resources(built: Built) -> Iterator[KernelResources]:
    for compiled in built.artefact.compiled:
        yield KernelResources(
            kernel=compiled.kernel,
            artefact_sha256=compiled.sha256,
            registers=compiled.registers,
            spill_bytes=compiled.spill_bytes,
            shared_bytes=compiled.shared_bytes,
        )
