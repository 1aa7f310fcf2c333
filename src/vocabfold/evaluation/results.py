"""What new rows say about a codebook: the figures, the warnings in words, and how they print."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from vocabfold.codebook.codebook import Codebook
from vocabfold.support.checks import number

_CLEAR = 3  # standard errors that are not chance, in one of many columns
_FEW_VALUES = 100  # of a column of numbers or dates that has an order to keep
_NEARLY_UNIQUE, _NEARLY_ALL = 0.5, 0.9  # values per row, and the share of all there is to know about the label
_TOO_MUCH = 0.7  # of all there is to know, on new rows
MUCH_DRIFT = 0.25  # of the population stability index, beyond what chance gives
_MORE_UNSEEN = 0.1  # of the rows, beyond those expected
_LEAST = 1e-4  # nats that are worth a warning


@dataclass(frozen=True)
class ColumnEvaluation:
    """What the ids of one column tell about new rows, in nats per row.

    Attributes
    ----------
    kept : float
        What the ids tell about the rows they were fitted on: the share of chance in it is not known.
    out_of_fold : float or None
        The gain on rows of other folds at fit, if folds were counted.
    information : float
        Mutual information of ids and label in the new rows.
    gain, error : float
        By how much the rates of the ids at fit predict the new labels better than the overall rate at fit does
        (mean difference of log-losses; it may be negative), and its standard error.
    unseen, rare, missing : float
        Shares of the new rows whose value is not in the codebook; is in it, with fewer than `dedicated_min`
        rows; is missing.
    expected_unseen : float
        The share unseen that is to be expected of rows like those at fit.
    drift : float
        Population stability index of the ids: 0 if all are as frequent as is to be expected from the rows at
        fit.
    miscalibration : float
        Mean difference, over rows, of the rate of an id now and at fit.
    n_off : int
        Ids whose rate now differs from that at fit by more than chance explains, at 95 %.
    """

    kept: float
    out_of_fold: float | None
    information: float
    gain: float
    error: float
    unseen: float
    rare: float
    missing: float
    expected_unseen: float
    drift: float
    miscalibration: float
    n_off: int
    ids: pa.Table = field(repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, ColumnEvaluation]):
    """What a codebook tells about rows that it was not fitted on: a mapping from column to `ColumnEvaluation`.

    Attributes
    ----------
    columns : dict
        The `ColumnEvaluation` of each column.
    rows : int or float
        Rows, by weight.
    rate, rate_at_fit : float
        The share of positive labels among them, and among the rows of the codebook.
    is_fitted : bool
        The rows, or some of them, are known to be those that the codebook was fitted on.
    kept, information, gain, out_of_fold : float
        Sums over the columns, which may overlap in what they tell.
    warnings : tuple of str
        What should be looked at, in words.
    """

    columns: Mapping[str, ColumnEvaluation]
    rows: int | float
    rate: float
    rate_at_fit: float
    is_fitted: bool
    warnings: tuple[str, ...]

    @property
    def kept(self) -> float:
        """What the ids tell about the rows they were fitted on."""
        return math.fsum(column.kept for column in self.columns.values())

    @property
    def information(self) -> float:
        """What the ids tell about these rows."""
        return math.fsum(column.information for column in self.columns.values())

    @property
    def gain(self) -> float:
        """By how much the rates of the ids at fit beat the overall rate on these rows."""
        return math.fsum(column.gain for column in self.columns.values())

    @property
    def out_of_fold(self) -> float | None:
        """The gain on rows of other folds at fit."""
        gains = [column.out_of_fold for column in self.columns.values() if column.out_of_fold is not None]
        return math.fsum(gains) if gains else None

    def calibration(self, name: str) -> pa.Table:
        """Return the ids of a column: rows_at_fit, rate_at_fit, rows, rate, and its 95 % interval low, high."""
        return self.columns[name].ids

    def __getitem__(self, name: str) -> ColumnEvaluation:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        width = max(map(len, self.columns))
        lines = [
            f"{name:<{width}}  kept {column.kept:.4g}, gain {column.gain:.4g} +- {column.error:.1g}, "
            f"unseen {100 * column.unseen:.1f} %"
            for name, column in self.columns.items()
        ]
        head = f"{number(len(self), 'column')}, {number(self.rows, 'row')}"
        figures = f"kept {self.kept:.4g} nats at fit, gain {self.gain:.4g} on these rows"
        warnings = [f"warning: {text}" for text in self.warnings]
        return "\n  ".join([f"Evaluation({head}: {figures})", *lines, *warnings])


def warnings_of(book: Codebook, name: str, found: ColumnEvaluation, unit: str = "nats") -> list[str]:
    """Say what is wrong with a column, in words; information in nats, or in bits."""
    return [
        f"column {name!r} {text}."
        for text in (
            *_telling_too_much(book, name, found),
            *_not_holding(book, found, unit),
            *_having_an_order(book, name),
            *_changing(book, name, found),
        )
    ]


def _telling_too_much(book: Codebook, name: str, found: ColumnEvaluation) -> Iterator[str]:
    column = book.columns[name]
    base = book.pos / (book.neg + book.pos)
    entropy = -(base * math.log(base) + (1 - base) * math.log(1 - base))
    n_values = column.n_values + column.n_rare
    if column.total >= _NEARLY_ALL * entropy and n_values >= _NEARLY_UNIQUE * book.rows:
        shares = f"{number(n_values, 'value')} in {number(book.rows, 'row')}"
        yield f"is nearly unique ({shares}), so all it can tell are the labels of the rows at fit; leave it out"
    elif found.information >= _TOO_MUCH * entropy:
        share = f"{100 * found.information / entropy:.0f} % of all there is to know"
        yield f"gives the label away ({share}); make sure that it is known before the label is"


def _not_holding(book: Codebook, found: ColumnEvaluation, unit: str) -> Iterator[str]:
    promised = found.kept if found.out_of_fold is None else found.out_of_fold
    if promised > _LEAST and found.gain < promised / 2 and promised - found.gain > _CLEAR * found.error:
        where, remedy = "at fit", "raise min_count, or leave it out"
        if found.out_of_fold is not None:  # so it is not chance
            where, remedy = "on rows of other folds at fit", "fit on newer rows, or leave it out"
        if book.settings["aim"] == "information":
            remedy = f"fit with aim='model', {remedy}"
        per_unit = math.log(2) if unit == "bits" else 1.0
        told, gain = promised / per_unit, found.gain / per_unit
        figures = f"it told {told:.2g} {unit} {where}, and gains {gain:.2g} on these"
        yield f"does not hold: {figures}; {remedy}"


def _having_an_order(book: Codebook, name: str) -> Iterator[str]:
    column = book.columns[name]
    n_values = column.n_values + column.n_rare
    if column.kind not in ("text", "boolean") and n_values <= _FEW_VALUES:
        yield f"has {number(n_values, 'value')} with a natural order; better give it to the model as it is"


def _changing(book: Codebook, name: str, found: ColumnEvaluation) -> Iterator[str]:
    if found.unseen > found.expected_unseen + _MORE_UNSEEN:
        shares = f"{100 * found.unseen:.0f} % of the rows, instead of {100 * found.expected_unseen:.0f} %"
        yield f"has values that are not in the codebook in {shares}; fit a new one"
    rows = float(np.sum(found.ids["rows"]))
    by_chance = (book.columns[name].size - 1) * (1 / max(book.rows, 1) + 1 / max(rows, 1))
    if found.drift > MUCH_DRIFT + by_chance:
        yield f"has drifted since it was fitted (stability index {found.drift:.2f}); fit a new codebook"
