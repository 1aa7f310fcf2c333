"""Counts on this machine: Arrow tables and Parquet files, which DuckDB reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from vocabfold.counts.frames import Frame
from vocabfold.counts.in_memory import ColumnCounts, Units, are_small, decoded, is_sorted, sorted_values
from vocabfold.counts.table import scaled, schema_of
from vocabfold.counts.target import Target
from vocabfold.counts.units import UNITS, alike_in_folds, rows_of, sql_at_least
from vocabfold.errors import CodebookError, InputError
from vocabfold.io.engines.duckdb import Engine, parquet
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.folders import headers, parquet_guard
from vocabfold.io.folders.parquet_writer import Saver
from vocabfold.io.folders.temporary import TemporaryFolder
from vocabfold.io.rows.source import Rows
from vocabfold.support.progress import track

_KEPT_SHARE = 1 / 8  # of the memory limit, in which counts are kept; all others go to disk,
_MANY_ROWS = 2**23  # and so do all counts of more rows than this
_MANY_COLUMNS, _STAGED = 1000, 100  # features, from which on so many at a time are written apart


@dataclass(frozen=True)
class Said:
    """What a header says of every column, and which columns have been checked against it."""

    folds: int
    totals: Mapping[str, int]  # of each sum
    memory_limit: int | None
    checked: set[str] = field(default_factory=set)

    def check(self, engine: Engine, name: str, paths: list[Path]) -> None:
        """Refuse a column whose counts are not those of the rows, or whose folds do not exist."""
        if name in self.checked:
            return
        fold = f"fold >= 0 AND fold < {self.folds}" if self.folds else "true"
        if not add_up(engine, paths, fold, self.totals):
            raise CodebookError(f"{paths[0]} is not valid: its counts do not add up to those of the header.")
        self.checked.add(name)


@dataclass(frozen=True, eq=False)
class LocalPart:
    """The counts of one reading: per column an Arrow table, or the Parquet files that hold it."""

    tables: Mapping[str, pa.Table | list[Path]]
    kinds: Mapping[str, str]
    units_per_row: int
    sums: tuple[str, ...] = UNITS
    integers: str = "BIGINT"  # the SQL type of the sums
    folder: TemporaryFolder | None = None  # in which some of the files are
    is_by_fold: bool = False
    session: Any = None  # of Spark, if they are to be used there
    said: Said | None = None  # by the header of the folder that they were loaded from

    def check(self) -> None:
        """Look at all columns that come from a folder, before anything but the engine reads their files."""
        if self.said and self.tables.keys() - self.said.checked:
            with Engine(self.said.memory_limit) as engine:
                for name, table in self.tables.items():
                    assert isinstance(table, list)
                    self.said.check(engine, name, table)

    def __getstate__(self) -> dict[str, Any]:
        # A pickle outlives temporary files, and travels to other machines.
        self.check()
        tables = {
            name: parquet_guard.read(table) if isinstance(table, list) else table
            for name, table in self.tables.items()
        }
        return vars(self) | {"tables": tables, "folder": None, "session": None, "said": None}


@dataclass(frozen=True, eq=False)
class LocalTable:
    """All parts of some counts; values that several parts have are added up when a column is read."""

    is_lazy: ClassVar[bool] = False

    _parts: Sequence[LocalPart]
    _kinds: Mapping[str, str]
    _units_per_row: int
    _sums: tuple[str, ...]
    _folds: int
    _memory_limit: int | None
    _held: dict[str, ColumnCounts | None] = field(default_factory=dict)  # columns that were asked for
    _kept: list[int] = field(default_factory=lambda: [0])  # bytes that these take

    def in_memory(self, name: str) -> ColumnCounts | None:
        """Return the counts of a column in memory; None, if they are in files or too many."""
        if name in self._held:
            return self._held[name]
        tables = [part.tables[name] for part in self._parts]
        tables_here = [table for table in tables if not isinstance(table, list)]
        is_here = len(tables_here) == len(tables) and are_small(tables_here, self._limit)
        found = self._added(name, tables_here) if is_here else None
        n_bytes = 0 if found is None else found.nbytes
        if self._kept[0] + n_bytes <= self._limit * _KEPT_SHARE:  # beside the tables
            self._held[name] = found
            self._kept[0] += n_bytes
        return found

    @cached_property
    def _limit(self) -> int:
        return Engine(self._memory_limit).memory_limit

    def _added(self, name: str, tables: Sequence[pa.Table]) -> ColumnCounts | None:
        """Return the counts of a column in memory, all parts together."""
        sums = [self._sums_of(part, table) for part, table in zip(self._parts, tables, strict=True)]
        if len(tables) == 1 and is_sorted(tables[0]):
            return ColumnCounts.of_table(tables[0], sums[0])
        type = KINDS[self._kinds[name]].arrow
        values = [decoded(table)["value"].cast(type).chunks for table in tables]
        found = sorted_values(pa.chunked_array(list(chain(*values)), type), self._kinds[name])
        folds = (
            np.concatenate([np.asarray(table["fold"], np.int64) for table in tables]) if self._folds else None
        )
        of_all = {side: np.concatenate([of_part[side] for of_part in sums]) for side in self._sums}
        return found and ColumnCounts.of_rows(*found, folds, self._folds, of_all)

    def _sums_of(self, part: LocalPart, table: pa.Table) -> dict[str, Units]:
        """Return the sums of a part as those of all parts: without weights, units are rows."""
        scale = self._units_per_row // part.units_per_row
        return {
            name: np.asarray(table[name if name in part.sums else name.removesuffix("_rows")], np.int64)
            * (scale if name in UNITS else 1)
            for name in self._sums
        }

    def n_values(self) -> dict[str, int]:
        """Return how many values each column has; of sums and folds, they have to be counted."""
        found = {}
        with Engine(self._memory_limit) as engine:
            for name in track(list(self._kinds), "counting values", engine.progress):
                if held := self.in_memory(name):
                    found[name] = len(held.values)
                else:
                    n_values = engine.run(f"SELECT count(*) AS n FROM ({self.sql(engine, name)})")["n"]
                    found[name] = n_values[0].as_py()
        return found

    def n_known(self, name: str) -> int | None:
        """Return how many values a column has, if that is known without reading it."""
        table = self._parts[0].tables[name]
        if len(self._parts) > 1 or self._parts[0].is_by_fold or isinstance(table, list):
            return None
        return int(table.num_rows)

    def sql(self, engine: Engine, name: str, *, by_fold: bool = False) -> str:
        """Return the query for a column, in any order."""
        keys = "value, fold" if by_fold and self._folds else "value"
        typed = keys.replace("value", f"value::{KINDS[self._kinds[name]].sql} AS value", 1)
        sql = " UNION ALL ".join(
            f"SELECT {typed}, {sums} FROM {scan}" for scan, sums in self._scans(engine, name)
        )
        if len(self._parts) > 1 or (keys == "value" and self._parts[0].is_by_fold):
            sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in self._sums)
            sql = f"SELECT {keys}, {sums} FROM ({sql}) GROUP BY {keys}"
        return sql

    def _scans(self, engine: Engine, name: str) -> Iterator[tuple[str, str]]:
        """Yield what to scan for a column, and its sums; parts that are alike are one scan."""
        alike: dict[tuple[str, str, bool, str, bool], list[Any]] = {}
        for part in self._parts:
            table = part.tables[name]
            is_file = isinstance(table, list)
            if isinstance(table, list):
                missing = [path for path in table if not path.exists()]
                if missing:
                    raise parquet_guard.gone(missing[0])
                if part.said:
                    part.said.check(engine, name, table)
            sums = scaled(part, self._sums, self._units_per_row // part.units_per_row, "{}::BIGINT")
            key = part.kinds[name], part.integers, part.is_by_fold, sums, is_file
            alike.setdefault(key, []).extend(table if is_file else [table])
        for (*_, sums, is_file), tables in alike.items():
            yield (parquet(tables) if is_file else engine.table(pa.concat_tables(map(decoded, tables)))), sums

    def pairs(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column its distinct sums, in order, and how many values have each."""
        sums = ", ".join(self._sums)
        for name in track(list(self._kinds), "fitting", engine.progress):
            if held := self.in_memory(name):
                yield name, held.pairs
            else:
                sql = f"SELECT {sums}, count(*) AS n FROM ({self.sql(engine, name)}) GROUP BY {sums}"
                yield name, engine.run(f"{sql} ORDER BY {sums}")

    def alike_in_folds(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same sums in a fold, and in all folds."""
        for name in track(list(self._kinds), "trying other folds", engine.progress):
            if held := self.in_memory(name):
                yield name, held.in_folds
            else:
                sql = alike_in_folds(f"({self.sql(engine, name, by_fold=True)})", self._sums)
                yield name, engine.run(sql)

    def frequent(self, engine: Engine, least: float) -> dict[str, pa.Table]:
        """Return for each column its values with at least so many rows, in their order, and their sums."""
        sums = ", ".join(self._sums)
        chosen = f"WHERE {sql_at_least(self._sums, self._units_per_row, least)} ORDER BY value NULLS FIRST"
        found = {}
        for name in self._kinds:
            if held := self.in_memory(name):
                found[name] = held.chosen(rows_of(held.sums, self._units_per_row) >= least)
            else:
                found[name] = engine.run(f"SELECT value, {sums} FROM ({self.sql(engine, name)}) {chosen}")
        return found

    def write(self, saver: Saver) -> dict[str, list[headers.Json]]:
        """Write the files of all columns, and return their entries in the header."""
        files = {}
        order = "value NULLS FIRST, fold NULLS FIRST" if self._folds else "value NULLS FIRST"
        with Engine(self._memory_limit) as engine:
            for name in track(list(self._kinds), "saving", engine.progress):
                sql = f"SELECT * FROM ({self.sql(engine, name, by_fold=True)}) ORDER BY {order}"
                schema = schema_of(self._kinds[name], self._folds, self._sums)
                files[name] = [saver.add(schema, engine.stream(sql))]
        return files


def count_rows(engine: Engine, rows: Rows, features: Sequence[str], target: Target) -> LocalPart:
    """Group one column after another; the counts of many values are kept on disk."""
    tables: dict[str, Any] = {}
    kinds = {name: str(rows.columns[name].kind) for name in features}
    integers = "INTEGER" if target.neg + target.pos < 2**31 else "BIGINT"  # half the bytes, if they do
    folder = None
    room = engine.memory_limit * _KEPT_SHARE  # bytes
    frame = Frame(engine, rows, target)
    scan, values, part = rows.scan, {name: rows.columns[name].sql for name in features}, target
    staged: Path | None = None
    for i, name in enumerate(track(features, "counting", engine.progress)):
        table = frame.count(name, integers) if target.n_rows <= _MANY_ROWS else None
        if table is not None and table.nbytes < room:
            tables[name] = table
            room -= table.nbytes
            continue
        if len(features) > _MANY_COLUMNS and (staged is None or name not in values):
            path = engine.folder / f"{i}.parquet"  # never one that was read before: the engine may remember it
            scan, values, part = _staged(engine, rows, features[i : i + _STAGED], target, path)
            if staged:
                staged.unlink()
            staged = path
        sql = _query(scan, values[name], part, integers)
        table = engine.run_within(sql, room) if room > 0 and target.n_rows <= _MANY_ROWS else None
        if table is not None:
            tables[name] = table
            room -= table.nbytes
        else:
            room = 0  # no more trials: this one was in vain
            folder = folder or TemporaryFolder()
            tables[name] = [folder.path / f"{i}.parquet"]
            engine.write(sql, tables[name][0], distinct=True)
    is_by_fold = target.fold is not None
    return LocalPart(tables, kinds, target.units_per_row, target.sums, integers, folder, is_by_fold)


def _staged(
    engine: Engine, rows: Rows, features: Sequence[str], target: Target, path: Path
) -> tuple[str, dict[str, str], Target]:
    """Write a few columns of a very wide table apart: to plan a query takes as long as the table is wide."""
    roles = {"is_positive": target.is_positive, "units": target.units, "fold": target.fold}
    given = {role: sql for role, sql in roles.items() if sql is not None}
    values = {name: f"c{i}" for i, name in enumerate(features)}
    chosen = [f"{sql} AS {role}" for role, sql in given.items()]
    chosen += [f"{rows.columns[name].sql} AS {column}" for name, column in values.items()]
    engine.write(f"SELECT {', '.join(chosen)} FROM {rows.scan}{target.where}", path)
    return (
        parquet([path]),
        values,
        replace(
            target,
            is_positive="is_positive",
            units=target.units and "units",
            fold=target.fold and "fold",
            conditions=(),
        ),
    )


def _query(scan: str, value: str, target: Target, integers: str) -> str:
    """Return the query that counts one column: value, fold if asked, and the sums."""
    fold = f", {target.fold} AS fold" if target.fold else ""
    by = "value, fold" if target.fold else "value"
    if target.units is None:
        sums = f"count(*) AS n, count_if({target.is_positive}) AS p"
    else:
        sums = (
            f"sum({target.units}) AS n, sum(CASE WHEN {target.is_positive} THEN {target.units} ELSE 0 END) AS p"
        )
    chosen = f"(n - p)::{integers} AS neg, p::{integers} AS pos"
    if target.has_weights:
        sums += f", count(*) AS n_rows, count_if({target.is_positive}) AS p_rows"
        chosen += f", (n_rows - p_rows)::{integers} AS neg_rows, p_rows::{integers} AS pos_rows"
    return (
        f"SELECT {by}, {chosen} "
        f"FROM (SELECT {value} AS value{fold}, {sums} FROM {scan}{target.where} GROUP BY ALL)"
    )


def add_up(
    engine: Engine, paths: list[Path], condition: str, totals: Mapping[str, int], *, at_most: bool = False
) -> bool:
    """Tell whether files have a condition in all rows, and counts that sum up to, or at most to, the given."""
    sign = "<=" if at_most else "="
    condition = " AND ".join([condition, *(f"{name} >= 0" for name in totals)])
    sums = " AND ".join(f"coalesce(sum({name}), 0) {sign} {total}" for name, total in totals.items())
    before, engine.subject = engine.subject, str(paths[0])
    try:
        found = engine.run(
            # What is missing is no count, and no condition holds for it; but neither aggregate minds it.
            f"SELECT coalesce(bool_and(coalesce({condition}, false)), true) AND {sums} AS is_so "
            f"FROM {parquet(paths)}"
        )
    except InputError as error:
        raise CodebookError(error.marked) from error
    finally:
        engine.subject = before
    return bool(found["is_so"][0].as_py())
