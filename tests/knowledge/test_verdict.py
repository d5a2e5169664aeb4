"""The verdict that evidence proves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.evidence import Better, Evidence, Interval, NotBetter, NullRun, Unclear
from knowledge.verdict import judge
from tests.makers import make_candidate, make_evidence

CANDIDATE = make_candidate()


def interval(low: float, high: float) -> Interval:
    return Interval(low=low, estimate=(low + high) / 2, high=high)


def make(ratio: Interval, *workloads: Interval, null: Interval | None = None) -> Evidence:
    evidence = make_evidence(CANDIDATE, *(w.estimate for w in workloads or (ratio,)))
    rows = tuple(
        row.model_copy(update={"ratio": given})
        for row, given in zip(evidence.workloads, workloads or (ratio,), strict=True)
    )
    run = NullRun(pair_ratios=(1.0, 1.0), ratio=null or interval(0.99, 1.01))
    return evidence.model_copy(update={"ratio": ratio, "workloads": rows, "null": run})


def test_an_interval_above_the_goal_is_better() -> None:
    assert judge(make(interval(1.06, 1.5))) == Better()


@pytest.mark.parametrize("low", [1.05, 1.0, 0.0])
def test_an_interval_that_reaches_the_goal_from_above_is_unclear(low: float) -> None:
    assert isinstance(judge(make(interval(low, 1.5))), Unclear)


def test_an_interval_below_the_goal_is_not_better() -> None:
    assert isinstance(judge(make(interval(0.99, 1.05))), NotBetter)


def test_a_workload_that_is_surely_slower_bars_a_win() -> None:
    verdict = judge(make(interval(1.5, 2.0), interval(2.0, 3.0), interval(0.9, 0.97)))

    assert isinstance(verdict, NotBetter)
    assert "w1" in verdict.reason


def test_a_workload_that_may_be_slower_makes_a_win_unclear() -> None:
    verdict = judge(make(interval(1.5, 2.0), interval(2.0, 3.0), interval(0.97, 1.1)))

    assert isinstance(verdict, Unclear)
    assert "w1" in verdict.reason


def test_a_workload_that_a_peer_serves_bars_nothing() -> None:
    evidence = make(interval(1.5, 2.0), interval(2.0, 3.0), interval(0.9, 0.97))
    lost = evidence.workloads[1].model_copy(update={"served_by": "reference/eager"})

    assert (
        judge(evidence.model_copy(update={"workloads": (evidence.workloads[0], lost)})) == Better()
    )


def test_a_kernel_that_serves_nothing_is_not_better() -> None:
    evidence = make(interval(1.5, 2.0))
    lost = evidence.workloads[0].model_copy(update={"served_by": "reference/eager"})

    assert isinstance(judge(evidence.model_copy(update={"workloads": (lost,)})), NotBetter)


@pytest.mark.parametrize("null", [interval(1.01, 1.2), interval(0.8, 0.99)])
def test_a_baseline_that_differs_from_itself_makes_all_unclear(null: Interval) -> None:
    assert isinstance(judge(make(interval(1.5, 2.0), null=null)), Unclear)


def test_without_an_a_a_run_nothing_is_proven() -> None:
    alone = make(interval(1.5, 2.0)).model_copy(
        update={"null": NullRun(pair_ratios=(), ratio=interval(0.0, 2.0))}
    )

    assert isinstance(judge(alone), Unclear)


def test_a_faulty_measurement_is_unclear() -> None:
    faulty = make(interval(1.5, 2.0)).model_copy(update={"faults": ("page faults on one side",)})

    verdict = judge(faulty)

    assert isinstance(verdict, Unclear)
    assert "page faults" in verdict.reason


def test_library_calls_alone_are_never_better() -> None:
    evidence = make(interval(1.5, 2.0)).model_copy(update={"library_only": True})

    assert isinstance(judge(evidence), NotBetter)


@given(st.floats(0.5, 3.0), st.floats(0.0, 1.0), st.floats(1.0, 2.0))
def test_better_always_means_that_the_lower_end_beats_the_goal(
    low: float, width: float, goal: float
) -> None:
    evidence = make(interval(low, low + width)).model_copy(update={"minimum_gain": goal})

    verdict = judge(evidence)

    assert isinstance(verdict, Better) == (low > goal)
    assert isinstance(verdict, NotBetter) == (low + width <= goal)


def test_a_ratio_of_too_few_pairs_is_told_without_its_endless_interval() -> None:
    endless = Interval(low=1e-12, estimate=1.2, high=1e9)

    verdict = judge(make(endless))

    assert isinstance(verdict, Unclear)
    assert "too few process pairs" in verdict.reason
