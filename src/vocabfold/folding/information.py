"""The paper's formulas: mutual information of a count table and the label, in nats.

A group of values is a pair of counts (neg, pos). Its *divergence* from a base rate is the paper's f
(eq:f) times its rows, and everything else is a sum of such terms: I(X;C) over the values, F(S) over
the groups, the loss over the values against their own group, the gain of a cut over its two sides.
Every term is non-negative and accurate to a few units in the last place, so a loss of 1e-9 of the
information is as accurate as the information itself; the textbook form with phi cancels and is not.

Counts and prefix sums come in as int64, at most 2**53 in all, so that they are exact in float64.
Prefix sums `cum_neg` and `cum_pos` have one entry more than there are rates; segments are half-open.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vocabfold.support.kernels import kernel

_SPLITTER = 134217729.0  # 2**27 + 1, Dekker's constant for splitting a float64 into halves


@kernel
def phi(neg: float, pos: float) -> float:
    """Return neg ln neg + pos ln pos - (neg+pos) ln (neg+pos): minus the rows times their entropy.

    N * I(Z;C) is the sum of phi over the groups minus phi of the whole. That is the definition to check
    against. It cancels where groups have little information, so nothing here is computed with it.
    """
    rows = neg + pos
    negative = neg * math.log(neg / rows) if neg > 0 else 0.0
    positive = pos * math.log(pos / rows) if pos > 0 else 0.0
    return negative + positive


@kernel
def excess(u: float) -> float:
    """Return (1+u) ln (1+u) - u for u >= -1, accurate to 7e-15 of itself."""
    if abs(u) < 0.25:
        # ln(1+u) = 2 artanh(s) with s = u/(2+u); the leading terms, which would cancel, are gone.
        s = u / (2.0 + u)
        z = s * s
        z2 = z * z
        z4 = z2 * z2
        # 1/3 + z/5 + z**2/7 + ..., summed in pairs: a chain of nine steps would take twice as long.
        low = (1 / 3 + z * (1 / 5)) + z2 * (1 / 7 + z * (1 / 9))
        high = (1 / 11 + z * (1 / 13)) + z2 * (1 / 15 + z * (1 / 17))
        series = low + z4 * (high + z4 * (1 / 19))
        return u * (s + (1.0 + s) * z * series)
    if u <= -1.0:
        return 1.0
    return (1.0 + u) * math.log(1.0 + u) - u


@kernel
def product_error(a: float, b: float, product: float) -> float:
    """Return a*b - product exactly, for product = a*b as rounded (dekker1971)."""
    a_big = a * _SPLITTER
    a_big = a_big - (a_big - a)
    b_big = b * _SPLITTER
    b_big = b_big - (b_big - b)
    a_small = a - a_big
    b_small = b - b_big
    return a_small * b_small - (((product - a_big * b_big) - a_small * b_big) - a_big * b_small)


@kernel
def cross_product(neg: float, pos: float, base_neg: float, base_pos: float) -> float:
    """Return neg*base_pos - pos*base_neg, accurate to the last place.

    It is rows * base_rows times the difference of the two negative rates, without its cancellation.
    """
    first = neg * base_pos
    second = pos * base_neg
    high = first - second
    carry = high - first
    low = (first - (high - carry)) - (second + carry)
    return high + (low + (product_error(neg, base_pos, first) - product_error(pos, base_neg, second)))


@kernel
def divergence(neg: float, pos: float, base_neg: float, base_pos: float) -> float:
    """Return the rows of a group times f of its rate (eq:f), in nats; the base must contain the group."""
    if base_neg == 0 or base_pos == 0:
        return 0.0
    rows = float(neg + pos)
    return rows * _divergence_per_row(cross_product(neg, pos, base_neg, base_pos) / rows, base_neg, base_pos)


@kernel
def _divergence_per_row(shift: float, base_neg: float, base_pos: float) -> float:
    """Return f of a rate that is by shift / base_rows below that of the base."""
    base_rows = float(base_neg + base_pos)
    # Both sides by their relative deviation from the base: the linear parts of the logarithms cancel.
    return base_neg / base_rows * excess(shift / base_neg) + base_pos / base_rows * excess(-shift / base_pos)


@kernel
def gain(left_neg: float, left_pos: float, right_neg: float, right_pos: float) -> float:
    """Return the information gained by separating two groups (eq:delta1), in nats times rows."""
    base_neg = left_neg + right_neg
    base_pos = left_pos + right_pos
    if base_neg == 0 or base_pos == 0:
        return 0.0
    # The cross product of either side with both together, up to its sign.
    apart = cross_product(left_neg, left_pos, right_neg, right_pos)
    left = float(left_neg + left_pos)
    right = float(right_neg + right_pos)
    return left * _divergence_per_row(apart / left, base_neg, base_pos) + right * _divergence_per_row(
        -apart / right, base_neg, base_pos
    )


def information(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], cuts: NDArray[np.int64]) -> float:
    """Return F(S) = I(Z;C) of the segments between the cuts, in nats per row (eq:FS)."""
    ends = _with_ends(cuts, cum_neg.size - 1)
    whole = np.array([0, ends.size - 1])
    return _spread(cum_neg[ends], cum_pos[ends], whole) / float(cum_neg[-1] + cum_pos[-1])


def loss(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], cuts: NDArray[np.int64]) -> float:
    """Return the loss I(X;C) - F(S) of the segments as a sum of non-negative terms, in nats per row."""
    ends = _with_ends(cuts, cum_neg.size - 1)
    return _spread(cum_neg, cum_pos, ends) / float(cum_neg[-1] + cum_pos[-1])


def _with_ends(cuts: NDArray[np.int64], n_rates: int) -> NDArray[np.int64]:
    return np.concatenate([[0], cuts, [n_rates]])


@kernel
def _spread(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], ends: NDArray[np.int64]) -> float:
    """Sum the divergences of all entries from their segments, with a compensated sum."""
    total = 0.0
    lost = 0.0
    for k in range(ends.size - 1):
        a = ends[k]
        b = ends[k + 1]
        base_neg = float(cum_neg[b] - cum_neg[a])
        base_pos = float(cum_pos[b] - cum_pos[a])
        for i in range(a, b):
            neg = float(cum_neg[i + 1] - cum_neg[i])
            pos = float(cum_pos[i + 1] - cum_pos[i])
            term = divergence(neg, pos, base_neg, base_pos) - lost
            new = total + term
            lost = (new - total) - term
            total = new
    return total


@kernel
def loss_of_groups(
    neg: NDArray[np.int64],
    pos: NDArray[np.int64],
    n_values: NDArray[np.int64],
    ids: NDArray[np.int32],
    size: int,
) -> float:
    """Return the loss of the ids, in nats times rows; an entry stands for `n_values` values of equal counts."""
    base_neg = np.zeros(size, np.int64)
    base_pos = np.zeros(size, np.int64)
    for i in range(neg.size):
        base_neg[ids[i]] += neg[i] * n_values[i]
        base_pos[ids[i]] += pos[i] * n_values[i]
    total = 0.0
    lost = 0.0
    for i in range(neg.size):
        base = float(base_neg[ids[i]]), float(base_pos[ids[i]])
        term = n_values[i] * divergence(float(neg[i]), float(pos[i]), base[0], base[1]) - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return total
