"""Counts by fold -> the ids that rows have out of fold, and the gain of these ids.

A training row of an infrequent value is encoded by the rate of its value in the other folds, in the intervals
of the codebook; if the value has no rows there, by the mean of the prior. Rare values that share an id with
infrequent ones are encoded like one of them. Dedicated ids, and an id of rare values alone, are the same in all
folds: who has one depends on numbers of rows alone, and its number on labels only if there are many.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.column import BookColumn
from vocabfold.counts.counts import Counts
from vocabfold.errors import InputError
from vocabfold.folding.prior import Prior

_LEAST_RATE = 1e-15  # that differs from 0

Ids = NDArray[np.int32]
Units = NDArray[np.int64]


def ids_by_rate(column: BookColumn, neg: Units, pos: Units, units_per_row: int) -> Ids:
    """Return the ids of infrequent values by their rates, given their units elsewhere."""
    rates = Prior(column.mean, column.strength).rates(neg / units_per_row, pos / units_per_row)
    return np.asarray(column.shared, np.int32)[np.searchsorted(column.borders, rates, side="right")]


def others(column: BookColumn, rare: Units, units_per_row: int) -> Ids:
    """Return the id of rare values in each fold, given their units there by label, and last in none.

    Rare values that share an id with infrequent ones are encoded like one of them.
    """
    found = np.full(rare.shape[1] + 1, column.other, np.int32)
    if column.n_rare and column.other in column.shared:
        neg, pos = rare.sum(axis=1, keepdims=True) - rare
        found[:-1] = np.where(rare.sum(axis=0) > 0, ids_by_rate(column, neg, pos, units_per_row), column.other)
    return found


def gain(counts: Counts, column: BookColumn, found: pa.Table) -> float:
    """Return by how much the ids' rates in the other folds beat the overall rate, in nats per row."""
    folds, is_rare = found["fold"].to_numpy(), np.asarray(found["id"].is_null())
    ids = found["id"].fill_null(0).to_numpy().copy()
    sides = {side: found[side].to_numpy() for side in ("neg", "pos")}
    rare = np.zeros((2, counts.folds), np.int64)
    for sums, side in zip(rare, sides.values(), strict=True):
        np.add.at(sums, folds[is_rare], (side * found["n"].to_numpy())[is_rare])
    ids[is_rare] = others(column, rare, counts.units_per_row)[folds[is_rare]]
    rest = [found[f"all_{side}"].fill_null(0).to_numpy() - sides[side] for side in sides]
    is_shared = np.isin(ids, column.shared) & ~is_rare
    ids[is_shared] = ids_by_rate(column, rest[0][is_shared], rest[1][is_shared], counts.units_per_row)
    rows = np.zeros((2, counts.folds, column.size))
    for total, part in zip(rows, sides.values(), strict=True):
        np.add.at(total, (folds, ids), part * found["n"].to_numpy() / counts.units_per_row)
    return gain_of_rest(rows, column.strength)


def gain_of_rest(rows: NDArray[np.float64], strength: float) -> float:
    """Return the gain per row from the rows of each label, fold and id."""
    overall = rows[1].sum() / rows.sum()
    rest = rows.sum(axis=1, keepdims=True) - rows
    return float(told_by_rest(rest, rows, overall, strength).sum() / rows.sum())


def told_by_rest(
    rest: NDArray[np.float64], rows: NDArray[np.float64], overall: float, strength: float
) -> NDArray[np.float64]:
    """Return the gain on rows of each id from the rate of its other rows, both by label, in nats.

    Rates are pulled towards the overall one, with the strength of the prior, or by one row if it has none: a
    rate of 0 or 1 would cost infinitely much.
    """
    rates = Prior(overall, strength or 1.0).rates(*(side.ravel() for side in rest))
    return gained(rates.reshape(rest.shape[1:]), overall, *rows)


def gained(
    rates: NDArray[np.float64], base: float, neg: NDArray[np.float64], pos: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return by how much rates predict so many rows of each id better than the base rate does, in nats."""
    rates = np.clip(rates, _LEAST_RATE, 1 - _LEAST_RATE)
    return neg * np.log((1 - rates) / (1 - base)) + pos * np.log(rates / base)


def other_counts() -> InputError:
    """Return the error for counts that do not belong to a codebook."""
    return InputError("these are not the counts that the codebook was fitted on; give those, or fit these.")
