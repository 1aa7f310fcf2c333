"""Bare counts -> Fold, by the methods that choose values instead of grouping neighbouring rates.

`frequency` and `selection` dedicate ids to the values with the highest scores, and give all others one id;
`hashing` assigns positions to ids. Their groups are not intervals of the rate, but the best fold of that size
is (kurkoski2014, Lemma 3), so its bound is valid for them as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.allocation import SCORES, all_but_one, best, share, sizes_by_score
from vocabfold.folding.curve import Curve, order
from vocabfold.folding.information import loss_of_groups
from vocabfold.folding.results import Fold
from vocabfold.folding.solve import exact
from vocabfold.folding.solve.baselines import hashing

Counts = NDArray[np.int64]


def fold_values(
    counts: Sequence[tuple[Counts, Counts]], curves: Sequence[Curve], budget: int, method: str, allocation: str
) -> tuple[list[Fold], float]:
    """Fold each column at the size that the allocation gives it; also return their joint gap."""
    sizes, groups = find_groups(counts, curves, budget, method, allocation)
    folds = []
    for pair, curve, of_values, size in zip(counts, curves, groups, sizes, strict=True):
        floor = exact.solve([curve], size).floors[0]
        folds.append(group(*pair, curve, of_values, floor))
    least = math.fsum(exact.solve(curves, budget).floors)
    return folds, max(0.0, math.fsum(fold.loss for fold in folds) - least)


def find_groups(
    counts: Sequence[tuple[Counts, Counts]], curves: Sequence[Curve], budget: int, method: str, allocation: str
) -> tuple[list[int], list[Counts]]:
    """Return the size that the allocation gives each column, and the group of each of its values."""
    informations = [curve.total for curve in curves]
    limits = [int(np.count_nonzero(neg + pos)) for neg, pos in counts]
    if method == "hashing":
        sizes = share(limits, informations, budget, allocation, method)
        return sizes, [_buckets(neg.size, size) for (neg, _), size in zip(counts, sizes, strict=True)]
    sums = [(int(neg.sum()), int(pos.sum())) for neg, pos in counts]
    scores = [SCORES[method](*pair, *both) for pair, both in zip(counts, sums, strict=True)]
    able = [
        all_but_one(score, np.minimum(neg + pos, 1)) for score, (neg, pos) in zip(scores, counts, strict=True)
    ]
    sizes = sizes_by_score(scores, able, limits, informations, budget, allocation)
    chosen = [best([score], size - 1, [mine])[0] for score, size, mine in zip(scores, sizes, able, strict=True)]
    return sizes, [np.cumsum(mine) * mine for mine in chosen]


def _buckets(n_values: int, size: int) -> Counts:
    """Return a bucket for each position; number only used buckets if there are more of them than positions."""
    buckets = hashing(np.arange(n_values, dtype=np.uint64), size)
    return buckets if size <= n_values else np.unique(buckets, return_inverse=True)[1]


def group(neg: Counts, pos: Counts, curve: Curve, groups: Counts, floor: float) -> Fold:
    """Build the fold from groups of values and from the lower bound on the loss of so many ids."""
    n_groups = int(groups.max()) + 1
    # Sums of counts are exact in float64.
    sums = [np.bincount(groups, side, n_groups).astype(np.int64) for side in (neg, pos)]
    of_groups = order(*sums)
    by_rate = np.argsort(of_groups.position, kind="stable")
    by_rate = by_rate[np.count_nonzero(of_groups.position < 0) :]  # groups without rows have no rate
    id_of_group = np.empty(n_groups, np.int32)
    id_of_group[by_rate] = np.arange(by_rate.size)
    ids = id_of_group[groups]
    rates = (sums[1] / (sums[0] + sums[1]).clip(1))[by_rate]
    seen = neg + pos > 0
    ids[~seen] = np.argmin(np.abs(rates - pos.sum() / curve.rows))
    once = np.ones(np.count_nonzero(seen), np.int64)
    loss = loss_of_groups(neg[seen], pos[seen], once, ids[seen], by_rate.size) / curve.rows
    kept, gap = of_groups.total, max(0.0, loss - floor)
    return Fold(ids, by_rate.size, kept, curve.total, loss, kept + gap, gap)
