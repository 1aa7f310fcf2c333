"""Rows in memory -> the counts of a column, without a query for each; see `in_memory`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from vocabfold.counts.in_memory import ColumnCounts, Places, Units, is_small, sorted_values
from vocabfold.counts.target import Target
from vocabfold.counts.units import ROWS, UNITS
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.rows.source import Rows

_TYPES = {"INTEGER": pa.int32(), "BIGINT": pa.int64()}


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns of a frame, and what its rows add to the sums."""

    engine: Engine
    rows: Rows
    target: Target

    def count(self, name: str, integers: str) -> pa.Table | None:
        """Return the counts of a column, in integers of SQL; None, if a query has to count it."""
        column = (self.rows.arrays or {}).get(name)
        if column is None or not is_small([column], self.engine.memory_limit):
            return None
        chosen, folds, added = self._rows
        found = sorted_values(column, str(self.rows.columns[name].kind), chosen)
        if found is None:
            return None
        return ColumnCounts.of_rows(*found, folds, self.target.folds, added).table(_TYPES[integers])

    @cached_property
    def _rows(self) -> tuple[Places | None, Places | None, Mapping[str, Units]]:
        """The rows that are counted, None if all are; their folds; and what each adds to each sum."""
        target = self.target
        is_counted = " AND ".join(target.conditions) or "true"
        given = {"is_positive": target.is_positive, "units": target.units, "fold": target.fold}
        # What is wrong with a row that is not counted does not matter.
        wanted = [f"CASE WHEN {is_counted} THEN {sql} END AS {name}" for name, sql in given.items() if sql]
        found = self.engine.run_in_order(
            f"SELECT coalesce({is_counted}, false) AS is_counted, {', '.join(wanted)} FROM {self.rows.scan}"
        )
        chosen = np.flatnonzero(found["is_counted"]) if target.conditions else None
        found = found if chosen is None else found.take(pa.array(chosen))
        is_positive = np.asarray(found["is_positive"], np.bool_)
        units = np.asarray(found["units"], np.int64) if target.units else np.ones(found.num_rows, np.int64)
        added = dict(zip(UNITS, (units * ~is_positive, units * is_positive), strict=True))
        if target.has_weights:
            of_rows = ((~is_positive).astype(np.int64), is_positive.astype(np.int64))
            added |= dict(zip(ROWS, of_rows, strict=True))
        return chosen, np.asarray(found["fold"], np.int64) if target.fold else None, added
