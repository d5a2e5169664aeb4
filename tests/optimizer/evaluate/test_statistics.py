"""Intervals over process pairs."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.evidence import LARGEST_RATIO
from optimizer.evaluate.protocol import Sample
from optimizer.evaluate.statistics import (
    combined_ratios,
    is_calm,
    quick,
    ratio_interval,
    simultaneous,
    spread,
    undisturbed,
)

ratios = st.lists(st.floats(min_value=0.01, max_value=100), min_size=2, max_size=12)


@given(ratios)
def test_the_estimate_lies_inside(given_ratios: list[float]) -> None:
    interval = ratio_interval(given_ratios, alpha=0.01)

    assert interval.low <= interval.estimate * (1 + 1e-9)
    assert interval.estimate <= interval.high * (1 + 1e-9)


@given(ratios)
def test_swapping_the_sides_mirrors_the_interval(given_ratios: list[float]) -> None:
    """Nobody gains by being called the candidate."""
    there = ratio_interval(given_ratios, alpha=0.1)
    back = ratio_interval([1 / r for r in given_ratios], alpha=0.1)

    assert there.estimate == pytest.approx(1 / back.estimate)
    if there.high < LARGEST_RATIO and back.high < LARGEST_RATIO:
        assert there.low == pytest.approx(1 / back.high)


@given(ratios)
def test_a_stricter_level_widens(given_ratios: list[float]) -> None:
    strict = ratio_interval(given_ratios, alpha=0.001)
    lax = ratio_interval(given_ratios, alpha=0.1)

    assert strict.low <= lax.low
    assert strict.high >= lax.high


def test_one_pair_proves_nothing() -> None:
    interval = ratio_interval([2.0], alpha=0.05)

    assert interval.low == 0
    assert interval.estimate == pytest.approx(2.0)
    assert interval.high == LARGEST_RATIO


def test_no_pair_proves_nothing() -> None:
    assert ratio_interval([], alpha=0.05).high == LARGEST_RATIO


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("pairs", [3, 6])
def test_the_lower_end_is_above_the_truth_no_oftener_than_alpha(alpha: float, pairs: int) -> None:
    """Coverage: 4,000 draws with a fixed seed, within four standard errors."""
    rng = random.Random(f"{alpha} {pairs}")  # noqa: S311 - no secret
    draws = 4000

    wrong = sum(
        ratio_interval([math.exp(rng.gauss(0.2, 0.1)) for _ in range(pairs)], alpha=alpha).low
        > math.exp(0.2)
        for _ in range(draws)
    )

    assert wrong / draws == pytest.approx(alpha, abs=4 * math.sqrt(alpha / draws))


def test_workloads_are_combined_by_weight_within_each_pair() -> None:
    by_workload = {"a": [4.0, 1.0], "b": [1.0, 1.0]}

    assert combined_ratios(by_workload, {"a": 1, "b": 1}) == pytest.approx([2.0, 1.0])
    assert combined_ratios(by_workload, {"a": 1, "b": 0.001}) == pytest.approx([4.0, 1.0], rel=1e-2)


def test_several_intervals_share_the_level() -> None:
    assert simultaneous(0.05, 5) == pytest.approx(0.01)


def test_the_quick_figure_heeds_no_disturbance() -> None:
    assert quick([1.0, 1.1, 1.2, 8.0, 9.0, 60.0]) == pytest.approx(1.1)
    assert quick([3.0]) == 3.0


def test_ranking_prefers_samples_that_nobody_disturbed() -> None:
    quiet = [Sample(device_ms=1, call_ms=1, faults=0)] * 3
    disturbed = [Sample(device_ms=9, call_ms=9, faults=0, preemptions=1)] * 9

    assert undisturbed(disturbed + quiet) == quiet
    assert not is_calm(disturbed)
    assert undisturbed(disturbed + quiet[:2]) == disturbed + quiet[:2]


def test_the_spread_leaves_the_tails_out() -> None:
    assert spread([float(n) for n in range(101)]) == (10, 90)
    assert spread([3.0]) == (3, 3)
