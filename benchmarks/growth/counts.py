"""Counts of three shapes for n values, and how many distinct rates and pairs they have."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks import criteo_shaped
from benchmarks.criteo_shaped import Counts
from benchmarks.speed.run import distinct_rates

POWER_LAW = "power law"
DISTINCT = "distinct rates"
FEWEST = "fewest rows"
ROWS_PER_VALUE = 4  # of the power law

_SIDE_BITS = 31  # two counts below 2**31 fit into one int64


def power_law(n_values: int) -> Counts:
    """Return counts as large vocabularies have them: four rows per value, most values with one."""
    return criteo_shaped.column(n_values, ROWS_PER_VALUE * n_values, np.random.default_rng(0))


def fewest_rows(n_rates: int) -> Counts:
    """Return the n distinct rates that need the fewest rows: the fractions with the least denominators."""
    pos, rows, n_found, denominator = [np.array([0])], [np.array([1])], 1, 1  # the rate 0; 1 is 1/1
    while n_found < n_rates:
        numerators = np.arange(1, denominator + 1)
        numerators = numerators[np.gcd(numerators, denominator) == 1][: n_rates - n_found]
        pos.append(numerators)
        rows.append(np.full(numerators.size, denominator))
        n_found += numerators.size
        denominator += 1
    positive = np.concatenate(pos)
    return np.concatenate(rows) - positive, positive


SHAPES: dict[str, Callable[[int], Counts]] = {
    POWER_LAW: power_law,
    DISTINCT: distinct_rates,
    FEWEST: fewest_rows,
}


def distinct(neg: NDArray[np.int64], pos: NDArray[np.int64]) -> tuple[int, int]:
    """Return the number of distinct rates and of distinct (neg, pos) of the values that have rows."""
    pairs = unique(pack(neg, pos))
    return unique(reduced(pairs)).size, pairs.size


def pack(neg: NDArray[np.int64], pos: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (neg, pos) as one number each, without the values that have no rows."""
    packed = neg << _SIDE_BITS | pos
    return packed[packed > 0]


def reduced(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return packed pairs divided by what both sides have in common: equal rates are equal then."""
    neg, pos = pairs >> _SIDE_BITS, pairs & ((1 << _SIDE_BITS) - 1)
    common = np.gcd(neg, pos)
    return pack(neg // common, pos // common)


def unique(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct numbers, sorted; the argument is sorted in place, to spare memory."""
    numbers.sort()
    is_new = np.ones(numbers.size, bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_new[1:])
    return numbers[is_new]
