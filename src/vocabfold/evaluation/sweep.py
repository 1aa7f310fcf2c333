"""Codebook + its counts -> the results of other budgets, with the codebook's own aim and settings.

There is one codebook per budget, but the counts are read only once. With the methods that fold by rate, the id
of a value depends on its counts alone at any budget: values with enough rows have dedicated ids, all others the
id of their rate. So rows of each fold and new rows are summed by the counts of their values, and each budget is
evaluated by these sums. The other methods are fitted anew for every budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.out_of_fold import gained, ids_by_rate, other_counts, others, told_by_rest
from vocabfold.codebook.queries import alike_in_folds
from vocabfold.codebook.settings import FitSettings
from vocabfold.codebook.stores import Built
from vocabfold.counts.counts import Counts, not_counts
from vocabfold.errors import InputError
from vocabfold.evaluation.held_out import hedged, joined, judge
from vocabfold.fitting.at_budget import Solved, pairs_of, solve
from vocabfold.fitting.by_rate import Frequent
from vocabfold.fitting.fitting import fit_counts
from vocabfold.fitting.pairs import Pairs
from vocabfold.fitting.split import Split
from vocabfold.folding.methods import BY_VALUE
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support import notes
from vocabfold.support.progress import track

MOST_STEPS = 200
_FEW_STEPS = 25  # for methods that are slow or fitted anew for every budget
_SLOW = (*BY_VALUE, "dynamic", "stochastic", "threshold", "agglomerative", "divisive")
_MOST_IDS = 200_000  # the largest budget to try, unless the codebook has nearly as many ids
_STEPS_PER_OCTAVE = 16
_LARGEST = 2**53
_ROUNDING = 1e-9

Floats = NDArray[np.float64]
Units = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One budget: its columns, with train MI and CV gain, and the test gain of each."""

    budget: int
    columns: Mapping[str, BookColumn]
    held_out: Mapping[str, float] | None = None


def sweep(
    book: Codebook, counts: Counts, new_rows: Counts | None = None, steps: int | None = None
) -> list[Step]:
    """Return the results of at most `steps` budgets, from one id per column on, and among them the codebook's.

    `new_rows` are the counts of held-out rows, as `count_new` returns them.
    """
    check_counts(book, counts)
    n_steps = steps or (_FEW_STEPS if book.settings["method"] in _SLOW else MOST_STEPS)
    with notes.taking():  # the warnings about the codebook's budget were shown when it was fitted
        fitting = _fit_all if book.settings["method"] in BY_VALUE else _sum_all
        found = fitting(book, counts, new_rows, n_steps)
    chosen = next(step for step in found if step.budget == book.budget)
    if not all(_is_same(book.columns[name], column) for name, column in chosen.columns.items()):
        raise other_counts()
    return found


def spaced(least: int, chosen: int, most: int, n: int) -> list[int]:
    """Return at most n budgets (n >= 3), evenly spaced by ratio; if n suffices, half of each is another."""
    octaves = math.log2(most / least) if most > least else 0.0
    room = n - 3  # besides the ends and the chosen one
    per_octave = room / octaves if octaves else 0.0
    if per_octave >= 1:
        per_octave = min(math.floor(per_octave), _STEPS_PER_OCTAVE)
    first, last = (math.log2(end / chosen) * per_octave for end in (least, most))
    steps = range(math.ceil(first), math.floor(last) + 1) if per_octave else ()
    inner = {round(chosen * 2 ** (i / per_octave)) for i in steps}
    return sorted(budget for budget in inner | {least, chosen, most} if least <= budget <= most)


def check_counts(book: Codebook, counts: Counts) -> None:
    """Refuse counts that the codebook cannot have been fitted on."""
    if not isinstance(counts, Counts):
        raise not_counts(counts)
    of_book = book.label, book.positive, book.units_per_row, book.neg, book.pos, book.features
    of_counts = counts.label, counts.positive, counts.units_per_row, counts.neg, counts.pos, counts.features
    if of_book != of_counts:
        raise other_counts()
    _settings(book, book.budget)  # a header of a file may hold anything
    if book.budget > _LARGEST:
        raise InputError(
            f"must be at most {_LARGEST:,} to compare with others, got {book.budget:,}.", argument="budget"
        )


def _is_same(mine: BookColumn, theirs: BookColumn) -> bool:
    whole = ("kind", "size", "n_values", "n_rare", "n_dedicated", "n_rates", "other")
    return all(getattr(mine, name) == getattr(theirs, name) for name in whole) and all(
        math.isclose(getattr(mine, name), getattr(theirs, name), rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        for name in ("information", "total", "mean")
    )


def _budgets(book: Codebook, enough: int, n_steps: int) -> list[int]:
    """Return the budgets to try: up to `enough` ids, or to as many as are worth trying."""
    is_own, chosen = book.settings["unseen"] == "own", book.budget
    enough += len(book) if is_own or book.n_rare else 0
    least = min(chosen, len(book) * (2 if is_own else 1))
    most = max(least, 2 * chosen, min(enough, max(_MOST_IDS, 4 * chosen)))
    return spaced(least, chosen, most, n_steps)


def _settings(book: Codebook, budget: int) -> FitSettings:
    """Return the settings of the codebook at a budget; its own budget may be "auto"."""
    settings = FitSettings.of(book.settings)
    return settings if budget == book.budget else replace(settings, budget=budget)


def _fit_all(book: Codebook, counts: Counts, new_rows: Counts | None, n_steps: int) -> list[Step]:
    """Return the results of each budget, by fitting and evaluating."""
    steps = []
    for budget in map(int, track([*map(str, _budgets(book, book.n_values, n_steps))], "trying budgets")):
        found = fit_counts(counts, _settings(book, budget))
        judged = None if new_rows is None else judge(found, new_rows, "")
        held_out = None if judged is None else {name: one.gain for name, one in judged.items()}
        steps.append(Step(budget, found.columns, held_out))
    return steps


def _sum_all(book: Codebook, counts: Counts, new_rows: Counts | None, n_steps: int) -> list[Step]:
    """Return the results of each budget, by sums over values with equal counts."""
    steps: list[Step] = []
    with Engine(counts.memory_limit) as engine:
        pairs = pairs_of(engine, counts, _settings(book, book.budget))
        if any(
            _n_values(pairs[name]) != (column.n_values, column.n_rare) for name, column in book.columns.items()
        ):
            raise other_counts()
        folds, new = {}, {}
        for name in track(book.features, "summing rows", engine.progress):
            if counts.folds:
                values, by_fold = book.store.sql(engine, name), counts.sql(engine, name, by_fold=True)
                # In order: sums of fractions then have the same last digit every time.
                found = engine.run(f"{alike_in_folds(values, by_fold, by_id=False)} ORDER BY ALL")
                folds[name] = FoldSums.of(counts, pairs[name], found)
            if new_rows is not None:
                found = joined(engine, book, new_rows, name, "all_neg, all_pos")
                new[name] = NewSums.of(book, new_rows, pairs[name], found)
        frequent, budgets = Frequent(counts), _budgets(book, _enough(book, pairs), n_steps)
        # The largest budget first: its dedicated ids include those of all smaller budgets.
        for budget in map(int, track([*map(str, budgets[::-1])], "trying budgets")):
            try:
                solved = solve(engine, counts, pairs, _settings(book, budget), frequent)
            except InputError:
                if book.settings["shards"] == 1 or budget == book.budget:
                    raise
                continue  # fewer ids than shards
            steps.append(_step(budget, solved, pairs, folds, new))
    return steps[::-1]


def _n_values(pairs: Pairs) -> tuple[int, int]:
    """Return how many values of a column are in the codebook, and how many are rare."""
    return int(pairs.n_values[~pairs.is_rare].sum()), int(pairs.n_values[pairs.is_rare].sum())


def _enough(book: Codebook, pairs: Mapping[str, Pairs]) -> int:
    """Return how many ids can be used, not counting ids of values that are not in the codebook."""
    if book.settings["aim"] == "information":
        return book.n_rates
    least = max(book.settings["dedicated_min"], book.settings["min_count"]) * book.units_per_row
    n_dedicated = sum(int(column.n_values[column.units >= least].sum()) for column in pairs.values())
    return n_dedicated + int(book.settings["shared_ids"]) * len(pairs)


def _step(
    budget: int,
    solved: Solved,
    pairs: Mapping[str, Pairs],
    folds: Mapping[str, FoldSums],
    new: Mapping[str, NewSums],
) -> Step:
    columns, held_out = {}, {}
    for name, built in solved.built.items():
        columns[name] = built.column
        if name in folds:
            columns[name] = replace(built.column, gain=folds[name].gain(built.column, solved.split.least))
        if name in new:
            held_out[name] = new[name].gain(built, pairs[name], solved.split)
    return Step(budget, columns, held_out if new else None)


@dataclass(frozen=True, eq=False)
class FoldSums:
    """The rows of one column by fold and by the counts of their values, infrequent values first."""

    units: Units  # of a value, in all folds
    rest: Units  # of a value in the other folds, by label
    here: Units  # of a value in this fold
    fold: NDArray[np.int32]
    n: Units  # values with these counts
    dedicated: Floats  # gain of all values from here on if their ids are dedicated, in nats
    rare: Units  # of rare values, by label and fold
    units_per_row: int
    n_rows: float
    overall: float

    @classmethod
    def of(cls, counts: Counts, pairs: Pairs, found: pa.Table) -> FoldSums:
        """Return the sums over values with equal counts in a fold and in total."""
        is_rare = np.asarray(found["all_neg"].is_null())
        here, whole = (
            np.array([found[side].fill_null(0).to_numpy() for side in sides])
            for sides in (("neg", "pos"), ("all_neg", "all_pos"))
        )
        fold, n = (found[name].to_numpy() for name in ("fold", "n"))
        rare = np.zeros((2, counts.folds), np.int64)
        for sums, side in zip(rare, here, strict=True):
            np.add.at(sums, fold[is_rare], (side * n)[is_rare])
        units = whole.sum(axis=0)
        order = np.argsort(units, kind="stable")
        order = order[~is_rare[order]]
        rest, here = (whole - here)[:, order], here[:, order]
        upr, overall = counts.units_per_row, counts.pos / (counts.neg + counts.pos)
        gains = n[order] * told_by_rest(rest / upr, here / upr, overall, pairs.prior.strength)
        return cls(
            units[order],
            rest,
            here,
            fold[order],
            n[order],
            np.append(np.cumsum(gains[::-1])[::-1], 0.0),
            rare,
            upr,
            (counts.neg + counts.pos) / upr,
            overall,
        )

    def gain(self, column: BookColumn, least: int) -> float:
        """Return the CV gain of the ids if values with at least `least` units have dedicated ids."""
        end = int(np.searchsorted(self.units, least))  # of the values with shared ids
        ids = (
            ids_by_rate(column, self.rest[0, :end], self.rest[1, :end], self.units_per_row)
            if end
            else np.empty(0, np.int32)
        )
        rows = np.zeros((2, self.rare.shape[1], column.size))
        for total, part in zip(rows, self.here[:, :end], strict=True):
            np.add.at(total, (self.fold[:end], ids), part * self.n[:end] / self.units_per_row)
        of_rare = others(column, self.rare, self.units_per_row)[:-1]
        rows[:, np.arange(of_rare.size), of_rare] += self.rare / self.units_per_row
        rest = rows.sum(axis=1, keepdims=True) - rows
        gain = told_by_rest(rest, rows, self.overall, column.strength).sum() + self.dedicated[end]
        return float(gain / self.n_rows)


@dataclass(frozen=True, eq=False)
class NewSums:
    """New rows of one column by the counts of their values at fit, infrequent values first."""

    units: Units  # of a value at fit
    at_fit: Units  # by label
    rows: Floats  # new ones, by label
    unseen: Floats
    dedicated: Floats  # gain of all values from here on if their ids are dedicated, in nats
    base: float
    units_per_row: int

    @classmethod
    def of(cls, book: Codebook, new_rows: Counts, pairs: Pairs, found: pa.Table) -> NewSums:
        """Return the sums of new rows, given by the counts of their values."""
        is_unseen = np.asarray(found["all_neg"].is_null())
        rows = np.array([found[side].to_numpy() for side in ("neg", "pos")]) / new_rows.units_per_row
        at_fit = np.array([found[side].fill_null(0).to_numpy() for side in ("all_neg", "all_pos")])
        order = np.argsort(at_fit.sum(axis=0), kind="stable")
        order = order[~is_unseen[order]]
        base, upr = book.pos / (book.neg + book.pos), book.units_per_row
        units = at_fit.sum(axis=0)[order]
        rates = pairs.prior.rates(*(at_fit[:, order] / upr))
        gains = gained(hedged(rates, units / upr, base, pairs.prior.strength), base, *rows[:, order])
        return cls(
            units,
            at_fit[:, order],
            rows[:, order],
            rows[:, is_unseen].sum(axis=1),
            np.append(np.cumsum(gains[::-1])[::-1], 0.0),
            base,
            upr,
        )

    def gain(self, built: Built, pairs: Pairs, split: Split) -> float:
        """Return the test gain of the ids, per row."""
        column, end = built.column, int(np.searchsorted(self.units, split.least))
        of_shared = split.shared(pairs)
        rows_at_fit = np.zeros(column.size)
        units = (pairs.units * pairs.n_values)[of_shared]
        np.add.at(rows_at_fit, built.of_pairs["id"].to_numpy(), units / self.units_per_row)
        dedicated = built.of_values["neg"].to_numpy() + built.of_values["pos"].to_numpy()
        rows_at_fit[built.of_values["id"].to_numpy()] += dedicated / self.units_per_row
        rows_at_fit[column.other] += sum(pairs.rare) / self.units_per_row
        rates = hedged(np.asarray(column.rates), rows_at_fit, self.base, column.strength)
        of_unseen = gained(rates[[column.other]], self.base, *self.unseen[:, None])[0]
        gain = float(self.dedicated[end] + of_unseen)
        if end:
            ids = ids_by_rate(column, self.at_fit[0, :end], self.at_fit[1, :end], self.units_per_row)
            gain += float(gained(rates[ids], self.base, *self.rows[:, :end]).sum())
        return gain / float(self.rows.sum() + self.unseen.sum())
