"""Counts by fold -> ids that no row's own label has touched.

A training row of a tail is encoded by the rate of its value in the other folds, in the intervals of the
codebook; if the value has no rows there, by the mean of the prior. Private and pooled values have the ids that
they have, as these depend on numbers of rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook import Codebook
from vocabfold.columns import BookColumn
from vocabfold.compiling import kernel
from vocabfold.counts import Counts
from vocabfold.engines.duckdb import Engine
from vocabfold.errors import InputError
from vocabfold.estimate import Prior
from vocabfold.lookup import Index
from vocabfold.survey import dealt

Ids = NDArray[np.int32]
Units = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FoldedIndex:
    """The values of a column, and their ids in each fold."""

    places: Index  # of the values, in order
    ids: Ids  # of the values, in folds without rows of theirs
    starts: Units  # where the rows of each value begin in the two that follow
    folds: Ids
    ids_in_fold: Ids

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        own = (self.ids, self.starts, self.folds, self.ids_in_fold)
        return self.places.nbytes + sum(array.nbytes for array in own)

    def prepare(self, n_wanted: int) -> None:
        """Get ready to find so many values."""
        self.places.prepare(n_wanted)

    def find(self, values: pa.Array) -> Ids:
        """Return the place of each value, or -1."""
        return self.places.find(values)

    def resolve(self, places: Ids, folds: Ids) -> Ids:
        """Return the id of each place in a fold, or -1."""
        return _resolve(places, folds, self.ids, self.starts, self.folds, self.ids_in_fold)


@dataclass(frozen=True, eq=False)
class FoldedStore:
    """The values of a codebook, and their counts by fold."""

    book: Codebook
    counts: Counts

    def index(self, name: str) -> FoldedIndex:
        """Return the values of a column and their ids in memory."""
        column = self.book.columns[name]
        with Engine(self.book.memory_limit) as engine:
            book, by_fold = self.book.store.sql(engine, name), self.counts.sql(engine, name, by_fold=True)
            n_folds = f"SELECT value, count(*) AS n_folds FROM ({by_fold}) GROUP BY value"
            found = engine.run(
                f"SELECT b.value, b.id, b.neg, b.pos, f.n_folds FROM ({book}) b JOIN ({n_folds}) f "
                "ON b.value IS NOT DISTINCT FROM f.value ORDER BY b.value NULLS FIRST"
            )
            parts = engine.run(
                f"SELECT f.fold, f.neg, f.pos FROM ({by_fold}) f JOIN ({book}) b "
                "ON f.value IS NOT DISTINCT FROM b.value ORDER BY f.value NULLS FIRST, f.fold"
            )
        ids = np.ascontiguousarray(found["id"].to_numpy())
        n_folds_of = found["n_folds"].to_numpy()
        starts = np.append(0, np.cumsum(n_folds_of))
        rest = []
        for side in ("neg", "pos"):
            whole, part = found[side].to_numpy(), parts[side].to_numpy()
            if len(ids) < column.n_values or (np.add.reduceat(part, starts[:-1]) != whole).any():
                raise _other_counts()
            rest.append(np.repeat(whole, n_folds_of) - part)
        in_tail = np.isin(ids, column.tail)
        is_tail = np.repeat(in_tail, n_folds_of)
        return FoldedIndex(
            Index(found["value"], np.arange(ids.size, dtype=np.int32)),
            ids,
            np.append(0, np.cumsum(np.where(in_tail, n_folds_of, 0))),
            parts["fold"].to_numpy()[is_tail],
            _tail_ids(column, rest[0][is_tail], rest[1][is_tail], self.book.units_per_row),
        )


@dataclass(frozen=True, eq=False)
class Folds:
    """The rows that were counted by fold, and how the fold of each is found: by a column, or by its number."""

    store: FoldedStore
    column: str | None
    indexes: dict[str, FoldedIndex] = field(default_factory=dict)  # that are in memory

    @classmethod
    def of(cls, book: Codebook, counts: Counts, column: str | None) -> Folds:
        """Return the folds of the counts that a codebook was fitted on."""
        if not isinstance(counts, Counts):
            raise InputError(f"counts must come from vf.count or vf.load_counts, got {type(counts).__name__}.")
        if not counts.folds:
            raise InputError(
                "the counts have no folds: count the rows with folds=5, say, and fit these counts."
            )
        if column is not None and counts.fold_column is None:
            raise InputError(
                f"fold_column is {column!r}, but the rows were dealt to folds by their number when they were "
                "counted; count them with that fold_column, or leave it out."
            )
        same = (counts.units_per_row, counts.neg, counts.pos) == (book.units_per_row, book.neg, book.pos)
        if not same or not set(book.features) <= set(counts.features):
            raise _other_counts()
        return cls(FoldedStore(book, counts), column or counts.fold_column)

    def check(self, fingerprints: tuple[str, ...], place: str) -> None:
        """Refuse rows whose numbers do not tell their folds, as they are not what was counted in one go."""
        if self.column is None and fingerprints not in self.store.counts.fingerprints:
            raise InputError(
                f"{place} is not what was counted, and rows were dealt to folds by their number: give the rows "
                "as they were counted, in the same files and order, or count them with a fold_column."
            )

    def of_rows(self, first: int, n_rows: int, column: pa.Array | None) -> Ids:
        """Return the folds of rows from a number on, or as a column tells."""
        counts = self.store.counts
        if self.column is None:
            return dealt(np.arange(first, first + n_rows), counts.folds, counts.fold_seed)
        assert column is not None
        try:
            folds = np.asarray(column.cast(pa.int64()).fill_null(-1))
        except pa.ArrowException:
            raise InputError(
                f"fold_column {self.column!r} must hold whole numbers, got {column.type}."
            ) from None
        if folds.size and not 0 <= folds.min() <= folds.max() < counts.folds:
            raise InputError(
                f"fold_column {self.column!r} must hold whole numbers from 0 to {counts.folds - 1:,}, as when "
                "the rows were counted, and holds others, or is missing."
            )
        return folds.astype(np.int32)


def _other_counts() -> InputError:
    return InputError("these are not the counts that the codebook was fitted on; give those, or fit these.")


def gain(engine: Engine, counts: Counts, name: str, column: BookColumn, book: str) -> float:
    """Return by how much the ids' rates in the other folds beat the overall rate there, in nats per row.

    `book` is the query for the values of the column. The rates are pulled towards the overall one, with the
    strength of the prior, or by one row if it has none: a rate of 0 or 1 would cost infinitely much.
    """
    found = engine.run(
        "SELECT b.id, b.neg AS all_neg, b.pos AS all_pos, f.fold, f.neg, f.pos, count(*) AS n "
        f"FROM ({counts.sql(engine, name, by_fold=True)}) f LEFT JOIN ({book}) b "
        "ON f.value IS NOT DISTINCT FROM b.value GROUP BY ALL"
    )
    ids = found["id"].fill_null(column.other).to_numpy().copy()
    sides = {side: found[side].to_numpy() for side in ("neg", "pos")}
    rest = [found[f"all_{side}"].fill_null(0).to_numpy() - sides[side] for side in sides]
    is_tail = np.isin(ids, column.tail) & np.asarray(found["id"].is_valid())
    ids[is_tail] = _tail_ids(column, rest[0][is_tail], rest[1][is_tail], counts.units_per_row)
    rows = np.zeros((2, counts.folds, column.size))
    for total, part in zip(rows, sides.values(), strict=True):
        np.add.at(total, (found["fold"].to_numpy(), ids), part * found["n"].to_numpy() / counts.units_per_row)
    return gain_of_rest(rows, column.strength)


def gain_of_rest(rows: NDArray[np.float64], strength: float) -> float:
    """Return the gain from the rows of each label, fold and id."""
    total = rows.sum()
    overall = rows[1].sum() / total
    told = 0.0
    for fold in range(rows.shape[1]):
        here = rows[:, fold]
        neg, pos = rows.sum(axis=1) - here
        # One row more at the overall rate, in case that all others have one label.
        base = (pos.sum() + overall) / (neg.sum() + pos.sum() + 1)
        rates = Prior(base, strength or 1.0).rates(neg, pos)
        told += here[0] @ np.log((1 - rates) / (1 - base)) + here[1] @ np.log(rates / base)
    return float(told / total)


def _tail_ids(column: BookColumn, neg: Units, pos: Units, units_per_row: int) -> Ids:
    """Return the ids of a tail by rate."""
    rates = Prior(column.mean, column.strength).rates(neg / units_per_row, pos / units_per_row)
    return np.asarray(column.tail, np.int32)[np.searchsorted(column.borders, rates, side="right")]


@kernel
def _resolve(places: Ids, folds: Ids, ids: Ids, starts: Units, row_folds: Ids, row_ids: Ids) -> Ids:
    """Return the id of each place: that of its fold, if the value has rows there."""
    found = np.empty(places.size, np.int32)
    for i in range(places.size):
        place = places[i]
        found[i] = ids[place] if place >= 0 else -1
        if place >= 0:
            for j in range(starts[place], starts[place + 1]):
                if row_folds[j] == folds[i]:
                    found[i] = row_ids[j]
                    break
    return found
