"""Fold and FoldTable: the ids, the information they keep, and the proof of how good they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.printing import html_summary, summaries, summary


@dataclass(frozen=True, eq=False, repr=False)
class Fold:
    """The fold of one column: an id for every value; information in nats per row (0.69 nats = 1 bit).

    Attributes
    ----------
    ids : int32 array
        The id of each value, 0 to size - 1, numbered by the rising rate of the ids. Values of equal rate
        share an id, unless the method is "frequency", "selection" or "hashing". A value without rows gets
        the id nearest to the overall rate.
    size : int
        Ids used: as many as asked for, or fewer if there are fewer distinct rates, or if intervals or
        buckets are empty.
    information : float
        I(Z;C), the mutual information of the ids and the label.
    total : float
        I(X;C), the mutual information of the values and the label.
    loss : float
        total - information, computed as a sum of non-negative terms so that nothing cancels.
    bound : float
        No fold of at most that many ids keeps more than this, up to rounding.
    gap : float
        bound - information, at least 0. The gap of an exact fold is 0 up to rounding.
    """

    ids: NDArray[np.int32]
    size: int
    information: float
    total: float
    loss: float
    bound: float
    gap: float

    @property
    def n_values(self) -> int:
        """Number of values folded."""
        return self.ids.size

    def __repr__(self) -> str:
        return f"Fold({summary(self)})"

    def _repr_html_(self) -> str:
        return html_summary("Fold", {}, self)


@dataclass(frozen=True, eq=False, repr=False)
class FoldTable(Mapping[str, Fold]):
    """The folds of several columns under one budget: a mapping from name to `Fold`.

    The figures are sums over the columns, each in nats per row of its own column. They are not the joint
    information of the columns, which may be redundant.

    Attributes
    ----------
    folds : dict
        The `Fold` of each column, in the order given. Ids start at 0 in every column.
    sizes : dict
        Number of ids of each column.
    budget, size : int
        Ids allowed and ids used, in total.
    information, total, loss : float
        As for `Fold`.
    bound : float
        No folds of at most `budget` ids in total keep more than this, however the budget is split, up to
        rounding.
    gap : float
        bound - information, at least 0.
    """

    folds: Mapping[str, Fold]
    budget: int
    information: float
    total: float
    loss: float
    bound: float
    gap: float

    @property
    def n_values(self) -> int:
        """Number of values folded, over all columns."""
        return sum(fold.n_values for fold in self.folds.values())

    @property
    def size(self) -> int:
        """Number of ids used, over all columns."""
        return sum(self.sizes.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Number of ids of each column."""
        return {name: fold.size for name, fold in self.folds.items()}

    def __getitem__(self, name: str) -> Fold:
        return self.folds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.folds)

    def __len__(self) -> int:
        return len(self.folds)

    def __repr__(self) -> str:
        return summaries("FoldTable", self.folds, self)

    def _repr_html_(self) -> str:
        return html_summary("FoldTable", self.folds, self)
