"""Pairs + sizes -> columns of a codebook, by the methods that look at values and not at neighbouring rates.

`frequency` and `selection` give the values with the highest scores an id of their own, and one id to all others
of a column; `hashing` assigns values to ids by a hash. Scores depend on (neg, pos) alone, so that only values
that are chosen, no more than the budget, are looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.settings import FitSettings
from vocabfold.codebook.stores import Buckets, Built
from vocabfold.counts.counts import Counts
from vocabfold.fitting.assemble import build
from vocabfold.fitting.pairs import Mask, Pairs
from vocabfold.fitting.split import Split
from vocabfold.folding.allocation import SCORES, Score, all_but_one, share, sizes_by_score
from vocabfold.folding.curve import Curve
from vocabfold.folding.information import loss_of_groups
from vocabfold.folding.results import Fold
from vocabfold.folding.solve import exact
from vocabfold.folding.solve.baselines import frequency
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support.progress import track

Ints = NDArray[np.int64]


def build_values(
    engine: Engine,
    counts: Counts,
    pairs: Mapping[str, Pairs],
    curves: Mapping[str, Curve],
    ids: Split,
    settings: FitSettings,
) -> tuple[dict[str, Built], float]:
    """Build all columns; also return by how much they could be better in all.

    Only columns with values to fold have a curve. In it, rare values are one more value, unless they are kept
    apart.
    """
    assert ids.n_shared is not None
    budget, method, is_apart = ids.n_shared, settings.method, ids.is_apart
    sizes = _sizes(pairs, curves, budget, method, settings.allocation, is_apart)
    mass = next(iter(pairs.values())).mass  # of all rows, in any column
    built, losses = {}, []
    for name in track(list(pairs), "choosing", engine.progress):
        of_column, size = pairs[name], sizes.get(name, 1)
        if method in SCORES:
            one = _choose(engine, counts, name, of_column, size, SCORES[method], is_apart)
        elif of_column.is_rare.all():  # nothing to hash: at most rare values
            one = _choose(engine, counts, name, of_column, 1, frequency, is_apart)
        else:
            one = _hash(engine, counts, name, of_column, size, is_apart)
        # What rare values lose by being grouped is lost whatever the fold.
        losses.append(one.column.loss - of_column.loss_of_rare)
        floor = exact.solve([curves[name]], size, mass).floors[0] if name in curves else 0.0
        built[name] = replace(one, column=replace(one.column, gap=max(0.0, losses[-1] - floor)))
    floors = exact.solve(list(curves.values()), budget, mass).floors if curves else []
    return built, max(0.0, math.fsum(losses) - math.fsum(floors))


def _sizes(
    pairs: Mapping[str, Pairs],
    curves: Mapping[str, Curve],
    budget: int,
    method: str,
    allocation: str,
    is_apart: bool,
) -> dict[str, int]:
    """Split a budget over the columns that have a curve; rare values not kept apart are one more value."""
    if not curves:
        return {}
    kept = {name: pairs[name].n_values[~pairs[name].is_rare] for name in curves}
    with_rare = {name: not is_apart and bool(pairs[name].is_rare.any()) for name in curves}
    limits = [int(n_values.sum()) + with_rare[name] for name, n_values in kept.items()]
    totals = [curve.rows * curve.total for curve in curves.values()]
    if method == "hashing":
        sizes = share(limits, totals, budget, allocation, method)
    else:
        scores = [_scores(pairs[name], SCORES[method]) for name in curves]
        copies = [
            n_values if with_rare[name] else all_but_one(score, n_values)
            for (name, n_values), score in zip(kept.items(), scores, strict=True)
        ]
        sizes = sizes_by_score(scores, copies, limits, totals, budget, allocation)
    return dict(zip(curves, sizes, strict=True))


def _scores(pairs: Pairs, score: Score) -> NDArray[np.float64]:
    """Return the score of a value of each pair that is not too rare."""
    sums = [int(side @ pairs.n_values) for side in (pairs.neg, pairs.pos)]
    return score(pairs.neg[~pairs.is_rare], pairs.pos[~pairs.is_rare], *sums)


def _choose(
    engine: Engine, counts: Counts, name: str, pairs: Pairs, size: int, score: Score, is_apart: bool
) -> Built:
    """Give the size - 1 values with the highest scores ids of their own; of equal ones, the first by value."""
    kept = np.flatnonzero(~pairs.is_rare)
    ranks = np.unique(-_scores(pairs, score), return_inverse=True)[1]
    last = np.searchsorted(np.cumsum(np.bincount(ranks, pairs.n_values[kept])), size - 1)  # rank that is needed
    kept, ranks = kept[ranks <= last], ranks[ranks <= last]
    chosen = {side: units[kept] for side, units in pairs.sums.items()}
    of_pairs, sums = pa.table({**chosen, "rank": ranks, "pair": kept}), ", ".join(chosen)
    found = engine.run(
        f"SELECT * FROM (SELECT value, {sums}, pair FROM ({counts.sql(engine, name)}) JOIN "
        f"{engine.table(of_pairs)} USING ({sums}) ORDER BY rank, value NULLS FIRST LIMIT {size - 1}) "
        "ORDER BY value NULLS FIRST"
    )
    parts, shared = _divided(pairs, np.bincount(found["pair"].to_numpy(), minlength=pairs.neg.size))
    n_shared = int(shared.sum()) + (not is_apart and bool(pairs.is_rare.any()))
    one = Fold(np.zeros(n_shared, np.int32), 1, 0.0, 0.0, 0.0, 0.0, 0.0) if n_shared else None
    built = build(counts.kinds[name], parts, shared, one, found, is_apart=is_apart, is_last=is_apart)
    return replace(built, is_divided=True)


def _divided(pairs: Pairs, chosen: Ints) -> tuple[Pairs, Mask]:
    """Return the pairs with the values that were chosen as entries of their own, and which are the others."""
    left = pairs.n_values - chosen
    entries = np.concatenate([np.flatnonzero(left), np.flatnonzero(chosen)])
    is_left = np.arange(entries.size) < np.count_nonzero(left)
    parts = replace(
        pairs,
        sums={side: units[entries] for side, units in pairs.sums.items()},
        n_values=np.where(is_left, left[entries], chosen[entries]),
        is_rare=pairs.is_rare[entries],
    )
    return parts, is_left & ~parts.is_rare


def _hash(engine: Engine, counts: Counts, name: str, pairs: Pairs, size: int, is_apart: bool) -> Built:
    """Assign the values to `size` ids by their hash; ids without a value are dropped."""
    kind, kept = counts.kinds[name], ~pairs.is_rare
    buckets = Buckets(size, float(pairs.rows[kept].min()), pairs.units_per_row, counts.sums)
    hashed = f"({buckets.sql(counts.sql(engine, name), kind)})"
    sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in counts.sums)
    of_buckets = engine.run(f"SELECT bucket AS value, {sums} FROM {hashed} GROUP BY ALL ORDER BY ALL")
    # Buckets are built like values with ids of their own, and text is numbered by rate.
    none = np.zeros(kept.size, np.bool_)
    built = build("text", pairs, none, None, of_buckets, is_apart=is_apart, is_last=is_apart)
    found = engine.run(f"SELECT bucket, neg, pos, count(*) AS n FROM {hashed} GROUP BY ALL ORDER BY ALL")
    where, neg, pos, n_values = (column.to_numpy() for column in found.columns)
    used, groups = np.unique(where, return_inverse=True)
    within = loss_of_groups(neg, pos, n_values, groups.astype(np.int32), used.size) / pairs.n_units
    kind = "text" if kind == "missing" else kind
    column = replace(built.column, kind=kind, n_dedicated=0, loss=built.column.loss + within)
    return replace(built, column=column, buckets=buckets)
