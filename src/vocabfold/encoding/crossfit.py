"""Codebook + its counts by fold -> an index of ids out of fold; see `out_of_fold`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.index import Index
from vocabfold.codebook.matching import check_same
from vocabfold.codebook.out_of_fold import ids_by_rate, one_fold, other_counts, others
from vocabfold.counts.counts import Counts
from vocabfold.counts.table import Table
from vocabfold.counts.target import assigned
from vocabfold.encoding.order import Labels, Sums, labels_of, mark, marked
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support.kernels import kernel

Ids = NDArray[np.int32]
Units = NDArray[np.int64]


@dataclass(frozen=True)
class RowFolds:
    """The fold of each row, and its label, if the order of the rows is to be checked."""

    folds: Ids
    labels: Labels = field(default_factory=lambda: np.empty(0, np.int8))

    def part(self, start: int, n_rows: int) -> RowFolds:
        """Return those of some of the rows."""
        return RowFolds(self.folds[start : start + n_rows], self.labels[start : start + n_rows])


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

    def resolve(self, places: Ids, rows: RowFolds) -> tuple[Ids, int, Sums]:
        """Return ids, -1 of unknown values; how many rows were not counted in their fold; and sums of rows."""
        labels = rows.labels if self.counted is not None else rows.labels[:0]
        return _resolve(places, rows.folds, labels, self.ids, self.starts, self.folds, self.ids_in_fold)


@dataclass(frozen=True, eq=False)
class FoldedStore:
    """The values of a codebook, and their counts by fold."""

    book: Codebook
    counts: Counts
    memory_limit: int | None
    reading: Table | None = None  # the counts of the rows that are given, if these can be checked

    def load(self, names: Iterable[str]) -> dict[str, FoldedIndex]:
        """Return the values of columns and their ids in memory."""
        with Engine(self.memory_limit) as engine:
            if not self._has_folds(engine):
                raise one_fold()
            return {name: self._in_memory(name) or self._index(engine, name) for name in names}

    def _has_folds(self, engine: Engine) -> bool:
        """Tell whether rows are in two folds at least."""
        name = self.book.features[0]
        if held := self.counts.table.in_memory(name):
            return bool((held.folds != held.folds[0]).any())
        by_fold = self.counts.sql(engine, name, by_fold=True)
        return int(engine.run(f"SELECT count(DISTINCT fold) AS n FROM ({by_fold})")["n"][0].as_py()) > 1

    def _in_memory(self, name: str) -> FoldedIndex | None:
        """Return the index of a column without queries; None, if its counts are not in memory."""
        found = self.book.store.ids_in_memory(self.counts, name)
        own = self._own_sides(name)
        if found is None or (own and len(self.counts.parts) > 1):
            return None
        (held, ids), column = found, self.book.columns[name]
        is_kept, is_shared = ids >= 0, np.isin(ids, column.shared)
        places, entries = held.of_entries, held.entries
        chosen, is_rare = is_shared[places], ~is_kept[places]
        elsewhere = {side: held.sums[side][places[chosen]] - entries[side][chosen] for side in entries}
        rare = {side: np.zeros(self.counts.folds, np.int64) for side in entries}
        for side, in_folds in rare.items():
            np.add.at(in_folds, held.folds[is_rare], entries[side][is_rare])
        counted = None
        if own:
            marks = [marked(0, np.append(entries[side][chosen], rare[side])) for side in own]
            counted = np.array([[entries[side].sum() for side in own], marks])
        n_folds = np.where(is_shared, np.diff(held.starts), 0)[is_kept]
        values = held.values.filter(pa.array(is_kept))
        return FoldedIndex(
            Index(pa.chunked_array([values]), np.arange(len(values), dtype=np.int32)),
            ids[is_kept],
            np.append(0, np.cumsum(n_folds)),
            held.folds[chosen],
            ids_by_rate(column, elsewhere, self.book),
            others(column, rare, self.book),
            counted,
        )

    def _index(self, engine: Engine, name: str) -> FoldedIndex:
        column, sides = self.book.columns[name], self.counts.sums
        book, by_fold = self.book.store.sql(engine, name), self.counts.sql(engine, name, by_fold=True)
        shared = engine.table(pa.table({"id": pa.array(column.shared, pa.int32())}))
        sums = ", ".join(["count(*) AS n_folds", *(f"sum({side})::BIGINT AS {side}" for side in sides)])
        is_same = " AND ".join(f"b.{side} = f.{side}" for side in sides)
        found = engine.run(
            "SELECT b.value, b.id, CASE WHEN t.id IS NULL THEN 0 ELSE f.n_folds END AS n_folds, "
            f"{is_same} AS is_same FROM ({book}) b JOIN (SELECT value, {sums} FROM "
            f"({by_fold}) GROUP BY value) f ON b.value IS NOT DISTINCT FROM f.value LEFT JOIN {shared} t "
            "ON b.id = t.id ORDER BY b.value NULLS FIRST"
        )
        if found.num_rows < column.n_values or not np.asarray(found["is_same"]).all():
            raise other_counts()
        by_fold, own = self._with_own(engine, name, by_fold)
        elsewhere = [f"b.{side} - f.{side} AS {side}" for side in sides]
        rest = (
            f"SELECT {', '.join(['f.fold', *elsewhere, *own])} FROM ({by_fold}) f JOIN ({book}) b "
            f"ON f.value IS NOT DISTINCT FROM b.value JOIN {shared} USING (id) "
            "ORDER BY f.value NULLS FIRST, f.fold"
        )
        folds, ids_in_fold = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        n_slots, marks = 0, np.zeros(len(own), np.int64)
        for batch in engine.stream(rest):
            folds.append(batch["fold"].to_numpy())
            ids_in_fold.append(ids_by_rate(column, {side: batch[side].to_numpy() for side in sides}, self.book))
            marks += np.fromiter((marked(n_slots, batch[side].to_numpy()) for side in own), np.int64)
            n_slots += batch.num_rows
        rare = self._rare(engine, column, book, by_fold, [*sides, *own])
        marks += np.fromiter((marked(n_slots, rare[side]) for side in own), np.int64)
        return FoldedIndex(
            Index(found["value"], np.arange(found.num_rows, dtype=np.int32)),
            np.ascontiguousarray(found["id"].to_numpy()),
            np.append(0, np.cumsum(found["n_folds"].to_numpy())),
            np.concatenate(folds),
            np.concatenate(ids_in_fold),
            others(column, {side: rare[side] for side in sides}, self.book),
            np.array([self._n_rows(engine, name), marks]) if own else None,
        )

    def _rare(
        self, engine: Engine, column: BookColumn, book: str, by_fold: str, sides: Sequence[str]
    ) -> dict[str, Units]:
        """Return the sums of all rare values of a column in each fold."""
        rare = {side: np.zeros(self.counts.folds, np.int64) for side in sides}
        if column.n_rare:
            sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in sides)
            found = engine.run(
                f"SELECT fold, {sums} FROM ({by_fold}) f ANTI JOIN ({book}) b "
                "ON f.value IS NOT DISTINCT FROM b.value GROUP BY fold"
            )
            for side, in_folds in rare.items():
                in_folds[found["fold"].to_numpy()] = found[side].to_numpy()
        return rare

    def _with_own(self, engine: Engine, name: str, by_fold: str) -> tuple[str, list[str]]:
        """Return the query for counts by fold, beside those of the rows given alone, and the names of these."""
        own = [f"own_{side}" for side in self._own_sides(name)]
        if not own:
            return by_fold, []
        assert self.reading is not None
        if len(self.counts.parts) == 1:
            same = ", ".join(f"{side} AS own_{side}" for side in self._sides)
            return f"SELECT *, {same} FROM ({by_fold})", own
        alone = self.reading.sql(engine, name, by_fold=True)
        perhaps = ", ".join(f"coalesce(o.{side}, 0) AS own_{side}" for side in self._sides)
        return (
            f"SELECT f.*, {perhaps} FROM ({by_fold}) f LEFT JOIN ({alone}) o "
            "ON f.value IS NOT DISTINCT FROM o.value AND f.fold = o.fold"
        ), own

    def _own_sides(self, name: str) -> tuple[str, ...]:
        """Return the sums by which the order of rows is checked in a column; none, if it is not."""
        return self._sides if self.reading is not None and name == self._checked else ()

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

    def _n_rows(self, engine: Engine, name: str) -> list[int]:
        """Return the rows that are given, by label, as they were counted."""
        assert self.reading is not None
        sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in self._sides)
        found = engine.run(f"SELECT {sums} FROM ({self.reading.sql(engine, name, by_fold=True)})")
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
        check_same(book, counts, all_columns=False)
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
                f"{place} is not what was counted: its rows are others, or in another order. Rows were "
                "assigned to folds by their number: give them as they were counted, each day or shard "
                f"separately, or count them with a {argument('fold_column')}."
            )
        return replace(self, store=replace(self.store, reading=counts.table_of(fingerprints)))

    @property
    def label(self) -> str | None:
        """The column of the label, if it helps to check the order of the rows."""
        return None if self.store.reading is None else self.store.counts.label

    def of_rows(
        self, first: int, n_rows: int, column: pa.Array | None, label: pa.Array | pa.ChunkedArray | None
    ) -> RowFolds:
        """Return the folds of rows, which begin at a number, or from a column; the label may be lacking."""
        counts = self.store.counts
        if self.column is None:
            folds = assigned(np.arange(first, first + n_rows), counts.folds, counts.fold_seed)
            if self.store.reading is None:
                return RowFolds(folds)
            return RowFolds(folds, labels_of(label, n_rows, counts.positive))
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
        return RowFolds(np.asarray(np.maximum(folds, -1), np.int32))  # a row without a fold was not counted


@kernel
def _resolve(
    places: Ids, folds: Ids, labels: Labels, ids: Ids, starts: Units, row_folds: Ids, row_ids: Ids
) -> tuple[Ids, int, Sums]:
    """Return the id of each place: that of its fold, if it has rows there; how often not; and sums by label."""
    found = np.empty(places.size, np.int32)
    n_strange = 0
    sums = np.zeros((2, 3), np.int64)
    for i in range(places.size):
        place, slot = places[i], -1
        if place < 0:
            found[i] = -1
            slot = row_folds.size + int(folds[i])  # rare values have one in each fold, last of all
        else:
            found[i] = ids[place]
            for j in range(starts[place], starts[place + 1]):
                if row_folds[j] == folds[i]:
                    found[i] = row_ids[j]
                    slot = j
                    break
            n_strange += slot < 0 and starts[place] < starts[place + 1]
        if labels.size:
            sums[0, labels[i]] += 1
            if slot >= 0:
                sums[1, labels[i]] += mark(slot)
    return found, n_strange, sums
