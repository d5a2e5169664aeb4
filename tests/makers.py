"""Values with good defaults, for tests."""

from hashlib import sha256

from knowledge.evaluation import Environment, Evaluation
from knowledge.evidence import (
    Evidence,
    Interval,
    KernelResources,
    NullRun,
    PeerRow,
    WorkloadEvidence,
)
from knowledge.outcome import Outcome, Passed, PeerTime, WorkloadTime
from knowledge.profile import KernelCounters, KernelTime, Profile, SideProfile, StallReason
from operator_registry.hardware import CompileTarget, HardwareSpec, Limits
from operator_registry.registry import Operator
from operator_registry.spec import (
    AttributeSpec,
    InputSpec,
    OperatorSpec,
    RangeAxis,
    TensorSpec,
    Workload,
)
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
OPERATOR = Operator(
    spec=OperatorSpec(
        name="scale",
        summary="y = factor * x",
        axes={"rows": RangeAxis(max=4096)},
        dtypes={"T": ("float32",)},
        inputs={"x": InputSpec(shape=("rows",), dtype="T")},
        attributes={"factor": AttributeSpec(value=2.0)},
        outputs={"y": TensorSpec(shape=("rows",), dtype="T")},
        reference="scale",
        workloads=(
            Workload(name="w0", sizes={"rows": 64}, dtypes={"T": "float32"}),
            Workload(name="w1", sizes={"rows": 1024}, dtypes={"T": "float32"}),
        ),
    ),
    source="def scale(x, factor):\n    return x * factor\n",
)
SCALE = """\
extern "C" void KERNEL(scale)(const T* x, T* y, int64_t rows, double factor) {
    for (int64_t i = 0; i < rows; ++i) y[i] = x[i] * static_cast<T>(factor);
}
"""


def make_candidate(name: str = "one", *, parent: str | None = None, **chosen: int) -> Candidate:
    arguments = ("x", "y", "rows", "factor")
    return Candidate(
        code=f"// {name}\n{SCALE}",
        plan=Plan(language="cpp", steps=(Launch(kernel="scale", arguments=arguments),)),
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
    candidate: Candidate, outcome: Outcome | None = None, *, operator_digest: str = OPERATOR.digest
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
    candidate: Candidate,
    *ratios: float,
    low: float | None = None,
    operator_digest: str = OPERATOR.digest,
) -> Evidence:
    """One workload for each ratio (one of 2.0 by default), with a tight interval around it."""
    workloads = tuple(
        WorkloadEvidence(
            workload=f"w{i}",
            sizes={"rows": 64 << 4 * i},
            dtypes={"T": "float32"},
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
        source_sha256=sha256(candidate.code.encode()).hexdigest(),
        checked_sizes=21,
        seed=7,
        measured_at="2026-11-30T12:00:00Z",
    )


def make_profiled(candidate: Candidate) -> Evidence:
    """Evidence of a gain of 2.0 with a profile, resources and distributions."""
    evidence = make_evidence(candidate, 2.0)
    counted = KernelCounters(
        kernel="mul", device_ms=1, dram_bytes=4e6, bandwidth_gb_s=4000,
        stalls=(StallReason(reason="long_scoreboard", share=0.6),),
    )  # fmt: skip
    ours = SideProfile(
        subject=candidate.id,
        kernels=(KernelTime(kernel="scale", launches=1, device_ms=0.5),),
        not_measured=("hardware counters: there is no ncu here",),
    )
    baseline = SideProfile(
        subject="reference/eager",
        kernels=(KernelTime(kernel="mul", launches=1, device_ms=1),),
        counters=(counted,),
    )
    resources = KernelResources(
        kernel="scale", artefact_sha256="abc" * 21 + "a", registers=32, spill_bytes=0,
        shared_bytes=0, occupancy=1.0,
    )  # fmt: skip
    row = evidence.workloads[0].model_copy(
        update={
            "share_of_roofline": 0.8,
            "quantiles_ms": tuple(0.4 + 0.01 * i for i in range(21)),
            "baseline_quantiles_ms": tuple(0.9 + 0.01 * i for i in range(21)),
        }
    )
    return evidence.model_copy(
        update={
            "workloads": (row,),
            "profile": (Profile(workload="w0", ours=ours, baseline=baseline),),
            "resources": (resources,),
            "launched": ("scale",),
            "samples_sha256": "d" * 64,
        }
    )
