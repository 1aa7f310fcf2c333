"""Counts + method + budget -> loss and time.

Only the method is timed, not counting, sorting the rates or proving the optimal loss, which is found once for
each budget.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vocabfold.errors import InputError
from vocabfold.folding import information
from vocabfold.folding.allocation import Tuning
from vocabfold.folding.by_rate import find_cuts
from vocabfold.folding.by_value import find_groups, group
from vocabfold.folding.curve import Curve, order
from vocabfold.folding.methods import BY_VALUE
from vocabfold.folding.solve import exact
from vocabfold.support import notes
from vocabfold.support.checks import number

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Column:
    """The counts of a column: of every value, or the distinct ones and how many values have each."""

    neg: Ints
    pos: Ints
    n_values: Ints | None = None

    @cached_property
    def curve(self) -> Curve:
        """The distinct rates."""
        if self.n_values is None:
            return order(self.neg, self.pos)
        return order(self.neg * self.n_values, self.pos * self.n_values)

    @property
    def values(self) -> tuple[Ints, Ints]:
        """The counts of every value, shuffled if they were distinct ones, whose order depends on the label."""
        if self.n_values is None:
            return self.neg, self.pos
        pairs = np.repeat(np.arange(self.neg.size), self.n_values)
        np.random.default_rng(0).shuffle(pairs)
        return self.neg[pairs], self.pos[pairs]

    def __len__(self) -> int:
        return self.neg.size if self.n_values is None else int(self.n_values.sum())


@dataclass(frozen=True)
class Task:
    """A method, allocation and budget to try."""

    method: str
    allocation: str
    budget: int

    def __str__(self) -> str:
        return f"{self.method}, {number(self.budget, 'id')}"


@dataclass(frozen=True)
class Outcome:
    """The result of a task: ids used, nats kept and lost, gap, seconds; or why there is none."""

    size: int | None = None
    information: float | None = None
    loss: float | None = None
    gap: float | None = None
    seconds: float | None = None
    note: str = ""


class Runner(Protocol):
    """An object that runs tasks."""

    def run(self, task: Task) -> Outcome:
        """Run a task."""


class Trials:
    """Runs tasks on the same columns, in this process."""

    def __init__(self, columns: Sequence[Column], *, merge: bool, tuning: Tuning) -> None:
        self.columns, self.tuning = columns, tuning
        self.curves = [column.curve for column in columns]
        self._to_cut = self.curves if merge else [order(*column.values, merge=False) for column in columns]
        self._least = cache(lambda budget: math.fsum(exact.solve(self.curves, budget).floors))

    @cached_property
    def _values(self) -> list[tuple[Ints, Ints]]:
        return [column.values for column in self.columns]

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Compile and prepare what the tasks need, so that neither times nor limits include it."""
        for task in tasks:
            _compile(task.method, task.allocation)
            if task.method in BY_VALUE:
                assert self._values

    def run(self, task: Task, when_folded: Callable[[], None] = lambda: None) -> Outcome:
        """Run a task; its warning, or why it cannot run, goes into the note."""
        fold = self._by_value if task.method in BY_VALUE else self._by_rate
        try:
            with notes.taking() as said:
                size, kept, loss, seconds = fold(task, when_folded)
        except InputError as error:
            return Outcome(note=str(error))
        except MemoryError:
            return Outcome(note="not enough memory.")
        gap = max(0.0, loss - self._least(task.budget))
        return Outcome(size, kept, loss, gap, seconds, said[0] if said else "")

    def _by_rate(self, task: Task, when_folded: Callable[[], None]) -> tuple[int, float, float, float]:
        begin = time.perf_counter()
        _, found, _ = find_cuts(self._to_cut, task.budget, task.method, task.allocation, self.tuning)
        seconds = time.perf_counter() - begin
        when_folded()
        cut = [(curve.cum_neg, curve.cum_pos, cuts) for curve, cuts in zip(self._to_cut, found, strict=True)]
        kept = math.fsum(information.information(*parts) for parts in cut)
        loss = math.fsum(information.loss(*parts) for parts in cut)
        return sum(cuts.size + 1 for cuts in found), kept, loss, seconds

    def _by_value(self, task: Task, when_folded: Callable[[], None]) -> tuple[int, float, float, float]:
        values = self._values
        begin = time.perf_counter()
        _, groups = find_groups(values, self.curves, task.budget, task.method, task.allocation)
        seconds = time.perf_counter() - begin
        when_folded()
        folds = [
            group(*pair, curve, of_values, 0.0)
            for pair, curve, of_values in zip(values, self.curves, groups, strict=True)
        ]
        kept, loss = (math.fsum(getattr(fold, what) for fold in folds) for what in ("information", "loss"))
        return sum(fold.size for fold in folds), kept, loss, seconds


@cache
def _compile(method: str, allocation: str) -> None:
    """Compile all that a method needs, so that no time includes it."""
    neg, pos = np.random.default_rng(0).integers(300_000, 10**6, (2, 1_000))
    # With many values at few rates, `divisive` loses groups and has to refill them.
    few = Column(np.arange(1, 10), np.ones(9, np.int64), np.full(9, 100))
    columns = [Column(neg, pos, np.ones(1_000, np.int64)), few]
    Trials(columns, merge=False, tuning=Tuning()).run(Task(method, allocation, 50))
