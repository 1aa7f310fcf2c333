"""Counts by fold -> the ids that rows have out of fold, and the gain of these ids.

A training row of an infrequent value is encoded by the rate of its value in the other folds, in the intervals
of the codebook; if the value has no rows there, like an unseen value: by the id that is trained for these, or
by the mean of the prior. Rare values that share an id with
infrequent ones are encoded like one of them. Dedicated ids, and an id of rare values alone, are the same in all
folds: who has one depends on numbers of rows alone, and its number on labels only if there are many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.column import BookColumn
from vocabfold.counts.counts import Counts
from vocabfold.counts.evidence import Evidence
from vocabfold.counts.totals import Totals
from vocabfold.counts.units import UNITS, rows_of, whole
from vocabfold.errors import InputError
from vocabfold.folding.prior import Prior

_LEAST_RATE = 1e-15  # that differs from 0

_DIGITS = 15  # after the point, of a gain: what comes after them is rounding

Ids = NDArray[np.int32]
Units = NDArray[np.int64]


def ids_by_rate(column: BookColumn, sums: Mapping[str, Units], totals: Totals) -> Ids:
    """Return the ids of infrequent values by their rates, given their sums elsewhere, and those of all rows."""
    if not column.shared:  # too few rows for an id: they have joined another
        return np.full(sums["neg"].size, column.other, np.int32)
    sides = Evidence.of(totals, column.strength).sides(sums)
    rates = Prior(column.mean, column.strength).rates(*sides)
    ids = np.asarray(column.shared, np.int32)[np.searchsorted(column.borders, rates, side="right")]
    if column.is_other_trained:
        ids[~np.any(list(sums.values()), axis=0)] = column.other
    return ids


def others(column: BookColumn, rare: Mapping[str, Units], totals: Totals) -> Ids:
    """Return the id of rare values in each fold, given their sums there, and last in none.

    Rare values that share an id with infrequent ones are encoded like one of them.
    """
    n_units = rare["neg"] + rare["pos"]
    found = np.full(n_units.size + 1, column.other, np.int32)
    if column.n_rare and column.other in column.shared:
        elsewhere = {name: side.sum() - side for name, side in rare.items()}
        found[:-1] = np.where(n_units > 0, ids_by_rate(column, elsewhere, totals), column.other)
    return found


def with_gain(counts: Counts, column: BookColumn, found: pa.Table) -> BookColumn:
    """Return a column with what its ids come to out of fold: the CV gain, and the training rows of each."""
    folds, is_rare = found["fold"].to_numpy(), np.asarray(found["id"].is_null())
    ids = found["id"].fill_null(0).to_numpy().copy()
    here, of_all = sums_in_folds(found, counts.sums)
    n_values = found["n"].to_numpy()
    rare = rare_in_folds(counts, here, n_values, folds, is_rare)
    ids[is_rare] = others(column, rare, counts)[folds[is_rare]]
    is_shared = np.isin(ids, column.shared) & ~is_rare
    elsewhere = {name: (of_all[name] - here[name])[is_shared] for name in counts.sums}
    ids[is_shared] = ids_by_rate(column, elsewhere, counts)
    of_ids = {name: np.zeros((counts.folds, column.size), np.int64) for name in counts.sums}
    for name, sums in of_ids.items():
        np.add.at(sums, (folds, ids), here[name] * n_values)
    n_rows = (counts.neg + counts.pos) / counts.units_per_row
    told = told_by_rest(rest_of(of_ids), of_ids, counts, column.strength).sum()
    rows = rows_of({name: side.sum(axis=0) for name, side in of_ids.items()}, counts.units_per_row)
    return replace(
        column, gain=round(float(told / n_rows), _DIGITS) + 0.0, training_rows=tuple(map(whole, rows.tolist()))
    )


def sums_in_folds(found: pa.Table, names: Iterable[str]) -> tuple[dict[str, Units], dict[str, Units]]:
    """Return the sums of values in a fold, and in all folds: 0 of values that are not in the codebook."""
    columns = {name: found[name].to_numpy() for name in names}
    return columns, {name: found[f"all_{name}"].fill_null(0).to_numpy() for name in columns}


def rare_in_folds(
    counts: Counts, here: Mapping[str, Units], n_values: Units, folds: Ids, is_rare: NDArray[np.bool_]
) -> dict[str, Units]:
    """Return the sums of all rare values in each fold."""
    rare = {name: np.zeros(counts.folds, np.int64) for name in here}
    for name, sums in rare.items():
        np.add.at(sums, folds[is_rare], (here[name] * n_values)[is_rare])
    return rare


def rest_of(sums: Mapping[str, Units]) -> dict[str, Units]:
    """Return the sums in all other folds of those in each fold."""
    return {name: side.sum(axis=0) - side for name, side in sums.items()}


def told_by_rest(
    rest: Mapping[str, Units], here: Mapping[str, Units], totals: Totals, strength: float
) -> NDArray[np.float64]:
    """Return the gain on rows of each id from the rate of its other rows, given the sums of both, in nats.

    Rates are pulled towards the overall one, with the strength of the prior, or by one row if it has none: a
    rate of 0 or 1 would cost infinitely much.
    """
    evidence = Evidence.of(totals, strength)
    neg, pos = (getattr(totals, side) for side in evidence.sums)
    shape = here["neg"].shape
    sides = (side.ravel() for side in evidence.sides(rest))
    rates = evidence.rates(Prior(pos / (neg + pos), strength or 1.0).rates(*sides)).reshape(shape)
    base = totals.pos / (totals.neg + totals.pos)
    return gained(rates, base, *(here[side] / totals.units_per_row for side in UNITS))


def gained(
    rates: NDArray[np.float64], base: float, neg: NDArray[np.float64], pos: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return by how much rates predict so many rows of each id better than the base rate does, in nats."""
    rates = np.clip(rates, _LEAST_RATE, 1 - _LEAST_RATE)
    return neg * np.log((1 - rates) / (1 - base)) + pos * np.log(rates / base)


def other_counts() -> InputError:
    """Return the error for counts that do not belong to a codebook."""
    return InputError("these are not the counts that the codebook was fitted on; give those, or fit these.")


def one_fold() -> InputError:
    """Return the error for rows that are all in one fold."""
    return InputError(
        "all rows are in one fold, but at least two folds are needed; count the rows with other folds."
    )
