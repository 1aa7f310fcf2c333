"""Pairs + settings -> the columns of a codebook at one budget.

The optimiser needs no values: it works on the table {(neg, pos): how many values}, which is small however many
values there are, and values with equal counts share an id. Only values that get an id of their own are looked
at one by one, and they are no more than the budget. So other budgets cost little once the pairs are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from vocabfold.budget import BY_VALUE, Tuning
from vocabfold.building import Built, build
from vocabfold.choosing import build_values
from vocabfold.cluster.shards import ClusterShards
from vocabfold.columns import BookColumn
from vocabfold.counts import Counts
from vocabfold.engines.duckdb import Engine
from vocabfold.folding import cut, fold_curves
from vocabfold.folds import Fold
from vocabfold.kinds import KINDS
from vocabfold.order import Curve
from vocabfold.pairs import Pairs
from vocabfold.private import Split, split
from vocabfold.solve import exact

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Solved:
    """The columns at one budget, who is private, and what they keep and could keep in the masses folded."""

    built: dict[str, Built]
    split: Split
    kept: float
    gap: float


@dataclass(eq=False)
class Frequent:
    """Values with many rows, of all columns: those of a larger budget hold those of a smaller one."""

    counts: Counts
    _least: int | None = None
    _tables: dict[str, pa.Table] = field(default_factory=dict)

    def at_least(self, engine: Engine, least: int) -> dict[str, pa.Table]:
        """Return for each column its values with so many units, in their order, and their counts."""
        if self._least is None or least < self._least:
            self._least, self._tables = least, self.counts.frequent(engine, least)
        if least == self._least:
            return self._tables
        return {
            name: table.filter(table["neg"].to_numpy() + table["pos"].to_numpy() >= least)
            for name, table in self._tables.items()
        }


def pairs_of(engine: Engine, counts: Counts, settings: Mapping[str, Any]) -> dict[str, Pairs]:
    """Return the pairs of all columns."""
    min_count, smoothing = settings["min_count"], settings["smoothing"]
    return {name: Pairs.of(counts, table, min_count, smoothing) for name, table in counts.pairs(engine)}


def solve(
    engine: Engine, counts: Counts, pairs: Mapping[str, Pairs], settings: Mapping[str, Any], frequent: Frequent
) -> Solved:
    """Fold all columns as the settings of a codebook say."""
    is_own, method, allocation = settings["unseen"] == "own", settings["method"], settings["allocation"]
    budget = None if settings["budget"] == AUTO else int(settings["budget"])
    if settings["aim"] == "model":
        least = max(settings["private_min"], settings["min_count"])
        ids = split(pairs, budget, least, settings["tail"], is_own)
    else:
        assert budget is not None
        ids = Split.of_information(budget - is_own * len(pairs), is_own)
    curves = _curves(pairs, ids)
    folds: dict[str, Fold] = {}
    if method in BY_VALUE:
        assert ids.n_tail is not None
        built, gap = build_values(engine, counts, pairs, curves, ids.n_tail, method, allocation, is_own)
    else:
        tuning = Tuning(settings["epsilon"], settings["shards"], settings["seed"])
        if counts.cluster:
            tuning = replace(tuning, cut_shards=ClusterShards(counts.cluster, pairs, ids, curves))
        folds, gap = _fold(pairs, curves, ids, method, allocation, tuning)
        private = frequent.at_least(engine, ids.least) if ids.has_private else _nothing(counts)
        built = {
            name: build(
                counts.kinds[name],
                of_column,
                ids.tail(of_column),
                folds.get(name),
                private[name],
                is_apart=ids.is_apart,
                is_last=is_own,
            )
            for name, of_column in pairs.items()
        }
    kept = (_kept(pairs[name], one.column, folds.get(name), is_own) for name, one in built.items())
    return Solved(built, ids, math.fsum(kept), gap)


def _curves(pairs: Mapping[str, Pairs], ids: Split) -> dict[str, Curve]:
    """Return what is folded of each column of which anything is: its tail, and its pool, if not kept apart."""
    curves = {}
    for name, of_column in pairs.items():
        tail, with_pool = ids.tail(of_column), ids.has_pool(of_column)
        if with_pool or tail.any():
            curves[name] = of_column.curve(tail, with_pool)
    return curves


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
    if ids.n_tail is None:
        n_rows = first.n_units / first.units_per_row
        best = exact.at_price(list(curves.values()), math.log(n_rows) / (2 * n_rows), first.mass)
        folds, gap = [cut(*parts) for parts in zip(curves.values(), best.cuts, best.floors, strict=True)], 0.0
    else:
        folds, gap = fold_curves(list(curves.values()), ids.n_tail, method, allocation, tuning, rows=first.mass)
    return dict(zip(curves, folds, strict=True)), gap


def _kept(pairs: Pairs, column: BookColumn, fold: Fold | None, is_apart: bool) -> float:
    """Return what a column keeps in the masses that were folded, per row."""
    if pairs.is_plain or fold is None:
        return column.information
    return fold.information * (1 - is_apart * sum(pairs.pool) / pairs.n_units)


def _nothing(counts: Counts) -> dict[str, pa.Table]:
    """Return no private values for any column."""
    numbers = [("neg", pa.int64()), ("pos", pa.int64())]
    return {
        name: pa.schema([("value", KINDS[kind].arrow), *numbers]).empty_table()
        for name, kind in counts.kinds.items()
    }
