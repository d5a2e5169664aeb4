"""The proof's interval keeps its level whatever processes do, by simulation and by algebra."""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.evidence import LARGEST_RATIO
from optimizer.evaluate.statistics import (
    LUCK,
    least_pairs,
    proof_interval,
    ratio_interval,
    relative_width,
)

ALPHA = 1 / 64
"""Far laxer than a proof's, so that false wins can be counted; the procedure is the same."""
RUNS = 800
NARROW = 0.02
Draw = Callable[[np.random.Generator, int], np.ndarray[tuple[int], np.dtype[np.float64]]]


def two_modes(share: float, apart: float) -> Draw:
    """Each side's process is slow by `apart` in a share of the starts."""

    def draw(rng: np.random.Generator, pairs: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        slow = [(rng.random(pairs) < share).astype(float) for _ in range(2)]
        return np.asarray(apart * (slow[0] - slow[1]) + rng.normal(0, 0.003, pairs))

    return draw


def either_side(apart: float) -> Draw:
    """One of the two processes has the better core, never both: the worst for a t-interval."""

    def draw(rng: np.random.Generator, pairs: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.where(rng.random(pairs) < 1 / 2, apart, -apart) + rng.normal(0, 0.001, pairs)

    return draw


def bell(rng: np.random.Generator, pairs: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return rng.normal(0, 0.01, pairs)


def wins(draw: Draw, *, most: int, gain: float = 1.0) -> int:
    """Count the runs that end with the interval above 1; width and number of pairs end a run."""
    rng = np.random.default_rng(7)
    won = 0
    for _ in range(RUNS):
        ratios = [float(r) for r in gain * np.exp(draw(rng, most))]
        for pairs in range(least_pairs(ALPHA), most + 1):
            interval = proof_interval(ratios[:pairs], alpha=ALPHA)
            if relative_width(interval) <= NARROW:
                break
        won += interval.low > 1
    return won


@pytest.mark.parametrize(
    "draw",
    [bell, two_modes(0.5, 0.05), two_modes(0.1, 0.3), either_side(0.05), either_side(0.004)],
    ids=["bell", "two-modes", "rare-mode", "either-side", "either-side-narrow"],
)
def test_a_run_that_stops_by_width_wins_by_chance_no_oftener_than_its_level(draw: Draw) -> None:
    expected = ALPHA * RUNS

    assert wins(draw, most=11) <= expected + 3 * math.sqrt(expected)


def test_a_t_interval_alone_would_win_by_chance_where_processes_have_two_modes() -> None:
    rng = np.random.default_rng(7)
    draws = np.exp([either_side(0.05)(rng, 4) for _ in range(RUNS)])
    won = sum(ratio_interval(list(map(float, d)), alpha=0.00025).low > 1 for d in draws)

    assert won > 100 * 0.00025 * RUNS


def test_a_true_gain_of_ten_percent_is_seen_through_pairs_that_spread_by_one() -> None:
    assert wins(bell, most=11, gain=1.10 / 1.05) > 0.98 * RUNS


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=30), st.sampled_from([0.00025, 0.01]))
def test_it_is_never_narrower_than_the_t_interval(ratios: list[float], alpha: float) -> None:
    proof, plain = proof_interval(ratios, alpha=alpha), ratio_interval(ratios, alpha=alpha)

    assert proof.low <= plain.low
    assert proof.high >= plain.high
    assert proof.estimate == plain.estimate


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=16))
def test_swapping_the_sides_mirrors_it(ratios: list[float]) -> None:
    there = proof_interval(ratios, alpha=0.01)
    back = proof_interval([1 / ratio for ratio in ratios], alpha=0.01)

    if back.high < LARGEST_RATIO:
        assert there.low == pytest.approx(1 / back.high)


def test_pairs_too_few_for_the_level_may_all_have_been_lucky() -> None:
    few, enough = [1.2] * 12, [1.2] * 13

    assert least_pairs(0.00025) == 13
    assert proof_interval(few, alpha=0.00025).low == pytest.approx(1.2 / LUCK)
    assert proof_interval(enough, alpha=0.00025).low == pytest.approx(1.2)


def test_thirteen_pairs_of_which_one_is_below_the_goal_prove_nothing() -> None:
    """The chance that 12 or 13 of 13 coins agree is above the level."""
    ratios = [1.2] * 12 + [0.99]
    chance = 14 / 2**13

    assert chance > 0.00025
    assert proof_interval(ratios, alpha=0.00025).low <= 1


def test_many_pairs_come_near_the_level_of_the_bell() -> None:
    """With pairs to spare the guard against modes costs little: 24 pairs of a bell."""
    spread = [math.exp(0.01 * NormalDist().inv_cdf((i + 0.5) / 24)) for i in range(24)]
    order = np.random.default_rng(3).permutation(24)
    ratios = [spread[i] for i in order]
    proof, plain = proof_interval(ratios, alpha=0.00025), ratio_interval(ratios, alpha=0.00025)

    assert relative_width(proof) < 1.2 * relative_width(plain)
