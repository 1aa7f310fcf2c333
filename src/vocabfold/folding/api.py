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

_MAX_CURVE = 4096  # sizes that `curve` returns unless told otherwise
_MAX_SIZES = 10**8  # that `curve` returns if told to: 1.6 GB
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
    """Fold the values of one column into at most `size` ids that tell most about the label.

    Parameters
    ----------
    neg, pos : array_like of whole numbers, one entry per value
        Rows of each value with a negative and with a positive label; at most 2**53 in all. Entries are
        paired by position. The rate of a value is pos / (neg + pos).
    size : int
        Ids to use, at least 1. With fewer distinct rates than that, every rate has its own id.
    method : str
        How to fold. All but the last three fold neighbouring rates, so that equal rates share an id.

        - "exact" (the default) and "dynamic" find the optimum. "exact" is nearly linear in the number of
          values. "dynamic", the dynamic programme of the paper's related work, is for reference: O(size * K
          log K) time and O(size * K) memory for K distinct rates.
        - "greedy", "stochastic" and "threshold" are the paper's algorithms: the best cut again and again; the
          best of a random sample; every cut that reaches a falling threshold. They keep at least 1 - 1/e,
          1 - 1/e - epsilon (on average over seeds) and 1 - 1/e - 2 epsilon of the optimum. "stochastic" is poor
          where the size is not small against the number of rates: its samples have few cuts then.
        - "agglomerative" merges the groups that lose least; "divisive" is k-means by divergence; "bucketing"
          takes equal intervals of the rate. No guarantee.
        - "frequency" gives the values with most rows an id each, and one id to all others; "selection" those
          that tell most about the label by themselves; "hashing" deals positions to ids. No guarantee.
    epsilon : float
        For "stochastic" and "threshold": what they may miss, between 0 and 1. Smaller is slower and better.
    shards : int
        For "threshold": how many pieces of as many rates are folded on their own, with a forced cut between
        them; at most `size`. Beyond epsilon * size of them the guarantee is lost, with a warning.
    seed : int
        For "stochastic": which samples are drawn.

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
    label, up to rounding (1e-12 of the total promised, a few 1e-15 measured); `gap` proves it for this very
    result. Whatever the method, the exact solver runs too, and `gap` tells how much any fold could be better.
    For n values with K distinct rates (at most 1.26 N**(2/3) for N rows): O(K log K) time to solve, O(n)
    to order rare values and O(n log n) at most, O(n) memory.

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
            f"must be at most the size, {size:,} ids, got {shards:,}; give fewer shards.", argument="shards"
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
    """Fold several columns into at most `budget` ids in all.

    Parameters
    ----------
    columns : mapping from name to (neg, pos)
        The counts of each column, as for `fold`. Columns may have different numbers of rows; the
        information of each is per row of its own.
    budget : int
        Ids in all, at least one per column. What exceeds the distinct rates is left unused.
    method, epsilon, shards, seed
        As for `fold`; shards are per column.
    allocation : {"joint", "uniform", "information"}
        How the budget is split. "joint": with "exact" and "dynamic", so that the sum of the informations is
        the largest of all splits; with the other methods, cuts or values of all columns compete by what they
        gain, lose or score; "divisive", "bucketing" and "hashing" have none. "stochastic" promises nothing for
        them together. "uniform": all columns get the same. "information": in proportion to I(X;C). What a
        column cannot use goes to columns that can; only "bucketing" and "hashing" count their intervals and
        buckets, used or not.

    Returns
    -------
    FoldTable

    Raises
    ------
    InputError
        The counts (all columns that are wrong are named), the budget, the method or the allocation
        cannot be used.

    Notes
    -----
    `bound` and `gap` of the table hold against all splits of the budget, whatever the allocation. "joint"
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
    """Return the most information that each number of ids can keep.

    Parameters
    ----------
    neg, pos : array_like of whole numbers
        As for `fold`.
    max_size : int, optional
        The largest size, at least 1; by default the number of distinct rates, at most 4,096.

    Returns
    -------
    sizes : int64 array
        1 to `max_size`.
    informations : float64 array
        The optimum of each size in nats per row: rising, concave, and flat from the number of rates on.

    Raises
    ------
    InputError
        The counts or the size cannot be used.

    Notes
    -----
    O(max_size * K) time for K distinct rates: 4,096 sizes take two seconds for 10,000 rates and half a
    minute for 100,000; give a smaller `max_size` beyond.

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
    informations[0] = 0.0  # one id tells nothing, not even by rounding
    return np.arange(1, last + 1), informations


def check_columns(
    columns: Mapping[str, tuple[ArrayLike, ArrayLike]],
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the counts of every column, or name all columns whose counts cannot be used."""
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
