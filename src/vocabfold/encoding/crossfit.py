"""Codebook + its counts by fold -> an index of ids out of fold; see `out_of_fold`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.index import Index
from vocabfold.codebook.out_of_fold import ids_by_rate, other_counts, others
from vocabfold.counts.counts import Counts, not_counts
from vocabfold.counts.target import assigned
from vocabfold.encoding.order import InFolds, Labels, Sums, labels_of, mark, marked
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support.kernels import kernel

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
    others: Ids  # the id of rare values in each fold, and last in none
    counted: Sums | None = None  # what the rows sum to, if their order can be checked

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

    def resolve(self, places: Ids, rows: InFolds) -> tuple[Ids, int, Sums]:
        """Return the id of each place in a fold, or -1, how many rows were not counted there, and sums."""
        labels = rows.labels if self.counted is not None else rows.labels[:0]
        ids, n_uncounted, marks = _resolve(
            places, rows.folds, labels, self.ids, self.starts, self.folds, self.ids_in_fold
        )
        return ids, n_uncounted, np.array([rows.n_rows, marks])


@dataclass(frozen=True, eq=False)
class FoldedStore:
    """The values of a codebook, and their counts by fold."""

    book: Codebook
    counts: Counts
    memory_limit: int | None
    reading: Counts | None = None  # the counts of the rows that are given, if these can be checked

    def load(self, names: Iterable[str]) -> dict[str, FoldedIndex]:
        """Return the values of columns and their ids in memory."""
        with Engine(self.memory_limit) as engine:
            by_fold = self.counts.sql(engine, self.book.features[0], by_fold=True)
            if engine.run(f"SELECT count(DISTINCT fold) AS n FROM ({by_fold})")["n"][0].as_py() < 2:
                raise one_fold()
            return {name: self._index(engine, name) for name in names}

    def _index(self, engine: Engine, name: str) -> FoldedIndex:
        column = self.book.columns[name]
        book, by_fold = self.book.store.sql(engine, name), self.counts.sql(engine, name, by_fold=True)
        shared = engine.table(pa.table({"id": pa.array(column.shared, pa.int32())}))
        names = self.counts.sums
        sums = ", ".join(["count(*) AS n_folds", *(f"sum({side})::BIGINT AS {side}" for side in names)])
        is_same = " AND ".join(f"b.{side} = f.{side}" for side in names)
        found = engine.run(
            "SELECT b.value, b.id, CASE WHEN t.id IS NULL THEN 0 ELSE f.n_folds END AS n_folds, "
            f"{is_same} AS is_same FROM ({book}) b JOIN (SELECT value, {sums} FROM "
            f"({by_fold}) GROUP BY value) f ON b.value IS NOT DISTINCT FROM f.value LEFT JOIN {shared} t "
            "ON b.id = t.id ORDER BY b.value NULLS FIRST"
        )
        if found.num_rows < column.n_values or not np.asarray(found["is_same"]).all():
            raise other_counts()
        elsewhere = ", ".join(f"b.{side} - f.{side} AS {side}" for side in names)
        by_fold, rows = self._with_rows(engine, name, by_fold)
        rest = (
            f"SELECT {', '.join(['f.fold', elsewhere, *rows])} FROM ({by_fold}) f JOIN ({book}) b "
            f"ON f.value IS NOT DISTINCT FROM b.value JOIN {shared} USING (id) "
            "ORDER BY f.value NULLS FIRST, f.fold"
        )
        folds, ids_in_fold = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        n_slots, marks = 0, [0] * len(rows)
        for batch in engine.stream(rest):
            folds.append(batch["fold"].to_numpy())
            ids_in_fold.append(ids_by_rate(column, {side: batch[side].to_numpy() for side in names}, self.book))
            marks = [sum + marked(n_slots, batch[row].to_numpy()) for sum, row in zip(marks, rows, strict=True)]
            n_slots += batch.num_rows
        rare = {side: np.zeros(self.counts.folds, np.int64) for side in names}
        if column.n_rare:
            sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in (*names, *rows))
            of_rare = engine.run(
                f"SELECT fold, {sums} FROM ({by_fold}) f ANTI JOIN ({book}) b "
                "ON f.value IS NOT DISTINCT FROM b.value GROUP BY fold"
            )
            for side, units in rare.items():
                units[of_rare["fold"].to_numpy()] = of_rare[side].to_numpy()
            for i, row in enumerate(rows):
                in_fold = np.zeros(self.counts.folds, np.int64)
                in_fold[of_rare["fold"].to_numpy()] = of_rare[row].to_numpy()
                marks[i] += marked(n_slots, in_fold)
        return FoldedIndex(
            Index(found["value"], np.arange(found.num_rows, dtype=np.int32)),
            np.ascontiguousarray(found["id"].to_numpy()),
            np.append(0, np.cumsum(found["n_folds"].to_numpy())),
            np.concatenate(folds),
            np.concatenate(ids_in_fold),
            others(column, rare, self.book),
            np.array([self._n_rows, marks], np.int64) if rows else None,
        )

    def _with_rows(self, engine: Engine, name: str, by_fold: str) -> tuple[str, tuple[str, ...]]:
        """Return the query for counts by fold beside those of the rows given, and the names of these."""
        if self.reading is None or name != self._checked:
            return by_fold, ()
        own = ", ".join(f"coalesce(o.{side}, 0) AS own_{side}" for side in self._sides)
        alone = self.reading.sql(engine, name, by_fold=True)
        joined = f"LEFT JOIN ({alone}) o ON f.value IS NOT DISTINCT FROM o.value AND f.fold = o.fold"
        if len(self.counts.parts) == 1:
            own, joined = own.replace("o.", "f."), ""
        return f"SELECT f.*, {own} FROM ({by_fold}) f {joined}", tuple(f"own_{side}" for side in self._sides)

    @cached_property
    def _checked(self) -> str | None:
        """The column by which order is checked: of those whose ids depend on folds, that with most values."""
        columns = self.book.columns.items()
        by_fold = {name: column.n_values + column.n_rare for name, column in columns if len(column.shared) > 1}
        return max(by_fold, key=by_fold.__getitem__, default=None)

    @property
    def _sides(self) -> tuple[str, ...]:
        """The sums that are rows."""
        return self.counts.row_sums[0]

    @cached_property
    def _n_rows(self) -> list[int]:
        """The rows that are given, by label, as they were counted."""
        assert self.reading is not None
        sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in self._sides)
        with Engine(self.memory_limit) as engine:
            counted = self.reading.sql(engine, self.book.features[0], by_fold=True)
            found = engine.run(f"SELECT {sums} FROM ({counted})")
        return [found[side][0].as_py() for side in self._sides]


@dataclass(frozen=True, eq=False)
class Folds:
    """The rows that were counted by fold, and how the fold of each is found: by a column, or by its number."""

    store: FoldedStore
    column: str | None
    indexes: dict[str, FoldedIndex] = field(default_factory=dict)  # that are in memory

    @classmethod
    def of(cls, book: Codebook, counts: Counts, column: str | None, memory_limit: int | None) -> Folds:
        """Return the folds of the counts that a codebook was fitted on."""
        if not isinstance(counts, Counts):
            raise not_counts(counts)
        if not counts.folds:
            raise InputError(
                f"the counts have no folds; count the rows with {argument('folds', 5)}, for example, and fit "
                "those counts."
            )
        if column is not None and counts.fold_column is None:
            raise InputError(
                f"is {column!r}, but the rows were assigned to folds by their number when they were counted; "
                f"count them with that {argument('fold_column')}, or leave it out.",
                argument="fold_column",
            )
        if not counts.agree(book) or not set(book.features) <= set(counts.features):
            raise other_counts()
        return cls(FoldedStore(book, counts, memory_limit), counts.fold_column if column is None else column)

    def of_reading(self, fingerprints: tuple[str, ...], place: str) -> Folds:
        """Return the folds of the rows of one reading, whose order will be checked, if they go by number.

        Rows that were not counted as one input are refused, as their folds do not follow from their numbers.
        """
        if self.column is not None:
            return self
        counts = self.store.counts
        if fingerprints not in counts.fingerprints:
            raise InputError(
                f"{place} was not counted as one input, and rows were assigned to folds by their number: give "
                "the rows as they were counted, each day or shard separately, or count them with a "
                f"{argument('fold_column')}."
            )
        return replace(self, store=replace(self.store, reading=counts.reading(fingerprints)))

    @property
    def label(self) -> str | None:
        """The column of the label, if it helps to check the order of the rows."""
        return None if self.store.reading is None else self.store.counts.label

    def of_rows(
        self, first: int, n_rows: int, column: pa.Array | None, label: pa.Array | pa.ChunkedArray | None
    ) -> InFolds:
        """Return the folds of rows, which begin at a number, or from a column; the label may be lacking."""
        counts = self.store.counts
        if self.column is None:
            folds = assigned(np.arange(first, first + n_rows), counts.folds, counts.fold_seed)
            if self.store.reading is None:
                return InFolds(folds)
            return InFolds(folds, labels_of(label, n_rows, counts.positive))
        assert column is not None
        try:
            folds = np.asarray(column.cast(pa.int64()).fill_null(-1))
        except pa.ArrowException:
            raise InputError(
                f"{self.column!r} must hold whole numbers, got {column.type}.", argument="fold_column"
            ) from None
        if folds.size and folds.max() >= counts.folds:
            raise InputError(
                f"{self.column!r} must hold whole numbers from 0 to {counts.folds - 1:,}, as when the rows "
                f"were counted, got {folds.max():,}.",
                argument="fold_column",
            )
        return InFolds(np.asarray(np.maximum(folds, -1), np.int32))  # a row without a fold was not counted


def one_fold() -> InputError:
    """Return the error for rows that are all in one fold."""
    return InputError(
        "all rows are in one fold, but at least two folds are needed; count the rows with other folds."
    )


@kernel
def _resolve(
    places: Ids, folds: Ids, labels: Labels, ids: Ids, starts: Units, row_folds: Ids, row_ids: Ids
) -> tuple[Ids, int, Units]:
    """Return the id of each place: that of its fold, if it has rows there; how often not; and marks."""
    found = np.empty(places.size, np.int32)
    n_strange = 0
    negative = positive = unknown = 0  # marks
    for i in range(places.size):
        place = places[i]
        found[i] = ids[place] if place >= 0 else -1
        slot = row_folds.size + folds[i] if place < 0 else -1  # rare values have one in each fold, last of all
        if place >= 0:
            is_strange = starts[place] < starts[place + 1]
            for j in range(starts[place], starts[place + 1]):
                if row_folds[j] == folds[i]:
                    found[i] = row_ids[j]
                    slot = j
                    is_strange = False
                    break
            n_strange += is_strange
        if labels.size and slot >= 0:
            of_row = mark(slot)
            negative += of_row * (labels[i] == 0)
            positive += of_row * (labels[i] == 1)
            unknown += of_row * (labels[i] == 2)
    return found, n_strange, np.array([negative, positive, unknown])
