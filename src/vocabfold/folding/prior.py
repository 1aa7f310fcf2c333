"""(neg, pos) table -> Prior: how much the rates of infrequent values are shrunk towards the mean.

A value seen three times, each time with a positive label, hardly has a true rate of 1. How reliable its rate is
depends on how much the rates of the column vary. This is empirical Bayes: the beta distribution of rates (its
mean, and its strength in rows) that maximises the likelihood of the counts. The rate of a value is then shrunk
towards the mean, as if the value had been seen `strength` times more at that rate.

`likelihood` finds that prior; here is what follows from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROWS_OF_RARER = 8.0  # expected of a value whose rate is more than chance; measured, see docs/leakage.md

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """A beta prior of the rates of a column.

    Strength 0 leaves rates as observed; an infinite strength gives all values the rate `mean`.
    """

    mean: float
    strength: float  # in rows

    @property
    def rows_to_order(self) -> float:
        """Rows that a value needs before its place in the order by rate tells more than chance.

        Its rows are as many as the strength, so that they tell its rate better than the prior does. And they
        are expected to have some of the rarer label: of values that happen to have none, all have rates at one
        end of the order, and there trees would find rows of a single label.
        """
        rarer = min(self.mean, 1 - self.mean)
        return max(self.strength, _ROWS_OF_RARER / rarer) if rarer else math.inf

    def rates(self, neg: Floats, pos: Floats) -> Floats:
        """Return the shrunk rates of values with these counts; the mean if there are no rows."""
        rows = neg + pos
        if math.isinf(self.strength):
            return np.full(rows.size, self.mean)
        weight = rows + self.strength
        rates = np.full(rows.size, self.mean)
        np.divide(pos + self.mean * self.strength, weight, out=rates, where=weight > 0)
        return rates


def fixed(neg: Floats, pos: Floats, n_values: NDArray[np.int64], strength: float) -> Prior:
    """Return the prior of a given strength, around the overall rate."""
    rows = (neg + pos) @ n_values
    return Prior(float(pos @ n_values / rows), float(strength))
