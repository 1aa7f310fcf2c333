"""Bare counts -> Fold: the public functions on arrays, without files or frames."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vocabfold.errors import InputError
from vocabfold.folding import arrays
from vocabfold.folding.allocation import Tuning
from vocabfold.folding.by_rate import fold_curves
from vocabfold.folding.by_value import fold_values
from vocabfold.folding.curve import order
from vocabfold.folding.methods import BY_VALUE, METHODS, check_method
from vocabfold.folding.results import Fold, FoldTable
from vocabfold.folding.solve import exact
from vocabfold.support import checks

_MAX_CURVE = 4096  # sizes that `curve` returns by default
_MAX_SIZES = 10**8  # sizes that `curve` can return: 1.6 GB
_MAX_SHOWN = 20  # columns in an error


def fold(
    neg: ArrayLike,
    pos: ArrayLike,
    size: int,
    *,
    method: str = "exact",
    epsilon: float = 0.1,
    shards: int = 1,
    seed: int = 0,
) -> Fold:
    """Fold the values of one column into at most `size` ids that keep the most information about the label.

    Parameters
    ----------
    neg, pos : array_like of whole numbers, one entry per value
        Number of rows of each value with a negative and with a positive label, paired by position; at most
        2**53 in total. The rate of a value is pos / (neg + pos).
    size : int
        Number of ids to use, at least 1. If there are fewer distinct rates, every rate gets its own id.
    method : str
        How to fold. All but the last three group neighbouring rates, so that equal rates share an id.

        - "exact" (the default) and "dynamic" find the optimum. "exact" is nearly linear in the number of
          values. "dynamic", the dynamic programme of the paper's related work, is for reference: O(size * K
          log K) time and O(size * K) memory for K distinct rates.
        - "greedy", "stochastic" and "threshold" are the paper's algorithms: they repeatedly make the best cut,
          the best cut of a random sample, or every cut whose gain reaches a falling threshold. They keep at
          least 1 - 1/e, 1 - 1/e - epsilon (on average over seeds) and 1 - 1/e - 2 epsilon of the optimum.
          "stochastic" does poorly unless the size is much smaller than the number of rates: otherwise its
          samples contain few cuts.
        - "agglomerative" repeatedly merges the two groups that lose least; "divisive" is k-means with the
          Kullback-Leibler divergence; "bucketing" takes equal intervals of the rate. No guarantee.
        - "frequency" gives each of the most frequent values its own id, and all others one shared id;
          "selection" does so with the values that are most informative about the label on their own;
          "hashing" assigns positions to ids pseudo-randomly. No guarantee.
    epsilon : float
        For "stochastic" and "threshold": the share of the optimum that they may miss, between 0 and 1. Smaller
        is slower and better.
    shards : int
        For "threshold": the number of shards, at most `size`. Each has as many rates, is folded separately, and
        is cut off from the next. With more than epsilon * size shards the guarantee is lost; a warning says so.
    seed : int
        For "stochastic": the seed of the random samples.

    Returns
    -------
    Fold

    Raises
    ------
    InputError
        The counts, the size or the method cannot be used.

    Notes
    -----
    With "exact", no function of the value with at most `size` results has a larger mutual information with the
    label, up to rounding (1e-12 of the total guaranteed, a few 1e-15 measured); `gap` proves it for the
    result at hand. The exact solver runs whatever the method, so `gap` always bounds how much better any fold
    could be. For n values with K distinct rates (at most 1.26 N**(2/3) for N rows): O(K log K) time to solve,
    O(n) to sort infrequent values and O(n log n) at worst, O(n) memory.

    Examples
    --------
    >>> import vocabfold as vf
    >>> fold = vf.fold(neg=[90, 45, 10, 70, 20], pos=[10, 5, 30, 30, 80], size=3)
    >>> fold.ids
    array([0, 0, 2, 1, 2], dtype=int32)
    >>> fold
    Fold(5 values -> 3 ids: 99.74 % of 0.2043 nats kept, loss 0.00053, gap 0)
    """
    checks.choice("method", method, METHODS)
    tuning = Tuning(epsilon, shards, seed)
    size = checks.at_least("size", size, 1)
    if method == "threshold" and shards > size:
        raise InputError(
            f"must be at most the size, {checks.number(size, 'id')}, got {shards:,}.", argument="shards"
        )
    counts = arrays.counts(neg, pos)
    if method in BY_VALUE:
        return fold_values([counts], [order(*counts)], size, method, "uniform")[0][0]
    return fold_curves([order(*counts)], size, method, "uniform", tuning)[0][0]


def fold_table(
    columns: Mapping[str, tuple[ArrayLike, ArrayLike]],
    budget: int,
    *,
    method: str = "exact",
    allocation: str = "joint",
    epsilon: float = 0.1,
    shards: int = 1,
    seed: int = 0,
) -> FoldTable:
    """Fold several columns into at most `budget` ids in total.

    Parameters
    ----------
    columns : mapping from name to (neg, pos)
        The counts of each column, as for `fold`. Columns may have different numbers of rows; the
        information of each column is per row of that column.
    budget : int
        Ids in total, at least one per column. Ids beyond the number of distinct rates stay unused.
    method, epsilon, shards, seed
        As for `fold`; shards are per column.
    allocation : {"joint", "uniform", "information"}
        How to split the budget. "joint": "exact" and "dynamic" maximise the sum of the columns' information;
        the other methods let the cuts or values of all columns compete by gain, loss or score ("stochastic"
        has no guarantee for the sum; "divisive", "bucketing" and "hashing" have no joint allocation).
        "uniform": the same for all columns. "information": in proportion to I(X;C). Ids that a column cannot
        use go to other columns, except that "bucketing" and "hashing" keep empty intervals and buckets.

    Returns
    -------
    FoldTable

    Raises
    ------
    InputError
        The counts (the message names every bad column), the budget, the method or the allocation cannot be
        used.

    Notes
    -----
    `bound` and `gap` of the table are valid for every split of the budget, whatever the allocation. "joint"
    takes no longer than the others.

    Examples
    --------
    >>> import vocabfold as vf
    >>> columns = {"site": ([90, 45, 10, 70], [10, 5, 30, 30]), "hour": ([120, 95], [40, 35])}
    >>> table = vf.fold_table(columns, budget=4)
    >>> table.sizes
    {'site': 3, 'hour': 1}
    """
    check_method(method, allocation)
    tuning = Tuning(epsilon, shards, seed)
    counts = check_columns(columns)
    budget = checks.at_least("budget", budget, len(counts), " (one id per column)")
    curves = [order(*pair) for pair in counts.values()]
    if method in BY_VALUE:
        found, gap = fold_values(list(counts.values()), curves, budget, method, allocation)
    else:
        found, gap = fold_curves(curves, budget, method, allocation, tuning)
    folds = dict(zip(counts, found, strict=True))
    kept = math.fsum(fold.information for fold in folds.values())
    loss = math.fsum(fold.loss for fold in folds.values())
    total = math.fsum(fold.total for fold in folds.values())
    return FoldTable(folds, budget, kept, total, loss, kept + gap, gap)


def curve(
    neg: ArrayLike, pos: ArrayLike, max_size: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the maximum information that each number of ids can keep.

    Parameters
    ----------
    neg, pos : array_like of whole numbers
        As for `fold`.
    max_size : int, optional
        The largest size, at least 1. By default the number of distinct rates, up to 4,096.

    Returns
    -------
    sizes : int64 array
        1 to `max_size`.
    informations : float64 array
        The optimum at each size in nats per row: rising, concave, and constant from the number of rates on.

    Raises
    ------
    InputError
        The counts or the size cannot be used.

    Notes
    -----
    O(max_size * K) time for K distinct rates: 4,096 sizes take two seconds for 10,000 rates and half a
    minute for 100,000. Give a smaller `max_size` for more rates.

    Examples
    --------
    >>> import vocabfold as vf
    >>> sizes, informations = vf.curve([90, 45, 10, 70], [10, 5, 30, 30])
    >>> informations.round(4)
    array([0.    , 0.0877, 0.1153])
    """
    if max_size is not None:
        max_size = checks.at_least("max_size", max_size, 1)
        if max_size > _MAX_SIZES:
            raise InputError(f"max_size must be at most {_MAX_SIZES:,}, got {max_size:,}.")
    ordered = order(*arrays.counts(neg, pos))
    last = min(ordered.n_rates, _MAX_CURVE) if max_size is None else max_size
    informations = ordered.total - exact.least_losses(ordered, last)
    informations[0] = 0.0  # one id has no information, not even by rounding
    return np.arange(1, last + 1), informations


def check_columns(
    columns: Mapping[str, tuple[ArrayLike, ArrayLike]],
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the counts of every column; an error names all columns whose counts cannot be used."""
    if not isinstance(columns, Mapping) or not columns:
        given = "an empty one" if isinstance(columns, Mapping) else type(columns).__name__
        raise InputError(f"columns must be a mapping from names to counts (neg, pos), got {given}.")
    counts, problems = {}, []
    for name, pair in columns.items():
        try:
            counts[name] = arrays.pair(pair)
        except InputError as error:
            problems.append(f"column {name!r}: {error}")
    if len(problems) > _MAX_SHOWN:
        problems[_MAX_SHOWN:] = [f"And {len(problems) - _MAX_SHOWN} more columns cannot be used."]
    if problems:
        raise InputError(" ".join(problems))
    return counts
