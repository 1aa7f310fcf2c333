"""Curves -> cuts by falling thresholds, in separate shards: the paper's distributed algorithm.

The borders of the shards are forced cuts. The gain of a cut depends on its two neighbours alone (lem:delta_F),
so with its borders cut a shard is independent: `sweep` is a pure function of its counts. In round i it makes
every cut that gains (1 - epsilon)^i of the largest gain of any single cut. The paper synchronises all shards
after each round. Here each shard runs its rounds alone, and the results are merged by gain, largest first: the
gains of one round are larger than those of any later one, so the result is the same up to the last round, of
which the paper also takes only a part.

The paper ends after log n / log(1/(1-epsilon)) rounds, where the threshold is w0/n; most of the budget may be
left then. We continue until it is spent or no cut gains. With at most epsilon x size shards the result keeps at
least 1 - 1/e - 2 epsilon of the optimum (thm:distributed, badanidiyuru2014).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.curve import Curve
from vocabfold.folding.solve.cut_tree import Gains, after, before, gain_between, initialise, insert
from vocabfold.support.kernels import kernel

_BLOCK = 1024  # cuts that are skipped together while none of them can reach the threshold
_NEVER = np.iinfo(np.int64).max


def threshold(
    curves: Sequence[Curve], rows: Sequence[float], n_cuts: int, epsilon: float, shards: int
) -> list[Gains]:
    """Return the cuts of each curve by falling thresholds, which are the same per row for all curves.

    The borders of `shards` shards per curve (at most one per rate) come first, with an infinite gain; then come
    at most `n_cuts` cuts of each shard. At worst O(K) queries per round for K rates.
    """
    ends_of = [borders(curve, shards) for curve in curves]
    first = max(
        largest_gain(curve.cum_neg[a : b + 1], curve.cum_pos[a : b + 1]) / of_curve
        for curve, ends, of_curve in zip(curves, ends_of, rows, strict=True)
        for a, b in zip(ends, ends[1:], strict=False)
    )
    result = []
    for curve, ends, of_curve in zip(curves, ends_of, rows, strict=True):
        cuts, gains = [ends[1:-1]], [np.full(ends.size - 2, np.inf)]
        for a, b in zip(ends, ends[1:], strict=False):
            part = sweep(
                curve.cum_neg[a : b + 1],
                curve.cum_pos[a : b + 1],
                first * of_curve,
                epsilon,
                min(n_cuts, b - a),
            )
            cuts.append(part[0] + a)
            gains.append(part[1])
        result.append((np.concatenate(cuts), np.concatenate(gains)))
    return result


def borders(curve: Curve, shards: int) -> NDArray[np.int64]:
    """Return the borders of the shards of a curve; their numbers of rates differ by at most one."""
    shards = min(shards, curve.n_rates)
    return np.arange(shards + 1) * curve.n_rates // shards


@kernel
def largest_gain(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64]) -> float:
    """Return the largest gain of a single cut."""
    largest = 0.0
    for cut in range(1, cum_neg.size - 1):
        largest = max(largest, gain_between(cum_neg, cum_pos, 0, cut, cum_neg.size - 1))
    return largest


@kernel
def sweep(
    cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], first: float, epsilon: float, n_cuts: int
) -> Gains:
    """Make at most `n_cuts` cuts in a shard, by thresholds that start at `first`, in nats times rows.

    A cut that misses a threshold is next tried in the round whose threshold its gain would reach: by
    thm:submodular its gain can only shrink until then.
    """
    n_rates = cum_neg.size - 1
    cuts = np.empty(n_cuts, np.int64)
    gains = np.empty(n_cuts)
    if first <= 0.0:  # no cut gains
        return cuts[:0], gains[:0]
    tree = initialise(n_rates)
    n_blocks = (n_rates + _BLOCK - 1) // _BLOCK
    due = np.zeros(n_rates, np.int64)  # the round in which each cut is tried next
    leaves = tree.size // 2
    due_of_block = np.zeros(n_blocks, np.int64)
    n_made = 0
    now = 0
    while n_made < n_cuts and now < _NEVER:
        least = first * np.exp(now * np.log1p(-epsilon))  # (1 - epsilon)^now, for any epsilon
        soonest = _NEVER
        for block in range(n_blocks):
            if due_of_block[block] <= now:
                soonest_here = _NEVER
                first_cut = max(1, block * _BLOCK)
                left = before(tree, first_cut)
                right = left
                for cut in range(first_cut, min((block + 1) * _BLOCK, n_rates)):
                    if tree[leaves + cut]:
                        left = cut
                        continue
                    if due[cut] <= now:
                        if right <= cut:
                            right = after(tree, cut)
                        gain = gain_between(cum_neg, cum_pos, left, cut, right)
                        if gain < least:
                            due[cut] = _round(gain / first, epsilon, now)
                        else:
                            left = cut
                            due[cut] = _NEVER
                            cuts[n_made] = cut
                            gains[n_made] = gain
                            n_made += 1
                            if n_made == n_cuts:
                                return cuts, gains
                            insert(tree, cut)
                    soonest_here = min(soonest_here, due[cut])
                due_of_block[block] = soonest_here
            soonest = min(soonest, due_of_block[block])
        now = soonest
    return cuts[:n_made], gains[:n_made]


@kernel
def _round(share: float, epsilon: float, now: int) -> int:
    """Return the first round after this one whose threshold is at most a share of the first threshold."""
    if share <= 0.0:
        return _NEVER
    return max(now + 1, int(np.ceil(np.log(share) / np.log1p(-epsilon))))
