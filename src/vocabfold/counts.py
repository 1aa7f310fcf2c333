"""Counts: for every value of every column, its rows with a negative and with a positive label.

Counts are additive, so days and shards are counted apart and added. Adding costs nothing: the parts are kept
side by side, and grouped when a column is read. The counts of many rows stay on disk, and one column at a time
is read.

Numbers are int64 in units: one per row, or 2**20 per row if weights are not whole. A part with whole weights is
scaled when it meets one without, so that sums are exact in any order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from vocabfold import checks, headers, storage, unpacking
from vocabfold.cluster.tables import ClusterPart, ClusterTable
from vocabfold.cluster.writing import write
from vocabfold.engines.duckdb import Engine, parquet, parse_memory
from vocabfold.engines.spark import session_of
from vocabfold.errors import CodebookError, InputError
from vocabfold.kinds import KINDS
from vocabfold.progress import track
from vocabfold.temporary import TemporaryFolder

FRACTIONS = 2**20  # units per row, if weights are not whole numbers
MAX_UNITS = 2**62
MAX_FOLDS = 1000
_MAX_SHOWN = 40  # columns in a repr


@dataclass(frozen=True)
class Said:
    """What a header says of every column; nobody has looked at their counts yet, but for some."""

    folds: int
    neg: int
    pos: int
    memory_limit: int | None
    checked: set[str] = field(default_factory=set)

    def check(self, engine: Engine, name: str, paths: list[Path]) -> None:
        """Refuse a column whose counts are not those of the rows, or whose folds do not exist."""
        if name in self.checked:
            return
        fold = f"fold >= 0 AND fold < {self.folds}" if self.folds else "true"
        if not add_up(engine, paths, fold, self.neg, self.pos):
            raise CodebookError(f"{paths[0]} is not valid: its counts do not add up to those of the header.")
        self.checked.add(name)


@dataclass(frozen=True, eq=False)
class Part:
    """The counts of one reading: per column an Arrow table, or the Parquet files that hold it."""

    tables: Mapping[str, pa.Table | list[Path]]
    kinds: Mapping[str, str]
    units_per_row: int
    integers: str = "BIGINT"  # the SQL type of neg and pos
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
            name: unpacking.read(table) if isinstance(table, list) else table
            for name, table in self.tables.items()
        }
        return vars(self) | {"tables": tables, "folder": None, "session": None, "said": None}


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Counts per value, additive over days and shards: `monday + tuesday`.

    `counts["site"]` is an Arrow table with the columns value, neg, pos (and fold, if folds were counted),
    sorted by value; missing comes first. With weights that are not whole, neg and pos are floats.

    Attributes
    ----------
    features : tuple of str
        The columns counted.
    kinds : dict
        What each of them holds: text, integer, unsigned, float, boolean, date or timestamp.
    label, positive : str
        The column of the label, and its positive value as text.
    rows : int or float
        Rows counted, by weight.
    positive_rows : int or float
        Those with a positive label.
    folds : int
        Folds counted apart, or 0.
    fold_seed, fold_column
        How rows were dealt to them, or the column that tells.
    sources : tuple of str
        What was counted.
    """

    kinds: Mapping[str, str]
    label: str
    positive: str
    units_per_row: int
    folds: int
    fold_seed: int
    fold_column: str | None
    neg: int  # units
    pos: int
    sources: tuple[str, ...]
    fingerprints: tuple[tuple[str, ...], ...]  # of each reading, by which its rows are known again
    parts: tuple[Part | ClusterPart, ...]
    memory_limit: int | None = field(default=None)
    left_out: tuple[str, ...] = ()  # columns of numbers and dates that nobody named

    @property
    def features(self) -> tuple[str, ...]:
        """The columns counted."""
        return tuple(self.kinds)

    @property
    def rows(self) -> int | float:
        """Rows counted, by weight."""
        return in_rows(self.neg + self.pos, self.units_per_row)

    @property
    def positive_rows(self) -> int | float:
        """Rows with a positive label, by weight."""
        return in_rows(self.pos, self.units_per_row)

    @cached_property
    def cluster(self) -> ClusterTable | None:
        """The counts on their Spark cluster, if any part of them is there."""
        if all(part.session is None for part in self.parts):
            return None
        return ClusterTable(self.parts, self.kinds, self.units_per_row, self.folds)

    @property
    def n_values(self) -> dict[str, int]:
        """Values of each column; of sums and folds, they have to be counted."""
        if self.cluster:
            return self.cluster.n_values()
        with Engine(self.memory_limit) as engine:
            return {
                name: engine.run(f"SELECT count(*) AS n FROM ({self.sql(engine, name)})")["n"][0].as_py()
                for name in track(self.features, "counting values", engine.progress)
            }

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, name: str) -> pa.Table:
        checks.known("column", [name], self.features, "the counts")
        with Engine(self.memory_limit) as engine:
            table = engine.run(self.sql(engine, name, by_fold=True, is_sorted=True))
        return to_rows(table, self.units_per_row)

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        kinds = {name: _common_kind(name, self.kinds, other.kinds) for name in self._same_features(other)}
        for what in ("label", "positive", "folds", "fold_seed", "fold_column"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if mine != theirs:
                raise InputError(
                    f"counts with {what} {mine!r} and counts with {what} {theirs!r} cannot be added."
                )
        units = max(self.units_per_row, other.units_per_row)
        scales = units // self.units_per_row, units // other.units_per_row
        neg, pos = (getattr(self, s) * scales[0] + getattr(other, s) * scales[1] for s in ("neg", "pos"))
        if neg + pos > MAX_UNITS:
            raise InputError(
                f"the counts sum to {neg + pos:,} units; at most 2**62 = {MAX_UNITS:,} are counted exactly, so "
                "add fewer shards, or scale their weights down first."
            )
        return replace(
            self,
            kinds=kinds,
            units_per_row=units,
            neg=neg,
            pos=pos,
            sources=self.sources + other.sources,
            fingerprints=self.fingerprints + other.fingerprints,
            parts=self.parts + other.parts,
        )

    def __radd__(self, other: object) -> Counts:
        return self if other == 0 else NotImplemented  # sum() begins with 0

    def __repr__(self) -> str:
        share = f"{100 * self.pos / (self.neg + self.pos):.1f} % with {self.label} = {self.positive}"
        parts = f", {len(self.parts):,} parts" if len(self.parts) > 1 else ""
        folds = f", {self.folds} folds" if self.folds else ""
        width = max(map(len, self.features))
        lines = [f"{name:<{width}}  {kind}{self._shown_values(name)}" for name, kind in self.kinds.items()]
        if len(lines) > _MAX_SHOWN:
            lines[_MAX_SHOWN:] = [f"... and {len(lines) - _MAX_SHOWN:,} more columns"]
        rows = checks.number(self.rows, "row")
        head = f"Counts({checks.number(len(self), 'column')}, {rows}, {share}{folds}{parts})"
        return "\n  ".join([head, *lines])

    def _shown_values(self, name: str) -> str:
        """Return how many values a column has, if that is known without reading it."""
        first = self.parts[0]
        table = first.tables[name] if isinstance(first, Part) else []
        if len(self.parts) > 1 or first.is_by_fold or isinstance(table, list):
            return ""
        return f", {checks.number(table.num_rows, 'value')}"

    def without_folds(self) -> Counts:
        """Return the counts of all folds together, which can be added to counts without folds."""
        return replace(self, folds=0, fold_seed=0, fold_column=None)

    def compacted(self) -> Counts:
        """Return the same counts in one part, in memory."""
        with Engine(self.memory_limit) as engine:
            tables = {name: engine.run(self.sql(engine, name, by_fold=True)) for name in self.features}
        part = Part(tables, self.kinds, self.units_per_row, is_by_fold=self.folds > 0)
        return replace(self, parts=(part,))

    def sql(self, engine: Engine, name: str, *, by_fold: bool = False, is_sorted: bool = False) -> str:
        """Return the query for the counts of a column: value, (fold,) neg, pos in units."""
        keys = "value, fold" if by_fold and self.folds else "value"
        if self.cluster:
            sql = f"SELECT * FROM {engine.table(self.cluster.column(name, by_fold=by_fold))}"
        else:
            sql = self._local_sql(engine, name, keys)
        order = ", ".join(f"{key} NULLS FIRST" for key in keys.split(", "))
        return f"SELECT * FROM ({sql}) ORDER BY {order}" if is_sorted else sql

    def _local_sql(self, engine: Engine, name: str, keys: str) -> str:
        kind = KINDS[self.kinds[name]]
        typed = keys.replace("value", f"value::{kind.sql} AS value", 1)
        sql = " UNION ALL ".join(
            f"SELECT {typed}, neg::BIGINT * {scale} AS neg, pos::BIGINT * {scale} AS pos FROM {scan}"
            for scan, scale in self._scans(engine, name)
        )
        if len(self.parts) > 1 or (keys == "value" and self.parts[0].is_by_fold):
            sums = "sum(neg)::BIGINT AS neg, sum(pos)::BIGINT AS pos"
            sql = f"SELECT {keys}, {sums} FROM ({sql}) GROUP BY {keys}"
        return sql

    def pairs(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column its distinct (neg, pos), in order, and how many values have each."""
        if self.cluster:
            for _ in track([""], "counting on Spark"):
                for name, table in self.cluster.pairs():
                    self._check_sums(table)
                    yield name, table
            return
        for name in track(self.features, "fitting", engine.progress):
            sql = f"SELECT neg, pos, count(*) AS n FROM ({self.sql(engine, name)}) GROUP BY neg, pos"
            yield name, engine.run(f"{sql} ORDER BY neg, pos")

    def _check_sums(self, pairs: pa.Table) -> None:
        """Refuse rows that were others when they were read again: the label is looked at first."""
        neg, pos, n = (pairs[name].to_numpy() for name in ("neg", "pos", "n"))
        if (int(neg @ n), int(pos @ n)) != (self.neg, self.pos):
            raise InputError(
                f"{' and '.join(self.sources)} gave other rows when it was read again; write the rows to files "
                "that do not change, and count these."
            )

    def frequent(self, engine: Engine, least: int) -> dict[str, pa.Table]:
        """Return for each column its values with at least so many units, in their order, and their counts."""
        if self.cluster:
            return self.cluster.frequent(least)
        chosen = f"WHERE neg + pos >= {least} ORDER BY value NULLS FIRST"
        return {
            name: engine.run(f"SELECT value, neg, pos FROM ({self.sql(engine, name)}) {chosen}")
            for name in self.features
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a folder, replacing counts that are there; `vf.load_counts` reads them back.

        Whatever was loaded from a folder that is replaced, and sums of it, must be loaded again.
        """

        def fill(saver: storage.Saver) -> headers.Json:
            schemas = {name: _schema(kind, self.folds) for name, kind in self.kinds.items()}
            if self.cluster:
                frame = self.cluster.frame(by_fold=True)
                files = write(saver, self.cluster.session, frame, self.kinds, schemas)
            else:
                with Engine(self.memory_limit) as engine:
                    files = {}
                    for name in track(self.features, "saving", engine.progress):
                        batches = engine.stream(self.sql(engine, name, by_fold=True, is_sorted=True))
                        files[name] = [saver.add(schemas[name], batches)]
            columns = [{"name": name, "type": kind, "files": files[name]} for name, kind in self.kinds.items()]
            return {
                "label": self.label,
                "positive": self.positive,
                "units_per_row": self.units_per_row,
                "folds": self.folds,
                "fold_seed": self.fold_seed,
                "fold_column": self.fold_column,
                "neg": self.neg,
                "pos": self.pos,
                "columns": columns,
            }

        origin = storage.Origin(self.sources, self.fingerprints)
        storage.save(path, headers.COUNTS, fill, origin)

    def _scans(self, engine: Engine, name: str) -> Iterator[tuple[str, int]]:
        """Yield what to scan for a column, and the scale of its units; parts that are alike are one scan."""
        alike: dict[tuple[str, str, bool, int, bool], list[Any]] = {}
        for part in self.parts:
            assert isinstance(part, Part)
            table = part.tables[name]
            is_file = isinstance(table, list)
            if isinstance(table, list):
                missing = [path for path in table if not path.exists()]
                if missing:
                    raise unpacking.gone(missing[0])
                if part.said:
                    part.said.check(engine, name, table)
            scale = self.units_per_row // part.units_per_row
            key = part.kinds[name], part.integers, part.is_by_fold, scale, is_file
            alike.setdefault(key, []).extend(table if is_file else [table])
        for (*_, scale, is_file), tables in alike.items():
            yield (parquet(tables) if is_file else engine.table(pa.concat_tables(tables))), scale

    def _same_features(self, other: Counts) -> tuple[str, ...]:
        different = sorted(self.kinds.keys() ^ other.kinds.keys())
        if different:
            raise InputError(
                f"feature {different[0]!r} was counted on one side only; both must have the same features."
            )
        return self.features


def load_counts(
    path: str | os.PathLike[str], *, memory_limit: int | str | None = None, spark: Any = None
) -> Counts:
    """Load counts from the folder to which `Counts.save` wrote them.

    Parameters
    ----------
    path : path
        The folder. It must stay in place: columns are read when they are needed.
    memory_limit : int or str, optional
        As for `count`.
    spark : SparkSession, optional
        Where to add and fit the counts, if they are too many for this machine: columns beyond 1 MiB are read by
        the workers, so the folder must be on a file system that they share.

    Returns
    -------
    Counts

    Raises
    ------
    CodebookError
        The folder is missing, damaged, changed by hand, or newer than this release.
    """
    session = None if spark is None else session_of(spark)
    limit = parse_memory(memory_limit)
    return storage.load(path, headers.COUNTS, partial(_counts, session, limit))


def _counts(
    session: Any, limit: int | None, folder: Path, header: headers.Json, origin: storage.Origin
) -> Counts:
    """Return the counts of a header."""
    try:
        kinds = {column["name"]: column["type"] for column in header["columns"]}
        numbers = {key: header[key] for key in ("units_per_row", "folds", "fold_seed", "neg", "pos")}
        is_valid = (
            len(kinds) == len(header["columns"]) > 0
            and all(isinstance(name, str) for name in kinds)
            and all(kind in KINDS for kind in kinds.values())
            and all(type(number) is int and number >= 0 for number in numbers.values())
            and numbers["units_per_row"] in (1, FRACTIONS)
            and numbers["folds"] <= MAX_FOLDS
            and 0 < numbers["neg"] + numbers["pos"] <= MAX_UNITS
            and all(isinstance(header[key], str) for key in ("label", "positive"))
            and isinstance(header["fold_column"], str | None)
        )
    except (KeyError, TypeError, AttributeError):
        is_valid = False
    if not is_valid:
        raise CodebookError(f"{folder / headers.COUNTS.header} is not valid: a field is missing or absurd.")
    files = {
        column["name"]: storage.tables(folder, column["files"], _schema(column["type"], numbers["folds"]))
        for column in header["columns"]
    }
    said = Said(numbers["folds"], numbers["neg"], numbers["pos"], limit)
    part = Part(
        files, kinds, numbers["units_per_row"], is_by_fold=numbers["folds"] > 0, session=session, said=said
    )
    return Counts(
        kinds=kinds,
        label=header["label"],
        positive=header["positive"],
        **numbers,
        fold_column=header["fold_column"],
        sources=origin.sources,
        fingerprints=origin.fingerprints,
        parts=(part,),
        memory_limit=limit,
    )


def add_up(
    engine: Engine, paths: list[Path], condition: str, neg: int, pos: int, *, at_most: bool = False
) -> bool:
    """Tell whether files have a condition in all rows, and counts that sum up to, or at most to, the given."""
    sign = "<=" if at_most else "="
    before, engine.subject = engine.subject, str(paths[0])
    try:
        found = engine.run(
            # What is missing is no count, and no condition holds for it; but neither aggregate minds it.
            f"SELECT coalesce(bool_and(coalesce({condition} AND neg >= 0 AND pos >= 0, false)), true) AND "
            f"coalesce(sum(neg), 0) {sign} {neg} AND coalesce(sum(pos), 0) {sign} {pos} AS is_so "
            f"FROM {parquet(paths)}"
        )
    except InputError as error:
        raise CodebookError(str(error)) from error
    finally:
        engine.subject = before
    return bool(found["is_so"][0].as_py())


def in_rows(units: int, units_per_row: int) -> int | float:
    """Return a number of units as rows: a whole number, if it is one."""
    return units // units_per_row if units % units_per_row == 0 else units / units_per_row


def to_rows(table: pa.Table, units_per_row: int) -> pa.Table:
    """Return a table whose neg and pos are rows instead of units."""
    if units_per_row == 1:
        return table
    for side in ("neg", "pos"):
        rows = pa.array(table[side].to_numpy() / units_per_row)
        table = table.set_column(table.schema.get_field_index(side), side, rows)
    return table


def _common_kind(name: str, mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    kinds = {mine[name], theirs[name]}
    if len(kinds) > 1:
        kinds -= {"missing"}
    if len(kinds) > 1:
        raise InputError(
            f"feature {name!r} is {mine[name]} on one side and {theirs[name]} on the other, so equal values "
            "would not meet; read it with one type on both."
        )
    return kinds.pop()


def _schema(kind: str, folds: int) -> pa.Schema:
    fold = [("fold", pa.int32())] if folds else []
    return pa.schema([("value", KINDS[kind].arrow), *fold, ("neg", pa.int64()), ("pos", pa.int64())])
