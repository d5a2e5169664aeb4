"""A winner's profile beside its baseline's, by real processes."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.evidence import PeerRow
from knowledge.profile import Profile
from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.evaluate.building import Built
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.findings import Claim, Findings
from optimizer.evaluate.profiling import Profiling
from optimizer.profilers.trace import Activity, Trace
from tests.makers import OPERATOR, make_evidence
from tests.optimizer.evaluate.bad import GOOD
from tests.optimizer.evaluate.conftest import EFFORT
from tests.optimizer.evaluate.test_interpreted import make as make_triton

pytestmark = [pytest.mark.alone, pytest.mark.drill]

RAN = tuple(
    Activity(name=name, stream=7, begin_us=0, took_us=took)
    for name, took in (("small", 1), ("scale", 3), ("scale", 4))
)


@pytest.fixture(scope="module")
def judge(state: Path, host: HardwareSpec) -> Iterator[Evaluator]:
    with Evaluator(OPERATOR, host, folder=state, effort=EFFORT) as judge:
        yield judge


def take(
    judge: Evaluator, *peers: str, left_s: float, candidate: Candidate = GOOD
) -> tuple[Profile, ...]:
    """Return the profile of a winner, of which a device's profiler had seen `RAN`."""
    bench = judge._bench  # noqa: SLF001 - a confirming run that wins would take minutes
    public = bench.public_cases(sets=1)
    (built,) = bench.build([candidate], public)
    assert isinstance(built, Built)
    trace = Trace(activities=RAN, ops=(), window_us=(0, 9))
    claim = Claim(candidate, frozenset(), 0.01, 1.05, seed=1)
    findings = Findings(
        bench, claim, "device_ms", {}, public,
        traces={case.workload.name: trace for case in public},
    )  # fmt: skip
    evidence = make_evidence(candidate, 2.0, 2.0)
    rows = tuple(
        row.model_copy(
            update={"best_peer": peer, "peers": (PeerRow(name=peer, device_ms=1, call_ms=1),)}
        )
        for row, peer in zip(evidence.workloads, peers, strict=True)
    )
    try:
        look = Profiling(bench, candidate, built, findings, time.monotonic() + left_s)
        return look.take(evidence.model_copy(update={"workloads": rows}))
    finally:
        for case in public:
            case.discard()


@pytest.fixture(scope="module")
def profile(judge: Evaluator) -> tuple[Profile, ...]:
    return take(judge, "reference/eager", "nobody/eager", left_s=60)


def test_both_sides_are_told_on_each_workload(profile: tuple[Profile, ...]) -> None:
    assert [p.workload for p in profile] == ["w0", "w1"]
    assert profile[0].ours.subject == GOOD.id
    assert profile[0].baseline.subject == "reference/eager"
    assert profile[0].baseline.functions == ("aten::mul",)


def test_launches_are_summed_by_kernel_the_longest_first(profile: tuple[Profile, ...]) -> None:
    told = [(k.kernel, k.launches, k.device_ms) for k in profile[0].ours.kernels]

    assert told == [("scale", 2, 0.007), ("small", 1, 0.001)]


def test_what_was_not_measured_is_said(profile: tuple[Profile, ...]) -> None:
    assert any("hardware counters" in why for why in profile[0].ours.not_measured)
    assert profile[1].baseline.not_measured


def test_where_the_time_is_up_no_process_is_started(judge: Evaluator) -> None:
    found = take(judge, "reference/eager", "reference/eager", left_s=-1)

    assert found[0].baseline.not_measured[0] == "the time was up"


@pytest.mark.gpu
def test_a_device_shows_the_baselines_kernels_and_its_counters(
    state: Path, h200: HardwareSpec
) -> None:
    with Evaluator(OPERATOR, h200, folder=state, effort=EFFORT) as judge:
        peers = ("reference/eager", "reference/compile-default")
        profiles = take(judge, *peers, left_s=300, candidate=make_triton())

    for profile in profiles:
        assert profile.baseline.kernels
        assert all(kernel.device_ms > 0 for kernel in profile.baseline.kernels)
    for side in (profiles[0].ours, profiles[0].baseline):
        if shutil.which("ncu") is None:
            assert side.not_measured == ("hardware counters: there is no ncu here",)
        else:
            assert side.counters, side.not_measured
            assert all(counted.bandwidth_gb_s > 0 for counted in side.counters)
    assert [counted.kernel for counted in profiles[0].ours.counters] in ([], ["scale"])
