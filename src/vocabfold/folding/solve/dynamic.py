"""Curve + size -> the cuts of least loss, by the dynamic programme of the paper's related work.

Size by size, it finds the best partition of every prefix (kurkoski2014). Starts rise as in iwata2014, but are
found by divide and conquer: O(size * K log K) time and O(size * K) memory for K rates. It shares only the loss
of a segment with `exact`, and serves to check it and to compare with it.
"""

import numpy as np
from numpy.typing import NDArray

from vocabfold.errors import InputError
from vocabfold.folding.curve import Curve
from vocabfold.folding.solve._kernels import layer_pass, scale_of, tabulate

_MAX_CELLS = 2**30  # 4 GB of starts


def solve(curve: Curve, size: int) -> NDArray[np.int64]:
    """Return the cuts of an optimal partition into `size` segments, at most one per rate."""
    cells = size * (curve.n_rates + 1)
    if cells > _MAX_CELLS:
        raise InputError(
            f"method 'dynamic' needs a table of {size:,} sizes x {curve.n_rates:,} rates, but the limit is "
            f"{_MAX_CELLS:,} cells. Use method 'exact', which finds the same optimum without a "
            "table."
        )
    cuts = np.empty(size - 1, np.int64)
    if size == 1:
        return cuts
    scale = scale_of(curve.cum_neg, curve.cum_pos)
    table = tabulate(curve.cum_neg, curve.cum_pos, scale)
    best = np.full(curve.n_rates + 1, np.inf)
    best[0] = 0.0
    previous = np.empty((size, curve.n_rates + 1), np.int32)
    for i in range(size):
        best, previous[i] = layer_pass(table, scale, best, i + 1)
    here = curve.n_rates
    for i in range(size - 1, 0, -1):
        here = previous[i, here]
        cuts[i - 1] = here
    return cuts
