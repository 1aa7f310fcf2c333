"""Counts with the shape of the Criteo challenge: 26 columns, 33.8 million values, 37 million rows each.

The cardinalities are those of the public train.txt; the counts follow a power law with at least one row per
value, the rates a beta distribution around the challenge's share of clicks, 0.256.
"""

import numpy as np
from numpy.typing import NDArray

CARDINALITIES = {
    f"C{i}": n
    for i, n in enumerate(
        # fmt: off
        [
            1460,
            583,
            10131227,
            2202608,
            305,
            24,
            12517,
            633,
            3,
            93145,
            5683,
            8351593,
            3194,
            27,
            14992,
            5461306,
            10,
            5652,
            2173,
            4,
            7046547,
            18,
            15,
            286181,
            105,
            142572,
        ],
        # fmt: on
        start=1,
    )
}
ROWS = 37_000_000
CLICK_RATE = 0.256

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]


def column(n_values: int, rows: int, rng: np.random.Generator) -> Counts:
    """Return (neg, pos) of one column."""
    weights = np.arange(1, n_values + 1) ** -1.2
    spare = rows - n_values
    count = 1 + rng.poisson(weights * (spare / weights.sum()))
    count[0] += rows - count.sum()
    pos = rng.binomial(count, rng.beta(8 * CLICK_RATE, 8 * (1 - CLICK_RATE), n_values))
    return count - pos, pos


def columns(scale: float = 1.0, seed: int = 0) -> dict[str, Counts]:
    """Return all columns; `scale` shrinks rows and values alike, the smallest columns not below 3 values."""
    rng = np.random.default_rng(seed)
    return {name: column(max(3, int(n * scale)), int(ROWS * scale), rng) for name, n in CARDINALITIES.items()}
