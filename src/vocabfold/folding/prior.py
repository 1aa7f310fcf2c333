"""(neg, pos) table -> Prior: how far the rates of a column's values can be trusted.

A value seen three times, each time with a positive label, does not have the rate 1: how much its rate is worth
depends on how much the rates of a column differ at all. A beta distribution of the rates (its mean, and its
strength in rows) says so, and the one under which the counts are most likely is found here. The rate of a value
is then pulled towards the mean, as if it had been seen `strength` times more with that rate.

The likelihood is a sum over values of terms in neg, in pos and in neg + pos, so only the distinct numbers of
each are needed: N rows have at most sqrt(2 N) of them, however many values there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

_WEAKEST, _STRONGEST = 1e-3, 1e9  # strengths, in rows, that are told from none and from an infinite one
_FAR = 1e-4  # of a strength: so few rows have a series
_FARTHEST = 30.0  # the logit of a mean that is told from 0 and 1
_GRID = np.linspace(math.log(_WEAKEST), math.log(_STRONGEST), 25)
_DIGITS = 6  # that are kept of a prior, so that no rounding of a machine shows in a codebook

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """What is believed of the rate of a value before its rows are seen.

    A strength of 0 believes the rows alone; an infinite one gives all values the rate `mean`.
    """

    mean: float
    strength: float  # in rows

    def rates(self, neg: Floats, pos: Floats) -> Floats:
        """Return the rates of values with so many rows; without rows, it is the mean."""
        rows = neg + pos
        if math.isinf(self.strength):
            return np.full(rows.size, self.mean)
        weight = rows + self.strength
        rates = np.full(rows.size, self.mean)
        np.divide(pos + self.mean * self.strength, weight, out=rates, where=weight > 0)
        return rates


def fixed(neg: Floats, pos: Floats, n_values: NDArray[np.int64], strength: float) -> Prior:
    """Return the prior of a given strength, around the overall rate."""
    rows = (neg + pos) @ n_values
    return Prior(float(pos @ n_values / rows), float(strength))


def most_likely(neg: Floats, pos: Floats, n_values: NDArray[np.int64]) -> Prior:
    """Return the prior under which `n_values` values each with so many rows are most likely.

    Where chance explains the spread of the rates, the strength is infinite. It takes ln(N)/2 nats of likelihood
    to say otherwise: what one more parameter has to pay for itself on N rows (schwarz1978).
    """
    all_neg, all_pos = float(neg @ n_values), float(pos @ n_values)
    alike = Prior(_rounded(all_pos, all_neg), math.inf)
    if not (all_neg and all_pos):
        return alike
    excess = _excess(neg, pos, n_values)
    rows = all_neg + all_pos
    entropy = special.xlogy(all_pos, all_pos / rows) + special.xlogy(all_neg, all_neg / rows)

    def loss(point: Floats) -> tuple[float, Floats]:
        """Return minus the likelihood beyond that of one rate for all, in nats, and its slopes."""
        logit, log_strength = point
        mean, rest, strength = special.expit(logit), special.expit(-logit), math.exp(log_strength)
        told, by_mean, by_strength = excess(mean, rest, strength)
        base = all_pos * special.log_expit(logit) + all_neg * special.log_expit(-logit)
        slope = all_pos * rest - all_neg * mean + mean * rest * by_mean
        return entropy - base - told, -np.array([slope, strength * by_strength])

    # A coarse look first, at the rate of all rows and the mean rate of all values, with all strengths: a far
    # start could end beside the best one.
    of_values = float((pos / (neg + pos)) @ n_values / n_values.sum())
    means = [min(max(special.logit(mean), -_FARTHEST), _FARTHEST) for mean in (all_pos / rows, of_values)]
    starts = [np.array([logit, log_strength]) for logit in means for log_strength in _GRID]
    found = min(starts, key=lambda point: loss(point)[0])
    bounds = [(-_FARTHEST, _FARTHEST), (_GRID[0], _GRID[-1])]
    best = optimize.minimize(loss, found, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 0}).x
    if -loss(best)[0] <= math.log(rows) / 2 or best[1] >= _GRID[-1]:
        return alike
    # Near the best point the likelihood is flat, and only its slopes tell the last digits.
    low, high = np.transpose(bounds)
    polished = optimize.root(lambda point: loss(np.clip(point, low, high))[1], best, tol=1e-12)
    is_inside = bool(((low < polished.x) & (polished.x < high)).all())
    if polished.success and is_inside and loss(polished.x)[0] < loss(best)[0] + 1e-6:
        best = polished.x
    mean = special.expit(best[0])
    return Prior(_rounded(mean, 1 - mean), _significant(math.exp(best[1])))


def _excess(
    neg: Floats, pos: Floats, n_values: NDArray[np.int64]
) -> Callable[[float, float, float], tuple[float, float, float]]:
    """Return what gives the likelihood beyond one rate for all, and its slopes by logit(mean) and strength.

    With A(x; a) = ln Gamma(a + x) - ln Gamma(a) - x ln a, which is 0 for a value seen once, it is the sum over
    values of A(pos; mean s) + A(neg; (1 - mean) s) - A(neg + pos; s).
    """
    tables = [_distinct(side, n_values) for side in (pos, neg, neg + pos)]

    def excess(mean: float, rest: float, strength: float) -> tuple[float, float, float]:
        shares = mean, rest, 1.0
        values, slopes = [], []
        for (x, weights), share in zip(tables, shares, strict=True):
            a = share * strength
            value, slope = _surplus(x, a)
            values.append(float(weights @ value))
            slopes.append(float(weights @ slope))
        by_strength = mean * slopes[0] + rest * slopes[1] - slopes[2]
        return values[0] + values[1] - values[2], strength * (slopes[0] - slopes[1]), by_strength

    return excess


def _surplus(x: Floats, a: float) -> tuple[Floats, Floats]:
    """Return A(x; a) and its slope by a; where a is far larger than x, as a series, which does not cancel."""
    pairs = x * (x - 1) / 2
    thirds = pairs * (2 * x - 1) / 3
    value, slope = pairs / a - thirds / (2 * a * a), -pairs / (a * a) + thirds / (a * a * a)
    near = x > _FAR * a
    value[near] = special.gammaln(a + x[near]) - special.gammaln(a) - x[near] * math.log(a)
    slope[near] = special.digamma(a + x[near]) - special.digamma(a) - x[near] / a
    return value, slope


def _distinct(numbers: Floats, n_values: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the distinct numbers of rows, but 0 and 1, which tell nothing, and how many values have each."""
    distinct, where = np.unique(numbers, return_inverse=True)
    weights = np.zeros(distinct.size)
    np.add.at(weights, where, n_values)
    is_told = (distinct > 0) & (distinct != 1)
    return distinct[is_told], weights[is_told]


def _rounded(pos: float, neg: float) -> float:
    """Return the rate pos / (neg + pos), its smaller side with six significant digits."""
    rate, rest = pos / (neg + pos), neg / (neg + pos)
    return _significant(rate) if rate <= rest else 1 - _significant(rest)


def _significant(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
