"""The values of a codebook that stay on a cluster: counts joined with the small tables of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from vocabfold.codebook.digest import sum_of_words
from vocabfold.codebook.index import Index
from vocabfold.codebook.queries import sorted_by_value
from vocabfold.codebook.stores import Built, schema_of
from vocabfold.counts.counts import Counts
from vocabfold.counts.spark import SparkTable, on_spark
from vocabfold.counts.spark_files import n_entries, typed, write
from vocabfold.counts.units import sql_rows
from vocabfold.errors import InputError
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.spark import Cluster, Frame, Kept, hint, to_texts
from vocabfold.io.folders import headers
from vocabfold.io.folders.parquet_writer import Saver
from vocabfold.support.progress import track


@dataclass(frozen=True, eq=False)
class SparkStore:
    """The values of a codebook as a query on the cluster: feature, value, id and the sums."""

    counts: Counts
    built: Mapping[str, Built]

    @property
    def table(self) -> SparkTable:
        """The counts on their cluster."""
        return on_spark(self.counts)

    @cached_property
    def frame(self) -> Frame:
        """The values of all columns; rare ones are not among them."""
        with Cluster(self.table.session) as cluster:
            return cluster.frame(self._sql(cluster))

    @cached_property
    def kept(self) -> Kept:
        """The same, computed once; in order, so that one column is found without looking at all others."""
        return Kept(self.frame.sortWithinPartitions("feature"))

    def check(self) -> None:
        """Refuse to go on if the rows that were counted have changed, and Spark has read them again."""
        self._check(n_entries(self.table.session, self.kept.frame, self.built))

    def _check(self, found: Mapping[str, int]) -> None:
        """Refuse other numbers of values than were fitted."""
        if found != {name: built.column.n_values for name, built in self.built.items()}:
            raise InputError(
                "the rows that were counted have changed since the codebook was fitted; count and fit again."
            )

    def _sql(self, cluster: Cluster) -> str:
        counts = cluster.table(self.table.frame())
        of_values = self._stacked(
            [_spelled(built, self.table.kinds[name]) for name, built in self.built.items()]
        )
        of_pairs = self._stacked([built.of_pairs for built in self.built.values()])
        if any(built.buckets for built in self.built.values()):
            counts, key = self._hashed(cluster, counts), "bucket"
        else:
            key = "value"
        return (
            f"SELECT * FROM (SELECT {hint(v=of_values, p=of_pairs)} c.feature, c.value, "
            f"coalesce(v.id, p.id) AS id, {_listed('c.{}', self.counts.sums)} FROM {counts} c "
            f"LEFT JOIN {cluster.table(of_values)} v "
            f"ON c.feature = v.feature AND c.{key} <=> v.value LEFT JOIN {cluster.table(of_pairs)} p "
            f"ON c.feature = p.feature AND {same('c', 'p', self.counts.sums)}) WHERE id IS NOT NULL"
        )

    def _stacked(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Return the tables of all columns as one, with the number of the column."""
        return pa.concat_tables(
            table.append_column("feature", pa.array(np.full(table.num_rows, i, np.int32)))
            for i, table in enumerate(tables)
        )

    def _hashed(self, cluster: Cluster, counts: str) -> str:
        """Return the query for values with their bucket, as a text."""
        rows = [
            (i, self.table.kinds[name], built.buckets.size, built.buckets.least)
            for i, (name, built) in enumerate(self.built.items())
            if built.buckets
        ]
        columns = [list(column) for column in zip(*rows, strict=True)]
        sizes = cluster.table(pa.table(dict(zip(("feature", "kind", "size", "least"), columns, strict=True))))
        digits = "left(md5(CASE WHEN value IS NULL THEN 'missing|' ELSE concat(kind, '|', value) END), 15)"
        bucket = f"CAST(CAST(conv({digits}, 16, 10) AS BIGINT) % size AS STRING)"
        return (
            f"(SELECT c.*, CASE WHEN {sql_rows(self.counts.sums, self.counts.units_per_row)} >= least "
            f"THEN {bucket} END AS bucket FROM {counts} c LEFT JOIN {sizes} s ON c.feature = s.feature)"
        )

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id and the sums of a column, which comes to the driver."""
        number = list(self.built).index(name)
        with Cluster(self.table.session) as cluster:
            values = cluster.table(self.kept.frame)
            found = cluster.run(f"SELECT * FROM {values} WHERE feature = {number}").drop_columns(["feature"])
        return f"SELECT * FROM {engine.table(typed(found, self.built[name].column.kind))}"

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory."""
        with Engine() as engine:
            tables = {name: engine.run(sorted_by_value(self.sql(engine, name), "value, id")) for name in names}
        return {name: Index(table["value"], table["id"].to_numpy()) for name, table in tables.items()}

    def value_bytes(self, name: str) -> int:
        """Return how many bytes the texts of a column have: unknown, as they were not read."""
        return 0

    def ids_in_memory(self, counts: Counts, name: str) -> None:
        """Return nothing: values are not in memory."""

    def verify(self, hashes: Mapping[str, str]) -> None:
        """Refuse values that do not have these hashes: they came from the values."""

    def hashes(self) -> dict[str, str]:
        """Return the hash of the rows of each column, in one pass over all of them."""
        for _ in track([""], "digesting"):
            found = self._hashes()
        return found

    def _hashes(self) -> dict[str, str]:
        kinds = ", ".join(f"'{built.column.kind}'" for built in self.built.values())
        numbers = ", '|', ".join(("id", *self.counts.sums))
        text = f"concat(element_at(array({kinds}), feature + 1), '|', {numbers}, '|', value)"
        missing = f"concat('missing|', {numbers}, '|')"
        words = ", ".join(
            f"sum(CAST(conv(substr(hash, {1 + 8 * i}, 8), 16, 10) AS DECIMAL(38, 0))) AS word_{i}"
            for i in range(8)
        )
        with Cluster(self.table.session) as cluster:
            found = cluster.run(
                f"SELECT feature, count(*) AS n, {words} FROM (SELECT feature, "
                f"sha2(coalesce({text}, {missing}), 256) AS hash FROM {cluster.table(self.kept.frame)}) "
                "GROUP BY feature"
            )
        rows = {row["feature"]: row for row in found.to_pylist()}
        self._check({name: rows[i]["n"] if i in rows else 0 for i, name in enumerate(self.built)})
        sums = {i: [int(row[f"word_{word}"]) for word in range(8)] for i, row in rows.items()}
        return {name: sum_of_words(sums.get(i, [0] * 8)) for i, name in enumerate(self.built)}

    def write(self, saver: Saver) -> dict[str, list[headers.Json]]:
        """Have the workers write the files of all columns, and return their entries in the header."""
        found = n_entries(self.table.session, self.kept.frame, self.built)
        self._check(found)
        columns = {name: built.column for name, built in self.built.items()}
        return write(
            saver,
            self.table.session,
            self.kept.frame,
            {name: column.kind for name, column in columns.items()},
            {name: schema_of(column.kind, self.counts.sums) for name, column in columns.items()},
            found,
        )

    def by_fold(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same id, counts, fold and counts there."""
        sums = _listed("b.{0} AS all_{0}, f.{0}", self.counts.sums)
        by = _listed("b.{0}, f.{0}", self.counts.sums)
        with Cluster(self.table.session) as cluster:
            counts = cluster.table(self.table.frame(by_fold=True))
            found = cluster.run(
                f"SELECT f.feature, b.id, f.fold, {sums}, count(*) AS n FROM {counts} f LEFT JOIN "
                f"{cluster.table(self.frame)} b ON f.feature = b.feature AND f.value <=> b.value "
                f"GROUP BY f.feature, b.id, f.fold, {by}"
            )
        yield from self.table.by_feature(found)


def _listed(form: str, sums: Sequence[str]) -> str:
    return ", ".join(form.format(name) for name in sums)


def same(one: str, other: str, sums: Sequence[str]) -> str:
    """Return the condition that two tables agree in the sums, in SQL."""
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in sums)


def _spelled(built: Built, kind: str) -> pa.Table:
    """Return the values of a column with dedicated ids as texts, or its buckets."""
    table = built.of_values.select(["value", "id"])
    texts = table["value"].cast(pa.string()) if built.buckets else to_texts(table["value"], kind)
    return table.set_column(0, "value", texts)
