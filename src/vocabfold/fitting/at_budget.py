"""Pairs + settings -> the columns of a codebook at one budget.

The optimiser needs no values: it works on the table {(neg, pos): how many values}, which is small however many
values there are, and values with equal counts share an id. Only values that get a dedicated id are looked at
one by one, and there are no more of them than the budget. So, once the pairs are there, other budgets cost
little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.settings import AUTO, FitSettings
from vocabfold.codebook.stores import Built
from vocabfold.counts.counts import Counts
from vocabfold.fitting.by_rate import Frequent, build_rates
from vocabfold.fitting.by_value import build_values
from vocabfold.fitting.enough import Trained
from vocabfold.fitting.pairs import Pairs
from vocabfold.fitting.split import Split, split
from vocabfold.folding.curve import Curve
from vocabfold.folding.methods import BY_VALUE
from vocabfold.folding.results import Fold
from vocabfold.io.engines.duckdb import Engine


@dataclass(frozen=True, eq=False)
class Solved:
    """The columns at one budget, its split, and what they keep and could keep of the folded masses."""

    built: dict[str, Built]
    split: Split
    kept: float
    gap: float


def pairs_of(engine: Engine, counts: Counts, settings: FitSettings) -> dict[str, Pairs]:
    """Return the pairs of all columns."""
    min_count, smoothing = settings.min_count, settings.smoothing
    return {name: Pairs.of(counts, table, min_count, smoothing) for name, table in counts.pairs(engine)}


def solve(
    engine: Engine,
    counts: Counts,
    pairs: Mapping[str, Pairs],
    settings: FitSettings,
    frequent: Frequent,
    trained: Trained,
) -> Solved:
    """Fold all columns as the settings of a codebook say."""
    is_own, budget = settings.unseen == "own", settings.budget
    if settings.aim == "model":
        least = max(settings.dedicated_min, settings.min_count)
        n_ids = None if budget == AUTO else int(budget)
        ids = split(pairs, n_ids, least, settings.shared_ids, is_own)
    else:
        ids = Split.of_information(int(budget) - is_own * len(pairs), is_own)
    curves = _curves(pairs, ids)
    folds: Mapping[str, Fold] = {}
    if settings.method in BY_VALUE:
        built, gap = build_values(engine, counts, pairs, curves, ids, settings)
    else:
        built, folds, gap = build_rates(engine, counts, pairs, curves, ids, settings, frequent, trained)
    kept = (_kept(pairs[name], one.column, folds.get(name), is_own) for name, one in built.items())
    return Solved(built, ids, math.fsum(kept), gap)


def _curves(pairs: Mapping[str, Pairs], ids: Split) -> dict[str, Curve]:
    """Build a curve for every column that has values to fold: infrequent ones, and rare ones not kept apart."""
    curves = {}
    for name, of_column in pairs.items():
        shared, with_rare = ids.shared(of_column), ids.folds_rare(of_column)
        if with_rare or shared.any():
            curves[name] = of_column.curve(shared, with_rare)
    return curves


def _kept(pairs: Pairs, column: BookColumn, fold: Fold | None, is_apart: bool) -> float:
    """Return what a column keeps in the masses that were folded, per row."""
    if pairs.is_plain or fold is None:
        return column.information
    return fold.information * (1 - is_apart * (pairs.rare("neg") + pairs.rare("pos")) / pairs.n_units)
