"""Rows + budget -> ids, by the methods of the paper's figures, with its filter and without, and by ours.

The paper's methods keep information about the training rows, and encode the same rows, as the paper did. Those
that need an allocation get the one by information; the paper's other one, uniform, is left out here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.leakage.data import Rows
from benchmarks.leakage.recipes import ALL_VALUES, HASHING, MODEL, Encoded, all_values, hashing, model, naive

EXACT, SUBMODULAR, DIVISIVE, BUCKETING, FREQUENCY = "Exact", "Submodular", "Divisive", "Bucketing", "Frequency"
FILTER = 100  # the paper starts with values that appear in at least so many rows
_METHODS = {
    FREQUENCY: {"method": "frequency"},
    EXACT: {"method": "exact"},
    SUBMODULAR: {"method": "stochastic"},  # alg:query and sampling, the paper's algorithm for one machine
    DIVISIVE: {"method": "divisive", "allocation": "information"},
    BUCKETING: {"method": "bucketing", "allocation": "information"},
}
_OTHERS: dict[str, Callable[[Rows, int], Encoded]] = {MODEL: model, HASHING: hashing, ALL_VALUES: all_values}


@dataclass(frozen=True)
class Recipe:
    """How rows get their ids: a method, and for the paper's ones the fewest rows of a value."""

    name: str
    min_count: int | None = None

    def __str__(self) -> str:
        ends = {None: "", 1: ", no filter"}
        return self.name + ends.get(self.min_count, f", {self.min_count}-row filter")

    def encode(self, rows: Rows, budget: int) -> Encoded:
        """Return the ids of the three parts."""
        if self.min_count is None:
            return _OTHERS[self.name](rows, budget)
        options = _METHODS[self.name]
        encoded = naive(rows, budget, aim="information", min_count=self.min_count, **options)
        # LightGBM may choose to take the ids of frequent values as categories; their order is no part of it
        return replace(encoded, is_ordered=self.name != FREQUENCY)


REFERENCE = Recipe(MODEL)
OF_THE_PAPER = [Recipe(name, min_count) for min_count in (FILTER, 1) for name in _METHODS]
ALL = [REFERENCE, *OF_THE_PAPER, Recipe(HASHING), Recipe(ALL_VALUES)]
