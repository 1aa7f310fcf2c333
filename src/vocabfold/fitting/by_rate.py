"""Pairs + split -> columns of a codebook, by the methods that fold neighbouring rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from vocabfold.codebook.settings import FitSettings
from vocabfold.codebook.stores import Built
from vocabfold.counts.counts import Counts
from vocabfold.counts.units import rows_of
from vocabfold.fitting.assemble import borders_of, build
from vocabfold.fitting.enough import Needed, Trained, with_enough
from vocabfold.fitting.pairs import Pairs
from vocabfold.fitting.spark import SparkShards
from vocabfold.fitting.split import Split
from vocabfold.folding.allocation import CutShards, Tuning
from vocabfold.folding.by_rate import cut, fold_curves
from vocabfold.folding.curve import Curve
from vocabfold.folding.results import Fold
from vocabfold.folding.solve import exact
from vocabfold.folding.solve.threshold import threshold
from vocabfold.io.engines.duckdb import DUCKDB, Engine
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.engines.spark import SPARK

_SHARDS: Mapping[str, Callable[..., CutShards]] = {DUCKDB: lambda *_: threshold, SPARK: SparkShards}


@dataclass(eq=False)
class Frequent:
    """Values with many rows, of all columns: those of a larger budget hold those of a smaller one."""

    counts: Counts
    _least: float | None = None
    _tables: dict[str, pa.Table] = field(default_factory=dict)

    def at_least(self, engine: Engine, least: float) -> dict[str, pa.Table]:
        """Return for each column its values with so many rows, in their order, and their sums."""
        if self._least is None or least < self._least:
            self._least, self._tables = least, self.counts.frequent(engine, least)
        if least == self._least:
            return self._tables
        upr, names = self.counts.units_per_row, self.counts.sums
        return {
            name: table.filter(rows_of({side: table[side].to_numpy() for side in names}, upr) >= least)
            for name, table in self._tables.items()
        }


def build_rates(
    engine: Engine,
    counts: Counts,
    pairs: Mapping[str, Pairs],
    curves: Mapping[str, Curve],
    ids: Split,
    settings: FitSettings,
    frequent: Frequent,
    trained: Trained,
) -> tuple[dict[str, Built], dict[str, Fold], float]:
    """Build all columns; also return the folds of the curves, and by how much they could be better in all."""
    cut_shards = _SHARDS[counts.engine](counts, pairs, ids, curves)
    tuning = Tuning(settings.epsilon, settings.shards, settings.seed, cut_shards)
    folds, gap = _fold(pairs, curves, ids, settings.method, settings.allocation, tuning)
    dedicated = frequent.at_least(engine, ids.least) if ids.has_dedicated else _nothing(counts)
    is_own = settings.unseen == "own"
    is_trained = is_own and settings.aim == "model"
    built = {}
    for name, of_column in pairs.items():
        shared, fold, is_apart = ids.shared(of_column), folds.get(name), ids.is_apart
        if is_trained and counts.folds:
            needed = Needed(settings.dedicated_min, ids.least, dedicated[name].num_rows > 0)
            borders = borders_of(of_column, shared, fold)
            fold, is_apart = with_enough(fold, borders, of_column, trained.columns[name], needed)
        built[name] = build(
            counts.kinds[name],
            of_column,
            shared,
            fold,
            dedicated[name],
            is_apart=is_apart,
            is_last=is_own,
            is_trained=is_trained,
            rows_to_order=of_column.prior.rows_to_order,
        )
    return built, folds, gap


def _fold(
    pairs: Mapping[str, Pairs],
    curves: Mapping[str, Curve],
    ids: Split,
    method: str,
    allocation: str,
    tuning: Tuning,
) -> tuple[dict[str, Fold], float]:
    """Fold the curves; also return by how much they could be better in all."""
    if not curves:
        return {}, 0.0
    first = next(iter(pairs.values()))
    if ids.n_shared is None:
        n_rows = float(first.rows @ first.n_values)
        best = exact.at_price(list(curves.values()), math.log(n_rows) / (2 * n_rows), first.mass)
        folds, gap = [cut(*parts) for parts in zip(curves.values(), best.cuts, best.floors, strict=True)], 0.0
    else:
        folds, gap = fold_curves(
            list(curves.values()), ids.n_shared, method, allocation, tuning, rows=first.mass
        )
    return dict(zip(curves, folds, strict=True)), gap


def _nothing(counts: Counts) -> dict[str, pa.Table]:
    """Return no dedicated values for any column."""
    numbers = [(name, pa.int64()) for name in counts.sums]
    return {
        name: pa.schema([("value", KINDS[kind].arrow), *numbers]).empty_table()
        for name, kind in counts.kinds.items()
    }
