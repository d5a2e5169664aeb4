"""Values with good defaults, for tests."""

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import Evidence, Interval, NullRun, PeerRow, WorkloadEvidence
from knowledge.outcome import Outcome, Passed, PeerTime, WorkloadTime
from operator_registry.hardware import CompileTarget, HardwareSpec, Limits
from optimizer.candidate import Candidate
from optimizer.plan import Launch, Plan

ENVIRONMENT = Environment(
    device="a processor", arch="x86-64-v3", torch="2.13", python="3.11", threads=2
)
HARDWARE = HardwareSpec(
    name="cpu-x86-64-v3",
    vendor="any",
    target="cpu",
    compile=CompileTarget(arch="x86-64-v3"),
    languages=("cpp",),
    limits=Limits(dram_bandwidth_gb_s=20, dram_gb=8, last_level_cache_mb=8),
)


def make_candidate(name: str = "one", *, parent: str | None = None, **chosen: int) -> Candidate:
    return Candidate(
        code=f"// {name}\n",
        plan=Plan(language="cpp", steps=(Launch(kernel="scale", arguments=("x", "y", "rows")),)),
        chosen=chosen,
        parent=parent,
        origin="test",
        note=f"draft {name}",
    )


def make_passed(*times_ms: float, peer_ms: float = 1.0) -> Passed:
    """One workload for each time, each with one peer."""
    peer = PeerTime(name="reference/eager", device_ms=peer_ms, call_ms=peer_ms)
    return Passed(
        times=tuple(
            WorkloadTime(workload=f"w{i}", weight=1, device_ms=t, call_ms=t, peers=(peer,))
            for i, t in enumerate(times_ms)
        )
    )


def make_evaluation(
    candidate: Candidate, outcome: Outcome | None = None, *, operator_digest: str = "0" * 64
) -> Evaluation:
    return Evaluation(
        candidate=candidate.id,
        operator="scale",
        operator_digest=operator_digest,
        hardware=HARDWARE.name,
        environment=ENVIRONMENT,
        judge_version="1",
        outcome=outcome or make_passed(0.5),
        took_s=0.1,
    )


def make_evidence(
    candidate: Candidate, *ratios: float, low: float | None = None, operator_digest: str = "0" * 64
) -> Evidence:
    """One workload for each ratio (one of 2.0 by default), with a tight interval around it."""
    workloads = tuple(
        WorkloadEvidence(
            workload=f"w{i}",
            sizes={"rows": 64},
            dtypes={},
            weight=1,
            served_by=candidate.id,
            device_ms=1 / ratio,
            call_ms=1.1 / ratio,
            peers=(PeerRow(name="reference/eager", device_ms=1.0, call_ms=1.1),),
            best_peer="reference/eager",
            pair_ratios=(ratio,) * 6,
            ratio=Interval(low=ratio * 0.99, estimate=ratio, high=ratio * 1.01),
            spread=(0.9 / ratio, 1.1 / ratio),
            error=0.0,
            reference_error=0.0,
        )
        for i, ratio in enumerate(ratios or (2.0,))
    )
    mean = workloads[0].ratio.estimate
    return Evidence(
        candidate=candidate.id,
        operator="scale",
        operator_digest=operator_digest,
        hardware=HARDWARE.name,
        environment=ENVIRONMENT,
        judge_version="1",
        figure="device_ms",
        minimum_gain=1.05,
        alpha=0.00025,
        workloads=workloads,
        ratio=Interval(low=low or mean * 0.99, estimate=mean, high=mean * 1.01),
        versus_eager=mean,
        null=NullRun(pair_ratios=(1.0,) * 6, ratio=Interval(low=0.99, estimate=1.0, high=1.01)),
        source_sha256="0" * 64,
        checked_sizes=21,
        seed=7,
        measured_at="2026-11-30T12:00:00Z",
    )
