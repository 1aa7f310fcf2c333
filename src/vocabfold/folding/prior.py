"""(neg, pos) table -> Prior: how much the rates of infrequent values are shrunk towards the mean.

A value seen three times, each time with a positive label, hardly has a true rate of 1. How reliable its rate is
depends on how much the rates of the column vary. This is empirical Bayes: the beta distribution of rates (its
mean, and its strength in rows) that maximises the likelihood of the counts. The rate of a value is then shrunk
towards the mean, as if the value had been seen `strength` times more at that rate.

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

_WEAKEST, _STRONGEST = 1e-3, 1e9  # rows: strengths that differ from none and from an infinite one
_FAR = 1e-4  # of a strength: for fewer rows, a series is accurate
_FARTHEST = 30.0  # the logit of a mean that differs from 0 and 1
_GRID = np.linspace(math.log(_WEAKEST), math.log(_STRONGEST), 25)
_ROWS_OF_RARER = 8.0  # expected of a value whose rate is more than chance; measured, see docs/leakage.md
_DIGITS = 6  # digits kept of a prior, so that codebooks do not depend on the rounding of a machine

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """A beta prior of the rates of a column.

    Strength 0 leaves rates as observed; an infinite strength gives all values the rate `mean`.
    """

    mean: float
    strength: float  # in rows

    @property
    def rows_to_order(self) -> float:
        """Rows that a value needs before its place in the order by rate tells more than chance.

        Its rows are as many as the strength, so that they tell its rate better than the prior does. And they
        are expected to have some of the rarer label: of values that happen to have none, all have rates at one
        end of the order, and there trees would find rows of a single label.
        """
        rarer = min(self.mean, 1 - self.mean)
        return max(self.strength, _ROWS_OF_RARER / rarer) if rarer else math.inf

    def rates(self, neg: Floats, pos: Floats) -> Floats:
        """Return the shrunk rates of values with these counts; the mean if there are no rows."""
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
    """Return the prior of maximum likelihood, given `n_values` values of each pair of counts.

    If chance explains the spread of the rates, the strength is infinite. A finite strength has to gain ln(N)/2
    nats of log-likelihood: the price of one more parameter on N rows (schwarz1978).
    """
    all_neg, all_pos = float(neg @ n_values), float(pos @ n_values)
    alike = Prior(_rounded(all_pos, all_neg), math.inf)
    if not (all_neg and all_pos):
        return alike
    excess = _excess(neg, pos, n_values)
    rows = all_neg + all_pos
    entropy = special.xlogy(all_pos, all_pos / rows) + special.xlogy(all_neg, all_neg / rows)

    def loss(point: Floats) -> tuple[float, Floats]:
        """Return minus the log-likelihood beyond that of one rate for all, in nats, and its gradient."""
        logit, log_strength = point
        mean, rest, strength = special.expit(logit), special.expit(-logit), math.exp(log_strength)
        beyond, by_mean, by_strength = excess(mean, rest, strength)
        base = all_pos * special.log_expit(logit) + all_neg * special.log_expit(-logit)
        slope = all_pos * rest - all_neg * mean + mean * rest * by_mean
        return entropy - base - beyond, -np.array([slope, strength * by_strength])

    # First a coarse grid of strengths, at the rate of all rows and at the mean rate of all values: from a
    # distant start the optimiser could end in a local optimum.
    of_values = float((pos / (neg + pos)) @ n_values / n_values.sum())
    means = [min(max(special.logit(mean), -_FARTHEST), _FARTHEST) for mean in (all_pos / rows, of_values)]
    starts = [np.array([logit, log_strength]) for logit in means for log_strength in _GRID]
    found = min(starts, key=lambda point: loss(point)[0])
    bounds = [(-_FARTHEST, _FARTHEST), (_GRID[0], _GRID[-1])]
    best = optimize.minimize(loss, found, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 0}).x
    if -loss(best)[0] <= math.log(rows) / 2 or best[1] >= _GRID[-1]:
        return alike
    # Near the optimum the likelihood is flat, and only its gradient determines the last digits.
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
    """Return the function log-likelihood beyond one rate for all, with its slopes by logit(mean) and strength.

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
    """Return A(x; a) and its slope by a; if a is far larger than x, by a series, which does not cancel."""
    pairs = x * (x - 1) / 2
    thirds = pairs * (2 * x - 1) / 3
    value, slope = pairs / a - thirds / (2 * a * a), -pairs / (a * a) + thirds / (a * a * a)
    near = x > _FAR * a
    value[near] = special.gammaln(a + x[near]) - special.gammaln(a) - x[near] * math.log(a)
    slope[near] = special.digamma(a + x[near]) - special.digamma(a) - x[near] / a
    return value, slope


def _distinct(numbers: Floats, n_values: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the distinct numbers of rows except 0 and 1, whose terms vanish, and how many values have each."""
    distinct, where = np.unique(numbers, return_inverse=True)
    weights = np.zeros(distinct.size)
    np.add.at(weights, where, n_values)
    has_term = (distinct > 0) & (distinct != 1)
    return distinct[has_term], weights[has_term]


def _rounded(pos: float, neg: float) -> float:
    """Return the rate pos / (neg + pos), rounded to six significant digits of its smaller side."""
    rate, rest = pos / (neg + pos), neg / (neg + pos)
    return _significant(rate) if rate <= rest else 1 - _significant(rest)


def _significant(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
