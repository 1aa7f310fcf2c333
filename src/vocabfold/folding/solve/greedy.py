"""Curve -> cuts, one by one: the best cut, or the best of a sample.

Information is a monotone submodular function of the set of cuts (thm:submodular). So `greedy` keeps at least
1 - 1/e of the optimum for as many cuts, and `stochastic` at least 1 - 1/e - epsilon of it on average over seeds
(thm:single, mirzasoleiman2015).

Both return every cut with its gain. In `greedy` gains fall, and the list for fewer cuts is the beginning of a
longer one. In `stochastic` neither holds, as the sample depends on the number of cuts.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.curve import Curve
from vocabfold.folding.solve.cut_tree import (
    Gains,
    Tree,
    after,
    before,
    gain_between,
    initialise,
    insert,
    leader,
    query,
    replace,
    tournament,
)
from vocabfold.support.kernels import kernel

_BLOCK = 64  # cuts whose gains are updated together


def greedy(curve: Curve, n_cuts: int) -> Gains:
    """Repeatedly make the cut with the largest gain, the first of equal ones.

    Lazy: by thm:submodular an old gain is an upper bound on the new one, so only the largest are updated, each
    with its neighbours in a small block: about K log size updates in our trials, K size at worst, for K rates.
    """
    return _greedy(curve.cum_neg, curve.cum_pos, min(n_cuts, curve.n_rates - 1))


def stochastic(curve: Curve, n_cuts: int, epsilon: float, random: np.random.Generator) -> Gains:
    """Repeatedly make the cut with the largest gain of a random sample of the remaining cuts.

    The paper's algorithm on one machine (sec:Alg): the sample has ln(1/epsilon) K/n_cuts of the K possible
    cuts, at least one, so there are about K ln(1/epsilon) queries of O(log K) time, however many cuts.
    If n_cuts is close to K, a sample has few cuts, and the result is nearly random.
    """
    n_cuts = min(n_cuts, curve.n_rates - 1)
    if n_cuts == 0:
        return np.empty(0, np.int64), np.empty(0)
    n_sample = math.ceil((curve.n_rates - 1) / n_cuts * math.log(1 / epsilon))
    return _stochastic(curve.cum_neg, curve.cum_pos, n_cuts, n_sample, random)


@kernel
def _greedy(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], n_cuts: int) -> Gains:
    n_rates = cum_neg.size - 1
    n_blocks = (n_rates + _BLOCK - 1) // _BLOCK
    cuts = np.empty(n_cuts, np.int64)
    gains = np.empty(n_cuts)
    tree = initialise(n_rates)
    bounds = np.empty(n_blocks)  # upper bounds on the gains in each block
    for block in range(n_blocks):
        bounds[block] = _best_of(cum_neg, cum_pos, tree, block)[1]
    best = tournament(bounds)
    leaves = best.size // 2
    for i in range(n_cuts):
        while True:
            block = leader(best)
            cut, gain = _best_of(cum_neg, cum_pos, tree, block)
            if gain >= best[leaves + block]:
                break
            replace(best, block, gain)
        cuts[i] = cut
        gains[i] = gain
        insert(tree, cut)
    return cuts, gains


@kernel
def _best_of(
    cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], tree: Tree, block: int
) -> tuple[int, float]:
    """Return the cut of a block with the largest gain, the first of equal ones, and its gain."""
    leaves = tree.size // 2
    first = max(1, block * _BLOCK)
    left = before(tree, first)
    right = left
    best = first
    most = -np.inf
    for cut in range(first, min((block + 1) * _BLOCK, cum_neg.size - 1)):
        if tree[leaves + cut]:
            left = cut
            continue
        if right <= cut:
            right = after(tree, cut)
        gain = gain_between(cum_neg, cum_pos, left, cut, right)
        if gain > most:
            most = gain
            best = cut
    return best, most


@kernel
def _stochastic(
    cum_neg: NDArray[np.int64],
    cum_pos: NDArray[np.int64],
    n_cuts: int,
    n_sample: int,
    random: np.random.Generator,
) -> Gains:
    n_left = cum_neg.size - 2
    left = np.arange(1, n_left + 1)  # cuts that are not made yet
    cuts = np.empty(n_cuts, np.int64)
    gains = np.empty(n_cuts)
    tree = initialise(n_left + 1)
    for i in range(n_cuts):
        best = 0
        gain = -1.0
        for j in range(min(n_sample, n_left)):  # the first steps of a shuffle
            k = j + int(random.random() * (n_left - j))
            cut = left[k]
            left[k] = left[j]
            left[j] = cut
            new = query(cum_neg, cum_pos, tree, cut)
            if new > gain or (new == gain and cut < left[best]):
                gain = new
                best = j
        cuts[i] = left[best]
        gains[i] = gain
        insert(tree, left[best])
        n_left -= 1
        left[best] = left[n_left]
    return cuts, gains
