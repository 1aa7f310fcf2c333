"""One column of a codebook: what is known of it, and what several columns come to together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class BookColumn:
    """One column of a codebook: its ids and what they keep, in nats per row.

    Attributes
    ----------
    kind : str
        What its values are: text, integer, unsigned, float, boolean, date or timestamp.
    size : int
        Ids, 0 to size - 1, numbered by rate, rising; dedicated ids of values with few rows by value, where the
        mean rate would be. In a column of numbers, dates or booleans all of whose values have dedicated ids,
        all by value.
    n_values, n_rare, n_dedicated : int
        Values that are in the codebook, rare values, which are not, and values in it with a dedicated id.
    n_rates : int
        Distinct rates of the values in the codebook and of `other`: more ids would keep no more.
    other : int
        The id of every value that is not in the codebook.
    is_other_trained : bool
        `other` is an id of its own, which training rows have out of fold if their value has no other rows.
    shared : tuple of int
        The ids that stand for intervals of the rate, rising: all but dedicated ids, and the id of rare values
        that is kept apart.
    borders : tuple of float
        The rates between neighbouring shared ids; a rate on a border belongs to the higher id.
    rates : tuple of float
        The rate of each id, with chance taken into account.
    mean, strength : float
        The prior of the column: a value with p of n rows positive has the rate
        (p + mean * strength) / (n + strength). An infinite strength says that all have the same rate.
    information, total, loss : float
        What the ids keep, what the values tell, and the difference.
    gap : float or None
        How much more any fold could keep, if that was the aim.
    gain : float or None
        The cross-validated gain, if folds were counted: by how much the rates of the ids beat the overall rate
        out of fold. It may be negative.
    training_rows : tuple of int
        The training rows that have each id out of fold, each counted once whatever it weighs; empty, if no
        folds were counted.
    """

    kind: str
    size: int
    n_values: int
    n_rare: int
    n_dedicated: int
    n_rates: int
    other: int
    shared: tuple[int, ...] = field(repr=False)
    borders: tuple[float, ...] = field(repr=False)
    rates: tuple[float, ...] = field(repr=False)
    mean: float
    strength: float
    information: float
    total: float
    loss: float
    gap: float | None = None
    gain: float | None = None
    training_rows: tuple[int | float, ...] = field(default=(), repr=False)
    is_other_trained: bool = False


class Sums:
    """What the columns of a codebook come to together."""

    columns: Mapping[str, BookColumn]

    @property
    def n_values(self) -> int:
        """Values in all."""
        return sum(column.n_values for column in self.columns.values())

    @property
    def n_rare(self) -> int:
        """Rare values, in all."""
        return sum(column.n_rare for column in self.columns.values())

    @property
    def n_dedicated(self) -> int:
        """Values with a dedicated id, in all."""
        return sum(column.n_dedicated for column in self.columns.values())

    @property
    def n_rates(self) -> int:
        """Distinct rates, summed over the columns: more ids would keep no more."""
        return sum(column.n_rates for column in self.columns.values())

    @property
    def information(self) -> float:
        """What the ids tell about the label, summed over the columns."""
        return math.fsum(column.information for column in self.columns.values())

    @property
    def total(self) -> float:
        """What the values tell about the label."""
        return math.fsum(column.total for column in self.columns.values())

    @property
    def loss(self) -> float:
        """What the ids do not tell."""
        return math.fsum(column.loss for column in self.columns.values())

    @property
    def gain(self) -> float | None:
        """The cross-validated gain, summed over the columns."""
        gains = [column.gain for column in self.columns.values() if column.gain is not None]
        return math.fsum(gains) if gains else None


def facts_of(column: BookColumn) -> dict[str, Any]:
    """Return what is known of a column for a header, in which numbers are finite."""
    return asdict(column) | {"strength": None if math.isinf(column.strength) else column.strength}
