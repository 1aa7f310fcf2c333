"""Pairs + budget -> which values get a dedicated id, and how many shared ids are left for all others.

For `aim="model"`: frequent values get dedicated ids, because a model finds things about them that their rate
does not show; the infrequent values of a column are folded by their rate. Which values are frequent depends on
the number of rows alone, never on labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vocabfold.counts.units import MAX_UNITS
from vocabfold.fitting.pairs import Mask, Pairs

_MOST_IDS = 2**31  # as ids are int32; products with it are no longer than 64 bits


@dataclass(frozen=True)
class Split:
    """Which values get dedicated ids, how many ids are shared, and whether rare values are kept apart."""

    least: float  # rows that a dedicated id takes
    n_shared: int | None  # shared ids of all columns; None: as many as pay for themselves
    is_apart: bool  # rare values have an id of their own, and are not folded with infrequent ones

    @classmethod
    def of_information(cls, n_ids: int, is_apart: bool) -> Split:
        """Return the split without dedicated ids."""
        return cls(math.inf, n_ids, is_apart)

    @property
    def has_dedicated(self) -> bool:
        """Tell whether any number of rows gives a value a dedicated id."""
        return self.least < math.inf

    def folds_rare(self, pairs: Pairs) -> bool:
        """Tell whether the rare values of a column are folded, as one value, with its infrequent ones."""
        return not self.is_apart and bool(pairs.is_rare.any())

    def shared(self, pairs: Pairs) -> Mask:
        """Return the pairs of a column that are folded."""
        return ~pairs.is_rare & (pairs.rows < self.least)


def split(
    pairs: Mapping[str, Pairs], budget: int | None, dedicated_min: int, shared_ids: int, own: bool
) -> Split:
    """Split a budget into dedicated and shared ids; None is a budget without a limit.

    Values of equal rows get dedicated ids together or not at all. With `own`, every column has an id for values
    that are not in the codebook; otherwise columns with rare values have one, if the budget has room for that.
    """
    columns = list(pairs.values())
    least = float(min(dedicated_min, MAX_UNITS))
    if budget is None:
        return Split(least, None, is_apart=True)
    budget = min(budget, _MOST_IDS)
    shared_ids = min(shared_ids, budget)
    kept = [column.rows[~column.is_rare] for column in columns]
    has_other = [own or bool(column.is_rare.any()) for column in columns]
    is_apart = own or sum(has_other) + sum(rows.size > 0 for rows in kept) <= budget
    # The rows of the rarest value in each column with values to fold; folded rare values come before any.
    rarest = [
        0 if with_rare and not is_apart else rows.min()
        for rows, with_rare in zip(kept, has_other, strict=True)
        if rows.size or (with_rare and not is_apart)
    ]
    n_values = np.concatenate([column.n_values[~column.is_rare] for column in columns])
    rows, where = np.unique(np.concatenate(kept), return_inverse=True)
    at_least = np.cumsum(np.bincount(where, n_values, rows.size)[::-1])[::-1].astype(np.int64)
    # What a dedicated id could take: as few rows as allowed, or as many as some value has; or no number.
    tries = np.concatenate([[least], rows[rows > least], [math.inf]])
    n_dedicated = np.append(at_least, 0)[np.searchsorted(rows, tries)]
    n_columns = np.searchsorted(np.sort(rarest), tries)  # that have values to fold then
    room = budget - is_apart * sum(has_other)
    n_shared = np.maximum(n_columns, np.minimum(shared_ids * n_columns, min(budget // 2, room)))
    fits = int(np.argmax(n_dedicated + n_shared <= room))
    return Split(float(tries[fits]), int(n_shared[fits]), is_apart)
