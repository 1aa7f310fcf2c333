"""Rows whose folds go by their number -> whether they are in the order in which they were counted.

Nothing is kept of the order itself. An order does no harm if it has as many rows of every value, fold and label
as were counted: the counts are then its own, too. To compare them all at once, each value has a mark in each
fold, a number that looks random. The marks of all rows of a label are summed up while they are encoded; the
counts tell what the sum must be. A value whose id is the same in all folds needs no mark, and all rare values
share one. One column is compared, that with the most values of those whose ids depend on the fold: two rows
that change places rarely have the same value there.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.counts.target import as_text
from vocabfold.errors import InputError, argument
from vocabfold.support.kernels import inlined, kernel

Labels = NDArray[np.int8]
Sums = NDArray[np.int64]  # rows by label, and below them the sums of their marks

_BITS, _ODD, _MIX = 2**31 - 1, 0x5E3779B9, 0x56E8FEB9

_MISSING = 2  # beside 0 and 1: the row has no label, or none is given


class Seen:
    """What was seen of rows while they were encoded; several threads add to it."""

    def __init__(self) -> None:
        self._uncounted: dict[str, int] = {}  # of each column: rows whose value was not counted in their fold
        self._checked = ""  # the column that is compared,
        self._sums = np.zeros((2, 3), np.int64)  # what its rows sum to,
        self._counted: Sums | None = None  # and what they did when they were counted
        self._lock = Lock()

    def add(self, name: str, n_uncounted: int, sums: Sums, counted: Sums | None) -> None:
        """Add what was seen of some rows of a column; `counted` is what all sum to, if it is compared."""
        with self._lock:
            self._uncounted[name] = self._uncounted.get(name, 0) + n_uncounted
            if counted is not None:
                self._checked, self._counted = name, counted
                self._sums += sums

    def worst_column(self) -> tuple[str, int]:
        """Return the column with most rows whose value was not counted in their fold, and their number."""
        return max(self._uncounted.items(), key=lambda item: item[1], default=("", 0))

    def n_skipped(self, n_rows: int, skipped: int | None) -> int | None:
        """Return how many rows were not counted; if only that is known, `skipped`, those of all readings."""
        return skipped if self._counted is None else n_rows - int(self._counted[0].sum())

    def check_order(self, n_rows: int, n_skipped: int | None, place: str) -> None:
        """Refuse rows that are not in the order in which they were counted."""
        name, n_uncounted = self.worst_column()
        if n_skipped is not None and n_skipped < 0:
            raise _other_order(place, f"it has {n_rows:,} rows, but {n_rows - n_skipped:,} were counted")
        if n_skipped is not None and n_uncounted > n_skipped:
            raise _other_order(
                place,
                f"{n_uncounted:,} of {n_rows:,} rows have a value in column {name!r} that was not counted in "
                "their fold",
            )
        if self._counted is not None and not _are_counted(self._sums, self._counted):
            raise _other_order(place, f"in column {self._checked!r}, some value has other rows in some fold")


def _are_counted(seen: Sums, counted: Sums) -> bool:
    """Tell whether each value has the rows that were counted in each fold, as far as that can be told."""
    if (seen[0, :2] == counted[0]).all():  # then rows without a label are those that were left out
        return bool((seen[1, :2] == counted[1]).all())
    if seen[0].sum() == counted[0].sum():  # all were counted; labels are not given, or spelled apart
        return bool(seen[1].sum() == counted[1].sum())
    return True  # nobody knows which rows were left out


def _other_order(place: str, proof: str) -> InputError:
    return InputError(
        f"{place} does not have its rows in the order in which they were counted: {proof}. Rows were "
        "assigned to folds by their number, so the ids would leak labels: give the rows in the order in which "
        f"they were counted, or count them with a {argument('fold_column')}."
    )


def labels_of(column: pa.Array | pa.ChunkedArray | None, n_rows: int, positive: str) -> Labels:
    """Return 1 for each row with the positive label, 0 for those with another, and 2 for those without."""
    if column is None:
        return np.full(n_rows, _MISSING, np.int8)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return np.concatenate([np.empty(0, np.int8), *(_labels(chunk, positive) for chunk in chunks)])


def _labels(column: pa.Array, positive: str) -> Labels:
    import pyarrow.compute as pc  # slow to import

    is_number = pa.types.is_integer(column.type) and positive in ("0", "1")
    if is_number or pa.types.is_string(column.type):  # nearly always: this takes a tenth of the time
        is_positive = pc.equal(column, int(positive) if is_number else positive)
        return np.asarray(is_positive.cast(pa.int8()).fill_null(_MISSING))
    try:
        words = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowException:  # lists and the like, which are no labels
        return labels_of(None, len(column), positive)
    found = [*words.dictionary.to_pylist(), None]
    codes = [_MISSING if word is None or word != word else int(as_text(word) == positive) for word in found]
    places = np.asarray(words.indices.cast(pa.int64()).fill_null(len(found) - 1))
    return np.take(np.array(codes, np.int8), places)


@inlined
def mark(slot: int) -> int:
    """Return a number of 31 bits that looks random; no step of it exceeds 63 bits."""
    mixed = (slot & _BITS) * _ODD
    mixed = ((mixed ^ mixed >> 29) & _BITS) * _MIX
    return (mixed ^ mixed >> 31) & _BITS


@kernel
def marked(first: int, rows: NDArray[np.int64]) -> int:
    """Return the sum of the marks of rows, given how many are in each slot from the first on."""
    total = 0
    for i in range(rows.size):
        total += rows[i] * mark(first + i)
    return total
