"""Curves -> Folds, by the methods that group neighbouring rates.

The exact solver runs whatever the method: its price bounds how much any fold of that size can keep, so every
result comes with its distance from the optimum.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding import information
from vocabfold.folding.allocation import Tuning, cuts_of_size, joint_cuts, share
from vocabfold.folding.curve import Curve
from vocabfold.folding.methods import OPTIMAL
from vocabfold.folding.results import Fold
from vocabfold.folding.solve import exact

Cuts = NDArray[np.int64]


def fold_curves(
    curves: Sequence[Curve],
    budget: int,
    method: str,
    allocation: str,
    tuning: Tuning,
    rows: int | None = None,
) -> tuple[list[Fold], float]:
    """Fold each curve at the size that the allocation gives it; also return their joint gap.

    Losses are per row of each curve, or per `rows` for all curves; so are the gains that split the budget.
    """
    optimum = exact.solve(curves, budget, rows)
    sizes, cuts, own = find_cuts(curves, budget, method, allocation, tuning, rows, optimum)
    if own is None:
        own = optimum if sizes == optimum.sizes else _solve_each(curves, sizes, rows)
    shares = [curve.rows / (rows or curve.rows) for curve in curves]
    floors = [floor / of_all for floor, of_all in zip(own.floors, shares, strict=True)]
    folds = [cut(*parts) for parts in zip(curves, cuts, floors, strict=True)]
    loss = math.fsum(of_all * fold.loss for of_all, fold in zip(shares, folds, strict=True))
    return folds, max(0.0, loss - math.fsum(optimum.floors))


def find_cuts(
    curves: Sequence[Curve],
    budget: int,
    method: str,
    allocation: str,
    tuning: Tuning,
    rows: int | None = None,
    optimum: exact.Optimum | None = None,
) -> tuple[list[int], list[Cuts], exact.Optimum | None]:
    """Return the size of each curve, its cuts, and, for "exact", the optimum at these sizes.

    Give the `optimum` of the whole budget if it is known.
    """
    of_curves = [rows or curve.rows for curve in curves]
    n_rates = [curve.n_rates for curve in curves]
    if allocation == "joint" and method not in OPTIMAL:
        if method == "threshold":
            tuning.check_shards(n_rates, budget)
        cuts = joint_cuts(curves, of_curves, budget, method, tuning)
        return [of_curve.size + 1 for of_curve in cuts], cuts, None
    if allocation == "joint":
        optimum = optimum or exact.solve(curves, budget, rows)
        sizes = optimum.sizes
    else:
        totals = [curve.total * curve.rows / of_all for curve, of_all in zip(curves, of_curves, strict=True)]
        sizes = share(n_rates, totals, budget, allocation, method)
        if method == "threshold":
            tuning.check_shards_of_each(n_rates, sizes)
    if method == "exact":
        own = optimum if optimum and sizes == optimum.sizes else _solve_each(curves, sizes, rows)
        return sizes, own.cuts, own
    cuts = [cuts_of_size(curve, size, method, tuning) for curve, size in zip(curves, sizes, strict=True)]
    return sizes, cuts, None


def _solve_each(curves: Sequence[Curve], sizes: Sequence[int], rows: int | None) -> exact.Optimum:
    """Return the optimum of each curve at its own size."""
    each = [exact.solve([curve], size, rows) for curve, size in zip(curves, sizes, strict=True)]
    return exact.Optimum([one.cuts[0] for one in each], [one.floors[0] for one in each])


def cut(curve: Curve, cuts: Cuts, floor: float) -> Fold:
    """Build the fold from its cuts and from the lower bound on the loss of so many ids."""
    kept = information.information(curve.cum_neg, curve.cum_pos, cuts)
    loss = information.loss(curve.cum_neg, curve.cum_pos, cuts)
    gap = max(0.0, loss - floor)
    id_of_rate = np.repeat(
        np.arange(cuts.size + 1, dtype=np.int32), np.diff(cuts, prepend=0, append=curve.n_rates)
    )
    # A value without rows has position -1: it gets the last entry, which is appended here.
    ids = np.append(id_of_rate, np.int32(_prior_id(curve, cuts)))[curve.position]
    return Fold(ids, cuts.size + 1, kept, curve.total, loss, kept + gap, gap)


def _prior_id(curve: Curve, cuts: Cuts) -> int:
    """Return the id whose interval contains the overall rate, by exact arithmetic.

    The border between two ids is midway between the rates beside the cut, and belongs to the higher id.
    """

    def rate(a: int, b: int) -> Fraction:
        pos = int(curve.cum_pos[b] - curve.cum_pos[a])
        return Fraction(pos, pos + int(curve.cum_neg[b] - curve.cum_neg[a]))

    def border(cut: int) -> Fraction:
        return (rate(cut - 1, cut) + rate(cut, cut + 1)) / 2

    return bisect_right(cuts, rate(0, curve.n_rates), key=border)
