"""Arrow columns -> the counts of their values, without SQL: values become places, by which rows are summed.

In memory that is several times as quick as a query for each step, most of which goes into its plan: a column
of few rows takes a fraction of a millisecond. Values are in the order that SQL gives them, and sums are
integers, so that nobody can tell which way a column was counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.io.engines.kinds import KINDS

_SHARE = 1 / 8  # of the memory limit, that one column may take here;
_MOST_BYTES = 2**28  # and no more than this: long values would be copied several times
_ROW_BYTES = 32  # that a row takes besides its value
_MOST_UNSORTED = 2**14  # counts: to put more of them in order takes longer than a few queries

Units = NDArray[np.int64]
Places = NDArray[np.int64]


def is_small(columns: Sequence[pa.ChunkedArray], memory_limit: int) -> bool:
    """Tell whether the rows of a column may be summed here."""
    n_bytes = sum(int(column.nbytes) + _ROW_BYTES * len(column) for column in columns)
    return n_bytes <= min(_MOST_BYTES, memory_limit * _SHARE)


def are_small(tables: Sequence[pa.Table], memory_limit: int) -> bool:
    """Tell whether the counts of a column, in one table or several, may be read here."""
    is_quick = len(tables) == 1 and is_sorted(tables[0])
    return is_small([table["value"] for table in tables], memory_limit) and (
        is_quick or sum(table.num_rows for table in tables) <= _MOST_UNSORTED
    )


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """The sums of a column in memory, by value, or by value and fold."""

    values: pa.Array  # each once, in order, missing first
    starts: Places  # where the entries of each value begin, and where the last ones end
    folds: NDArray[np.int32]  # of the entries, rising for each value; none, if values have one entry each
    entries: Mapping[str, Units]  # the sums of each entry

    @classmethod
    def of_rows(
        cls, values: pa.Array, places: Places, folds: Places | None, n_folds: int, sums: Mapping[str, Units]
    ) -> Self:
        """Sum rows up, given the place of each row's value, its fold, and what it adds to each sum."""
        n_folds = n_folds if folds is not None else 1
        keys = places if folds is None else places * n_folds + folds
        kept, slots = distinct(keys, len(values) * n_folds)
        found = {name: np.zeros(kept.size, np.int64) for name in sums}
        for name, added in sums.items():
            np.add.at(found[name], slots, added)
        starts = np.searchsorted(kept, np.arange(len(values) + 1) * n_folds)
        return cls(values, starts, (kept % n_folds).astype(np.int32) if folds is not None else _NONE, found)

    @classmethod
    def of_table(cls, table: pa.Table, sums: Mapping[str, Units]) -> Self:
        """Return the counts of a table that `table` made, given its sums."""
        words = table["value"].chunk(0)
        codes = np.asarray(words.indices.fill_null(-1))
        n_missing = int(codes.size > 0 and codes[0] < 0)
        values = pa.concat_arrays([pa.nulls(n_missing, words.type.value_type), words.dictionary])
        starts = np.searchsorted(codes, np.arange(len(values) + 1) - n_missing)
        folds = table["fold"].to_numpy() if "fold" in table.column_names else _NONE
        return cls(values, starts, folds, sums)

    def table(self, type: pa.DataType) -> pa.Table:
        """Return a table of the counts, with sums of a type; values are a dictionary, in the order of rows."""
        n_missing = int(len(self.values) > 0 and not self.values[0].is_valid)
        codes = self.of_entries.astype(np.int32) - np.int32(n_missing)
        indices = pa.array(codes, mask=codes < 0) if n_missing else pa.array(codes)
        columns = {"value": pa.DictionaryArray.from_arrays(indices, self.values.slice(n_missing))}
        if self.folds.size:
            columns["fold"] = pa.array(self.folds)
        return pa.table(columns | {name: pa.array(side, type) for name, side in self.entries.items()})

    @property
    def nbytes(self) -> int:
        """Bytes in memory, with those of what is kept once it was asked for."""
        per_entry, per_value = 8 * (len(self.entries) + 1) + self.folds.itemsize, 8 * (len(self.entries) + 2)
        return int(self.values.nbytes) + per_entry * int(self.starts[-1]) + per_value * len(self.values)

    @cached_property
    def of_entries(self) -> Places:
        """The place of each entry's value."""
        return np.repeat(np.arange(len(self.values)), np.diff(self.starts))

    @cached_property
    def sums(self) -> dict[str, Units]:
        """The sums of each value."""
        if len(self.values) == self.starts[-1]:
            return dict(self.entries)
        return {name: np.add.reduceat(side, self.starts[:-1]) for name, side in self.entries.items()}

    @cached_property
    def _pairs(self) -> tuple[Places, Places]:
        """A value with each of the distinct sums, in the order of these, and the place of each value's."""
        return distinct_rows(list(self.sums.values()))

    @property
    def pairs(self) -> pa.Table:
        """The distinct sums, in order, and how many values have each."""
        first, places = self._pairs
        n_values = np.bincount(places, minlength=first.size)
        return pa.table({**{name: side[first] for name, side in self.sums.items()}, "n": n_values})

    def of_pairs(self, pairs: pa.Table, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the id of each value, given those of some distinct sums; -1 of all other values."""
        first, places = self._pairs
        both = [
            np.concatenate([side[first], np.asarray(pairs[name], np.int64)]) for name, side in self.sums.items()
        ]
        of_both = distinct_rows(both)[1]
        found = np.full(of_both.size, -1, np.int32)
        found[of_both[first.size :]] = ids
        return found[of_both[: first.size]][places]

    @property
    def in_folds(self) -> pa.Table:
        """The sums of each entry, and those of its value in all folds (all_neg, ...)."""
        of_all = {f"all_{name}": side[self.of_entries] for name, side in self.sums.items()}
        return pa.table({**self.entries, **of_all, "n": np.ones(self.starts[-1], np.int64)})

    def with_ids(self, ids: NDArray[np.int32]) -> pa.Table:
        """Return the fold and the sums of each entry, and the id and all sums of its value; -1: it has none."""
        of_entries = ids[self.of_entries]
        is_rare = of_entries < 0
        table = self.in_folds.append_column("fold", pa.array(self.folds))
        for name in self.sums:
            i = table.schema.get_field_index(f"all_{name}")
            table = table.set_column(i, f"all_{name}", pa.array(table[i].to_numpy(), mask=is_rare))
        return table.append_column("id", pa.array(of_entries, mask=is_rare))

    def chosen(self, is_chosen: NDArray[np.bool_]) -> pa.Table:
        """Return some of the values, in order, and their sums."""
        values = self.values.filter(pa.array(is_chosen))
        return pa.table({"value": values, **{name: side[is_chosen] for name, side in self.sums.items()}})


_NONE = np.empty(0, np.int32)


def decoded(table: pa.Table) -> pa.Table:
    """Return counts with values that are not a dictionary."""
    values = table["value"]
    return table.set_column(0, "value", values.cast(values.type.value_type)) if is_sorted(table) else table


def is_sorted(table: pa.Table) -> bool:
    """Tell whether counts are in the order of values and folds: those are whose values are a dictionary."""
    return bool(pa.types.is_dictionary(table.schema.field("value").type))


def sorted_values(
    column: pa.ChunkedArray, kind: str, rows: Places | None = None
) -> tuple[pa.Array, Places] | None:
    """Return the distinct values of a column, in order and missing first, and the place of each row's.

    Only of some rows, if these are given. None, if values are not exact as the column's kind.
    """
    import pyarrow.compute as pc  # slow to import

    try:
        words, codes = _encoded(column, kind)
    except pa.ArrowException:
        return None
    codes = codes if rows is None else codes[rows]
    is_used = np.zeros(len(words) + 1, np.bool_)
    is_used[codes] = True  # that of a missing value, -1, comes last
    n_missing = int(is_used[-1])
    used = np.flatnonzero(is_used[:-1])
    words = words if used.size == len(words) else words.take(pa.array(used))
    order = np.asarray(pc.array_sort_indices(words))
    rank = np.zeros(is_used.size, np.int64)
    rank[used[order]] = np.arange(used.size) + n_missing
    values = words.take(pa.array(order))
    return pa.concat_arrays([pa.nulls(n_missing, values.type), values]) if n_missing else values, rank[codes]


def _encoded(column: pa.ChunkedArray, kind: str) -> tuple[pa.Array, NDArray[np.int32]]:
    """Return the values of a column as its kind has them, and the place of each row's; -1: missing."""
    import pyarrow.compute as pc

    target = KINDS[kind].arrow
    if kind == "missing":
        return pa.nulls(0, target), np.full(len(column), -1, np.int32)
    is_encoded = pa.types.is_dictionary(column.type)
    words, codes = _joined(column) if is_encoded else _joined(column.dictionary_encode(), is_one=True)
    if pa.types.is_date64(words.type):
        raise pa.ArrowInvalid("a date may have a time")
    words = words.cast(target)
    if kind == "float":
        words = pc.add(pc.if_else(pc.is_nan(words), None, words), 0.0)  # which makes one zero of two
    if is_encoded or kind == "float":  # values may come twice, or be missing
        again = words.dictionary_encode()
        words, codes = again.dictionary, np.append(np.asarray(again.indices.fill_null(-1)), -1)[codes]
    return words, codes


def _joined(column: pa.ChunkedArray, is_one: bool = False) -> tuple[pa.Array, NDArray[np.int32]]:
    """Return the dictionaries of all chunks as one, in which words may come twice, and all codes."""
    words = [pa.nulls(0, column.type.value_type)]
    codes, begin, end = [np.empty(0, np.int32)], 0, 0
    for i, chunk in enumerate(column.chunks):
        if not (i and (is_one or words[-1].equals(chunk.dictionary))):
            words.append(chunk.dictionary)
            begin, end = end, end + len(chunk.dictionary)
        of_chunk = np.asarray(chunk.indices.cast(pa.int32()).fill_null(-1))
        codes.append(np.where(of_chunk < 0, of_chunk, of_chunk + np.int32(begin)) if begin else of_chunk)
    return words[1] if len(words) == 2 else pa.concat_arrays(words), np.concatenate(codes)


def distinct(keys: Places, n_keys: int) -> tuple[Places, Places]:
    """Return the distinct ones of some numbers below `n_keys`, in order, and the place of each among them."""
    if n_keys > 4 * keys.size + 1000:
        found, places = np.unique(keys, return_inverse=True)
        return found, places
    is_there = np.zeros(n_keys, np.bool_)
    is_there[keys] = True
    places = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there), places[keys]


def distinct_rows(columns: list[Units]) -> tuple[Places, Places]:
    """Return one of each of the distinct rows of numbers, in their order, and the place of each row's."""
    places = np.zeros(columns[0].size, np.int64)
    n_found = 1
    for column in columns:
        least, most = int(column.min(initial=0)), int(column.max(initial=0))
        kept, of_column = distinct(column - least, most - least + 1)
        kept, places = distinct(places * kept.size + of_column, n_found * kept.size)
        n_found = kept.size
    first = np.zeros(n_found, np.int64)
    first[places] = np.arange(places.size)
    return first, places
