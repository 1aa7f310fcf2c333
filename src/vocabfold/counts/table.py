"""Where counts live: one protocol for tables here, which DuckDB reads, and for tables on a Spark cluster.

`Part` is the counts of one reading; `Table` is all parts of some counts together. Both have a twin in `local`
and in `spark`, and no other code depends on which of them it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from vocabfold.counts.in_memory import ColumnCounts
from vocabfold.counts.units import UNITS
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.folders import headers
from vocabfold.io.folders.parquet_writer import Saver


class Part(Protocol):
    """The counts of one reading."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """What each column holds."""

    @property
    def units_per_row(self) -> int:
        """Units that a row of weight 1 counts."""

    @property
    def sums(self) -> tuple[str, ...]:
        """What is summed per value: units by label, and with weights also rows."""

    @property
    def is_by_fold(self) -> bool:
        """Whether folds are counted apart."""

    @property
    def session(self) -> Any:
        """The session of Spark that they are on, or are to be used on; None: they are used here."""

    @property
    def folder(self) -> Any:
        """The temporary folder with some of them, if there is one."""


class Table(Protocol):
    """All parts of some counts together: value, (fold,) and the sums of each column."""

    @property
    def is_lazy(self) -> bool:
        """Whether a query may read the rows that were counted once more."""

    def n_values(self) -> dict[str, int]:
        """Return how many values each column has."""

    def n_known(self, name: str) -> int | None:
        """Return how many values a column has, if that is known without reading it."""

    def in_memory(self, name: str) -> ColumnCounts | None:
        """Return the counts of a column in memory, where every step is quick; None, if queries read it."""

    def sql(self, engine: Engine, name: str, *, by_fold: bool) -> str:
        """Return the query for a column, in any order; by fold, if folds were counted and are wanted."""

    def pairs(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column its distinct sums, in order, and how many values have each."""

    def alike_in_folds(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same sums in a fold, and in all (all_neg, ...)."""

    def frequent(self, engine: Engine, least: float) -> dict[str, pa.Table]:
        """Return for each column its values with at least so many rows, in their order, and their sums."""

    def write(self, saver: Saver) -> dict[str, list[headers.Json]]:
        """Write the files of all columns, sorted by value, and return their entries in the header."""


def schema_of(kind: str, folds: int, sums: Sequence[str]) -> pa.Schema:
    """Return the columns of a file of counts."""
    fold = [("fold", pa.int32())] if folds else []
    return pa.schema([("value", KINDS[kind].arrow), *fold, *((name, pa.int64()) for name in sums)])


def scaled(part: Part, sums: Sequence[str], scale: int, cast: str = "{}") -> str:
    """Return the sums of a part, in SQL, as those of all parts: without weights, units are rows."""
    chosen = []
    for name in sums:
        found = name if name in part.sums else name.removesuffix("_rows")
        factor = f" * {scale}" if name in UNITS and scale != 1 else ""
        chosen.append(f"{cast.format(found)}{factor} AS {name}")
    return ", ".join(chosen)
