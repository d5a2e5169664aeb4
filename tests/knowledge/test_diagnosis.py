import signal
from typing import get_args

import pytest

from knowledge.bottleneck import TimeKind
from knowledge.diagnosis import DiagnosisKind, FaultKind, diagnose
from knowledge.outcome import Cheated, Failed, Incorrect, Outcome, Passed, TimedOut
from knowledge.roofline import public_rooflines_ms
from operator_registry.registry import CATALOG, load_registry
from tests.knowledge.faulty import FAULTY, Faulty
from tests.knowledge.situations import (
    H200,
    crash,
    driver,
    inexact,
    mismatch,
    resources,
    timed,
    wrong_form,
)

ONES = [1.0] * 64
SLOW = timed(1.0, 1.01, peer_ms=0.8, peer_call_ms=0.82)
KINDS: tuple[tuple[Outcome, DiagnosisKind], ...] = (
    (Failed(stage="screen", log="line 1: imports os"), "refused"),
    (Failed(stage="load", log="OSError: undefined symbol: cblas_sgemm"), "load_error"),
    (crash(signal.SIGSEGV), "crashed"),
    (driver(700, "an illegal memory access was encountered"), "crashed"),
    (driver(701, "too many resources requested for launch"), "out_of_resources"),
    (TimedOut(stage="run", deadline_s=10), "timed_out"),
    (Cheated(guard="threads", detail="2 threads outlive 4 of 4 calls"), "cheated"),
    (wrong_form(), "wrong_form"),
    (inexact(), "wrong_values"),
    (mismatch([2.0, *ONES[1:]], ONES), "wrong_values"),
    (mismatch([1.0003, *ONES[1:]], ONES), "imprecise"),
    (mismatch([float("nan"), *ONES[1:]], ONES), "not_finite"),
    (Incorrect(reason="y differs between two runs on the same inputs"), "nondeterministic"),
    (Incorrect(reason="memory beside the outputs is written to"), "writes_outside"),
    (Incorrect(reason="y: wrong; at inputs that begin at an odd address"), "needs_alignment"),
    (
        Incorrect(reason="y: wrong; in the memory of the run before, as that run left it"),
        "keeps_state",
    ),
    (Passed(times=()), "not_timed"),
    (SLOW.model_copy(update={"library_only": True}), "library_only"),
    (SLOW, "far_from_roofline"),
    (timed(0.006, 0.04, peer_ms=0.01, peer_call_ms=0.05), "launch_bound"),
    (timed(0.004, 0.009, peer_ms=0.008, peer_call_ms=0.01), "latency_bound"),
)


@pytest.mark.parametrize(("outcome", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_an_outcome_has_its_kind(outcome: Outcome, kind: DiagnosisKind) -> None:
    found = diagnose(outcome)

    assert found.kind == kind
    assert found.text


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: faulty.name)
def test_a_build_that_failed_is_told_with_its_signature(faulty: Faulty) -> None:
    found = diagnose(faulty.failure())
    expected = "out_of_resources" if faulty.name == "too_much_shared_memory" else "build_error"

    assert found.kind == expected
    assert found.signature
    assert found.terms


def test_every_kind_is_shown_by_a_test() -> None:
    shown = {kind for _, kind in KINDS}
    elsewhere = {"build_error", "near_roofline", "register_spills", "occupancy_limited"}

    assert shown | elsewhere == {*get_args(FaultKind), *get_args(TimeKind)}


def test_the_line_of_the_fault_is_told() -> None:
    faulty = next(f for f in FAULTY if f.name == "name_not_defined")

    assert diagnose(faulty.failure()).text.startswith(
        "The build failed at line 3 (tl.store(y_ptr + col, tl.load(x_ptr + column))): column is not"
    )


def test_near_the_roofline_says_the_share() -> None:
    found = diagnose(SLOW, rooflines_ms={"w": 0.9})

    assert found.kind == "near_roofline"
    assert "memory roofline 0.9 ms, of which it reaches 90%" in found.text
    assert found.workload == "w"


def test_spills_come_before_all_else() -> None:
    found = diagnose(SLOW, rooflines_ms={"w": 0.9}, resources=[resources(255, spill_bytes=7704)])

    assert found.kind == "register_spills"
    assert "spills 7704 bytes" in found.text


def test_low_occupancy_is_told_far_from_the_roofline_only() -> None:
    narrow = [resources(255)]

    assert diagnose(SLOW, rooflines_ms={"w": 0.2}, resources=narrow).kind == "occupancy_limited"
    assert diagnose(SLOW, rooflines_ms={"w": 0.9}, resources=narrow).kind == "near_roofline"


def test_the_workload_with_most_to_gain_is_told() -> None:
    near = SLOW.times[0].model_copy(update={"workload": "near"})
    far = SLOW.times[0].model_copy(update={"workload": "far"})

    found = diagnose(Passed(times=(near, far)), rooflines_ms={"near": 0.9, "far": 0.3})

    assert found.workload == "far"


def test_a_processor_has_no_launches() -> None:
    short = timed(0.004, 0.04, peer_ms=0.004, peer_call_ms=0.04)

    assert diagnose(short, on_device=False).kind == "far_from_roofline"


def test_the_counterexample_is_told_with_what_it_suggests() -> None:
    found = diagnose(mismatch([*ONES[:-1], 7.0], ONES, sizes={"rows": 3, "cols": 781}))

    assert "y[63] is 7, wanted is 1, at sizes cols=781, rows=3." in found.text
    assert "wrong only at odd sizes: mask of the tail" in found.terms


def test_public_workloads_have_their_rooflines() -> None:
    softmax = load_registry(CATALOG).operators["softmax"].spec
    found = public_rooflines_ms(softmax, H200)

    assert found.keys() == {workload.name for workload in softmax.workloads_on("cuda")}
    assert all(ms > 0 for ms in found.values())
