"""Losses and ranks of the same test rows under two recipes -> differences with paired standard errors.

The log-loss is a mean over rows; its difference has the standard error of a mean of differences. The area under
the ROC curve is a mean too: over the rows of one class, of their placement, which is the share of the other
class that is ranked on the right side of them. DeLong, DeLong and Clarke-Pearson (1988, Biometrics 44, 837-845)
take the variance of a difference of two areas from the placements: that among the positive rows by their
number, plus that among the negative ones by theirs. Both know the chance in the test rows, and nothing of the
luck of a training run; means of several trainings are means of losses and placements.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.leakage.data import Array


def odds_of(labels: Array, losses: Array) -> Array:
    """Return the log-odds that have these log-losses.

    >>> odds_of(np.array([0.0, 1.0]), np.log1p(np.exp([2.0, -0.5])))
    array([2. , 0.5])
    """
    odds = np.where(labels == 1, -1, 1) * np.log(np.expm1(np.maximum(losses, 1e-15)))
    return odds.round(9)  # equal odds of both classes, which differ in their last digits, are ties again


def placements(labels: Array, scores: Array) -> Array:
    """Return, for each row, the share of the rows of the other class that it is on the right side of.

    Ties count half. O(n log n), by ranks (sun2014).

    >>> placements(np.array([0, 0, 1, 1]), np.array([0.1, 0.7, 0.7, 0.9]))
    array([1.  , 0.75, 0.75, 1.  ])
    """
    is_positive = labels == 1
    below = np.empty(labels.size)  # how many of the other class have a lower score
    for chosen in (is_positive, ~is_positive):
        below[chosen] = rankdata(scores)[chosen] - rankdata(scores[chosen])
    n_positive = np.count_nonzero(is_positive)
    return np.where(is_positive, below / (labels.size - n_positive), 1 - below / n_positive)


def area(labels: Array, placed: Array) -> float:
    """Return the area under the ROC curve."""
    return float(placed[labels == 1].mean())


def mean_error(differences: Array) -> float:
    """Return the standard error of the mean of differences."""
    return float(np.sqrt(_variance(differences)))


def area_error(labels: Array, differences: Array) -> float:
    """Return the standard error of the difference of two areas, from the differences of the placements.

    A paired bootstrap, which draws rows with replacement, agrees:

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 1_000)
    >>> one, other = (labels + rng.normal(0, spread, 1_000) for spread in (1.0, 1.5))
    >>> def differences(rows):
    ...     return placements(labels[rows], one[rows]) - placements(labels[rows], other[rows])
    >>> draws = (rng.integers(0, 1_000, 1_000) for _ in range(500))
    >>> drawn = [area(labels[rows], differences(rows)) for rows in draws]
    >>> found = area_error(labels, differences(np.arange(1_000)))
    >>> bool(abs(found / np.std(drawn) - 1) < 0.1)
    True
    """
    is_positive: NDArray[np.bool_] = labels == 1
    return float(np.sqrt(_variance(differences[is_positive]) + _variance(differences[~is_positive])))


def _variance(sample: Array) -> float:
    return float(sample.var(ddof=1) / sample.size)
