"""Curves + budget -> sizes, for the allocations that do not look at what a column would gain.

The allocation `joint` needs no step of its own: `solve.exact` splits the budget and folds at once. Here are
the two that the paper uses for methods without a joint allocation: `uniform`, and `information` (the paper's
MI allocation, in proportion to I(X;C)). What a column cannot use goes to columns that can.
"""

from collections.abc import Sequence

import numpy as np

ALLOCATIONS = ("joint", "uniform", "information")


def uniform(n_rates: Sequence[int], budget: int) -> list[int]:
    """Give all columns the same, up to what they can use."""
    return _share([1.0] * len(n_rates), n_rates, budget)


def by_information(n_rates: Sequence[int], informations: Sequence[float], budget: int) -> list[int]:
    """Give each column in proportion to its information, one id at least, up to what it can use."""
    return _share(informations, n_rates, budget)


def _share(weights: Sequence[float], limits: Sequence[int], budget: int) -> list[int]:
    """Split the budget in proportion to the weights, within 1 and the limits, and spend it if they allow.

    The level that spends it is found by bisection; what rounding down leaves goes to the largest fractions,
    and among equal ones to the first columns.
    """
    weight, limit = np.asarray(weights, float), np.asarray(limits)
    budget = min(budget, int(limit.sum()))
    if not weight.any():
        return [1] * limit.size  # no information: every column has one rate
    low, high = 0.0, budget / weight[weight > 0].min()
    while low < (middle := (low + high) / 2) < high:
        if np.floor(np.clip(middle * weight, 1, limit)).sum() > budget:
            high = middle
        else:
            low = middle
    share = np.clip(low * weight, 1, limit)
    sizes = np.floor(share).astype(np.int64)
    hungry = np.flatnonzero(sizes < limit)
    by_fraction = hungry[np.argsort(sizes[hungry] - share[hungry], kind="stable")]
    sizes[by_fraction[: budget - sizes.sum()]] += 1
    return [int(size) for size in sizes]
