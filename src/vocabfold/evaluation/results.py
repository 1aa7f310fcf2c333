"""Evaluation: the figures of a codebook on new rows, warnings in words, and how both print.

MI is the mutual information of ids and label. A gain is the reduction in log-loss when labels are predicted
from the rates of the ids instead of the overall rate. Both are in nats per row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any

import numpy as np
import pyarrow as pa

from vocabfold.codebook.codebook import Codebook
from vocabfold.counts.units import ROWS
from vocabfold.fitting.advice import FEW_ROWS, leaking, nearly_unique
from vocabfold.support.checks import number, shown_rows

_CLEAR = 3  # standard errors that chance does not explain, even in one of many columns
_FEW_VALUES = 100  # of a column of numbers or dates whose order is worth keeping
_MOST_MOVED, _EXAMPLES = 2, 2  # ids of a column that has drifted, and values of each
MUCH_DRIFT = 0.25  # of the population stability index, beyond chance
_MORE_UNSEEN = 0.1  # of the rows, beyond those expected
_LEAST = 1e-4  # nats per row that are worth a warning


@dataclass(frozen=True)
class ColumnEvaluation:
    """The figures of one column on new rows; information in nats per row.

    Attributes
    ----------
    kept : float
        Train MI: mutual information of ids and label in the rows that the codebook was fitted on. An unknown
        part of it is chance.
    out_of_fold : float or None
        CV gain: the cross-validated gain at fit, if rows were counted by fold.
    information : float
        Test MI: mutual information of ids and label in the new rows.
    gain, error : float
        Test gain: the mean reduction in log-loss on the new rows when their labels are predicted from the rates
        of the ids at fit instead of the overall rate at fit. It may be negative. And its standard error.
    unseen, infrequent, missing : float
        Shares of the new rows whose value is not in the codebook; is in it, with fewer than `dedicated_min`
        rows; is missing.
    expected_unseen : float
        The share of unseen values to expect if the new rows are like those at fit.
    drift, drift_error : float
        Population stability index of the ids beyond chance: 0 if every id is as frequent as expected from the
        rows at fit, however many ids there are. And its standard error if nothing changed.
    moved : tuple of dict
        The ids that add most to the drift: id, share of the rows, expected share.
    miscalibration : float
        Mean absolute difference, over rows, between the rate of an id now and at fit.
    n_miscalibrated : int
        Ids whose rate differs from that at fit by more than chance explains, at 95 %.
    """

    kept: float
    out_of_fold: float | None
    information: float
    gain: float
    error: float
    unseen: float
    infrequent: float
    missing: float
    expected_unseen: float
    drift: float
    drift_error: float
    moved: tuple[dict[str, float], ...]
    miscalibration: float
    n_miscalibrated: int
    ids: pa.Table = field(repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, ColumnEvaluation]):
    """A codebook judged by rows that it was not fitted on: a mapping from column to `ColumnEvaluation`.

    Attributes
    ----------
    columns : dict
        The `ColumnEvaluation` of each column.
    rows : int or float
        Rows, by weight.
    n_rows : int or None
        Rows, each counted once.
    rate, rate_at_fit : float
        The share of positive labels in these rows, and in the rows of the codebook.
    is_fitted : bool
        Whether the codebook is known to have been fitted on these rows, or on some of them.
    kept, information, gain, out_of_fold : float
        Sums over the columns, which may be redundant.
    warnings : tuple of str
        What to look at, in words.
    """

    columns: Mapping[str, ColumnEvaluation]
    rows: int | float
    n_rows: int | None
    rate: float
    rate_at_fit: float
    is_fitted: bool
    warnings: tuple[str, ...]

    @property
    def rows_known(self) -> int | float:
        """Rows, each counted once; by weight, if only that is known."""
        return self.rows if self.n_rows is None else self.n_rows

    @property
    def kept(self) -> float:
        """Train MI: the information of the ids about the rows they were fitted on."""
        return math.fsum(column.kept for column in self.columns.values())

    @property
    def information(self) -> float:
        """Test MI: the information of the ids about these rows."""
        return math.fsum(column.information for column in self.columns.values())

    @property
    def gain(self) -> float:
        """Test gain: the reduction in log-loss on these rows."""
        return math.fsum(column.gain for column in self.columns.values())

    @property
    def out_of_fold(self) -> float | None:
        """CV gain: the reduction in log-loss by cross-validation at fit; None without folds."""
        gains = [column.out_of_fold for column in self.columns.values() if column.out_of_fold is not None]
        return math.fsum(gains) if gains else None

    def calibration(self, name: str) -> pa.Table:
        """Return the ids of a column: rows_at_fit, rate_at_fit, rows, rate, ...

        By weight are the rows at fit, these rows, and the rates; `neg_rows` and `pos_rows` are these rows by
        label, each counted once if that is known, and from them comes the 95 % interval, `low` to `high`.
        """
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
            f"{name:<{width}}  train MI {column.kept:.4g}, test gain {column.gain:.4g} ± {column.error:.1g}, "
            f"unseen {100 * column.unseen:.1f} %"
            for name, column in self.columns.items()
        ]
        head = f"{number(len(self), 'column')}, {shown_rows(self.rows, self.n_rows)}"
        figures = f"train MI {self.kept:.4g} nats/row, test gain {self.gain:.4g}"
        warnings = [f"warning: {text}" for text in self.warnings]
        return "\n  ".join([f"Evaluation({head}: {figures})", *lines, *warnings])


def warnings_of(book: Codebook, name: str, found: ColumnEvaluation) -> list[str]:
    """Say what is wrong with a column, and what to do about it."""
    return [
        f"column {name!r} {text}"
        for text in (
            *_leaking(book, name, found),
            *_not_generalising(book, found),
            *_ordered(book, name),
            *(_changing(found) or _drifting(book, name, found)),
        )
    ]


def _leaking(book: Codebook, name: str, found: ColumnEvaluation) -> Iterator[str]:
    text = nearly_unique(book, name)
    n_rows = sum(np.sum(found.ids[side]) for side in ROWS)
    if text is None and n_rows >= FEW_ROWS:
        text = leaking(book, found.information, "its ids explain")
    if text:
        yield text


def _not_generalising(book: Codebook, found: ColumnEvaluation) -> Iterator[str]:
    is_by_fold = found.out_of_fold is not None
    expected = found.kept if found.out_of_fold is None else found.out_of_fold
    if expected > _LEAST and found.gain < expected / 2 and expected - found.gain > _CLEAR * found.error:
        at_fit = f"{'cross-validated gain' if is_by_fold else 'train MI'} {expected:.2g} nats/row at fit"
        now = f"{'' if is_by_fold else 'gain '}{found.gain:.2g} on this data"
        yield f"did not generalise: {at_fit}, {now}. {_remedy(book.settings['aim'], is_by_fold)}"


def _remedy(aim: str, is_by_fold: bool) -> str:
    """Say what to do about a column that did not generalise; with folds, chance is ruled out."""
    if aim == "information":
        return f"Refit with aim 'model'{' or on recent rows' if is_by_fold else ''}, or drop it."
    return "Refit on recent rows or drop it." if is_by_fold else "Drop it, or refit with a larger min_count."


def _ordered(book: Codebook, name: str) -> Iterator[str]:
    column = book.columns[name]
    n_values = column.n_values + column.n_rare
    if column.kind not in ("text", "boolean") and n_values <= _FEW_VALUES:
        values = number(n_values, "value")
        yield f"has only {values}. If their order means something, give it to the model as it is."


def _changing(found: ColumnEvaluation) -> list[str]:
    if found.unseen <= found.expected_unseen + _MORE_UNSEEN:
        return []
    expected = f"{100 * found.expected_unseen:.0f} % were expected"
    return [f"has unseen values in {100 * found.unseen:.0f} % of the rows; {expected}. Refit on recent rows."]


def _drifting(book: Codebook, name: str, found: ColumnEvaluation) -> list[str]:
    if found.drift <= MUCH_DRIFT + _CLEAR * found.drift_error:
        return []
    moved = ", ".join(_moved(book, name, **one) for one in found.moved[:_MOST_MOVED])
    return [f"has drifted: population stability index {found.drift:.2f}: {moved}. Refit on recent rows."]


def _moved(book: Codebook, name: str, id: float, share: float, expected: float) -> str:
    """Say how the share of an id changed."""
    values = book.members(name, int(id), _EXAMPLES + 1)
    some = ", ".join(_shown(value) for value in values[:_EXAMPLES]) + ", ..." * (len(values) > _EXAMPLES)
    of_values = f" ({some})" if values else " (no value of the codebook)"
    return f"id {id}{of_values} has {100 * share:.1f} % of the rows ({100 * expected:.1f} % expected)"


def _shown(value: Any) -> str:
    """Return a value as it is written, texts in quotes."""
    return short(value) if isinstance(value, str) else str(value)
