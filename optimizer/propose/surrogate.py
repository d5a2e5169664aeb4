"""A guess at what untried points of a grid are worth, from those that were tried (pure)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LENGTHS: Final = (0.35, 0.7, 1.4, 2.8)
"""How far, in widths of the grid, a value tells of another; the likeliest is taken."""
_NOISE: Final = 0.02
"""Share of the variance that neighbours do not explain: the clock's noise and the ruggedness."""
_ROOT_5: Final = math.sqrt(5)


@dataclass(frozen=True)
class Surrogate:
    """A Gaussian process with a Matern kernel of order 5/2 over the points that were tried."""

    points: Floats
    """Rows: points; columns: tunables, each from 0 to 1."""
    length: Floats
    """For each tunable."""
    mean: float
    deviation: float
    factor: Floats
    """The lower Cholesky factor of the points' covariance."""
    weights: Floats

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the expected value and its standard deviation at each point."""
        across = _covariance(points, self.points, self.length)
        expected = self.mean + self.deviation * (across @ self.weights)
        solved = np.linalg.solve(self.factor, across.T)
        left = np.maximum(1.0 - np.sum(solved * solved, axis=0), 1e-12)
        return expected, self.deviation * np.sqrt(left)


def fit(points: Floats, values: Sequence[float]) -> Surrogate:
    """Return the process that explains the values best.

    Args:
        points: Rows: points that were tried; columns: tunables, each from 0 to 1.
        values: What each is worth; the logarithm of a fitness.
    """
    worth = np.asarray(values, dtype=np.float64)
    mean, deviation = float(worth.mean()), float(worth.std()) or 1.0
    scaled = (worth - mean) / deviation
    dimensions = points.shape[1]
    best, least = None, math.inf
    length = np.full(dimensions, LENGTHS[1])
    for axis in (None, *range(dimensions)):
        for tried in LENGTHS:
            moved = length.copy()
            moved[axis if axis is not None else slice(None)] = tried
            factor = np.linalg.cholesky(
                _covariance(points, points, moved) + _NOISE * np.eye(len(points))
            )
            weights = np.linalg.solve(factor.T, np.linalg.solve(factor, scaled))
            cost = 0.5 * float(scaled @ weights) + float(np.log(np.diag(factor)).sum())
            # Far relevance has to be paid for: few points could explain anything otherwise.
            cost += 0.15 * float(np.abs(np.log(moved / LENGTHS[1])).sum())
            if cost < least - 1e-9:
                least, best = cost, Surrogate(points, moved, mean, deviation, factor, weights)
        assert best is not None
        length = best.length
    return best


def _covariance(one: Floats, other: Floats, length: Floats) -> Floats:
    difference = (one[:, None, :] - other[None, :, :]) / length
    distance = _ROOT_5 * np.sqrt(np.sum(difference * difference, axis=2))
    covariance: Floats = (1.0 + distance + distance * distance / 3.0) * np.exp(-distance)
    return covariance
