"""Counts -> Codebook: the steps in order.

The optimiser needs no values: it works on the table {(neg, pos): how many values}, which is small however many
values there are, and values with equal counts share an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold import checks
from vocabfold.budget import ALLOCATIONS
from vocabfold.codebook import UNSEEN, Codebook
from vocabfold.columns import BookColumn, sorted_by_value
from vocabfold.counts import Counts
from vocabfold.engines.duckdb import Engine
from vocabfold.errors import InputError
from vocabfold.folding import METHODS, fold_table, total
from vocabfold.folds import Fold
from vocabfold.lookup import Index
from vocabfold.order import order
from vocabfold.progress import track

AIMS = ("information",)
_EXACT_BITS = 52  # units beyond 2**52 are rounded off before solving

Units = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct (neg, pos) of a column, how many values have each, and which are too rare for an id."""

    neg: Units
    pos: Units
    n_values: Units
    is_rare: NDArray[np.bool_]

    def masses(self, chosen: NDArray[np.bool_], shift: int) -> tuple[Units, Units]:
        """Return the units of all values of each chosen pair, in steps of 2**shift."""
        half = 1 << shift >> 1
        n_values = self.n_values[chosen]
        return (self.neg[chosen] * n_values + half) >> shift, (self.pos[chosen] * n_values + half) >> shift


@dataclass(frozen=True, eq=False)
class FittedStore:
    """The values of a codebook as a query: counts joined with the ids of their (neg, pos)."""

    counts: Counts
    ids: Mapping[str, pa.Table]

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id, neg, pos of a column."""
        ids = engine.table(self.ids[name])
        return f"SELECT value, id, neg, pos FROM ({self.counts.sql(engine, name)}) JOIN {ids} USING (neg, pos)"

    def index(self, name: str) -> Index:
        """Return the values of a column and their ids in memory."""
        with Engine(self.counts.memory_limit) as engine:
            table = engine.run(sorted_by_value(self.sql(engine, name), "value, id"))
        return Index(table["value"], table["id"].to_numpy())


def fit(
    counts: Counts,
    budget: int,
    *,
    aim: str = "information",
    method: str = "exact",
    allocation: str = "joint",
    smoothing: float | str | None = None,
    min_count: int | None = None,
    unseen: str = "other",
) -> Codebook:
    """Fold all columns of the counts into at most `budget` ids, and return the codebook.

    Parameters
    ----------
    counts : Counts
        From `count` or `load_counts`; rows of both classes are needed.
    budget : int
        Ids in all, at least one per column (two with unseen="own").
    aim : {"information"}
        The paper's objective: the fold that keeps the most information about the label.
    method, allocation
        As for `fold_table`.
    smoothing : 0, optional
        The paper's maximum likelihood; other values come later.
    min_count : int, optional
        Values with fewer rows than this (by weight) are pooled as `other`, which is folded like any value. By
        default 1: none is pooled.
    unseen : {"other", "own", "error"}
        What values get that are not in the codebook. "other": the id of the pool, or, if nothing was pooled,
        the id whose rates are around the overall rate. "own": in every column an id of their own, the last one,
        which counts in the budget. "error": asking for them is an error.

    Returns
    -------
    Codebook

    Raises
    ------
    InputError
        The counts or the options cannot be used.

    Notes
    -----
    The id of a value that was seen once is its label: a model trained on the rows that were counted would trust
    it too much. Fit on older rows than those the model sees, or raise `min_count`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import vocabfold as vf
    >>> rows = pa.table({"site": ["a", "b", "a", "c"] * 9, "click": [1, 0, 1, 1] * 9})
    >>> book = vf.fit(vf.count(rows, "click"), budget=2)
    >>> book
    Codebook(1 column, budget 2: 3 values -> 2 ids: 100 % of 0.5623 nats kept, loss 0, gap 0)
      site  3 values -> 2 ids: 100 % of 0.5623 nats kept, loss 0, gap 0
    >>> book.ids("site", ["a", "b", "unknown"])
    array([1, 0, 1], dtype=int32)
    """
    budget, min_count = _check(counts, budget, aim, method, allocation, smoothing, min_count, unseen)
    is_apart = unseen == "own"
    with Engine(counts.memory_limit) as engine:
        pairs = {
            name: _pairs(engine, counts, name, min_count)
            for name in track(counts.features, "fitting", engine.progress)
        }
    shift = max(0, (counts.neg + counts.pos).bit_length() - _EXACT_BITS)
    masses = {name: _masses(of_column, shift, is_apart) for name, of_column in pairs.items()}
    # If all values of a column are rare and their pool is kept apart, nothing is left to fold.
    masses = {name: mass for name, mass in masses.items() if any(side.any() for side in mass)}
    n_ids = budget - is_apart * len(pairs)
    table = fold_table(masses, n_ids, method=method, allocation=allocation) if masses else None
    columns, ids = {}, {}
    for name, of_column in pairs.items():
        fold = table.folds.get(name) if table else None
        columns[name] = _column(counts.kinds[name], of_column, fold, shift, is_apart)
        kept = ~of_column.is_rare
        of_pairs = fold.ids[:-1] if fold else np.empty(0, np.int32)
        ids[name] = pa.table({"neg": of_column.neg[kept], "pos": of_column.pos[kept], "id": of_pairs})
    return Codebook(
        columns=columns,
        gap=table.gap if table else 0.0,
        settings={
            "aim": aim,
            "method": method,
            "allocation": allocation,
            "budget": budget,
            "smoothing": 0,
            "min_count": min_count,
            "unseen": unseen,
        },
        label=counts.label,
        positive=counts.positive,
        units_per_row=counts.units_per_row,
        neg=counts.neg,
        pos=counts.pos,
        store=FittedStore(counts, ids),
        sources=counts.sources,
        memory_limit=counts.memory_limit,
    )


def _check(
    counts: Counts,
    budget: int | str,
    aim: str,
    method: str,
    allocation: str,
    smoothing: float | str | None,
    min_count: int | None,
    unseen: str,
) -> tuple[int, int]:
    """Return the budget and min_count; refuse what cannot be fitted."""
    if not isinstance(counts, Counts):
        raise InputError(f"counts must come from vf.count or vf.load_counts, got {type(counts).__name__}.")
    check_options(budget, aim, method, allocation, unseen)
    if smoothing not in (None, 0):
        raise InputError("smoothing is not there yet; use smoothing=0.")
    n_columns = len(counts.features)
    least, why = n_columns, " (one id per column)"
    if unseen == "own":
        least, why = 2 * n_columns, " (two ids per column with unseen='own')"
    n_ids = checks.at_least("budget", budget, least, why)  # type: ignore[arg-type]
    for side, name in ((counts.neg, "negative"), (counts.pos, "positive")):
        if not side:
            raise InputError(
                f"no row has a {name} label ({counts.label!r}, positive is {counts.positive!r}); "
                "both classes are needed to fit."
            )
    return n_ids, 1 if min_count is None else checks.at_least("min_count", min_count, 1)


def check_options(budget: int | str, aim: str, method: str, allocation: str, unseen: str) -> None:
    """Refuse words that are none of those allowed, before anything is counted."""
    if budget == "auto":
        raise InputError("budget='auto' is not there yet; give a number of ids.")
    if aim == "model":
        raise InputError("aim='model' is not there yet; use aim='information'.")
    checks.choice("aim", aim, AIMS)
    checks.choice("method", method, METHODS)
    checks.choice("allocation", allocation, ALLOCATIONS)
    checks.choice("unseen", unseen, UNSEEN)


def _pairs(engine: Engine, counts: Counts, name: str, min_count: int) -> Pairs:
    sql = (
        f"SELECT neg, pos, count(*) AS n FROM ({counts.sql(engine, name)}) GROUP BY neg, pos ORDER BY neg, pos"
    )
    neg, pos, n_values = (np.ascontiguousarray(side.to_numpy()) for side in engine.run(sql).columns)
    return Pairs(neg, pos, n_values, neg + pos < min_count * counts.units_per_row)


def _masses(pairs: Pairs, shift: int, is_apart: bool) -> tuple[Units, Units]:
    """Return the masses to fold: those of the pairs, and last the pool, if it is not kept apart.

    A pool without rows gets the id around the overall rate, as every value without rows does.
    """
    (neg, pos), (rare_neg, rare_pos) = pairs.masses(~pairs.is_rare, shift), pairs.masses(pairs.is_rare, shift)
    pool = (0, 0) if is_apart else (rare_neg.sum(), rare_pos.sum())
    return np.append(neg, pool[0]), np.append(pos, pool[1])


def _column(kind: str, pairs: Pairs, fold: Fold | None, shift: int, is_apart: bool) -> BookColumn:
    """Return what the ids of a column keep of what all its values told, the rare ones included."""
    neg, pos = _masses(pairs, shift, is_apart)
    rare_neg, rare_pos = pairs.masses(pairs.is_rare, shift)
    size = (fold.size if fold else 0) + is_apart
    groups = np.zeros((2, size), np.int64)
    borders: tuple[float, ...] = ()
    if fold:
        np.add.at(groups[0], fold.ids, neg)
        np.add.at(groups[1], fold.ids, pos)
        borders = _borders(neg, pos, fold)
    if is_apart:
        groups[:, -1] = rare_neg.sum(), rare_pos.sum()
    n_rows = int(groups.sum())
    n_rare = int(rare_neg.sum() + rare_pos.sum())
    lost_by_fold = fold.loss * (int(neg.sum() + pos.sum()) / n_rows) if fold else 0.0
    lost_by_pool = _told(rare_neg, rare_pos) * (n_rare / n_rows)
    return BookColumn(
        kind="text" if kind == "missing" else kind,
        size=size,
        n_values=int(pairs.n_values[~pairs.is_rare].sum()),
        n_pooled=int(pairs.n_values[pairs.is_rare].sum()),
        n_rates=order(neg, pos).n_rates if fold else 0,
        other=size - 1 if fold is None or is_apart else int(fold.ids[-1]),
        borders=borders,
        information=_told(*groups),
        total=_told(*pairs.masses(np.ones(pairs.neg.size, bool), shift)),
        loss=lost_by_fold + lost_by_pool,
        gap=fold.gap if fold else 0.0,
    )


def _told(neg: Units, pos: Units) -> float:
    """Return what values tell about the label, per row of theirs."""
    return total(order(neg, pos)) if neg.any() or pos.any() else 0.0


def _borders(neg: Units, pos: Units, fold: Fold) -> tuple[float, ...]:
    """Return the rates midway between neighbouring ids."""
    has_rows = neg + pos > 0
    rates, ids = pos[has_rows] / (neg + pos)[has_rows], fold.ids[has_rows]
    lowest, highest = np.ones(fold.size), np.zeros(fold.size)
    np.minimum.at(lowest, ids, rates)
    np.maximum.at(highest, ids, rates)
    return tuple(((highest[:-1] + lowest[1:]) / 2).tolist())
