"""What a fold is: the ids, what they keep, the proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.printing import html_summary, summaries, summary


@dataclass(frozen=True, eq=False, repr=False)
class Fold:
    """The fold of one column: an id for every value, and what the ids keep in nats per row (0.69 nats = 1 bit).

    Attributes
    ----------
    ids : int32 array
        The id of each value, 0 to size - 1, numbered by the rate of the group, rising. Values of equal
        rate share an id, unless the method is "frequency", "selection" or "hashing"; a value without rows has
        the id whose rates are around the overall rate.
    size : int
        Ids used: the size asked; fewer, if there are fewer distinct rates, or if intervals or buckets are
        empty.
    information : float
        I(Z;C), what the ids tell about the label.
    total : float
        I(X;C), what the values tell.
    loss : float
        total - information, computed as a sum of non-negative terms.
    bound : float
        No fold of at most the size asked keeps more than this, up to rounding.
    gap : float
        bound - information, at least 0. An exact fold has a gap of 0 up to rounding.
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
        """Values folded."""
        return self.ids.size

    def __repr__(self) -> str:
        return f"Fold({summary(self)})"

    def _repr_html_(self) -> str:
        return html_summary("Fold", {}, self)


@dataclass(frozen=True, eq=False, repr=False)
class FoldTable(Mapping[str, Fold]):
    """The folds of several columns under one budget: a mapping from name to `Fold`.

    The figures are sums over the columns, each in nats per row of its own column; they are not the
    information of the columns together, which may overlap.

    Attributes
    ----------
    folds : dict
        The `Fold` of each column, in the order given. Ids begin at 0 in every column.
    sizes : dict
        Ids of each column.
    budget, size : int
        Ids allowed, and ids used in all.
    information, total, loss : float
        As for `Fold`.
    bound : float
        No folds of at most `budget` ids in all keep more than this, however the budget is split,
        up to rounding.
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
        """Values folded in all."""
        return sum(fold.n_values for fold in self.folds.values())

    @property
    def size(self) -> int:
        """Ids used in all."""
        return sum(self.sizes.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Ids of each column."""
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
