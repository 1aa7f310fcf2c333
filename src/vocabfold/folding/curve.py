"""Counts -> Curve: the values sorted by rate, equal rates merged, cumulated.

Some optimal fold consists of intervals of the rate (kurkoski2014, Lemma 3), and values of equal rate can
share an id without loss, so the solvers need only the prefix sums over the distinct rates. Rates are compared
exactly. Most values of a large vocabulary have few rows, so they are not sorted: a table over the small
(neg, pos) pairs finds the few distinct ones, and only those are sorted.

Index convention, for all solvers: segments are half-open [a, b) of the sorted rates; a cut c means
"before position c", 0 < c < n_rates; the ends 0 and n_rates are implied and never stored.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.information import loss, product_error
from vocabfold.support.kernels import kernel

_MAX_SIDE = 512  # of the table of small pairs: 2 MB, which stays in the cache


@dataclass(frozen=True, eq=False)
class Curve:
    """The distinct rates of one column, rising, as int64 prefix sums of their counts.

    `cum_neg` and `cum_pos` have n_rates + 1 entries, from 0 to the column's total. `position` is the index of
    each value's rate, or -1 for a value without rows.
    """

    cum_neg: NDArray[np.int64]
    cum_pos: NDArray[np.int64]
    position: NDArray[np.int32]

    @property
    def n_rates(self) -> int:
        """Number of distinct rates."""
        return self.cum_neg.size - 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.cum_neg[-1] + self.cum_pos[-1])

    @property
    def total(self) -> float:
        """I(X;C) in nats per row: the loss of a single group."""
        return loss(self.cum_neg, self.cum_pos, np.empty(0, np.int64))


def order(neg: NDArray[np.int64], pos: NDArray[np.int64], *, merge: bool = True) -> Curve:
    """Sort values by pos/(neg+pos), merge equal rates and cumulate; linear in the values with small counts.

    With merge=False, every value with rows keeps its own position, equal rates in the given order. The paper
    cuts such unmerged values, and its figures are reproduced with them.
    """
    if not merge:
        return _unmerged(neg, pos, order(neg, pos).position)
    side = 1  # a power of two; the table has no more cells than there are values
    while side < _MAX_SIDE and 4 * side * side <= neg.size:
        side *= 2
    counts, large = _tabulate(neg, pos, side)
    counts[0] = 0  # values without rows have no rate
    small = np.flatnonzero(counts)
    pair_neg = np.concatenate([small // side, neg[large]])
    pair_pos = np.concatenate([small % side, pos[large]])
    n_values = np.concatenate([counts[small], np.ones(large.size, np.int64)])
    rank, n_rates = _rank(pair_neg, pair_pos)
    rank_of_small = np.full(counts.size, -1, np.int32)
    rank_of_small[small] = rank[: small.size]
    position = _look_up(neg, pos, rank_of_small, side)
    position[large] = rank[small.size :]
    return Curve(
        _cumulate(rank, pair_neg * n_values, n_rates),
        _cumulate(rank, pair_pos * n_values, n_rates),
        position,
    )


def _unmerged(neg: NDArray[np.int64], pos: NDArray[np.int64], position: NDArray[np.int32]) -> Curve:
    """Return the curve of unmerged values, given the positions of their rates."""
    by_rate = np.argsort(position, kind="stable")[np.count_nonzero(position < 0) :]
    apart = np.full(position.size, -1, np.int32)
    apart[by_rate] = np.arange(by_rate.size)
    return Curve(np.append(0, np.cumsum(neg[by_rate])), np.append(0, np.cumsum(pos[by_rate])), apart)


def _cumulate(rank: NDArray[np.int32], counts: NDArray[np.int64], n_rates: int) -> NDArray[np.int64]:
    """Sum the counts of each rank, then cumulate from 0."""
    sums = np.zeros(n_rates + 1, np.int64)
    np.add.at(sums, rank + 1, counts)
    return np.cumsum(sums)


def _rank(neg: NDArray[np.int64], pos: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Return the rank of the rate of each pair (equal rates share one), and the number of ranks.

    Division rounds monotonically, so only rates with the same double need a closer look. There the exact
    remainder of the division, divided once more, orders them: two rates differ by 2**-104 at the least
    (their rows sum to 2**53 at most), and the remainder, at most 2**-54, is resolved to 2**-107.
    """
    rows = neg + pos
    rate = pos / rows
    by_rate = np.argsort(rate)
    is_new = np.diff(rate[by_rate]) != 0
    if not is_new.all():
        rest = _remainder(pos.astype(np.float64), rows.astype(np.float64), rate)
        if (np.diff(rest[by_rate])[~is_new] != 0).any():
            by_rate = np.lexsort((rest, rate))
        is_new = (np.diff(rate[by_rate]) != 0) | (np.diff(rest[by_rate]) != 0)
    rank = np.zeros(rate.size, np.int32)
    rank[by_rate[1:]] = np.cumsum(is_new)
    return rank, int(np.count_nonzero(is_new)) + 1


@kernel
def _remainder(
    pos: NDArray[np.float64], rows: NDArray[np.float64], rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (pos - rate * rows) / rows, the numerator without any rounding error."""
    rest = np.empty(pos.size)
    for i in range(pos.size):
        product = rate[i] * rows[i]
        rest[i] = ((pos[i] - product) - product_error(rate[i], rows[i], product)) / rows[i]
    return rest


@kernel
def _tabulate(
    neg: NDArray[np.int64], pos: NDArray[np.int64], side: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the values of each small pair (at neg * side + pos), and list the other values."""
    counts = np.zeros(side * side, np.int64)
    n_large = 0
    for i in range(neg.size):
        if neg[i] | pos[i] < side:  # side is a power of two, so both are below it
            counts[neg[i] * side + pos[i]] += 1
        else:
            n_large += 1
    large = np.empty(n_large, np.int64)
    n_large = 0
    for i in range(neg.size):
        if neg[i] | pos[i] >= side:
            large[n_large] = i
            n_large += 1
    return counts, large


@kernel
def _look_up(
    neg: NDArray[np.int64], pos: NDArray[np.int64], rank_of_small: NDArray[np.int32], side: int
) -> NDArray[np.int32]:
    """Return the rank of every value whose pair is small; the other entries are left uninitialised."""
    position = np.empty(neg.size, np.int32)
    for i in range(neg.size):
        if neg[i] | pos[i] < side:
            position[i] = rank_of_small[neg[i] * side + pos[i]]
    return position
