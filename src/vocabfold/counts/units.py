"""Units, in which rows are counted: one per row, or 2**20 per row if weights are not whole."""

from __future__ import annotations

import pyarrow as pa

FRACTIONS = 2**20  # units per row, if weights are not whole numbers
MAX_UNITS = 2**62


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
