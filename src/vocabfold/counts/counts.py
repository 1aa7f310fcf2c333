"""Counts: for every value of every column, its rows with a negative and with a positive label, by weight.

Counts are additive, so days and shards are counted separately and added. Adding costs nothing: the parts are
kept side by side, and grouped when a column is read. The counts of many rows stay on disk, and one column at a
time is read.

Numbers are int64 in units: one per row, or 2**20 per row if weights are not whole. A part with whole weights is
scaled when it meets one without, so that sums are exact in any order. With weights, the rows of each label are
counted as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from vocabfold.counts.local import LocalPart, LocalTable
from vocabfold.counts.spark import SparkTable
from vocabfold.counts.table import Part, Table
from vocabfold.counts.totals import Totals
from vocabfold.counts.units import MAX_UNITS, ROWS, in_rows, to_rows
from vocabfold.errors import InputError
from vocabfold.io.engines.duckdb import DUCKDB, Engine
from vocabfold.io.engines.spark import SPARK
from vocabfold.support import checks
from vocabfold.support.wording import described

_MAX_SHOWN = 40  # columns in a repr
_TABLES: Mapping[str, Callable[..., Table]] = {DUCKDB: LocalTable, SPARK: SparkTable}


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Totals):
    """Counts per value, additive over days and shards: `monday + tuesday`.

    `counts["site"]` is an Arrow table with the columns value, neg, pos (and fold, if folds were counted),
    sorted by value; missing comes first. With weights, neg and pos are sums of weights (floats, if not all are
    whole), and neg_rows and pos_rows are the rows, each counted once.

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
    neg_rows, pos_rows : int or None
        Rows with a negative and with a positive label, each counted once whatever it weighs; None, if the
        counts were saved by a version that did not count them.
    folds : int
        Number of folds, or 0.
    fold_seed, fold_column
        How rows were assigned to the folds: the seed, or the column.
    sources : tuple of str
        What was counted.
    n_values : dict
        Values of each column.
    left_out : tuple of str
        Columns that are not text and were not named.
    skipped : int or None
        Rows that were not counted, as they have no label or no weight; None, if that is unknown.
    memory_limit : int or None
        Bytes that later steps may use, if it was given.

    Methods
    -------
    save
        Write the counts to a folder.
    without_folds
        The counts of all folds together.
    """

    kinds: Mapping[str, str]
    label: str
    positive: str
    folds: int
    fold_seed: int
    fold_column: str | None
    sources: tuple[str, ...]
    fingerprints: tuple[tuple[str, ...], ...]  # of each reading, by which its rows are recognised
    parts: tuple[Part, ...]
    readings: tuple[tuple[str, ...] | None, ...]  # the fingerprints of each part; None if it has no or several
    memory_limit: int | None = field(default=None)
    left_out: tuple[str, ...] = ()  # columns that are not text and were not named
    skipped: int | None = 0  # rows that were not counted, as they had no label or no weight; None: unknown

    @property
    def features(self) -> tuple[str, ...]:
        """The columns counted."""
        return tuple(self.kinds)

    @property
    def positive_rows(self) -> int | float:
        """Rows with a positive label, by weight."""
        return in_rows(self.pos, self.units_per_row)

    @property
    def engine(self) -> str:
        """The engine that reads them: Spark, if any part of them is on a cluster."""
        return _engine_of(self.parts)

    @cached_property
    def table(self) -> Table:
        """All parts together, where they live."""
        return self._table(self.parts)

    def __getstate__(self) -> dict[str, Any]:
        # What the table keeps in memory can be made again, elsewhere perhaps with another limit.
        return {name: kept for name, kept in vars(self).items() if name != "table"}

    def _table(self, parts: tuple[Part, ...]) -> Table:
        table = _TABLES[_engine_of(parts)]
        return table(parts, self.kinds, self.units_per_row, self.sums, self.folds, self.memory_limit)

    @property
    def n_values(self) -> dict[str, int]:
        """Values of each column; of sums and folds, they have to be counted."""
        return self.table.n_values()

    def __dir__(self) -> list[str]:
        return described(self)

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
        neg_rows, pos_rows = (_added(getattr(self, side), getattr(other, side)) for side in ROWS)
        if neg_rows is None and (self.has_weights or other.has_weights):
            raise InputError(
                "counts that do not tell rows from weights, as they were saved in format 1, cannot be added to "
                "counts with weights; count their rows again."
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
            neg_rows=neg_rows,
            pos_rows=pos_rows,
            sources=self.sources + other.sources,
            fingerprints=self.fingerprints + other.fingerprints,
            parts=self.parts + other.parts,
            readings=self.readings + other.readings,
            skipped=_added(self.skipped, other.skipped),
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
            lines[_MAX_SHOWN:] = [f"... and {checks.number(len(lines) - _MAX_SHOWN, 'more column')}"]
        rows = checks.shown_rows(self.rows, self.n_rows)
        head = f"Counts({checks.number(len(self), 'column')}, {rows}, {share}{folds}{parts})"
        return "\n  ".join([head, *lines])

    def _shown_values(self, name: str) -> str:
        """Return how many values a column has, if that is known without reading it."""
        n_values = self.table.n_known(name)
        return "" if n_values is None else f", {checks.number(n_values, 'value')}"

    def without_folds(self) -> Counts:
        """Return the counts of all folds together, which can be added to counts without folds."""
        return replace(self, folds=0, fold_seed=0, fold_column=None)

    def compacted(self) -> Counts:
        """Return the same counts in one part, in memory."""
        with Engine(self.memory_limit) as engine:
            tables = {name: engine.run(self.sql(engine, name, by_fold=True)) for name in self.features}
        part = LocalPart(tables, self.kinds, self.units_per_row, self.sums, is_by_fold=self.folds > 0)
        return replace(self, parts=(part,), readings=self.readings if len(self.parts) == 1 else (None,))

    def table_of(self, fingerprints: tuple[str, ...]) -> Table | None:
        """Return the counts of one reading, if they are apart, and rows are told from weights."""
        if self.neg_rows is None or self.readings.count(fingerprints) != 1:
            return None
        return self._table((self.parts[self.readings.index(fingerprints)],))

    def sql(self, engine: Engine, name: str, *, by_fold: bool = False, is_sorted: bool = False) -> str:
        """Return the query for the counts of a column: value, (fold,) and the sums."""
        sql = self.table.sql(engine, name, by_fold=by_fold)
        order = "value NULLS FIRST, fold NULLS FIRST" if by_fold and self.folds else "value NULLS FIRST"
        return f"SELECT * FROM ({sql}) ORDER BY {order}" if is_sorted else sql

    def pairs(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column its distinct sums, in order, and how many values have each."""
        for name, table in self.table.pairs(engine):
            if self.table.is_lazy:
                self._check_sums(table)
            yield name, table

    def _check_sums(self, pairs: pa.Table) -> None:
        """Refuse rows that changed between two readings: the label is read first."""
        n = pairs["n"].to_numpy()
        if any(int(pairs[name].to_numpy() @ n) != total for name, total in self.of_all.items()):
            raise InputError(
                f"{' and '.join(self.sources)} returned different rows when read again; write the rows to "
                "files that do not change, and count those."
            )

    def alike_in_folds(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same sums in a fold, and in all (all_neg, ...)."""
        yield from self.table.alike_in_folds(engine)

    def frequent(self, engine: Engine, least: float) -> dict[str, pa.Table]:
        """Return for each column its values with at least so many rows, in their order, and their sums."""
        return self.table.frequent(engine, least)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a folder, replacing counts that are there; `vf.load_counts` reads them back.

        Counts that were loaded from a replaced folder, and sums of them, must be loaded again.
        """
        from vocabfold.counts.saved import save

        save(self, path)

    def _same_features(self, other: Counts) -> tuple[str, ...]:
        different = sorted(self.kinds.keys() ^ other.kinds.keys())
        if different:
            raise InputError(
                f"feature {different[0]!r} was counted on one side only; both must have the same features."
            )
        return self.features


def _engine_of(parts: tuple[Part, ...]) -> str:
    return DUCKDB if all(part.session is None for part in parts) else SPARK


def _added(mine: int | None, theirs: int | None) -> int | None:
    """Return a sum that is unknown if either part is."""
    return None if mine is None or theirs is None else mine + theirs


def _common_kind(name: str, mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    kinds = {mine[name], theirs[name]}
    if len(kinds) > 1:
        kinds -= {"missing"}
    if len(kinds) > 1:
        raise InputError(
            f"feature {name!r} is {mine[name]} on one side and {theirs[name]} on the other, so equal values "
            "would not match; read it with the same type on both sides."
        )
    return kinds.pop()


def not_counts(given: object) -> InputError:
    """Return the error for something other than counts."""
    return InputError(
        f"must come from vf.count or vf.load_counts, got {type(given).__name__}; for rows, use "
        "vf.fit_transform.",
        argument="counts",
    )
