"""(neg, pos) table -> Prior: the one that makes the counts most likely.

The likelihood is a sum over values of terms in neg, in pos and in neg + pos, so only the distinct numbers of
each are needed: N rows have at most sqrt(2 N) of them, however many values there are. Their terms are summed by
one compiled loop, which also returns the derivatives, so that Newton's steps find the optimum.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.information import excess
from vocabfold.folding.prior import Prior
from vocabfold.support.kernels import inlined, kernel

_WEAKEST, _STRONGEST = 1e-3, 1e9  # rows: strengths that differ from none and from an infinite one
_GRID = [float(point) for point in np.linspace(math.log(_WEAKEST), math.log(_STRONGEST), 25)]
_FARTHEST = 30.0  # the logit of a mean that differs from 0 and 1
_LONGEST = 1.0  # step: about as far as the next strength of the grid
_NEAR = 1e-8  # a last step, beyond which no digit that is kept changes
_MOST_STEPS = 60
_FLAT = 1e-10  # curvature left by the other parameter, of what was there: less is rounding
_TINY = 1e-300  # instead of no curvature
_ROUNDING = 1e-14  # nats per row: a smaller fall of the likelihood may be rounding
_ACCURATE = 10.0  # from there on, Stirling's series is accurate
_DIGITS = 6  # digits kept of a prior, so that codebooks do not depend on the rounding of a machine

Floats = NDArray[np.float64]


def most_likely(neg: Floats, pos: Floats, n_values: NDArray[np.int64]) -> Prior:
    """Return the prior of maximum likelihood, given `n_values` values of each pair of counts.

    If chance explains the spread of the rates, the strength is infinite. A finite strength has to gain ln(N)/2
    nats of log-likelihood: the price of one more parameter on N rows (schwarz1978).
    """
    likelihood = _Likelihood.of(neg, pos, n_values)
    alike = Prior(_rounded(likelihood.pos, likelihood.neg), math.inf)
    if not (likelihood.neg and likelihood.pos):
        return alike
    # First a coarse grid of strengths, at the rate of all rows and at the mean rate of all values: from a
    # distant start the search could end in a local optimum.
    rates, rests = (float(side / (neg + pos) @ n_values) for side in (pos, neg))
    odds = likelihood.pos / likelihood.neg, rates / rests
    logits = [min(max(math.log(of_all), -_FARTHEST), _FARTHEST) for of_all in odds]
    points = itertools.product(logits, _GRID)
    start = max(points, key=lambda point: likelihood.at(point[0], point[1], only_gain=True).gain)
    (logit, log_strength), found = _climb(likelihood, start)
    if found.gain <= math.log(likelihood.pos + likelihood.neg) / 2 or log_strength >= _GRID[-1]:
        return alike
    return Prior(_rounded(math.exp(logit), 1.0), _significant(math.exp(log_strength)))


class _Gain(NamedTuple):
    """The log-likelihood at a point beyond that of one rate for all, in nats, and its derivatives.

    They are by logit(mean) and by ln(strength).
    """

    gain: float
    by_logit: float
    by_strength: float
    by_logit_twice: float
    by_both: float
    by_strength_twice: float


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The log-likelihood of the labels as a function of the prior.

    With A(x; a) = ln Gamma(a + x) - ln Gamma(a) - x ln a, which is 0 for a value seen once, it is that of rows
    which all have the rate `mean`, and the sum over values of A(pos; mean s) + A(neg; (1 - mean) s)
    - A(neg + pos; s).
    """

    neg: float  # rows
    pos: float
    tables: tuple[tuple[Floats, Floats], ...]  # of pos, neg and neg + pos

    @classmethod
    def of(cls, neg: Floats, pos: Floats, n_values: NDArray[np.int64]) -> Self:
        """Return the likelihood of a table of pairs."""
        tables = tuple(_distinct(side, n_values) for side in (pos, neg, neg + pos))
        return cls(float(neg @ n_values), float(pos @ n_values), tables)

    def at(self, logit: float, log_strength: float, only_gain: bool = False) -> _Gain:
        """Return the log-likelihood around a mean, at a strength; the derivatives only if they are wanted."""
        log_mean, log_rest = _log_expit(logit), _log_expit(-logit)
        mean, rest, strength = math.exp(log_mean), math.exp(log_rest), math.exp(log_strength)
        a, b = mean * strength, rest * strength
        (x, of_x), (y, of_y), (n, of_n) = self.tables
        value_a, slope_a, curve_a = surplus(x, of_x, a, only_gain)
        value_b, slope_b, curve_b = surplus(y, of_y, b, only_gain)
        value_n, slope_n, curve_n = surplus(n, of_n, strength, only_gain)
        rows = self.pos + self.neg
        one_rate = self.pos * (log_mean - math.log(self.pos / rows))
        one_rate += self.neg * (log_rest - math.log(self.neg / rows))
        turn = mean * b  # the derivative of a by the logit, and minus that of b
        by_strength = a * slope_a + b * slope_b - strength * slope_n
        return _Gain(
            one_rate + (value_a + value_b - value_n),
            self.pos * rest - self.neg * mean + turn * (slope_a - slope_b),
            by_strength,
            turn * (turn * (curve_a + curve_b) + (rest - mean) * (slope_a - slope_b)) - rows * mean * rest,
            turn * (slope_a - slope_b + a * curve_a - b * curve_b),
            a * a * curve_a + b * b * curve_b - strength * strength * curve_n + by_strength,
        )


def _climb(likelihood: _Likelihood, start: tuple[float, float]) -> tuple[tuple[float, float], _Gain]:
    """Return the optimum above a point, by Newton steps that are shortened until the likelihood grows."""
    point, here = start, likelihood.at(*start)
    for _ in range(_MOST_STEPS):
        step = _step(point, here)
        for _ in range(_MOST_STEPS):
            there = (
                min(max(point[0] + step[0], -_FARTHEST), _FARTHEST),
                min(max(point[1] + step[1], _GRID[0]), _GRID[-1]),
            )
            found = likelihood.at(*there)
            if found.gain >= here.gain - _ROUNDING * (likelihood.neg + likelihood.pos):
                break
            step = step[0] / 4, step[1] / 4
        else:
            break
        far = max(abs(there[0] - point[0]), abs(there[1] - point[1]))
        point, here = there, found
        if far < _NEAR:
            break
    return point, here


def _step(point: tuple[float, float], here: _Gain) -> tuple[float, float]:
    """Return Newton's step, or one upwards where the likelihood is not concave; not too long.

    A strength at its bound, and pushed against it, stays.
    """
    bent, tilted, curved = -here.by_logit_twice, -here.by_both, -here.by_strength_twice
    is_weakest = point[1] <= _GRID[0] and here.by_strength < 0
    is_strongest = point[1] >= _GRID[-1] and here.by_strength > 0
    if is_weakest or is_strongest:
        steps = here.by_logit / max(abs(bent), _TINY), 0.0
    elif bent > 0 and (left := curved - tilted / bent * tilted) > _FLAT * abs(curved):
        by_strength = (here.by_strength - tilted / bent * here.by_logit) / left
        steps = (here.by_logit - tilted * by_strength) / bent, by_strength
    else:
        steps = here.by_logit / max(abs(bent), _TINY), here.by_strength / max(abs(curved), _TINY)
    longest = max(map(abs, steps))
    shorter = min(1.0, _LONGEST / longest) if longest else 1.0
    return steps[0] * shorter, steps[1] * shorter


@kernel
def surplus(numbers: Floats, weights: Floats, a: float, only_value: bool) -> tuple[float, float, float]:
    """Return the sum of A(x; a) over numbers x with weights, and its first and second derivative by a.

    Each term is Stirling's series with what cancels taken out, so that it is accurate where a is far larger
    than x, too. For small a, the recurrence of the gamma function leads to a larger one. Without derivatives it
    takes half the time.
    """
    shifts = 0 if a >= _ACCURATE else math.ceil(_ACCURATE - a)
    b = a + shifts
    tail_b, tail_slope_b, tail_curve_b = _stirling(b)
    log_shift = math.log(b / a)
    scale = 1.0
    for j in range(shifts):
        scale *= a + j
    value, value_low = 0.0, 0.0
    slope, slope_low = 0.0, 0.0
    curve, curve_low = 0.0, 0.0
    for i in range(numbers.size):
        x = numbers[i]
        u = x / b
        z = b + x
        tail, tail_slope, tail_curve = _stirling(z)
        bulge = excess(u)  # (1 + u) ln (1 + u) - u
        term = b * bulge - 0.5 * (bulge + u) / (1.0 + u) + (tail - tail_b)
        # Gamma(a + x) / Gamma(a) is that of b, over the product of (a + j + x) / (a + j) for j < b - a.
        if shifts > 0:
            product = 1.0
            for j in range(shifts):
                product *= a + j + x
            term += x * log_shift - math.log(product / scale)
        value, value_low = _added(value, value_low, weights[i] * term)
        if only_value:
            continue
        term_slope = (bulge - u * u) / (1.0 + u) + 0.5 * u / z + (tail_slope - tail_slope_b)
        term_curve = u * u / z - 0.5 * u * (b + z) / (b * z * z) + (tail_curve - tail_curve_b)
        for j in range(shifts):
            c = a + j
            one_over = 1.0 / (c * (c + x))
            term_slope += x * one_over
            term_curve -= x * (c + c + x) * one_over * one_over
        if shifts > 0:
            term_slope -= u * shifts / a
            term_curve += u * shifts * (a + b) / (a * a * b)
        slope, slope_low = _added(slope, slope_low, weights[i] * term_slope)
        curve, curve_low = _added(curve, curve_low, weights[i] * term_curve)
    return value, slope, curve


@inlined
def _added(total: float, low: float, term: float) -> tuple[float, float]:
    """Return a sum with one more term, and what it lost to rounding (kahan1965)."""
    term = term - low
    higher = total + term
    return higher, (higher - total) - term


@inlined
def _stirling(z: float) -> tuple[float, float, float]:
    """Return ln Gamma(z) - (z - 1/2) ln z + z - ln(2 pi) / 2 for z >= 10, with its derivatives."""
    y = 1.0 / z
    w = y * y
    value = y * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188))))
    slope = -w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132))))
    curve = w * y * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w * (1 / 30 - w * (5 / 66)))))
    return value, slope, curve


def _distinct(numbers: Floats, n_values: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the distinct numbers of rows except 0 and 1, whose terms vanish, and how many values have each."""
    distinct, where = np.unique(numbers, return_inverse=True)
    weights = np.bincount(where, n_values, distinct.size)
    has_term = (distinct > 0) & (distinct != 1)
    return distinct[has_term], weights[has_term]


def _log_expit(logit: float) -> float:
    return min(logit, 0.0) - math.log1p(math.exp(-abs(logit)))


def _rounded(pos: float, neg: float) -> float:
    """Return the rate pos / (neg + pos), rounded to six significant digits of its smaller side."""
    rate, rest = pos / (neg + pos), neg / (neg + pos)
    return _significant(rate) if rate <= rest else 1 - _significant(rest)


def _significant(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
