"""Counts that stay on a cluster: one table of all columns, (feature, value, fold, sums).

Features are numbers, and values the texts that the digest spells. What the driver asks for is small: the table
{sums: how many values}, values with dedicated ids, one column if it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from vocabfold.counts.in_memory import decoded
from vocabfold.counts.spark_files import n_entries, sorted_by_value, stored, typed, write
from vocabfold.counts.table import scaled, schema_of
from vocabfold.counts.target import Target
from vocabfold.counts.units import alike_in_folds, sql_at_least
from vocabfold.errors import InputError
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.spark import Cluster, Frame, Kept, spelled
from vocabfold.io.folders import headers
from vocabfold.io.folders.parquet_writer import Saver
from vocabfold.io.rows.source import Rows
from vocabfold.support.progress import track

if TYPE_CHECKING:
    from vocabfold.counts.counts import Counts


@dataclass(frozen=True, eq=False)
class SparkPart:
    """The counts of one reading of a Spark frame: feature, value, (fold,) and the sums."""

    kept: Kept
    kinds: Mapping[str, str]  # of the features, in the order of their numbers
    units_per_row: int
    sums: tuple[str, ...]
    is_by_fold: bool
    session: Any
    folder: ClassVar[None] = None  # of temporary files

    def __getstate__(self) -> NoReturn:
        raise _not_pickled()


class SparkTable:
    """All parts of some counts as one table on the cluster."""

    is_lazy: ClassVar[bool] = True

    def __getstate__(self) -> NoReturn:
        raise _not_pickled()

    def __init__(
        self,
        parts: Sequence[Any],
        kinds: Mapping[str, str],
        units_per_row: int,
        sums: tuple[str, ...],
        folds: int,
        memory_limit: int | None = None,  # of this machine, which holds little of it
        session: Any = None,
    ) -> None:
        self._parts = parts
        self.kinds = kinds
        self._units_per_row = units_per_row
        self.sums = sums
        self._folds = folds
        sessions = [part.session for part in parts if part.session is not None] + [session] * bool(session)
        if any(other is not sessions[0] for other in sessions):
            raise two_sessions()
        self.session = sessions[0]
        self.in_folds: WeakKeyDictionary[Any, Kept] = WeakKeyDictionary()  # codebooks with their ids by fold

    def frame(self, *, by_fold: bool = False) -> Frame:
        """Return the counts of all columns: feature, value, (fold,) and the sums."""
        by_fold = by_fold and self._folds > 0
        part = self._parts[0]
        is_whole = len(self._parts) == 1 and isinstance(part, SparkPart) and part.is_by_fold == by_fold
        if is_whole and tuple(part.kinds) == tuple(self.kinds):
            return part.kept.frame
        return (self._by_fold if by_fold else self._totals).frame

    @cached_property
    def _totals(self) -> Kept:
        return Kept(self._sums("feature, value"))

    @cached_property
    def _by_fold(self) -> Kept:
        return Kept(self._sums("feature, value, fold"))

    def _sums(self, keys: str) -> Frame:
        with Cluster(self.session) as cluster:
            parts = " UNION ALL ".join(self._part(cluster, part, keys) for part in self._parts)
            sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in self.sums)
            return cluster.frame(f"SELECT {keys}, {sums} FROM ({parts}) GROUP BY {keys}")

    def _part(self, cluster: Cluster, part: Any, keys: str) -> str:
        """Return the query for one part, with the features numbered and the units scaled as those of all."""
        scale = self._units_per_row // part.units_per_row
        if isinstance(part, SparkPart):
            numbers = ", ".join(str(list(self.kinds).index(name)) for name in part.kinds)
            table, feature = cluster.table(part.kept.frame), f"element_at(array({numbers}), feature + 1)"
        else:
            table, feature = self._sent(cluster, part, "fold" in keys), "feature"
        chosen = keys.replace("feature", f"{feature} AS feature", 1)
        return f"SELECT {chosen}, {scaled(part, self.sums, scale)} FROM {table}"

    def _sent(self, cluster: Cluster, part: Any, by_fold: bool) -> str:
        """Return the query for a part that is on the driver, or in files."""
        part.check()
        names = ["value", *(["fold"] if by_fold else []), *part.sums]
        queries = []
        for i, (name, kind) in enumerate(self.kinds.items()):
            table = part.tables[name]
            found = stored(cluster, table if isinstance(table, list) else decoded(table), kind, names)
            queries.append(f"SELECT {i} AS feature, {', '.join(names)} FROM {found}")
        return f"({' UNION ALL '.join(queries)})"

    def in_memory(self, name: str) -> None:
        """Return nothing: the counts are not in memory."""

    def sql(self, engine: Engine, name: str, *, by_fold: bool) -> str:
        """Return the query for a column, which comes to the driver."""
        return f"SELECT * FROM {engine.table(self.column(name, by_fold=by_fold))}"

    def pairs(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column its distinct sums, in order, and how many values have each."""
        keys = ("feature", *self.sums)
        by = ", ".join(keys)
        for _ in track([""], "counting on Spark"):
            with Cluster(self.session) as cluster:
                table = cluster.table(self.frame())
                found = cluster.run(f"SELECT {by}, count(*) AS n FROM {table} GROUP BY {by}")
            yield from self.by_feature(found.sort_by([(key, "ascending") for key in keys]))

    def alike_in_folds(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same sums in a fold, and in all folds."""
        with Cluster(self.session) as cluster:
            by_fold = cluster.table(self.frame(by_fold=True))
            found = cluster.run(alike_in_folds(by_fold, self.sums, ("feature",)))
        yield from self.by_feature(found)

    def frequent(self, engine: Engine, least: float) -> dict[str, pa.Table]:
        """Return for each column its values with at least so many rows, in their order, and their sums."""
        sums, is_frequent = ", ".join(self.sums), sql_at_least(self.sums, self._units_per_row, least)
        with Cluster(self.session) as cluster:
            found = cluster.run(
                f"SELECT feature, value, {sums} FROM {cluster.table(self.frame())} WHERE {is_frequent}"
            )
        return {name: sorted_by_value(typed(part, self.kinds[name])) for name, part in self.by_feature(found)}

    def write(self, saver: Saver) -> dict[str, list[headers.Json]]:
        """Have the workers write the files of all columns, and return their entries in the header."""
        schemas = {name: schema_of(kind, self._folds, self.sums) for name, kind in self.kinds.items()}
        frame = self.frame(by_fold=True)
        return write(
            saver, self.session, frame, self.kinds, schemas, n_entries(self.session, frame, self.kinds)
        )

    def by_feature(self, found: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each column, in their order, without its number."""
        features = found["feature"].to_numpy()
        order = np.argsort(features, kind="stable")
        found, ends = found.take(order), np.searchsorted(features[order], np.arange(len(self.kinds) + 1))
        for i, name in enumerate(self.kinds):
            yield name, found.slice(ends[i], ends[i + 1] - ends[i]).drop_columns(["feature"]).combine_chunks()

    def column(self, name: str, *, by_fold: bool = False) -> pa.Table:
        """Return the counts of one column, which come to the driver."""
        keys = "value, fold" if by_fold and self._folds else "value"
        with Cluster(self.session) as cluster:
            table = cluster.table(self.frame(by_fold=by_fold))
            number = list(self.kinds).index(name)
            found = cluster.run(f"SELECT {keys}, {', '.join(self.sums)} FROM {table} WHERE feature = {number}")
        return typed(found, self.kinds[name])

    def n_values(self) -> dict[str, int]:
        """Return how many values each column has."""
        return n_entries(self.session, self.frame(), self.kinds)

    def n_known(self, name: str) -> None:
        """Return how many values a column has, if that is known without a query: it never is."""


def two_sessions() -> InputError:
    """Return the error for frames of two sessions."""
    return InputError(
        "the data are on two Spark sessions; save those of one session, and load them in the other."
    )


def _not_pickled() -> InputError:
    return InputError(
        "counts and codebooks on a Spark cluster cannot be pickled; save them to a folder, and load that."
    )


def count_rows(cluster: Cluster, rows: Rows, features: Sequence[str], target: Target) -> SparkPart:
    """Return the counts of all columns as one query: a row for every value of a row, grouped once."""
    kinds = {name: str(rows.columns[name].kind) for name in features}
    values = ", ".join(
        f"{i}, {spelled(kinds[name], rows.columns[name].sql)}" for i, name in enumerate(features)
    )
    units, all_units = target.units or "CAST(1 AS BIGINT)", "sum(n)" if target.units else "count(*)"
    fold = f", {target.fold} AS fold" if target.fold else ""
    carried = f"{units} AS n, {_if_positive(target, units)} AS p{fold}"
    sums = f"{all_units} - sum(p) AS neg, sum(p) AS pos"
    if target.has_weights:
        carried += f", {_if_positive(target, 'CAST(1 AS BIGINT)')} AS p_row"
        sums += ", count(*) - sum(p_row) AS neg_rows, sum(p_row) AS pos_rows"
    keys = "feature, value, fold" if target.fold else "feature, value"
    rows_of_all = f"SELECT *, {carried} FROM {rows.scan}{target.where}"
    stacked = f"SELECT *, stack({len(features)}, {values}) AS (feature, value) FROM ({rows_of_all})"
    frame = cluster.frame(f"SELECT {keys}, {sums} FROM ({stacked}) GROUP BY {keys}")
    is_by_fold = target.fold is not None
    return SparkPart(Kept(frame), kinds, target.units_per_row, target.sums, is_by_fold, cluster.session)


def _if_positive(target: Target, number: str) -> str:
    return f"CASE WHEN {target.is_positive} THEN {number} ELSE CAST(0 AS BIGINT) END"


def on_spark(counts: Counts, session: Any = None) -> SparkTable:
    """Return counts as a table on a cluster: the one that they are on, or that of a session."""
    if isinstance(counts.table, SparkTable):
        return counts.table
    return SparkTable(
        counts.parts, counts.kinds, counts.units_per_row, counts.sums, counts.folds, session=session
    )
