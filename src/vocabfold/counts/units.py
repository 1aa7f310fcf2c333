"""What is summed per value: units of weight by label, and, if rows have weights, the rows themselves.

Units are whole numbers: one per row, or 2**20 per row if weights are not whole. How many rows a value has
decides whether it is frequent and how far its rate is trusted, because a heavy row is still one observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FRACTIONS = 2**20  # units per row, if weights are not whole numbers
MAX_UNITS = 2**62
UNITS = ("neg", "pos")
ROWS = ("neg_rows", "pos_rows")  # each row once, whatever it weighs


def row_sums(sums: Iterable[str], units_per_row: int) -> tuple[tuple[str, str], int]:
    """Return the two sums that tell rows, each counted once if that is known, and their units per row."""
    return (ROWS, 1) if ROWS[0] in sums else (UNITS, units_per_row)


def sql_rows(sums: tuple[str, ...], units_per_row: int) -> str:
    """Return the expression of a value's rows, in SQL."""
    names, units = row_sums(sums, units_per_row)
    both = f"({' + '.join(names)})"
    return both if units == 1 else f"({both} / {units})"


def rows_of(sums: Mapping[str, NDArray[np.int64]], units_per_row: int) -> NDArray[np.float64]:
    """Return the rows of values with these sums, each counted once whatever it weighs."""
    (neg, pos), units = row_sums(sums, units_per_row)
    return (sums[neg] + sums[pos]) / units


def sql_at_least(sums: tuple[str, ...], units_per_row: int, least: float) -> str:
    """Return the condition that a value has so many rows, in SQL."""
    return f"{sql_rows(sums, units_per_row)} >= CAST({least!r} AS DOUBLE)"


def alike_in_folds(by_fold: str, sums: tuple[str, ...], columns: tuple[str, ...] = ()) -> str:
    """Return the query for how many values have the same sums in a fold, and in all folds, in SQL."""
    keys = ", ".join((*columns, "value"))
    of_all = ", ".join(f"CAST(sum({name}) OVER (PARTITION BY {keys}) AS BIGINT) AS all_{name}" for name in sums)
    by = ", ".join((*columns, *sums, *(f"all_{name}" for name in sums)))
    return f"SELECT {by}, count(*) AS n FROM (SELECT *, {of_all} FROM {by_fold}) GROUP BY {by}"


def in_rows(units: int, units_per_row: int) -> int | float:
    """Return a number of units as rows: a whole number, if it is one."""
    return units // units_per_row if units % units_per_row == 0 else units / units_per_row


def whole(rows: float) -> int | float:
    """Return a number of rows as an integer, if it is one."""
    return int(rows) if rows.is_integer() else rows


def to_rows(table: pa.Table, units_per_row: int) -> pa.Table:
    """Return a table whose neg and pos are rows instead of units."""
    if units_per_row == 1:
        return table
    for side in UNITS:
        rows = pa.array(table[side].to_numpy() / units_per_row)
        table = table.set_column(table.schema.get_field_index(side), side, rows)
    return table
