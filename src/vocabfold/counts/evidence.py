"""Totals + strength -> Evidence: the sums from which the rate of a value is read.

A prior counts observations, and a row is one observation however much it weighs: with negatives of weight 20,
two of them would look like forty rows that agree. So shrunk rates are rates of rows, and the mean weight of
each label turns them into rates of weight afterwards. Without a prior, weights are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vocabfold.counts.totals import Totals
from vocabfold.counts.units import UNITS

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """The sums from which rates are read, and what their rows weigh."""

    sums: tuple[str, str]
    units: int  # of these sums in a row
    weights: tuple[float, float]  # of a row of each label, in units of weight

    @classmethod
    def of(cls, totals: Totals, strength: float) -> Self:
        """Return what rates with a prior of some strength are read from."""
        if not (strength and totals.has_weights):
            return cls(UNITS, totals.units_per_row, (totals.units_per_row, totals.units_per_row))
        names, units = totals.row_sums
        neg, pos = (totals.of_all[name] for name in names)
        return cls(names, units, (totals.neg / neg, totals.pos / pos))

    def sides(self, sums: Mapping[str, NDArray[np.int64]]) -> tuple[Floats, Floats]:
        """Return the negative and the positive rows of values with these sums."""
        neg, pos = (sums[side] / self.units for side in self.sums)
        return neg, pos

    def rates(self, rates: Floats) -> Floats:
        """Return rates of rows as rates of weight: the order is the same."""
        neg, pos = self.weights
        return rates if neg == pos else rates * pos / ((1 - rates) * neg + rates * pos)

    def units_of(self, rows: Floats, rates: Floats) -> Floats:
        """Return the units of weight of rows with these rates."""
        neg, pos = self.weights
        return rows * (neg + rates * (pos - neg))
