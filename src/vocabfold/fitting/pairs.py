"""Counts -> Pairs: the table {(neg, pos): how many values} of a column, its prior and its masses.

Folding needs no values: this table is small however many there are, and values with equal counts are alike. The
masses of a value are its rows, or, with a prior, its rows at the rate to which the prior moves its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.counts.counts import Counts
from vocabfold.counts.units import FRACTIONS
from vocabfold.folding.curve import Curve, order
from vocabfold.folding.information import loss_of_groups
from vocabfold.folding.prior import Prior, fixed, most_likely

EXACT_BITS = 52  # masses beyond 2**52 units are rounded off before solving

Units = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct (neg, pos) of a column in units, how many values have each, and which are rare."""

    neg: Units
    pos: Units
    n_values: Units
    is_rare: Mask
    units_per_row: int
    n_units: int  # of all rows
    prior: Prior

    @classmethod
    def of(cls, counts: Counts, table: pa.Table, min_count: int, smoothing: float | str) -> Self:
        """Return the pairs that `Counts.pairs` has of a column, with the prior that `smoothing` asks for."""
        neg, pos, n_values = (np.ascontiguousarray(side.to_numpy()) for side in table.columns)
        sides = neg / counts.units_per_row, pos / counts.units_per_row
        prior = (
            most_likely(*sides, n_values) if smoothing == "auto" else fixed(*sides, n_values, float(smoothing))
        )
        # 1 makes none rare, whatever rows weigh: if weights depend on the label, being rare would leak it.
        is_rare = neg + pos < (min_count * counts.units_per_row if min_count > 1 else 0)
        return cls(neg, pos, n_values, is_rare, counts.units_per_row, counts.neg + counts.pos, prior)

    @property
    def units(self) -> Units:
        """Units of a value of each pair."""
        return self.neg + self.pos

    @property
    def rates(self) -> NDArray[np.float64]:
        """The rate of each pair, moved by the prior."""
        return self.prior.rates(self.neg / self.units_per_row, self.pos / self.units_per_row)

    @property
    def rare(self) -> tuple[int, int]:
        """Units of all rare values, by label."""
        n_values = self.n_values[self.is_rare]
        return int(self.neg[self.is_rare] @ n_values), int(self.pos[self.is_rare] @ n_values)

    @property
    def rare_rate(self) -> float:
        """The rate of all rare values together, as of one value; without any, the mean of the prior."""
        neg, pos = (np.array([side / self.units_per_row]) for side in self.rare)
        return float(self.prior.rates(neg, pos)[0])

    @property
    def loss_of_rare(self) -> float:
        """What rare values tell one by one and not as one value, in nats per row."""
        rare = self.is_rare
        of_rare = np.zeros(int(rare.sum()), np.int32)
        return loss_of_groups(self.neg[rare], self.pos[rare], self.n_values[rare], of_rare, 1) / self.n_units

    @property
    def is_plain(self) -> bool:
        """Tell whether the masses are the rows as they are."""
        return self.prior.strength == 0

    @property
    def is_exact(self) -> bool:
        """Tell whether the masses are the rows to the last unit, so that rates are compared exactly."""
        return self.is_plain and not self.is_rounded

    @property
    def is_rounded(self) -> bool:
        """Tell whether there are more units than the solvers take."""
        return self._shift > 0

    @property
    def _shift(self) -> int:
        return max(0, self.n_units.bit_length() - EXACT_BITS)

    @property
    def mass(self) -> int:
        """The mass of all rows, in units, or 2**-20 rows if a rate is not pos/rows; coarser, if too large."""
        n_units = self.n_units if self.is_plain else self.n_units * FRACTIONS // self.units_per_row
        return n_units >> max(0, n_units.bit_length() - EXACT_BITS)

    def rounded(self, units: Units) -> Units:
        """Return units as exact numbers of the solvers: they are only rounded if there are too many."""
        return (units + (1 << self._shift >> 1)) >> self._shift

    def curve(self, chosen: Mask, with_rare: bool) -> Curve:
        """Return the masses of the chosen pairs by rate; rare values, if wanted, are one value after them."""
        neg, pos = self.neg[chosen] * self.n_values[chosen], self.pos[chosen] * self.n_values[chosen]
        rates = self.rates[chosen]
        if with_rare:
            neg, pos = np.append(neg, self.rare[0]), np.append(pos, self.rare[1])
            rates = np.append(rates, self.rare_rate)
        if self.is_exact:
            return order(neg, pos)
        # Masses are rounded, and rates are not: borders between ids are rates, and each value is on its side.
        masses = np.maximum(1, np.rint((neg + pos) * (self.mass / self.n_units)))
        positive = np.rint(masses * rates)
        if not 0 < positive.sum() < masses.sum():
            rates = np.zeros(rates.size)  # so little that rounding leaves one class of it, and no information
        distinct, position = np.unique(rates, return_inverse=True)
        sums = [np.bincount(position, side, distinct.size) for side in (masses - positive, positive)]
        cum_neg, cum_pos = (np.append(0, np.cumsum(side.astype(np.int64))) for side in sums)
        return Curve(cum_neg, cum_pos, position.astype(np.int32))
