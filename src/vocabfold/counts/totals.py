"""Totals: what all rows sum to.

Counts, the codebook fitted on them, and what is known of rows before they are counted have these sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vocabfold.counts.units import ROWS, UNITS, in_rows, row_sums


@dataclass(frozen=True, eq=False)
class Totals:
    """What all rows sum to."""

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
    def rows_known(self) -> int | float:
        """All rows, each counted once; by weight, if only that is known."""
        return self.rows if self.n_rows is None else self.n_rows

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

    @property
    def row_sums(self) -> tuple[tuple[str, str], int]:
        """The two sums that tell rows, each counted once if that is known, and their units per row."""
        return row_sums(self.sums, self.units_per_row)

    @property
    def has_weights(self) -> bool:
        """Tell whether rows are known to have weights, so that they are summed beside these."""
        return self.sums != UNITS

    @property
    def entropy(self) -> float:
        """The entropy of the label, in nats per row."""
        shares = (side / (self.neg + self.pos) for side in (self.neg, self.pos))
        return -math.fsum(share * math.log(share) for share in shares if share)

    def agree(self, other: Totals) -> bool:
        """Tell whether other rows sum to the same, so that they may be these."""
        return (self.units_per_row, self.of_all) == (other.units_per_row, other.of_all)
