"""Rows of each id, expected and counted -> drift: how far the shares of the ids moved, beyond chance.

The population stability index grows with the number of ids even if nothing changes, and an id with hardly any
rows can add as much to it as half of the table. So ids with too few rows to compare count as one, and what
chance gives is subtracted: about a chi-squared variable with a degree of freedom less than there are ids, times
the sum of 1 / rows on both sides (yurdakul2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LEAST_ROWS = 5  # that an id has to expect on each side, as in a chi-squared test
_MOST_NAMED = 3  # ids whose shares changed most

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drift:
    """The population stability index beyond chance, its error if nothing changed, and the ids that changed."""

    index: float
    error: float
    moved: tuple[dict[str, float], ...]  # id, share of the rows and expected share; what adds most comes first


def drift(expected: Floats, rows: Floats, n_expected: float, n_rows: float) -> Drift:
    """Compare the rows of each id, by weight, with the rows to expect.

    n_expected and n_rows are the rows behind them, each counted once: heavy rows do not make chance smaller.
    """
    both = expected / expected.sum() + rows / rows.sum()
    is_large = both / 2 * min(n_expected, n_rows) >= _LEAST_ROWS
    sides = []
    for side, n in ((expected, n_expected), (rows, n_rows)):
        counted = side * (n / side.sum())
        pooled = np.append(counted[is_large], counted[~is_large].sum())
        # Half a row more, as a share of 0 would make the index infinite.
        sides.append((pooled + 0.5) / (n + 0.5 * pooled.size))
    parts = (sides[1] - sides[0]) * np.log(sides[1] / sides[0])
    n_free = np.count_nonzero(is_large) + (not is_large.all()) - 1
    chance = 1 / n_expected + 1 / n_rows
    first = np.argsort(-parts[:-1], kind="stable")[:_MOST_NAMED]
    ids = np.flatnonzero(is_large)[first]
    shares, of_expected = rows / rows.sum(), expected / expected.sum()
    return Drift(
        index=max(0.0, float(parts.sum()) - n_free * chance),
        error=math.sqrt(2 * n_free) * chance,
        moved=tuple({"id": int(i), "share": shares[i].item(), "expected": of_expected[i].item()} for i in ids),
    )
