"""From readings to evidence: which peer is the baseline, what the ratio is, what is suspicious."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from knowledge.evidence import WorkloadEvidence
from optimizer.evaluate.faults import Clocks, find_faults
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.summary import (
    TWIN,
    Measured,
    Pair,
    Reading,
    best_peer,
    describe_null,
    describe_ratio,
    describe_workload,
    median_of,
    staying,
    versus,
    with_first_calls,
)
from tests.makers import make_candidate, make_evidence

EAGER, FUSED = "reference/eager", "fused/eager"


def reading(ms: float, *, faults: int = 0, parent_ms: float | None = None) -> Reading:
    return Reading(ms, ms * 1.1, faults, 1.1 * ms + 0.2 if parent_ms is None else parent_ms)


def pair(**ms: float) -> Pair:
    """One workload `w`; ``reference`` and ``fused`` stand for the eager peers."""
    names = {"candidate": CANDIDATE, "twin": TWIN, "reference": EAGER, "fused": FUSED}
    return {"w": {names[name]: [reading(value)] * 3 for name, value in ms.items()}}


def make_measured(*, handed_back: bool = False, impossible_below_ms: float = 0.0) -> Measured:
    return Measured(
        workload="w",
        sizes={"rows": 8},
        dtypes={},
        weight=1.0,
        roofline_ms=0.5,
        impossible_below_ms=impossible_below_ms,
        handed_back=handed_back,
        error=1e-7,
        reference_error=2e-7,
    )


def describe(*pairs: Pair, measured: Measured | None = None) -> WorkloadEvidence:
    return describe_workload(
        pairs, measured or make_measured(), served_by="me", figure="device_ms", workloads=1
    )


def faults_of(readings: Mapping[str, list[Reading]], measured: Measured | None = None) -> list[str]:
    return list(
        find_faults([{"w": readings}], measured or make_measured(), EAGER, clocks=Clocks(host=True))
    )


def test_a_sample_that_may_hold_a_wait_for_the_host_counts_only_where_there_are_no_others() -> None:
    hidden = [reading(1.0), reading(1.2), reading(1.1)]
    dry = [replace(reading(9.0), dry=1)] * 4

    assert median_of([*dry, *hidden], "device_ms") == 1.1
    assert median_of([*dry, *hidden[:2]], "device_ms") == 9.0
    assert median_of([*dry, *hidden], "call_ms") == pytest.approx(9.9)


def test_the_baseline_is_the_fastest_peer_over_all_pairs() -> None:
    pairs = [pair(candidate=1, reference=2, fused=3), pair(candidate=1, reference=2, fused=1.9)]

    assert best_peer(pairs, "w", "device_ms") == EAGER


def test_a_peer_that_sat_out_is_no_baseline_but_stays_in_the_table() -> None:
    row = describe(pair(candidate=1, reference=2, fused=1.5), pair(candidate=1, reference=2))

    assert row.best_peer == EAGER
    assert {peer.name for peer in row.peers} == {EAGER, FUSED}


def test_the_ratio_is_taken_within_each_pair() -> None:
    """A pair in which all is twice as slow says the same."""
    row = describe(pair(candidate=1, reference=2), pair(candidate=2, reference=4))

    assert row.pair_ratios == (2.0, 2.0)
    assert row.ratio.estimate == pytest.approx(2.0)


def test_a_workload_that_is_handed_back_is_served_by_the_baseline_and_counts_as_one() -> None:
    pairs = [pair(reference=2, fused=3)] * 3

    row = describe(*pairs, measured=make_measured(handed_back=True))

    assert row.served_by == EAGER
    assert row.pair_ratios == (1.0, 1.0, 1.0)
    assert (row.ratio.low, row.ratio.high) == (1.0, 1.0)
    assert row.device_ms == 2


def test_the_share_of_the_roofline_is_of_the_device_time() -> None:
    assert describe(pair(candidate=2, reference=2)).share_of_roofline == pytest.approx(0.25)


def test_workloads_count_by_their_weight() -> None:
    fast = describe(pair(candidate=1, reference=4), pair(candidate=1, reference=4))
    even = fast.model_copy(update={"workload": "v", "pair_ratios": (1.0, 1.0)})
    heavy = even.model_copy(update={"weight": 3.0})

    assert describe_ratio([fast, even], alpha=0.01).estimate == pytest.approx(2.0)
    assert describe_ratio([fast, heavy], alpha=0.01).estimate == pytest.approx(4**0.25)


def test_the_null_compares_the_best_peer_with_its_twin() -> None:
    pairs = [pair(reference=2, twin=2), pair(reference=2.2, twin=2)]

    null = describe_null(pairs, {"w": EAGER}, {"w": 1.0}, figure="device_ms", alpha=0.01)

    assert null.pair_ratios == pytest.approx((1.0, 1.1))


def test_a_null_without_a_twin_shows_nothing_and_proves_nothing() -> None:
    null = describe_null(
        [pair(reference=2)], {"w": EAGER}, {"w": 1.0}, figure="device_ms", alpha=0.1
    )

    assert null.pair_ratios == ()
    assert null.ratio.low <= 1 <= null.ratio.high


def test_eager_counts_even_if_it_sat_out() -> None:
    pairs = [pair(candidate=1, reference=4, fused=2), pair(candidate=1, fused=2)]
    row = describe(*pairs)

    assert versus([row], EAGER, "device_ms") == pytest.approx(4.0)


def test_peers_that_are_slow_here_and_in_the_ranking_sit_out() -> None:
    readings = pair(candidate=1, reference=2, fused=3.1, twin=2)["w"]

    assert staying(readings, {EAGER: 1.0, FUSED: 1.6}, "device_ms", behind=1.5) == (EAGER,)


def test_one_disturbed_measurement_sends_nobody_away() -> None:
    readings = pair(candidate=1, reference=2, fused=3.1)["w"]

    assert staying(readings, {EAGER: 1.0, FUSED: 1.4}, "device_ms", behind=1.5) == (EAGER, FUSED)


def test_page_faults_on_one_side_only_are_a_fault() -> None:
    clean, dirty = [reading(1)] * 5, [reading(1, faults=8160)] * 5

    (fault,) = faults_of({CANDIDATE: clean, EAGER: dirty})

    assert "page faults" in fault
    assert faults_of({CANDIDATE: dirty, EAGER: dirty}) == []
    assert faults_of({CANDIDATE: clean, EAGER: clean}) == []


def test_a_time_below_what_the_outputs_need_is_a_fault() -> None:
    readings = {CANDIDATE: [reading(1)] * 5, EAGER: [reading(2)] * 5}

    (fault,) = faults_of(readings, make_measured(impossible_below_ms=1.5))

    assert "data sheet" in fault


def test_a_kernel_that_tells_less_than_the_judge_saw_is_a_fault() -> None:
    lying = [reading(0.01, parent_ms=10.0)] * 5

    (fault,) = faults_of({CANDIDATE: lying, EAGER: [reading(5)] * 5})

    assert "the judge's clock saw" in fault


def test_a_clock_that_runs_ahead_is_a_fault() -> None:
    fast = [reading(5, parent_ms=1.0)] * 5

    assert any(
        "ran ahead" in fault for fault in faults_of({CANDIDATE: fast, EAGER: [reading(5)] * 5})
    )


def test_a_workload_that_a_peer_serves_has_no_faults_of_the_kernel() -> None:
    assert faults_of({EAGER: [reading(1)] * 3}, make_measured(handed_back=True)) == []


def test_first_calls_are_told_as_medians_of_both_sides() -> None:
    row = make_evidence(make_candidate()).workloads[0]
    pairs = [{"w0": {"candidate": ms, "reference/eager": 10 * ms}} for ms in (1.0, 3.0, 2.0)]

    told = with_first_calls(row, pairs)

    assert told.first_call_ms == 2.0
    assert told.peers[0].first_call_ms == 20.0
    assert with_first_calls(row, []) == row


def test_a_workload_that_a_peer_serves_has_that_peers_first_call() -> None:
    row = make_evidence(make_candidate()).workloads[0]
    row = row.model_copy(update={"served_by": "reference/eager"})

    told = with_first_calls(row, [{"w0": {"reference/eager": 7.0}}])

    assert told.first_call_ms == 7.0
