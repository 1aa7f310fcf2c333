"""Counts -> Pairs: the table {(neg, pos): how many values} of a column, its prior and its masses.

Folding needs no values: this table is small however many there are, and values with equal counts are alike. The
masses of a value are its units, or, with a prior, its rows at the rate to which the prior moves its own, by the
mean weight of each label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.counts.counts import Counts
from vocabfold.counts.evidence import Evidence
from vocabfold.counts.units import FRACTIONS, MAX_UNITS, rows_of
from vocabfold.folding.curve import Curve, order
from vocabfold.folding.information import loss_of_groups
from vocabfold.folding.likelihood import most_likely
from vocabfold.folding.prior import Prior, fixed

EXACT_BITS = 52  # masses beyond 2**52 units are rounded off before solving

Units = NDArray[np.int64]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct (neg, pos) of a column in units, how many values have each, and which are rare.

    With weights, they are the distinct (neg, pos, neg_rows, pos_rows).
    """

    sums: Mapping[str, Units]
    n_values: Units
    is_rare: Mask
    units_per_row: int
    n_units: int  # of all rows
    prior: Prior
    evidence: Evidence  # from which the rates are read

    @classmethod
    def of(cls, counts: Counts, table: pa.Table, min_count: int, smoothing: float | str) -> Self:
        """Return the pairs that `Counts.pairs` has of a column, with the prior that `smoothing` asks for."""
        sums = {name: np.ascontiguousarray(table[name].to_numpy()) for name in counts.sums}
        n_values = np.ascontiguousarray(table["n"].to_numpy())
        is_auto = smoothing == "auto"
        evidence = Evidence.of(counts, 1.0 if is_auto else float(smoothing))
        sides = evidence.sides(sums)
        prior = most_likely(*sides, n_values) if is_auto else fixed(*sides, n_values, float(smoothing))
        # 1 makes none rare, even if the rows of format 1 are weights, which may be less.
        least = min(min_count, MAX_UNITS) if min_count > 1 else 0
        is_rare = rows_of(sums, counts.units_per_row) < least
        return cls(sums, n_values, is_rare, counts.units_per_row, counts.neg + counts.pos, prior, evidence)

    @property
    def neg(self) -> Units:
        """Units of a value of each pair with a negative label."""
        return self.sums["neg"]

    @property
    def pos(self) -> Units:
        """Units of a value of each pair with a positive label."""
        return self.sums["pos"]

    @property
    def units(self) -> Units:
        """Units of a value of each pair."""
        return self.neg + self.pos

    @property
    def rows(self) -> Floats:
        """Rows of a value of each pair, each counted once whatever it weighs."""
        return rows_of(self.sums, self.units_per_row)

    @property
    def rates(self) -> Floats:
        """The rate of each pair, moved by the prior."""
        return self.rates_of(self.sums)

    def rates_of(self, sums: Mapping[str, Units]) -> Floats:
        """Return the rates of values with these sums, moved by the prior."""
        return self.prior.rates(*self.evidence.sides(sums))

    def rare(self, name: str) -> int:
        """Return a sum over all rare values."""
        return int(self.sums[name][self.is_rare] @ self.n_values[self.is_rare])

    @property
    def rare_rows(self) -> float:
        """Rows of all rare values."""
        return float(self.rows[self.is_rare] @ self.n_values[self.is_rare])

    @property
    def rare_rate(self) -> float:
        """The rate of all rare values together, as of one value; without any, the mean of the prior."""
        return float(self.rates_of({side: np.array([self.rare(side)]) for side in self.evidence.sums})[0])

    @property
    def loss_of_rare(self) -> float:
        """What rare values tell one by one and not as one value, in nats per row."""
        rare = self.is_rare
        of_rare = np.zeros(int(rare.sum()), np.int32)
        return loss_of_groups(self.neg[rare], self.pos[rare], self.n_values[rare], of_rare, 1) / self.n_units

    @property
    def is_plain(self) -> bool:
        """Tell whether the masses are the units as they are."""
        return self.prior.strength == 0

    @property
    def is_exact(self) -> bool:
        """Tell whether the masses are the units to the last one, so that rates are compared exactly."""
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
        sums = {name: side[chosen] * self.n_values[chosen] for name, side in self.sums.items()}
        rates = self.rates[chosen]
        if with_rare:
            sums = {name: np.append(side, self.rare(name)) for name, side in sums.items()}
            rates = np.append(rates, self.rare_rate)
        if self.is_exact:
            return order(sums["neg"], sums["pos"])
        # Masses are rounded, and rates are not: borders between ids are rates, and each value is on its side.
        neg, pos = self.evidence.sides(sums)
        units = self.evidence.units_of(neg + pos, rates)
        masses = np.maximum(1, np.rint(units * (self.mass / self.n_units)))
        positive = np.rint(masses * self.evidence.rates(rates))
        if not 0 < positive.sum() < masses.sum():
            rates = np.zeros(rates.size)  # so little that rounding leaves one class of it, and no information
        distinct, position = np.unique(rates, return_inverse=True)
        sides = [np.bincount(position, side, distinct.size) for side in (masses - positive, positive)]
        cum_neg, cum_pos = (np.append(0, np.cumsum(side.astype(np.int64))) for side in sides)
        return Curve(cum_neg, cum_pos, position.astype(np.int32))
