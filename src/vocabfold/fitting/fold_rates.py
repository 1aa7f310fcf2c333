"""Counts by fold -> a warning, if the folds depend on the label.

The id of a training row comes from the other folds. If its own fold has more positive rows than these, their
rate is too low for it, and so are the rates of all values there: ids of training rows tell their own labels,
inverted. Rows sorted by label and folds by position do that.

Nor may folds share the labels of each value out evenly, as those by position do in turns among rows sorted by
value and label: the rate in the other folds is then that of all rows, and tells the label of each as well.

Label rates also differ between months and between groups of users, by more than chance if there are many rows.
Such folds are fine as long as the rate of the other folds costs little (on flights by month, 0.3 % of the
entropy of the label).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special

from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.out_of_fold import rest_of, told_by_rest
from vocabfold.counts.counts import Counts
from vocabfold.errors import argument
from vocabfold.support import notes

_CHANCE = 1e-6  # probability
_LITTLE = 0.01  # of the entropy of the label
_LEAST_EXPECTED = 5  # rows of the rarer label, so that the statistic has the distribution of chi-square
_ERRORS = 5  # standard errors, about as unlikely
_HALF = 0.5  # of the spread by chance

Sums = NDArray[np.int64]
Floats = NDArray[np.float64]


def check(
    counts: Counts, columns: Mapping[str, BookColumn], sums: Mapping[str, Sums], even: Sequence[str]
) -> bool:
    """Warn if the folds depend on the label, and tell whether they do, given the sums of each fold.

    `even` are the columns that `is_even` tells of, and whose ids depend on the fold.
    """
    cost = cost_of(sums, counts)
    said, told = _of_rates(sums, counts, cost) or _of_gains(sums, counts, cost, columns), "labels, inverted"
    if even and not said:
        said = f"the folds share out the labels of each value of column {even[0]!r} more evenly than by chance."
        told = "labels"
    if said:
        notes.warn(
            f"{said} The ids of training rows come from the other folds, so they tell their own {told}. Assign "
            f"rows to folds without regard to their label: with {argument('folds', 5)}, in scikit-learn with "
            "cv=5, on Spark by a hash of an id."
        )
    return bool(said)


def is_even(counts: Counts, by_fold: pa.Table) -> bool:
    """Tell whether the labels of the values of a column are spread over the folds more evenly than by chance.

    Given how many rows a value has in a fold, by chance the positive ones there have the hypergeometric
    distribution. The squares of their distances to the mean are summed over all values and folds.
    """
    (neg, pos), units = counts.row_sums
    is_known = np.asarray(by_fold[f"all_{neg}"].is_valid())  # rare values are in no codebook
    here = [by_fold[side].to_numpy()[is_known] / units for side in (neg, pos)]
    whole = [by_fold[f"all_{side}"].to_numpy()[is_known] / units for side in (neg, pos)]
    n_values, rows, all_rows = by_fold["n"].to_numpy()[is_known], sum(here), sum(whole)
    rate = whole[1] / all_rows
    variances = rows * rate * (1 - rate) * (all_rows - rows) / np.maximum(all_rows - 1, 1)
    squares = float(n_values @ (here[1] - rows * rate) ** 2)
    expected = float(n_values @ variances)
    # Of a normal distance, twice this would do for the spread; few rows vary more, and folds go together.
    error = float(n_values @ (variances + 4 * variances**2)) ** 0.5
    return squares < _HALF * expected and squares < expected - _ERRORS * error


def sums_of(counts: Counts, by_fold: pa.Table) -> dict[str, Sums]:
    """Return the sums of each fold, given those of the values of any column there."""
    folds, n_values = by_fold["fold"].to_numpy(), by_fold["n"].to_numpy()
    found = {name: np.zeros(counts.folds, np.int64) for name in counts.sums}
    for name, of_folds in found.items():
        np.add.at(of_folds, folds, by_fold[name].to_numpy() * n_values)
    return found


def cost_of(sums: Mapping[str, Sums], counts: Counts) -> float:
    """Return by how much the rate of the other folds is worse than the overall rate, in nats per row."""
    n_rows = (counts.neg + counts.pos) / counts.units_per_row
    return max(0.0, -float(told_by_rest(rest_of(sums), sums, counts, 0.0).sum()) / n_rows)


def p_value(neg: Floats, pos: Floats) -> float:
    """Return how likely label rates differ so much by chance, given the rows of each fold by label.

    Small folds are put together with those next to them.
    """
    rows = neg + pos
    rate = pos.sum() / rows.sum()
    least = _LEAST_EXPECTED / min(rate, 1 - rate)
    _, place = np.unique((np.cumsum(rows) - rows) // least, return_inverse=True)
    rows, pos = (np.bincount(place, side).astype(float) for side in (rows, pos))
    expected = rows[rows > 0] * rate
    squares = (pos[rows > 0] - expected) ** 2 / (expected * (1 - rate))
    return float(special.chdtrc(squares.size - 1, squares.sum())) if squares.size > 1 else 1.0


def _of_rates(sums: Mapping[str, Sums], counts: Counts, cost: float) -> str:
    """Return what to say of folds whose label rates differ."""
    if cost < _LITTLE * counts.entropy or p_value(*_rows(sums, counts)) > _CHANCE:
        return ""
    units = sums["neg"] + sums["pos"]
    rates = sums["pos"][units > 0] / units[units > 0]
    return f"label rates differ between folds, from {100 * rates.min():.1f} % to {100 * rates.max():.1f} %."


def _of_gains(sums: Mapping[str, Sums], counts: Counts, cost: float, columns: Mapping[str, BookColumn]) -> str:
    """Return what to say of a column whose rates in other folds mislead by far more than by chance.

    What ids keep by chance costs as much in other folds, and twice as much if they are half of the rows; on top
    come a nat per id, the standard error of as many, and the cost of the folds themselves. Without a prior,
    honest folds may cost more than that.
    """
    n_rows = sum(side.sum() for side in _rows(sums, counts))
    for name, column in columns.items():
        by_chance = 2 * column.information + (column.size + _ERRORS * column.size**0.5) / n_rows
        assert column.gain is not None
        if column.strength and column.gain < -by_chance - cost:
            return (
                f"the rates of the values of column {name!r} are wrong in other folds: its CV gain is "
                f"{column.gain:.2g} nats/row."
            )
    return ""


def _rows(sums: Mapping[str, Sums], counts: Counts) -> list[Floats]:
    """Return the negative and the positive rows of each fold, each row counted once if that is known."""
    names, units = counts.row_sums
    return [sums[side] / units for side in names]
