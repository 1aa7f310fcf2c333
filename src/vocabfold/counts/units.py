"""What is summed per value: units of weight by label, and, if rows have weights, the rows themselves.

Units are whole numbers: one per row, or 2**20 per row if weights are not whole. How many rows a value has
decides whether it is frequent and how far its rate is trusted, because a heavy row is still one observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.support.checks import number

FRACTIONS = 2**20  # units per row, if weights are not whole numbers
MAX_UNITS = 2**62
UNITS = ("neg", "pos")
ROWS = ("neg_rows", "pos_rows")  # each row once, whatever it weighs


@dataclass(frozen=True, eq=False)
class Totals:
    """What all rows sum to."""

    # What is no part of the interface.
    _inner = frozenset({"agree", "n_rows", "neg", "of_all", "pos", "sums", "units_per_row"})

    units_per_row: int
    neg: int  # units
    pos: int
    neg_rows: int | None  # None: unknown, as they were saved in format 1
    pos_rows: int | None

    @property
    def rows(self) -> int | float:
        """All rows, by weight."""
        return in_rows(self.neg + self.pos, self.units_per_row)

    @property
    def n_rows(self) -> int | None:
        """All rows, each counted once; None, if they were not counted."""
        return None if self.neg_rows is None or self.pos_rows is None else self.neg_rows + self.pos_rows

    @property
    def sums(self) -> tuple[str, ...]:
        """What is summed per value: neg and pos, and with weights also neg_rows and pos_rows."""
        if self.neg_rows is None:
            return UNITS
        # Without weights, units are rows.
        is_plain = self.units_per_row == 1 and (self.neg, self.pos) == (self.neg_rows, self.pos_rows)
        return UNITS if is_plain else UNITS + ROWS

    @property
    def of_all(self) -> dict[str, int]:
        """The sums over all rows."""
        return {name: getattr(self, name) for name in self.sums}

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)) - self._inner)

    def agree(self, other: Totals) -> bool:
        """Tell whether other rows sum to the same, so that they may be these."""
        return (self.units_per_row, self.of_all) == (other.units_per_row, other.of_all)


def n_rows(sums: tuple[str, ...], units_per_row: int) -> str:
    """Return the expression of a value's rows, in SQL."""
    if ROWS[0] in sums:
        return f"({' + '.join(ROWS)})"
    units = f"({' + '.join(UNITS)})"
    return units if units_per_row == 1 else f"({units} / {units_per_row})"


def rows_of(sums: Mapping[str, NDArray[np.int64]], units_per_row: int) -> NDArray[np.float64]:
    """Return the rows of values with these sums, each counted once whatever it weighs."""
    neg, pos = (sums[side] for side in (ROWS if ROWS[0] in sums else ("neg", "pos")))
    return (neg + pos) / (1 if ROWS[0] in sums else units_per_row)


def at_least(sums: tuple[str, ...], units_per_row: int, least: float) -> str:
    """Return the condition that a value has so many rows, in SQL."""
    return f"{n_rows(sums, units_per_row)} >= CAST({least!r} AS DOUBLE)"


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


def shown_rows(rows: float, n_rows: int | None, noun: str = "row") -> str:
    """Return rows in words: by weight, too, if they had weights."""
    if n_rows is None or n_rows == rows:
        return number(rows, noun)
    return f"{number(n_rows, noun)} ({round(rows, 1):,} by weight)"


def to_rows(table: pa.Table, units_per_row: int) -> pa.Table:
    """Return a table whose neg and pos are rows instead of units."""
    if units_per_row == 1:
        return table
    for side in UNITS:
        rows = pa.array(table[side].to_numpy() / units_per_row)
        table = table.set_column(table.schema.get_field_index(side), side, rows)
    return table
