"""Counts + method + budget -> what is lost, and how long it takes.

Only the method is timed: not the counting, not the order of the rates, and not the proof of the least loss,
which is found once for each budget.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vocabfold import information
from vocabfold.budget import BY_VALUE, Tuning
from vocabfold.errors import InputError
from vocabfold.folding import find_cuts
from vocabfold.grouping import find_groups, group
from vocabfold.order import order
from vocabfold.solve import exact

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Column:
    """The distinct counts of a column, and how many values have each."""

    neg: Ints
    pos: Ints
    n_values: Ints

    @property
    def apart(self) -> tuple[Ints, Ints]:
        """The counts of every value."""
        return np.repeat(self.neg, self.n_values), np.repeat(self.pos, self.n_values)


@dataclass(frozen=True)
class Task:
    """What is to be tried."""

    method: str
    allocation: str
    budget: int

    def __str__(self) -> str:
        return f"{self.method}, {self.budget:,} ids"


@dataclass(frozen=True)
class Outcome:
    """What came out: ids used, nats kept, lost and at least lost, seconds; or why nothing did."""

    size: int | None = None
    information: float | None = None
    loss: float | None = None
    gap: float | None = None
    seconds: float | None = None
    note: str = ""


class Runner(Protocol):
    """Whatever runs tasks."""

    def run(self, task: Task) -> Outcome:
        """Run a task."""


class Trials:
    """Runs tasks on the same columns, in this process."""

    def __init__(self, columns: Sequence[Column], *, merge: bool, tuning: Tuning) -> None:
        self.columns = columns
        self.tuning = tuning
        self.curves = [order(c.neg * c.n_values, c.pos * c.n_values) for c in columns]
        self._to_cut = self.curves if merge else [order(*c.apart, merge=False) for c in columns]
        self._least = cache(lambda budget: math.fsum(exact.solve(self.curves, budget).floors))

    @property
    def total(self) -> float:
        """What all columns tell about the label."""
        return math.fsum(curve.total for curve in self.curves)

    @cached_property
    def _values(self) -> list[tuple[Ints, Ints]]:
        return [column.apart for column in self.columns]

    def run(self, task: Task) -> Outcome:
        """Run a task; what it warns of, and why it cannot be run, is in the note."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                outcome = self._by_value(task) if task.method in BY_VALUE else self._by_rate(task)
        except InputError as error:
            return Outcome(note=str(error))
        except MemoryError:
            return Outcome(note="there is not enough memory for it.")
        said = [str(warning.message) for warning in caught if warning.category is UserWarning]
        return Outcome(*outcome, note=said[0] if said else "")

    def _by_rate(self, task: Task) -> tuple[int, float, float, float, float]:
        begin = time.perf_counter()
        _, found = find_cuts(self._to_cut, task.budget, task.method, task.allocation, self.tuning)
        seconds = time.perf_counter() - begin
        cut = [(curve.cum_neg, curve.cum_pos, cuts) for curve, cuts in zip(self._to_cut, found, strict=True)]
        kept = math.fsum(information.information(*parts) for parts in cut)
        loss = math.fsum(information.loss(*parts) for parts in cut)
        size = sum(cuts.size + 1 for cuts in found)
        return size, kept, loss, max(0.0, loss - self._least(task.budget)), seconds

    def _by_value(self, task: Task) -> tuple[int, float, float, float, float]:
        values = self._values
        begin = time.perf_counter()
        _, groups = find_groups(values, self.curves, task.budget, task.method, task.allocation)
        seconds = time.perf_counter() - begin
        folds = [
            group(*pair, curve, of_values, 0.0)
            for pair, curve, of_values in zip(values, self.curves, groups, strict=True)
        ]
        kept, loss = (math.fsum(getattr(fold, what) for fold in folds) for what in ("information", "loss"))
        size = sum(fold.size for fold in folds)
        return size, kept, loss, max(0.0, loss - self._least(task.budget)), seconds


@cache
def warm_up(method: str, allocation: str) -> None:
    """Compile whatever a method needs, so that no time has it in it."""
    rng = np.random.default_rng(0)
    sides = rng.integers(1, 10**6, (2, 2, 2_000))
    columns = [Column(neg, pos, np.ones(2_000, np.int64)) for neg, pos in sides]
    Trials(columns, merge=True, tuning=Tuning()).run(Task(method, allocation, 50))
