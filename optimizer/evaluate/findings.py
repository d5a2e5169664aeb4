"""What a confirming run has found so far, and the evidence that it makes."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from knowledge.evidence import Conditions, Evidence, Figure, Interval, WorkloadEvidence
from knowledge.roofline import impossible_below_ms, memory_bound_ms
from operator_registry.record import digest
from operator_registry.spec import Workload
from optimizer.binding import launched
from optimizer.candidate import Candidate
from optimizer.evaluate import summary
from optimizer.evaluate.borrowed import is_borrowed
from optimizer.evaluate.building import Built
from optimizer.evaluate.cases import CheckedCase
from optimizer.evaluate.checking import Agreement
from optimizer.evaluate.conditions import Glance, describe
from optimizer.evaluate.faults import Clocks, describe_disturbance, find_faults
from optimizer.evaluate.peer_table import AbsentPeer, tell_absent
from optimizer.evaluate.peers import EAGER
from optimizer.evaluate.samples import find_samples, keep_samples, read_pairs
from optimizer.evaluate.weights import Weights
from optimizer.evaluate.workbench import JUDGE_VERSION, Workbench
from optimizer.profilers.compiler import resources
from optimizer.profilers.trace import Trace

_LONGEST_NAME = 120
"""Of a kernel: those of libraries hold all their template's arguments."""


@dataclass(frozen=True)
class Claim:
    """What a confirming run tests, fixed before it begins."""

    candidate: Candidate
    handed_back: frozenset[str]
    """The frozen dispatch table: workload -> the peer that serves it."""
    alpha: float
    minimum_gain: float
    seed: int
    """The master seed of sizes and values."""
    earlier: tuple[Evidence, ...] = ()
    """Of earlier confirming runs of the same candidate: their samples count as well."""


@dataclass
class Findings:
    """The readings of a run, and what else its evidence tells."""

    bench: Workbench
    claim: Claim
    figure: Figure
    twins: Mapping[str, str]
    """By workload, the peer that the A/A run measures against itself."""
    public: Sequence[CheckedCase]
    pairs: list[summary.Pair] = field(default_factory=list)
    bursts: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)
    """By workload, for each new pair: what a call takes in a row of calls; see `PairRun.bursts`."""
    first_ms: list[Mapping[str, Mapping[str, float]]] = field(default_factory=list)
    """For each new pair that got ready alone: what first calls took; see `PairRun.first_ms`."""
    glances: list[Glance] = field(default_factory=list)
    """The machine before and after the pairs."""
    earlier_pairs: int = 0
    """How many of them, the first, are those of earlier confirming runs."""
    errors: dict[str, Agreement] = field(default_factory=dict)
    """By public workload."""
    traces: dict[str, Trace] = field(default_factory=dict)
    """What a profiler saw of a call on each public workload."""
    weights: Weights = field(init=False)
    """The memory that both sides take."""
    absent: list[AbsentPeer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with no weights."""
        self.weights = Weights(self.bench.effort.guards)

    def recall(self) -> None:
        """Begin with the pairs of earlier confirming runs, where their samples are still here."""
        for evidence in self.claim.earlier:
            if self._is_same_claim(evidence):
                with contextlib.suppress(ValueError):  # a damaged file's samples are none
                    raw = find_samples(self.bench.folder, evidence.samples_sha256)
                    found = read_pairs(raw) if raw is not None else []
                    # Of several runs the last one's samples hold those of all before it.
                    self.pairs = found or self.pairs
        self.earlier_pairs = len(self.pairs)

    def _is_same_claim(self, evidence: Evidence) -> bool:
        served = {w.workload for w in evidence.workloads if w.served_by == evidence.candidate}
        mine = {case.workload.name for case in self.public} - self.claim.handed_back
        return served == mine and (
            evidence.candidate,
            evidence.operator_digest,
            evidence.environment,
            evidence.judge_version,
            evidence.figure,
        ) == (
            self.claim.candidate.id,
            self.bench.operator.digest,
            self.bench.environment,
            JUDGE_VERSION,
            self.figure,
        )

    def ratio(self) -> Interval:
        """Return the interval of the weighted geometric mean over the workloads."""
        return summary.describe_ratio(self._workloads(), alpha=self.claim.alpha)

    def evidence(self, built: Built, *, checked: Sequence[CheckedCase]) -> Evidence:
        """Return the evidence of a candidate whose outputs agreed on the checked cases."""
        bench, claim = self.bench, self.claim
        weighed = (self.weights.describe(row) for row in self._workloads())
        rows = [summary.with_first_calls(row, self.first_ms) for row in weighed]
        weights = {row.workload: row.weight for row in rows}
        return Evidence(
            candidate=claim.candidate.id,
            operator=bench.operator.name,
            operator_digest=bench.operator.digest,
            hardware=bench.hardware.name,
            environment=bench.environment,
            judge_version=JUDGE_VERSION,
            figure=self.figure,
            minimum_gain=claim.minimum_gain,
            alpha=claim.alpha,
            workloads=tuple(rows),
            ratio=summary.describe_ratio(rows, alpha=claim.alpha),
            versus_eager=summary.versus(rows, EAGER, self.figure),
            null=summary.describe_null(
                self.pairs, self._served_twins(), weights, figure=self.figure, alpha=claim.alpha
            ),
            host=claim.candidate.host,
            source_sha256=hashlib.sha256(claim.candidate.code.encode()).hexdigest(),
            resources=resources(built.artefact, bench.hardware),
            launched=self._launched(),
            library_only=is_borrowed(
                claim.candidate, bench.operator.spec, self.public, bench.effort.guards
            ),
            checked_sizes=len({_sizes_of(case.workload) for case in checked}),
            checked_seeds=len({seed for case in checked for seed in case.seeds}),
            distributions=tuple(dict.fromkeys(case.distribution for case in checked)),
            memory_leave=bench.operator.spec.precision.memory,
            seed=claim.seed,
            conditions=self._conditions(rows),
            faults=tuple(self._faults(rows)),
            not_tested=(
                *tell_absent(list(dict.fromkeys(self.absent))),
                *self.notes,
                *self._unlent(),
            ),
            earlier_pairs=self.earlier_pairs,
            samples_sha256=keep_samples(bench.folder, self.pairs),
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _served_twins(self) -> Mapping[str, str]:
        """Return the twins on the workloads that the candidate serves: those in every pair."""
        served = {w: peer for w, peer in self.twins.items() if w not in self.claim.handed_back}
        return served or self.twins

    def _launched(self) -> tuple[str, ...]:
        """Return what ran: as the profiler saw it on a device, as the plan says on a processor."""
        traces = self.traces.values()
        seen = [name[:_LONGEST_NAME] for trace in traces for name in trace.kernels()]
        return tuple(dict.fromkeys(seen)) or launched(self.claim.candidate.plan)

    def _unlent(self) -> Iterator[str]:
        """Yield why outputs did not lie in the judge's own memory, where they did not."""
        lender = self.bench.place.lender
        if lender is not None and lender.obstacle is not None:
            yield lender.obstacle

    def _workloads(self) -> list[WorkloadEvidence]:
        served = sum(case.workload.name not in self.claim.handed_back for case in self.public)
        return [
            summary.describe_workload(
                self.pairs,
                self._describe(case),
                served_by=self.claim.candidate.id,
                figure=self.figure,
                workloads=served,
            )
            for case in self.public
        ]

    def _describe(self, case: CheckedCase) -> summary.Measured:
        workload, spec = case.workload, self.bench.operator.spec
        sizes = case.sizes[0] | case.output_sizes[0]
        hardware = self.bench.hardware
        agreement = self.errors[workload.name]
        return summary.Measured(
            workload=workload.name,
            sizes=workload.sizes,
            dtypes=dict(workload.dtypes),
            weight=workload.weight,
            roofline_ms=memory_bound_ms(spec, sizes, hardware, dtypes=workload.dtypes),
            impossible_below_ms=impossible_below_ms(spec, sizes, hardware, dtypes=workload.dtypes),
            handed_back=workload.name in self.claim.handed_back,
            error=agreement.error,
            reference_error=agreement.reference_error,
        )

    def _faults(self, rows: Sequence[WorkloadEvidence]) -> Iterator[str]:
        host_clock = self.bench.place.device == "cpu"
        for case, row in zip(self.public, rows, strict=True):
            yield from find_faults(
                self.pairs,
                self._describe(case),
                row.best_peer,
                clocks=Clocks(host=host_clock, bursts=self.bursts.get(row.workload, ())),
                guards=self.bench.effort.guards,
            )

    def _conditions(self, rows: Sequence[WorkloadEvidence]) -> Conditions | None:
        """Return what went on beside the pairs; None where nobody looked."""
        if len(self.glances) < 2:  # noqa: PLR2004 - before and after
            return None
        seen = describe(self.glances[0], self.glances[-1])
        return seen.model_copy(
            update=describe_disturbance(self.pairs, {row.workload: row.best_peer for row in rows})
            | {"input_sets": len(self.public[0].case.sets)}
        )


def _sizes_of(workload: Workload) -> str:
    """Return what makes two cases ones of the same sizes."""
    return digest(workload.model_copy(update={"name": "any"}))
