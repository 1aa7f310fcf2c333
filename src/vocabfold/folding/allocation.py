"""Curves + budget -> sizes and cuts, for every method but `exact`, which splits the budget while it folds.

`joint` ranks the candidates of all columns together. `greedy`, `stochastic`, `threshold` and `agglomerative`
list the cuts of each column with their gains, and the cuts with the largest gains are taken, as in the paper;
`frequency` and `selection` take the values with the highest scores. `uniform` and `information` (the paper's MI
allocation, in proportion to I(X;C)) split the budget first; ids that a column cannot use go to other columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vocabfold.errors import InputError
from vocabfold.folding.curve import Curve
from vocabfold.folding.methods import BY_GAIN, check_epsilon
from vocabfold.folding.solve import baselines, dynamic
from vocabfold.folding.solve.cut_tree import Gains
from vocabfold.folding.solve.greedy import greedy, stochastic
from vocabfold.folding.solve.threshold import threshold
from vocabfold.support import checks, notes

Ints = NDArray[np.int64]
Cuts = Ints
Floats = NDArray[np.float64]
Score = Callable[[Ints, Ints, int, int], Floats]
"""The counts of the values, and of all rows -> a score for each value."""
CutShards = Callable[[Sequence[Curve], Sequence[float], int, float, int], list[Gains]]
"""The signature of `threshold`: curves, rows, cuts, epsilon, shards -> the cuts of each curve, with gains."""

_OF_SIZE: dict[str, Callable[[Curve, int], Cuts]] = {
    "dynamic": dynamic.solve,
    "divisive": baselines.divisive,
    "bucketing": baselines.bucketing,
}
SCORES: dict[str, Score] = {"frequency": baselines.frequency, "selection": baselines.selection}
_OF_BUCKETS = ("bucketing", "hashing")  # any number of buckets can be asked for, as some stay empty
_MOST_BUCKETS = 2**40  # more would all stay empty


@dataclass(frozen=True)
class Tuning:
    """Parameters of `stochastic` and `threshold`."""

    epsilon: float = 0.1
    shards: int = 1
    seed: int = 0
    cut_shards: CutShards = threshold

    def __post_init__(self) -> None:
        check_epsilon("epsilon", self.epsilon)
        checks.at_least("shards", self.shards, 1)
        checks.at_least("seed", self.seed, 0)

    def check_shards(self, n_rates: Sequence[int], budget: int) -> None:
        """Refuse more shards than ids, over all columns; warn if forced cuts void the guarantee."""
        n_shards = sum(min(self.shards, rates) for rates in n_rates)
        if n_shards > budget:
            raise InputError(
                f"must be fewer: {self.shards:,} per column make {n_shards:,} in total, and each needs at "
                f"least one of the {budget:,} ids. Give fewer shards or more ids.",
                argument="shards",
            )
        if len(n_rates) < n_shards < sum(n_rates):
            self._warn(n_shards, budget)

    def check_shards_of_each(self, n_rates: Sequence[int], sizes: Sequence[int]) -> None:
        """Warn about the column with the most shards per id, if every column has its own size."""
        parts = [
            (min(self.shards, size), size)
            for rates, size in zip(n_rates, sizes, strict=True)
            if 1 < min(self.shards, size) < rates
        ]
        if parts:
            self._warn(*max(parts, key=lambda part: part[0] / part[1]))

    def _warn(self, n_shards: int, n_ids: int) -> None:
        epsilon = float(self.epsilon)
        if n_shards > epsilon * n_ids:
            notes.warn(
                "method 'threshold' loses its guarantee of 1 - 1/e - 2 epsilon of the optimum: "
                f"{n_shards:,} shards are more than epsilon x ids = {epsilon:g} x {n_ids:,}. Give fewer "
                "shards.",
            )


def joint_cuts(
    curves: Sequence[Curve], rows: Sequence[float], budget: int, method: str, tuning: Tuning
) -> list[Cuts]:
    """Cut all curves by a method that ranks cuts by gain; divide the gains of each curve by its `rows`."""
    lists = _gains(curves, rows, budget - len(curves), method, tuning)
    scores = [gains / of_curve for (_, gains), of_curve in zip(lists, rows, strict=True)]
    taken = best(scores, budget - len(curves))
    return [np.sort(cuts[chosen > 0]) for (cuts, _), chosen in zip(lists, taken, strict=True)]


def _gains(
    curves: Sequence[Curve], rows: Sequence[float], n_cuts: int, method: str, tuning: Tuning
) -> list[Gains]:
    epsilon = float(tuning.epsilon)
    if method == "greedy":
        return [greedy(curve, n_cuts) for curve in curves]
    if method == "stochastic":
        return [stochastic(curve, n_cuts, epsilon, np.random.default_rng(tuning.seed)) for curve in curves]
    if method == "threshold":
        return tuning.cut_shards(curves, rows, n_cuts, epsilon, tuning.shards)
    assert method == "agglomerative", method
    return [baselines.agglomerative(curve) for curve in curves]


def cuts_of_size(curve: Curve, size: int, method: str, tuning: Tuning) -> Cuts:
    """Cut one curve by any method that makes cuts; use at most one shard per id."""
    if method in BY_GAIN:
        own = replace(tuning, shards=min(tuning.shards, size))
        return joint_cuts([curve], [curve.rows], size, method, own)[0]
    return _OF_SIZE[method](curve, size)


def all_but_one(scores: Floats, copies: Ints) -> Ints:
    """Remove one copy of the lowest score, the last of equal ones: the shared id needs one value at least."""
    there = np.flatnonzero(copies)[::-1]
    result = copies.copy()
    result[there[np.argmin(scores[there])]] -= 1
    return result


def best(scores: Sequence[Floats], n: int, copies: Sequence[Ints] | None = None) -> list[Ints]:
    """Return how many copies of each item are among the n highest scores; the first of equal ones win."""
    lengths = np.cumsum([of_one.size for of_one in scores])[:-1]
    every = np.concatenate(scores)
    n_copies = np.ones(every.size, np.int64) if copies is None else np.concatenate(copies)
    n = min(n, int(n_copies.sum()))
    there = np.flatnonzero(n_copies)
    if n < there.size:  # each has one copy at least, so there is no need to sort all of them
        there = there[every[there] >= np.partition(every[there], -n)[-n]] if n else there[:0]
    by_score = there[np.argsort(-every[there], kind="stable")]
    before = np.cumsum(n_copies[by_score]) - n_copies[by_score]
    taken = np.zeros_like(n_copies)
    taken[by_score] = np.clip(n - before, 0, n_copies[by_score])
    return np.split(taken, lengths)


def sizes_by_score(
    scores: Sequence[Floats],
    copies: Sequence[Ints],
    limits: Sequence[int],
    informations: Sequence[float],
    budget: int,
    allocation: str,
) -> list[int]:
    """Split a budget over columns whose values with the highest scores get dedicated ids, and all others one.

    `copies` are how many values of each score can be chosen, `limits` how many ids a column can use.
    """
    if allocation == "joint":
        return [int(taken.sum()) + 1 for taken in best(scores, budget - len(scores), copies)]
    return share(limits, informations, budget, allocation)


def share(
    limits: Sequence[int], informations: Sequence[float], budget: int, allocation: str, method: str = "exact"
) -> list[int]:
    """Split a budget evenly or in proportion to the information: at least one id each, at most the limits."""
    if method in _OF_BUCKETS:
        limits = [min(budget, _MOST_BUCKETS)] * len(limits)
    if allocation == "uniform" or not any(informations):
        return _share([1.0] * len(limits), limits, budget)
    # Ids that other columns cannot use may go to a column without information.
    return _share([max(one, 1e-12 * max(informations)) for one in informations], limits, budget)


def _share(weights: Sequence[float], limits: Sequence[int], budget: int) -> list[int]:
    """Split the budget in proportion to the weights, from 1 to the limits, and spend all of it if they allow.

    Bisection finds the level that spends it. Ids left by rounding down go to the largest fractions, and among
    equal fractions to the first columns.
    """
    weight, limit = np.asarray(weights, float), np.asarray(limits)
    budget = min(budget, int(limit.sum()))
    low, high = 0.0, budget / weight.min()
    while low < (middle := (low + high) / 2) < high:
        if np.floor(np.clip(middle * weight, 1, limit)).sum() > budget:
            high = middle
        else:
            low = middle
    share = np.clip(low * weight, 1, limit)
    sizes = np.floor(share).astype(np.int64)
    hungry = np.flatnonzero(sizes < limit)
    by_fraction = hungry[np.argsort(sizes[hungry] - share[hungry], kind="stable")]
    sizes[by_fraction[: budget - sizes.sum()]] += 1
    return [int(size) for size in sizes]
