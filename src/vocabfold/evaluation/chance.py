"""Rows of ids by label -> what chance explains: the interval of a rate, the error of a rate and of a gain.

With weights, a rate is a share of weight, but a heavy row is still one observation. So chance is that of the
rows, each counted once, and the mean weight of each label turns rates of rows into rates of weight. That takes
the rows of an id that share a label to have about the same weight, as rows of a sample of the negative ones do;
where their weights differ much, errors are larger than they are said to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vocabfold.counts.totals import Totals
from vocabfold.counts.units import UNITS

NORMAL = 1.96  # standard errors on either side, for 95 %

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ByLabel:
    """The rows of each id with a negative label, and those with a positive one."""

    weight: Floats  # by weight
    once: Floats  # each counted once, if that is known

    @classmethod
    def of(cls, sums: Mapping[str, NDArray[np.int64]], totals: Totals) -> Self:
        """Return the rows that have these sums."""
        names, units = totals.row_sums
        return cls(
            np.array([sums[side] for side in UNITS]) / totals.units_per_row,
            np.array([sums[side] for side in names]) / units,
        )

    @property
    def rows(self) -> Floats:
        """The rows of each id, by weight."""
        return np.asarray(self.weight.sum(axis=0))

    @property
    def rows_known(self) -> Floats:
        """The rows of each id, each counted once; by weight, if only that is known."""
        return np.asarray(self.once.sum(axis=0))

    def grouped(self, groups: NDArray[np.int64], n_groups: int) -> ByLabel:
        """Return the rows of groups of ids, given the group of each."""
        weight, once = (
            np.array([np.bincount(groups, side, n_groups) for side in sides])
            for sides in (self.weight, self.once)
        )
        return ByLabel(weight, once)

    @property
    def rates(self) -> Floats:
        """The rate of each id; NaN without rows."""
        return _ratio(self.weight[1], self.rows, np.full(self.rows.size, np.nan))

    @cached_property
    def _weights(self) -> Floats:
        """The mean weight of a row, by label and id; without any, that of all ids, or of both labels."""
        of_both = self.weight.sum() / max(self.once.sum(), 1)
        of_label = _ratio(self.weight.sum(axis=1), self.once.sum(axis=1), np.full(2, of_both or 1.0))
        return _ratio(self.weight, self.once, np.broadcast_to(of_label[:, None], self.once.shape))

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """The 95 % interval of each rate (wilson1927), as of rows; from 0 to 1 if there are none."""
        pos, rows = self.once[1], self.rows_known
        total = rows + NORMAL**2
        middle = (pos + NORMAL**2 / 2) / total
        squares = pos * _ratio(rows - pos, rows, np.zeros(rows.size)) + NORMAL**2 / 4
        half = NORMAL / total * np.sqrt(squares)
        low, high = (self._of_weight(np.clip(end, 0, 1)) for end in (middle - half, middle + half))
        return low, high

    def _of_weight(self, rates: Floats) -> Floats:
        """Return rates of rows as rates of weight."""
        neg, pos = self._weights
        return np.asarray(rates * pos / ((1 - rates) * neg + rates * pos))

    def variance(self, rates: Floats) -> Floats:
        """Return the square of the standard error of the rates of so many rows, if these are the true ones."""
        # Rates of rows have the variance r (1 - r) / n; the derivative of `_of_weight` there is the rest.
        neg, pos = self._weights
        moved = (rates * neg + (1 - rates) * pos) ** 2 / (neg * pos)
        return np.asarray(rates * (1 - rates) * moved / np.maximum(self.rows_known, 1))

    def gain(self, gains: Floats) -> tuple[float, float]:
        """Return the mean of the gains of one row, by label and id, and its standard error."""
        rows, n = self.weight.sum(), self.once.sum()
        mean = float((self.weight * gains).sum() / rows)
        squares = (self._weights * self.weight * (gains - mean) ** 2).sum()
        return mean, math.sqrt(squares * n / max(n - 1, 1)) / float(rows)


def _ratio(numbers: Floats, by: Floats, without: Floats) -> Floats:
    """Return ratios, or other numbers where it would be by 0."""
    return np.asarray(np.divide(numbers, by, out=without.copy(), where=by > 0))
