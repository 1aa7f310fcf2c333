"""Baselines of the paper and of practitioners: curves -> cuts, values -> scores or buckets.

The paper has no guarantee for any. `agglomerative`, `bucketing` and `divisive` group neighbouring rates, so
they work on a curve; `frequency` and `selection` score values, of which the best get dedicated ids while all
others share one; `hashing` uses neither rates nor rows.
"""

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.curve import Curve
from vocabfold.folding.information import cross_product, gain
from vocabfold.folding.solve.cut_tree import Gains, gain_between, leader, replace, tournament
from vocabfold.support import notes
from vocabfold.support.kernels import kernel

_MAX_ROUNDS = 10_000

Cuts = NDArray[np.int64]
Counts = NDArray[np.int64]


def agglomerative(curve: Curve) -> Gains:
    """Repeatedly merge the two groups that lose least, until one is left (baker1998, slonim2001).

    Return the cuts in the reverse order of their removal, with the loss of each removal: a fold of size m has
    the first m - 1. Losses never fall from one merge to the next (thm:submodular). Only neighbours are tried:
    of three groups, merging the outer two loses no less than merging one of them with the middle one
    (docs/paper.md). O(K log K) for K rates.
    """
    return _agglomerative(curve.cum_neg, curve.cum_pos)


def bucketing(curve: Curve, size: int) -> Cuts:
    """Cut the range of rates into `size` equal intervals, [0, 1/size) to [(size - 1)/size, 1].

    Loses at most the rise of f (eq:f) within one interval (thm:bucketing), and everything if all rates are in
    one interval (prop:bucketing). Intervals without a rate are dropped.
    """
    pos = np.diff(curve.cum_pos)
    rows = pos + np.diff(curve.cum_neg)
    bucket = np.floor(pos / rows * size).astype(np.int64)
    # The quotient may be off by one. The products may wrap around; their small difference is still right.
    rest = pos * size - bucket * rows
    bucket += (rest >= rows).astype(np.int64) - (rest < 0)
    return np.flatnonzero(np.diff(np.minimum(bucket, size - 1))) + 1


def divisive(curve: Curve, size: int) -> Cuts:
    """Cluster the rates like k-means, with the Kullback-Leibler divergence as the distance (dhillon2003).

    Start with the rates below 1/2 and those above, each half in groups of as many rates; then move every rate
    to the nearest centre, until none moves. If a group loses all its rates, split the group that gains most.
    With two classes the rates nearest to a centre form an interval, so a round takes O(size log K) for K rates,
    not O(size K). Ends in a local optimum, or with a warning after 10,000 rounds.
    """
    size = min(size, curve.n_rates)
    rates = np.diff(curve.cum_pos) / np.diff(curve.cum_neg + curve.cum_pos)
    cuts = _halves(curve, size)
    for _ in range(_MAX_ROUNDS):
        moved = _refilled(curve, _nearest(curve.cum_neg, curve.cum_pos, rates, cuts), size)
        if np.array_equal(moved, cuts):
            return cuts
        cuts = moved
    notes.warn(
        f"method 'divisive' stopped after {_MAX_ROUNDS:,} rounds without converging; its fold may not be a "
        "local optimum.",
    )
    return cuts


def frequency(neg: Counts, pos: Counts, all_neg: int, all_pos: int) -> NDArray[np.float64]:
    """Score values by their share of all rows.

    Ignores the label: it loses everything if the label depends on infrequent values alone (prop:frequency).
    """
    shares: NDArray[np.float64] = (neg + pos) / (all_neg + all_pos)
    return shares


def selection(neg: Counts, pos: Counts, all_neg: int, all_pos: int) -> NDArray[np.float64]:
    """Score values by the mutual information of the label and "is it this value?", in nats per row.

    TensorFlow Transform chooses a vocabulary with labels in the same way.
    """
    return _own_information(neg, pos, all_neg, all_pos) / (all_neg + all_pos)


def hashing(keys: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """Return a bucket for each key: the last step of splitmix64, modulo `size`; the same on every machine."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(size)).astype(np.int64)


@kernel
def _agglomerative(cum_neg: Counts, cum_pos: Counts) -> Gains:
    n_rates = cum_neg.size - 1
    cuts = np.empty(n_rates - 1, np.int64)
    losses = np.empty(n_rates - 1)
    left = np.arange(-1, n_rates)  # the neighbours of each cut
    right = np.arange(1, n_rates + 2)
    saved = np.full(n_rates, -np.inf)  # minus the loss of removing each cut, which is its gain
    for cut in range(1, n_rates):
        saved[cut] = -gain_between(cum_neg, cum_pos, cut - 1, cut, cut + 1)
    best = tournament(saved)
    for i in range(n_rates - 2, -1, -1):
        cut = leader(best)
        cuts[i] = cut
        losses[i] = -best[best.size // 2 + cut]
        replace(best, cut, -np.inf)
        a = left[cut]
        b = right[cut]
        right[a] = b
        left[b] = a
        if a > 0:
            replace(best, a, -gain_between(cum_neg, cum_pos, left[a], a, b))
        if b < n_rates:
            replace(best, b, -gain_between(cum_neg, cum_pos, a, b, right[b]))
    return cuts, losses


def _halves(curve: Curve, size: int) -> Cuts:
    """Return the initial cuts of `divisive`: groups of as many rates, below 1/2 and above."""
    low = int(np.count_nonzero(np.diff(curve.cum_pos) < np.diff(curve.cum_neg)))
    high = curve.n_rates - low
    n_low = min(max(size // 2, size - high), low)
    n_high = size - n_low
    starts = np.arange(n_low) * low // max(n_low, 1), low + np.arange(n_high) * high // max(n_high, 1)
    return np.concatenate(starts)[1:]


@kernel
def _nearest(cum_neg: Counts, cum_pos: Counts, rates: NDArray[np.float64], cuts: Cuts) -> Cuts:
    """Return the cuts that assign every rate to the nearest centre."""
    moved = np.empty_like(cuts)
    for i in range(cuts.size):
        a = cuts[i - 1] if i > 0 else 0
        b = cuts[i + 1] if i + 1 < cuts.size else rates.size
        left_neg, left_pos = cum_neg[cuts[i]] - cum_neg[a], cum_pos[cuts[i]] - cum_pos[a]
        right_neg, right_pos = cum_neg[b] - cum_neg[cuts[i]], cum_pos[b] - cum_pos[cuts[i]]
        moved[i] = cuts[i]
        if (
            left_pos > 0 and right_neg > 0
        ):  # else one of the centres is 0 or 1, infinitely far from any other rate
            apart = cross_product(float(left_neg), float(left_pos), float(right_neg), float(right_pos))
            if apart > 0:  # else both centres are equal, as values of equal rate were not merged
                # The rate t that is equally near to the left centre l and the right one r satisfies
                # t ln(r/l) = (1 - t) ln((1-l)/(1-r)).
                to_left = np.log1p(apart / (float(right_neg) * float(left_neg + left_pos)))
                to_right = np.log1p(apart / (float(left_pos) * float(right_neg + right_pos)))
                moved[i] = np.searchsorted(rates, to_left / (to_left + to_right), side="right")
    return moved


@kernel
def _splits(cum_neg: Counts, cum_pos: Counts, cuts: Cuts) -> tuple[NDArray[np.float64], Cuts]:
    """Return the largest gain of a cut in each segment, -1 if it has one rate, and that cut."""
    gains = np.full(cuts.size + 1, -1.0)
    splits = np.zeros(cuts.size + 1, np.int64)
    for i in range(cuts.size + 1):
        a = cuts[i - 1] if i > 0 else 0
        b = cuts[i] if i < cuts.size else cum_neg.size - 1
        for cut in range(a + 1, b):
            new = gain_between(cum_neg, cum_pos, a, cut, b)
            if new > gains[i]:
                gains[i] = new
                splits[i] = cut
    return gains, splits


def _refilled(curve: Curve, cuts: Cuts, size: int) -> Cuts:
    """Return cuts into exactly `size` groups: for each lost group, split the one that gains most."""
    cuts = np.unique(cuts[(cuts > 0) & (cuts < curve.n_rates)])
    while cuts.size < size - 1:
        gains, splits = _splits(curve.cum_neg, curve.cum_pos, cuts)
        best = np.argsort(-gains, kind="stable")[: size - 1 - cuts.size]
        cuts = np.sort(np.append(cuts, splits[best[gains[best] >= 0]]))
    return cuts


@kernel
def _own_information(neg: Counts, pos: Counts, all_neg: int, all_pos: int) -> NDArray[np.float64]:
    """Return the information of separating each value from all others, in nats times rows."""
    result = np.zeros(neg.size)
    for i in range(neg.size):
        if 0 < neg[i] + pos[i] < all_neg + all_pos:
            result[i] = gain(float(neg[i]), float(pos[i]), float(all_neg - neg[i]), float(all_pos - pos[i]))
    return result
