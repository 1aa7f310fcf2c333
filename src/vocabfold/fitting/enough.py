"""Fold + counts by fold -> a fold all of whose ids have enough training rows.

With unseen="own", a training row has out of fold the id of its value's rate in the other folds, or, if there
are no rows in these, the id of unseen values. A model learns little of an id that few rows have, however many
values it stands for. So neighbouring shared ids with too few rows are merged, unseen values share one of these
ids if too few rows are like them, and if all these rows together are too few, they join the id with most rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.counts.counts import Counts
from vocabfold.counts.units import rows_of
from vocabfold.fitting.pairs import Floats, Pairs
from vocabfold.folding.results import Fold
from vocabfold.io.engines.duckdb import Engine

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """The rows of a column by value and fold, with what is known of their values in the other folds."""

    rows: Floats  # in this fold, of all values that are alike
    of_value: Floats  # rows of one of them in all folds
    rates: Floats  # in the other folds; the mean of the prior, if there are no rows
    is_unseen: NDArray[np.bool_]  # there are none

    @classmethod
    def of(cls, counts: Counts, pairs: Pairs, found: pa.Table) -> Self:
        """Return what `Counts.alike_in_folds` has of a column."""
        here = {name: found[name].to_numpy() for name in counts.sums}
        whole = {name: found[f"all_{name}"].to_numpy() for name in counts.sums}
        rest = {name: whole[name] - here[name] for name in counts.sums}
        upr = counts.units_per_row
        return cls(
            rows_of(here, upr) * found["n"].to_numpy(),
            rows_of(whole, upr),
            pairs.rates_of(rest),
            ~np.any(list(rest.values()), axis=0),
        )


@dataclass(eq=False)
class Trained:
    """The training rows of all columns by their values' rates in other folds; read when they are needed."""

    counts: Counts
    pairs: Mapping[str, Pairs]
    engine: Engine

    @cached_property
    def columns(self) -> dict[str, Elsewhere]:
        """Return those of each column."""
        found = self.counts.alike_in_folds(self.engine)
        return {name: Elsewhere.of(self.counts, self.pairs[name], table) for name, table in found}


@dataclass(frozen=True)
class Needed:
    """What an id needs."""

    rows: float  # for training
    dedicated_from: float  # rows of a value that is not folded
    has_dedicated: bool  # there are such values, whose ids others may join


def with_enough(
    fold: Fold | None, borders: Floats, pairs: Pairs, rows: Elsewhere, needed: Needed
) -> tuple[Fold | None, bool]:
    """Return a fold all of whose ids have enough training rows, and whether unseen values have their own.

    Without a fold, its values and unseen ones are to join a dedicated id.
    """
    least = needed.rows
    is_rare = rows.of_value < pairs.rows[~pairs.is_rare].min(initial=np.inf)
    is_folded = ~is_rare & (rows.of_value < needed.dedicated_from)
    unseen = float(rows.rows[is_rare | (is_folded & rows.is_unseen)].sum())
    if fold is None:
        return None, unseen >= least or not needed.has_dedicated
    seen = is_folded & ~rows.is_unseen
    places = np.searchsorted(borders, rows.rates[seen], side="right")
    sums: Floats = np.bincount(places, rows.rows[seen], fold.size).astype(np.float64)
    groups = merged(sums, least)
    fold = replace(fold, ids=groups[fold.ids], size=int(groups[-1]) + 1)
    if min(sums.sum(), unseen) >= least:
        return fold, True
    if pairs.is_rare.any():  # they are then one more value of the fold, as everywhere
        of_rare = groups[np.searchsorted(borders, pairs.rare_rate, side="right")]
        fold = replace(fold, ids=np.append(fold.ids, of_rare))
    can_join = needed.has_dedicated and sums.sum() + unseen < least
    return None if can_join else fold, False


def merged(rows: Floats, least: float) -> Ids:
    """Return the new number of each id, after the one with fewest rows has joined a neighbour, again and again.

    Of its two neighbours it joins the one with fewer rows.
    """
    starts, sums = list(range(rows.size)), rows.tolist()
    while len(sums) > 1 and min(sums) < least:
        i = int(np.argmin(sums))
        into = i - 1 if i == len(sums) - 1 or (i and sums[i - 1] <= sums[i + 1]) else i
        sums[into] += sums.pop(into + 1)
        del starts[into + 1]
    return np.searchsorted(starts, np.arange(rows.size), side="right").astype(np.int32) - np.int32(1)
