"""Codebook + its counts -> the results of other budgets, with the codebook's own aim and settings.

There is one codebook per budget, but the counts are read only once. With the methods that fold by rate, the id
of a value depends on its counts alone at any budget: values with enough rows have dedicated ids, all others the
id of their rate. So rows of each fold and new rows are summed by the counts of their values, and each budget is
evaluated by these sums. Only where a few rows have joined a dedicated id are gains not exact: its value is then
predicted as if it had the id alone. The other methods are fitted anew for every budget.
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
from vocabfold.codebook.matching import check_same
from vocabfold.codebook.out_of_fold import (
    gained,
    ids_by_rate,
    other_counts,
    others,
    rare_in_folds,
    rest_of,
    sums_in_folds,
    told_by_rest,
)
from vocabfold.codebook.queries import alike_in_folds
from vocabfold.codebook.settings import LEAST_IDS, FitSettings
from vocabfold.codebook.stores import Built
from vocabfold.counts.counts import Counts
from vocabfold.counts.units import UNITS, rows_of
from vocabfold.errors import InputError
from vocabfold.evaluation.held_out import hedged, joined, judge
from vocabfold.fitting.at_budget import Solved, pairs_of, solve
from vocabfold.fitting.by_rate import Frequent
from vocabfold.fitting.enough import Trained
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
    with notes.taking():  # what there is to warn of was said at the fit
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
    check_same(book, counts)
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
    least = min(chosen, len(book) * LEAST_IDS.get(book.settings["unseen"], 1))
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
                alike = alike_in_folds(values, by_fold, counts.sums, by_id=False)
                folds[name] = FoldSums.of(counts, pairs[name], engine.run(f"{alike} ORDER BY ALL"))
            if new_rows is not None:
                found = joined(engine, book, new_rows, name, ", ".join(f"all_{side}" for side in book.sums))
                new[name] = NewSums.of(book, new_rows, pairs[name], found)
        trained = Trained(counts, pairs, engine)
        frequent, budgets = Frequent(counts), _budgets(book, _enough(book, pairs), n_steps)
        # The largest budget first: its dedicated ids include those of all smaller budgets.
        for budget in map(int, track([*map(str, budgets[::-1])], "trying budgets")):
            try:
                solved = solve(engine, counts, pairs, _settings(book, budget), frequent, trained)
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
    least = max(book.settings["dedicated_min"], book.settings["min_count"])
    n_dedicated = sum(int(column.n_values[column.rows >= least].sum()) for column in pairs.values())
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
    """The rows of one column by fold and by the sums of their values, infrequent values first."""

    counts: Counts
    rows: Floats  # of a value, in all folds
    rest: Mapping[str, Units]  # of a value in the other folds
    here: Mapping[str, Units]  # of all such values in this fold
    fold: NDArray[np.int32]
    dedicated: Floats  # gain of all values from here on if their ids are dedicated, in nats
    rare: Mapping[str, Units]  # of rare values, by fold

    @classmethod
    def of(cls, counts: Counts, pairs: Pairs, found: pa.Table) -> FoldSums:
        """Return the sums over values with equal sums in a fold and in total."""
        is_rare = np.asarray(found["all_neg"].is_null())
        here, whole = sums_in_folds(found, counts.sums)
        fold, n_values = (found[name].to_numpy() for name in ("fold", "n"))
        rare = rare_in_folds(counts, here, n_values, fold, is_rare)
        rows = rows_of(whole, counts.units_per_row)
        order = np.argsort(rows, kind="stable")
        order = order[~is_rare[order]]
        rest = {name: (whole[name] - here[name])[order] for name in here}
        here = {name: side[order] for name, side in here.items()}
        gains = n_values[order] * told_by_rest(rest, here, counts, pairs.prior.strength)
        return cls(
            counts,
            rows[order],
            rest,
            {name: side * n_values[order] for name, side in here.items()},
            fold[order],
            np.append(np.cumsum(gains[::-1])[::-1], 0.0),
            rare,
        )

    def gain(self, column: BookColumn, least: float) -> float:
        """Return the CV gain of the ids if values with at least `least` rows have dedicated ids."""
        end = int(np.searchsorted(self.rows, least))  # of the values with shared ids
        ids = np.empty(0, np.int32)
        if end:
            ids = ids_by_rate(column, {name: side[:end] for name, side in self.rest.items()}, self.counts)
        of_rare = others(column, self.rare, self.counts)[:-1]
        of_ids = {name: np.zeros((self.counts.folds, column.size), np.int64) for name in self.here}
        for name, sums in of_ids.items():
            np.add.at(sums, (self.fold[:end], ids), self.here[name][:end])
            sums[np.arange(of_rare.size), of_rare] += self.rare[name]
        told = told_by_rest(rest_of(of_ids), of_ids, self.counts, column.strength)
        n_rows = (self.counts.neg + self.counts.pos) / self.counts.units_per_row
        return float((told.sum() + self.dedicated[end]) / n_rows)


@dataclass(frozen=True, eq=False)
class NewSums:
    """New rows of one column by the sums of their values at fit, infrequent values first."""

    book: Codebook
    rows_at_fit: Floats  # of a value
    at_fit: Mapping[str, Units]
    rows: Floats  # new ones, by label
    unseen: Floats
    dedicated: Floats  # gain of all values from here on if their ids are dedicated, in nats
    base: float

    @classmethod
    def of(cls, book: Codebook, new_rows: Counts, pairs: Pairs, found: pa.Table) -> NewSums:
        """Return the sums of new rows, given by the sums of their values."""
        is_unseen = np.asarray(found["all_neg"].is_null())
        rows = np.array([found[side].to_numpy() for side in UNITS]) / new_rows.units_per_row
        at_fit = {name: found[f"all_{name}"].fill_null(0).to_numpy() for name in book.sums}
        rows_at_fit = rows_of(at_fit, book.units_per_row)
        order = np.argsort(rows_at_fit, kind="stable")
        order = order[~is_unseen[order]]
        rows_at_fit = rows_at_fit[order]
        at_fit = {name: side[order] for name, side in at_fit.items()}
        base = book.pos / (book.neg + book.pos)
        rates = hedged(pairs.evidence.rates(pairs.rates_of(at_fit)), rows_at_fit, base, pairs.prior.strength)
        gains = gained(rates, base, *rows[:, order])
        return cls(
            book,
            rows_at_fit,
            at_fit,
            rows[:, order],
            rows[:, is_unseen].sum(axis=1),
            np.append(np.cumsum(gains[::-1])[::-1], 0.0),
            base,
        )

    def gain(self, built: Built, pairs: Pairs, split: Split) -> float:
        """Return the test gain of the ids, per row."""
        column, end = built.column, int(np.searchsorted(self.rows_at_fit, split.least))
        of_ids = {name: np.zeros(column.size, np.int64) for name in self.book.sums}  # at fit
        shared = split.shared(pairs)
        for name, sums in of_ids.items():
            np.add.at(sums, built.of_pairs["id"].to_numpy(), (pairs.sums[name] * pairs.n_values)[shared])
            sums[built.of_values["id"].to_numpy()] += built.of_values[name].to_numpy()
            sums[column.other] += pairs.rare(name)
        rows = rows_of(of_ids, self.book.units_per_row)
        rates = hedged(np.asarray(column.rates), rows, self.base, column.strength)
        of_unseen = gained(rates[[column.other]], self.base, *self.unseen[:, None])[0]
        gain = float(self.dedicated[end] + of_unseen)
        if end:
            ids = ids_by_rate(column, {name: side[:end] for name, side in self.at_fit.items()}, self.book)
            gain += float(gained(rates[ids], self.base, *self.rows[:, :end]).sum())
        return gain / float(self.rows.sum() + self.unseen.sum())
