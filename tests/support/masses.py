"""Tables of counts, as arrays, and how far from the judge an answer may be."""

import math

import numpy as np
from hypothesis import strategies as st

EXACT = 1e-12  # of I(X;C): what an exact solver may miss
ROUNDING = 1e-14  # of itself: what a formula may miss


@st.composite
def tables(draw, max_values=7, max_count=12, min_values=1):
    """Small tables with ties, zeros and one-class values on purpose; at least one row."""
    count = st.one_of(st.sampled_from([0, 0, 1, 1, 2, 3]), st.integers(0, max_count))
    pair = st.tuples(count, count)
    pairs = draw(st.lists(pair, min_size=min_values, max_size=max_values).filter(lambda p: any(map(any, p))))
    return [neg for neg, _ in pairs], [pos for _, pos in pairs]


def beta_counts(n_values, seed=0, rows=10**6, a=1.0, b=3.0):
    """Many values with nearly as many distinct rates."""
    rng = np.random.default_rng(seed)
    n_rows = rng.integers(1, rows, n_values)
    pos = rng.binomial(n_rows, rng.beta(a, b, n_values))
    return n_rows - pos, pos


def giant_and_many(n_values):
    """Two giant values of one class each, and many small ones in between that differ by chance."""
    rng = np.random.default_rng(5)
    rows = rng.integers(80_000, 100_000, n_values)
    pos = rng.binomial(rows, rng.uniform(0.499, 0.501, n_values))
    giant = 2**52 - 2**40
    return np.array([giant, *(rows - pos), 0]), np.array([0, *pos, giant])


def information(groups):
    """Return I(Z;C) by the definition, from (neg, pos) of each group."""
    rows = sum(map(sum, groups))
    sides = [sum(group[side] for group in groups) for side in (0, 1)]
    return math.fsum(
        group[side] / rows * math.log(group[side] * rows / (sum(group) * sides[side]))
        for group in groups
        for side in (0, 1)
        if group[side]
    )
