"""Where the values of a codebook live: in counts and small tables of ids, in a folder, or on a Spark cluster.

A codebook that was just fitted is a query: the counts joined with the small table (neg, pos) -> id, since
values with equal counts share an id. `SparkStore`, in `spark`, is the twin of `FittedStore` on a cluster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.digest import hash_of_rows
from vocabfold.codebook.index import Index
from vocabfold.codebook.queries import alike_in_folds, sorted_by_value
from vocabfold.counts.counts import Counts
from vocabfold.counts.in_memory import ColumnCounts
from vocabfold.counts.local import add_up
from vocabfold.counts.units import sql_at_least
from vocabfold.errors import CodebookError
from vocabfold.io.engines.duckdb import Engine, parquet
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.folders import headers, parquet_guard
from vocabfold.io.folders.parquet_writer import Saver
from vocabfold.support.progress import track

Ids = NDArray[np.int32]


class Store(Protocol):
    """Where the values of a codebook are."""

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id and the sums of a column, in any order."""

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory, ready to be searched."""

    def ids_in_memory(self, counts: Counts, name: str) -> tuple[ColumnCounts, Ids] | None:
        """Return the counts of a column and the id of each value, -1 if it is rare, if all is in memory."""

    def value_bytes(self, name: str) -> int:
        """Return how many bytes the texts of a column have; 0, if that is unknown."""

    def hashes(self) -> dict[str, str]:
        """Return the hash of the rows of each column: what it adds to the digest."""

    def verify(self, hashes: Mapping[str, str]) -> None:
        """Refuse values that do not have these hashes."""

    def write(self, saver: Saver) -> dict[str, list[headers.Json]]:
        """Write the files of all columns, sorted by value, and return their entries in the header."""


class LocalStore:
    """Values that DuckDB reads on this machine."""

    columns: Mapping[str, BookColumn]
    sums: tuple[str, ...]
    memory_limit: int | None

    @abstractmethod
    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id and the sums of a column, in any order."""

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory."""
        with Engine(self.memory_limit) as engine:
            tables = {name: engine.run(sorted_by_value(self.sql(engine, name), "value, id")) for name in names}
        return {name: Index(table["value"], table["id"].to_numpy()) for name, table in tables.items()}

    def ids_in_memory(self, counts: Counts, name: str) -> tuple[ColumnCounts, Ids] | None:
        """Return nothing: values are not in memory."""
        return None

    def value_bytes(self, name: str) -> int:
        """Return how many bytes the texts of a column have: unknown, as they were not read."""
        return 0

    def hashes(self) -> dict[str, str]:
        """Return the hash of the rows of each column."""
        return dict(self._hashes("digesting"))

    def verify(self, hashes: Mapping[str, str]) -> None:
        """Refuse values that do not have these hashes."""
        for name, found in self._hashes("verifying"):
            if found != hashes[name]:
                raise CodebookError(
                    f"the values of column {name!r} do not match the digest of the codebook; get the codebook "
                    "again from whoever made it."
                )

    def _hashes(self, what: str) -> Iterator[tuple[str, str]]:
        with Engine(self.memory_limit) as engine:
            for name in track(list(self.columns), what, engine.progress):
                yield name, hash_of_rows(engine, self.columns[name].kind, self.sums, self.sql(engine, name))

    def write(self, saver: Saver) -> dict[str, list[headers.Json]]:
        """Write the files of all columns, and return their entries in the header."""
        files = {}
        with Engine(self.memory_limit) as engine:
            for name in track(list(self.columns), "saving", engine.progress):
                schema = schema_of(self.columns[name].kind, self.sums)
                files[name] = [saver.add(schema, engine.stream(sorted_by_value(self.sql(engine, name))))]
        return files


class Buckets(NamedTuple):
    """How many buckets values are hashed to, and the rows of the rarest that are."""

    size: int
    least: float
    units_per_row: int
    sums: tuple[str, ...]

    @property
    def is_hashed(self) -> str:
        """The condition that a value is not rare, in SQL."""
        return sql_at_least(self.sums, self.units_per_row, self.least)

    def sql(self, counts: str, kind: str) -> str:
        """Return the query for values, their sums and their bucket, by md5, which every engine has."""
        text = f"concat('{kind}|', {KINDS[kind].digest.format('value')})"
        digits = f"left(md5(CASE WHEN value IS NULL THEN 'missing|' ELSE {text} END), 15)"
        bucket = f"('0x' || {digits})::BIGINT % {self.size}"
        sums = ", ".join(self.sums)
        return f"SELECT value, {sums}, {bucket} AS bucket FROM ({counts}) WHERE {self.is_hashed}"


@dataclass(frozen=True, eq=False)
class Built:
    """A column, the shared id of each pair of sums, and the dedicated ids of values, or those of buckets."""

    column: BookColumn
    of_pairs: pa.Table  # the sums, id
    of_values: pa.Table  # value, id, the sums
    is_divided: bool = False  # values with dedicated ids may have the sums of others
    buckets: Buckets | None = None  # if values are hashed: they are the values in of_values


@dataclass(frozen=True, eq=False)
class FittedStore(LocalStore):
    """Values as a query: counts joined with the ids of their (neg, pos), and values with dedicated ids."""

    counts: Counts
    built: Mapping[str, Built]

    @property
    def memory_limit(self) -> int | None:  # type: ignore[override]
        """That of the counts."""
        return self.counts.memory_limit

    @property
    def sums(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the counts."""
        return self.counts.sums

    @property
    def columns(self) -> dict[str, BookColumn]:  # type: ignore[override]
        """What is known of the columns."""
        return {name: built.column for name, built in self.built.items()}

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id and the sums of a column."""
        built, sums = self.built[name], ", ".join(self.sums)
        of_pairs, of_values = (engine.table(table) for table in (built.of_pairs, built.of_values))
        counts = self.counts.sql(engine, name)
        if built.buckets:
            hashed = built.buckets.sql(counts, self.counts.kinds[name])
            of_bucket = f"(SELECT value AS bucket, id FROM {of_values})"
            return f"SELECT value, id, {sums} FROM ({hashed}) JOIN {of_bucket} USING (bucket)"
        if built.is_divided:
            is_same = "c.value IS NOT DISTINCT FROM v.value"
            counts = f"SELECT * FROM ({counts}) c ANTI JOIN {of_values} v ON {is_same}"
        return (
            f"SELECT value, id, {sums} FROM ({counts}) JOIN {of_pairs} USING ({sums}) "
            f"UNION ALL SELECT value, id, {sums} FROM {of_values}"
        )

    def ids_in_memory(self, counts: Counts, name: str) -> tuple[ColumnCounts, Ids] | None:
        """Return the counts of a column and the id of each value, -1 if it is rare, if all is in memory."""
        built, held = self.built[name], self.counts.table.in_memory(name)
        if held is None or built.buckets or counts.table is not self.counts.table:
            return None
        import pyarrow.compute as pc  # slow to import

        ids = held.of_pairs(built.of_pairs, built.of_pairs["id"].to_numpy())
        # All others are rare, or have a dedicated id, as those may that have the sums of others.
        left = np.flatnonzero((ids < 0) | built.is_divided)
        found = pc.index_in(held.values.take(pa.array(left)), built.of_values["value"])
        is_dedicated = np.asarray(found.is_valid())
        ids[left[is_dedicated]] = np.asarray(built.of_values["id"])[np.asarray(found.drop_null())]
        return held, ids

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory."""
        loaded = {}
        for name in names:
            if found := self.ids_in_memory(self.counts, name):
                held, ids = found
                kept = ids >= 0
                values = held.values if kept.all() else held.values.filter(pa.array(kept))
                loaded[name] = Index(pa.chunked_array([values]), ids[kept])
            else:
                loaded |= super().load([name])
        return loaded

    def by_fold(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same id, counts, fold and counts there."""
        for name in track(self.counts.features, "trying other folds", engine.progress):
            if found := self.ids_in_memory(self.counts, name):
                held, ids = found
                yield name, held.with_ids(ids)
                continue
            by_fold = self.counts.sql(engine, name, by_fold=True)
            yield name, engine.run(alike_in_folds(self.sql(engine, name), by_fold, self.sums))


@dataclass(frozen=True)
class SavedStore(LocalStore):
    """The values of a codebook in the Parquet files of its folder, each column sorted."""

    files: Mapping[str, list[Path]]
    columns: Mapping[str, BookColumn]
    totals: Mapping[str, int]  # of each sum over all rows
    memory_limit: int | None = None
    checked: set[str] = field(default_factory=set)  # columns whose values have been looked at
    lengths: dict[str, int] = field(default_factory=dict)  # bytes of the values of columns, once they are known

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id and the sums of a column."""
        for path in self.files[name]:
            if not path.exists():
                raise parquet_guard.gone(path)
        if name not in self.checked:
            self._check(engine, name)
        return f"SELECT * FROM {parquet(self.files[name])}"

    def value_bytes(self, name: str) -> int:
        """Return how many bytes the values of a column have; too many of them, and disorder, are refused."""
        if name not in self.lengths:
            column = self.columns[name]
            schema = pa.schema([schema_of(column.kind, self.sums).field("value")])
            n_rows = n_bytes = 0
            last = pa.nulls(0, schema.types[0])
            for batch in parquet_guard.batches(self.files[name], schema):
                values = batch.column(0)
                if not _is_rising(pa.concat_arrays([last, values])):
                    raise self._invalid(name)
                last = values.slice(len(values) - 1)
                n_rows, n_bytes = n_rows + len(values), n_bytes + batch.nbytes
            if n_rows != column.n_values:
                raise self._invalid(name)
            self.lengths[name] = n_bytes
        return self.lengths[name]

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory."""
        return {name: self._index(name) for name in names}

    def _index(self, name: str) -> Index:
        whole = schema_of(self.columns[name].kind, self.sums)
        schema = pa.schema([whole.field("value"), whole.field("id")])
        table = pa.Table.from_batches(parquet_guard.batches(self.files[name], schema), schema)
        ids = table["id"].to_numpy()
        index = Index(table["value"], ids)
        is_in_range = not ids.size or 0 <= ids.min() <= ids.max() < self.columns[name].size
        if not index.is_sorted or not is_in_range:
            raise self._invalid(name)
        return index

    def _invalid(self, name: str) -> CodebookError:
        return CodebookError(
            f"{self.files[name][0]} is not valid: its values must be in ascending order, its ids below "
            f"{self.columns[name].size:,}, and its counts must add up to those in the header."
        )

    def _check(self, engine: Engine, name: str) -> None:
        """Refuse what the engine would not: values that are too long or in disorder, absurd ids and counts."""
        self.value_bytes(name)
        column = self.columns[name]
        is_id = f"id >= 0 AND id < {column.size}"
        if not add_up(engine, self.files[name], is_id, self.totals, at_most=column.n_rare > 0):
            raise self._invalid(name)
        self.checked.add(name)

    @property
    def sums(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the files hold."""
        return tuple(self.totals)

    def verify(self, hashes: Mapping[str, str]) -> None:
        """Refuse values that do not have these hashes; files are looked at anew, as they may have changed."""
        self.checked.clear()
        self.lengths.clear()
        super().verify(hashes)


def _is_rising(values: pa.Array) -> bool:
    """Tell whether each value is above the one before it; the first may be missing."""
    import pyarrow.compute as pc  # slow to import, and who looks values up does without

    present = values.slice(1) if len(values) and not values[0].is_valid else values
    if len(present) < 2:
        return not present.null_count
    return not present.null_count and bool(pc.all(pc.less(present[:-1], present[1:])).as_py())


def schema_of(kind: str, sums: Iterable[str]) -> pa.Schema:
    """Return the columns of a file of a codebook."""
    whole = [("id", pa.int32()), *((name, pa.int64()) for name in sums)]
    return pa.schema([("value", KINDS[kind].arrow), *whole])
