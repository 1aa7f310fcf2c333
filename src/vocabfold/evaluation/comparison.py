"""Counts + budgets + methods -> Comparison: all methods on the same counts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from html import escape
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from vocabfold.counts.counts import Counts
from vocabfold.errors import InputError
from vocabfold.evaluation.time_limit import stoppable
from vocabfold.evaluation.trials import Column, Outcome, Task, Trials
from vocabfold.fitting.pairs import EXACT_BITS
from vocabfold.folding.allocation import Tuning
from vocabfold.folding.api import check_columns
from vocabfold.folding.methods import ALLOCATIONS, METHODS, NOT_JOINT
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support import checks
from vocabfold.support.progress import track
from vocabfold.support.wording import aligned

DEFAULT_METHODS = tuple(method for method in METHODS if method != "dynamic")  # its tables may be too large
_ROUNDING = 1e-16  # of the total: a smaller gap is rounding,
_ROUNDING_OF_LOSS = 1e-6  # and so is a gap below this share of the loss
_MOST_IDS = 2**62
_KINDS: dict[str, tuple[type, ...]] = {  # of the fields of a trial, in JSON
    "str": (str,),
    "int": (int,),
    "int | None": (int, NoneType),
    "float | None": (int, float, NoneType),
}


@dataclass(frozen=True)
class Trial:
    """The result of one method, allocation and budget.

    Attributes
    ----------
    method, allocation : str
        What was tried.
    budget, size : int
        Ids allowed and ids used.
    information, loss, gap : float
        Information kept and lost in nats per row, summed over the columns, and how much more the best fold of
        that budget keeps.
    seconds : float
        Time of the method, given the counts in the order of their rates. It does not include counting, nor the
        proof of the gap.
    note : str
        Why there are no figures (they are None), or a warning of the method.
    """

    method: str
    allocation: str
    budget: int
    size: int | None
    information: float | None
    loss: float | None
    gap: float | None
    seconds: float | None
    note: str

    @property
    def name(self) -> str:
        """The method, and its allocation unless that is joint."""
        return self.method if self.allocation == "joint" else f"{self.method}, {self.allocation}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Sequence[Trial]):
    """All methods on the same counts: a sequence of `Trial`, by budget, then in the order of the methods.

    Attributes
    ----------
    trials : tuple of Trial
        The result of each method, allocation and budget.
    n_columns, n_values : int
        The size of the counts.
    total : float
        Mutual information of the values and the label, in nats per row, summed over the columns.
    """

    trials: tuple[Trial, ...]
    n_columns: int
    n_values: int
    total: float

    def __getitem__(self, i: Any) -> Any:
        return self.trials[i]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @property
    def is_empty(self) -> bool:
        """Whether no trial has figures."""
        return all(trial.loss is None for trial in self.trials)

    def lost(self, trial: Trial) -> float:
        """Return the share of the information that a trial loses; NaN if it has no figures."""
        return math.nan if trial.loss is None else trial.loss / self.total

    def times_optimum(self, trial: Trial) -> float:
        """Return the loss of a trial divided by the optimal loss of its budget; NaN if it has no figures."""
        if trial.loss is None or trial.gap is None:
            return math.nan
        if self._is_optimal(trial.loss, trial.gap):
            return 1.0
        optimum = trial.loss - trial.gap
        return trial.loss / optimum if optimum > 0 else math.inf

    def _is_optimal(self, loss: float, gap: float) -> bool:
        return gap <= max(_ROUNDING * self.total, _ROUNDING_OF_LOSS * loss)

    def to_arrow(self) -> pa.Table:
        """Return the trials as an Arrow table, with the results of `lost` and `times_optimum`."""
        rows = [
            asdict(trial)
            | (
                {"lost": None, "times_optimum": None}
                if trial.loss is None
                else {"lost": self.lost(trial), "times_optimum": self.times_optimum(trial)}
            )
            for trial in self.trials
        ]
        numbers = ("information", "loss", "gap", "seconds", "lost", "times_optimum")
        kinds = {"budget": pa.int64(), "size": pa.int64()} | dict.fromkeys(numbers, pa.float64())
        schema = pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]])
        return pa.Table.from_pylist(rows, schema)

    def plot(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Plot the share lost and the seconds against the budget, to a file that ends in .svg, .png or .pdf."""
        from vocabfold.evaluation.chart import plot_comparison

        plot_comparison(self, path, overwrite=overwrite)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and lines of a table for people, with a column of notes if there are any."""
        has_notes = any(trial.note for trial in self.trials)
        heads = ["budget", "method", "allocation", "ids", "lost", "× optimum", "gap", "seconds"]
        lines = [self._line(trial) + [trial.note] * has_notes for trial in self.trials]
        return heads + ["note"] * has_notes, lines

    def _line(self, trial: Trial) -> list[str]:
        what = [f"{trial.budget:,}", trial.method, trial.allocation]
        if trial.loss is None or trial.gap is None:
            return [*what, "", "", "", "", ""]
        times = self.times_optimum(trial)
        shown = f"{times:.3f}" if times < 10 else f"{times:.3g}"
        gap = 0.0 if self._is_optimal(trial.loss, trial.gap) else trial.gap
        return [
            *what,
            f"{trial.size:,}",
            f"{self.lost(trial):.3g}",
            shown,
            f"{gap:.2g}",
            f"{trial.seconds:.3f}" if trial.seconds and trial.seconds >= 0.001 else "<0.001",
        ]

    def _repr_html_(self) -> str:
        heads, lines = self.cells()
        head = "".join(f"<th>{text}</th>" for text in heads)
        body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        columns, values = checks.number(self.n_columns, "column"), checks.number(self.n_values, "value")
        lines = aligned(*self.cells(), ("method", "allocation", "note"))
        return "\n  ".join([f"Comparison({columns}, {values}, {self.total:.4g} nats)", *lines])


def compare(
    counts: Counts | Mapping[str, tuple[Any, Any]],
    budgets: int | Iterable[int],
    methods: str | Iterable[str] | None = None,
    *,
    allocations: str | Iterable[str] | None = None,
    merge: bool = True,
    epsilon: float = 0.1,
    shards: int = 1,
    seed: int = 0,
    time_limit: float | None = None,
) -> Comparison:
    """Fold the same counts by every method at every budget; compare losses and times.

    Parameters
    ----------
    counts : Counts or mapping from name to (neg, pos)
        From `count` or `load_counts`, or bare numbers as for `fold_table`.
    budgets : int or several
        Ids in total, at least one per column.
    methods : str or several, optional
        As for `fold`; by default all but "dynamic".
    allocations : str or several, optional
        As for `fold_table`; each method is tried with those that it has. By default "joint", or "uniform" for
        methods without a joint allocation.
    merge : bool
        Whether to merge values of equal rate first, which loses nothing. False: keep them apart, as the paper
        does; its algorithms are slower then, and "stochastic" and "threshold" find different cuts.
    epsilon, shards, seed
        As for `fold`.
    time_limit : float, optional
        Seconds that each fold may take. A method that takes longer is stopped, and its note says so. Folds run
        in a separate process.

    Returns
    -------
    Comparison
        A sequence of `Trial` that prints as a table, with `to_arrow` and `plot`.

    Raises
    ------
    InputError
        The counts, the budgets or the options cannot be used.

    Notes
    -----
    This is the paper's objective, aim="information" of `fit`, on the counted rows. It does not measure how ids
    generalise: for new rows use `Codebook.evaluate`. Only counts are read, not values: "hashing" assigns values
    to ids at random, and "frequency" and "selection" choose at random among values of equal score.

    Examples
    --------
    >>> import vocabfold as vf
    >>> columns = {"site": ([90, 45, 10, 70], [10, 5, 30, 30]), "hour": ([120, 95], [40, 35])}
    >>> found = vf.compare(columns, [3, 4], ["exact", "frequency"])
    >>> [(trial.name, trial.budget, round(trial.loss, 4)) for trial in found]
    [('exact', 3, 0.0278), ('frequency', 3, 0.1153), ('exact', 4, 0.0002), ('frequency', 4, 0.0766)]
    """
    tasks, tuning = check_options(budgets, methods, allocations, epsilon, shards, seed, time_limit)
    columns = _columns(counts)
    for task in tasks:
        checks.at_least("budgets", task.budget, len(columns), " (one id per column)")
    total = math.fsum(column.curve.total for column in columns)
    if not total:
        raise InputError(
            "no column has any information about the label. Count rows of both classes, and columns whose "
            "values differ in their rates."
        )
    if time_limit is None:
        trials = Trials(columns, merge=merge, tuning=tuning)
        trials.prepare(tasks)
        running: Any = nullcontext(trials)
    else:
        running = stoppable(columns, tasks, merge=merge, tuning=tuning, seconds=float(time_limit))
    with running as runner:
        steps = track([str(task) for task in tasks], "comparing")
        found = [_trial(task, runner.run(task)) for task, _ in zip(tasks, steps, strict=True)]
    return Comparison(tuple(found), len(columns), sum(map(len, columns)), total)


def read_comparison(path: str | os.PathLike[str]) -> Comparison:
    """Read what `vocabfold compare --json` printed into a file."""
    kinds = {field.name: _KINDS[str(field.type)] for field in fields(Trial)}
    try:
        content = Path(path).read_bytes()
        found = json.loads(content)
        trials = tuple(Trial(**{name: one[name] for name in kinds}) for one in found["trials"])
        about = {name: found[name] for name in ("n_columns", "n_values", "total")}
        is_valid = (
            len(trials) > 0
            and all(_is_one(about[name], (int,)) and about[name] > 0 for name in ("n_columns", "n_values"))
            and _is_one(about["total"], (int, float))
            and about["total"] > 0
            and all(_is_one(getattr(trial, name), kind) for trial in trials for name, kind in kinds.items())
            and all(trial.budget > 0 and (trial.loss is None) == (trial.gap is None) for trial in trials)
            and all(min(trial.loss or 0, trial.gap or 0, trial.seconds or 0) >= 0 for trial in trials)
        )
    except OSError as error:
        raise InputError(f"{path} cannot be read: {checks.reason(error)}.") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_valid = False
    if not is_valid:
        raise InputError(f"{path} is not the output of 'vocabfold compare --json'. Give such a file.")
    return Comparison(trials, **about)


def _is_one(value: Any, kinds: tuple[type, ...]) -> bool:
    is_small = not isinstance(value, int | float) or -_MOST_IDS <= value <= _MOST_IDS
    return isinstance(value, kinds) and not isinstance(value, bool) and is_small


def check_options(
    budgets: Any,
    methods: Any,
    allocations: Any,
    epsilon: float,
    shards: int,
    seed: int,
    time_limit: float | None,
) -> tuple[list[Task], Tuning]:
    """Return the tasks; refuse options that cannot be used, before anything is counted."""
    if time_limit is not None and not (_is_number(time_limit) and 0 < float(time_limit) < math.inf):
        raise InputError(f"must be a number of seconds above 0, got {time_limit!r}.", argument="time_limit")
    sizes = [checks.at_least("budgets", size, 1) for size in _several(budgets)]
    if max(sizes, default=0) > _MOST_IDS:
        raise InputError(f"must be at most {_MOST_IDS:,}, got {max(sizes):,}.", argument="budgets")
    chosen = DEFAULT_METHODS if methods is None else _several(methods)
    splits = None if allocations is None else _several(allocations)
    for what, given in (("budgets", sizes), ("methods", chosen), ("allocations", splits)):
        if given is not None and not given:
            raise InputError("must not be empty.", argument=what)
    for allocation in splits or ():
        checks.choice("allocations", allocation, ALLOCATIONS)
    tries: list[tuple[str, str]] = []
    for method in chosen:
        checks.choice("methods", method, METHODS)
        own = ("uniform",) if method in NOT_JOINT else ("joint",)
        if splits is not None:
            own = tuple(one for one in splits if one != "joint" or method not in NOT_JOINT)
        if not own and methods is not None:
            raise InputError(
                f"must include 'uniform' or 'information' for {method!r}: it has no joint one.",
                argument="allocations",
            )
        tries += [(method, allocation) for allocation in own]
    tasks = [Task(*one, size) for size in dict.fromkeys(sizes) for one in dict.fromkeys(tries)]
    return tasks, Tuning(epsilon, shards, seed)


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _is_number(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool)


def _columns(counts: Any) -> list[Column]:
    """Return the counts of each column."""
    if not isinstance(counts, Counts):
        if not isinstance(counts, Mapping):
            raise InputError(
                "counts must come from vf.count or vf.load_counts, or be a mapping from names to counts "
                f"(neg, pos), got {type(counts).__name__}."
            )
        pairs = check_columns(counts).values()
        return [Column(neg, pos) for neg, pos in pairs]
    with Engine(counts.memory_limit) as engine:
        tables = [table for _, table in counts.pairs(engine)]
    # Rounded to what the solvers can take. `fit` rounds after adding up values of equal counts; methods by
    # value need them apart.
    shift = max(0, (counts.neg + counts.pos).bit_length() - EXACT_BITS)
    columns = []
    for table in tables:
        neg, pos, n_values = (np.ascontiguousarray(table[side].to_numpy()) for side in ("neg", "pos", "n"))
        neg, pos = ((side + (1 << shift >> 1)) >> shift for side in (neg, pos))
        columns.append(Column(neg, pos, n_values))
    return columns


def _trial(task: Task, outcome: Outcome) -> Trial:
    return Trial(**asdict(task), **asdict(outcome))
