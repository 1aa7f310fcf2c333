"""How long the prior of maximum likelihood takes: SciPy's optimiser and ours on the same tables.

The tables are those of 26 columns, {(neg, pos): how many values}. SciPy's L-BFGS-B is given what one would
write down: the beta-binomial likelihood per row and its slopes, from a strength of ten rows around the overall
rate. All priors are compared by the same likelihood, which is SciPy's.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from benchmarks import criteo_shaped
from tools.measure import timed
from vocabfold.folding.likelihood import most_likely

Table = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def rows(small: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each method: all columns together."""
    tables = list(map(_table, criteo_shaped.columns(0.001 if small else 1.0).values()))
    most_likely(*tables[0])  # compile first
    ours, our_times = timed(5, lambda: [most_likely(*table) for table in tables])
    theirs, their_times = timed(5, lambda: [_searched(table) for table in tables])
    # Where chance explains all, there is nothing to find: ours says so, and any strength is as likely.
    chosen = [i for i, prior in enumerate(ours) if math.isfinite(prior.strength)]
    for method, times, points in [
        ("Newton", our_times, [(prior.mean, prior.strength) for prior in ours]),
        ("SciPy's L-BFGS-B", their_times, theirs),
    ]:
        yield {
            "part": "prior",
            "method": method,
            "n_values": int(sum(n_values.sum() for _, _, n_values in tables)),
            "pairs": sum(n_values.size for _, _, n_values in tables),
            "columns": len(chosen),
            **times,
            "log_likelihood": sum(-_loss(points[i], tables[i])[0] for i in chosen),
            "strength": math.exp(np.mean([math.log(points[i][1]) for i in chosen])),
        }


def _table(counts: criteo_shaped.Counts) -> Table:
    """Return the distinct pairs of a column, and how many values have each."""
    neg, pos = counts
    base = int(pos.max()) + 1
    pairs, n_values = np.unique(neg * base + pos, return_counts=True)
    return (pairs // base).astype(np.float64), (pairs % base).astype(np.float64), n_values


def _loss(point: tuple[float, float], table: Table) -> tuple[float, NDArray[np.float64]]:
    """Return minus the log-likelihood of a mean and a strength, and its slopes by logit and logarithm."""
    neg, pos, n_values = table
    mean, strength = point
    a, b = mean * strength, (1 - mean) * strength
    likelihood = n_values @ (special.betaln(a + pos, b + neg) - special.betaln(a, b))
    by_a, by_b, by_strength = (
        n_values @ (special.psi(x + side) - special.psi(x))
        for x, side in ((a, pos), (b, neg), (strength, neg + pos))
    )
    slopes = a * (1 - mean) * (by_a - by_b), a * by_a + b * by_b - strength * by_strength
    return -float(likelihood), -np.array(slopes)


def _searched(table: Table) -> tuple[float, float]:
    """Return the mean and the strength that SciPy's optimiser finds."""
    neg, pos, n_values = table
    n_rows = (neg + pos) @ n_values

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slopes = _loss((special.expit(point[0]), math.exp(point[1])), table)
        return value / n_rows, slopes / n_rows

    start = [special.logit(pos @ n_values / n_rows), math.log(10)]
    bounds = [(-30, 30), (math.log(1e-3), math.log(1e9))]
    options = {"ftol": 0, "gtol": 1e-12}
    logit, log_strength = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    return float(special.expit(logit)), math.exp(log_strength)
