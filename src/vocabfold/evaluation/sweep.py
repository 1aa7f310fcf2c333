"""Codebook + its counts -> what other budgets would give, with the codebook's own aim and settings.

A codebook is fitted once for every budget, but the counts are read only once. With the methods that fold by
rate, everything that a budget decides depends on the counts of a value alone: private are those with enough
rows, and all others have the id of their rate. So rows of other folds, and new rows, are summed by the counts
of their values, and each budget is judged by these sums. The other methods are fitted anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.out_of_fold import gained, ids_by_rate, other_counts, others, told_by_rest
from vocabfold.codebook.queries import alike_in_folds
from vocabfold.codebook.stores import Built
from vocabfold.counts.counts import Counts
from vocabfold.errors import InputError
from vocabfold.evaluation.held_out import hedged, judge
from vocabfold.fitting.at_budget import Solved, pairs_of, solve
from vocabfold.fitting.by_rate import Frequent
from vocabfold.fitting.fitting import fit
from vocabfold.fitting.pairs import Pairs
from vocabfold.fitting.settings import check_options
from vocabfold.fitting.split import Split
from vocabfold.folding.allocation import BY_VALUE
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support import notes
from vocabfold.support.progress import track

MOST_STEPS = 200
_FEW_STEPS = 25  # of methods that have to be fitted anew, or are slow
_SLOW = (*BY_VALUE, "dynamic", "stochastic", "threshold", "agglomerative", "divisive")
_MOST_IDS = 200_000  # that are tried, if the codebook does not come near them
_STEPS_PER_OCTAVE = 16
_LARGEST = 2**53
_ROUNDING = 1e-9

Floats = NDArray[np.float64]
Units = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One budget: the columns with what they keep and gain on other folds, and the gain on new rows of each."""

    budget: int
    columns: Mapping[str, BookColumn]
    held_out: Mapping[str, float] | None = None


def sweep(
    book: Codebook, counts: Counts, new_rows: Counts | None = None, steps: int | None = None
) -> list[Step]:
    """Return what at most so many budgets give, from one id per column on; that of the codebook is among them.

    `new_rows` are the counts of held-out rows, as `count_new` returns them.
    """
    check_counts(book, counts)
    n_steps = steps or (_FEW_STEPS if book.settings["method"] in _SLOW else MOST_STEPS)
    with notes.taking():  # the caller's budget had its warnings when it was fitted
        fitting = _fit_all if book.settings["method"] in BY_VALUE else _sum_all
        found = fitting(book, counts, new_rows, n_steps)
    chosen = next(step for step in found if step.budget == book.budget)
    if not all(_is_same(book.columns[name], column) for name, column in chosen.columns.items()):
        raise other_counts()
    return found


def spaced(least: int, chosen: int, most: int, n: int) -> list[int]:
    """Return at most n budgets (n >= 3), evenly spaced by ratio; if they suffice, half of one is another."""
    octaves = math.log2(most / least) if most > least else 0.0
    room = n - 3  # beside the ends and the chosen one
    per_octave = room / octaves if octaves else 0.0
    if per_octave >= 1:
        per_octave = min(math.floor(per_octave), _STEPS_PER_OCTAVE)
    first, last = (math.log2(end / chosen) * per_octave for end in (least, most))
    steps = range(math.ceil(first), math.floor(last) + 1) if per_octave else ()
    inner = {round(chosen * 2 ** (i / per_octave)) for i in steps}
    return sorted(budget for budget in inner | {least, chosen, most} if least <= budget <= most)


def check_counts(book: Codebook, counts: Counts) -> None:
    """Refuse counts that the codebook was certainly not fitted on."""
    if not isinstance(counts, Counts):
        raise InputError(f"counts must come from vf.count or vf.load_counts, got {type(counts).__name__}.")
    of_book = book.label, book.positive, book.units_per_row, book.neg, book.pos, book.features
    of_counts = counts.label, counts.positive, counts.units_per_row, counts.neg, counts.pos, counts.features
    if of_book != of_counts:
        raise other_counts()
    settings = _settings(book, book.budget)
    check_options(settings.pop("budget"), **settings)  # a header may say anything
    if book.budget > _LARGEST:
        raise InputError(f"budget must be at most {_LARGEST:,} to try others, got {book.budget:,}.")


def _is_same(mine: BookColumn, theirs: BookColumn) -> bool:
    whole = ("kind", "size", "n_values", "n_rare", "n_dedicated", "n_rates", "other")
    return all(getattr(mine, name) == getattr(theirs, name) for name in whole) and all(
        math.isclose(getattr(mine, name), getattr(theirs, name), rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        for name in ("information", "total", "mean")
    )


def _budgets(book: Codebook, enough: int, n_steps: int) -> list[int]:
    """Return the budgets to try: up to the one that is enough, or to as many ids as are worth looking at."""
    is_own, chosen = book.settings["unseen"] == "own", book.budget
    enough += len(book) if is_own or book.n_rare else 0
    least = min(chosen, len(book) * (2 if is_own else 1))
    most = max(least, 2 * chosen, min(enough, max(_MOST_IDS, 4 * chosen)))
    return spaced(least, chosen, most, n_steps)


def _settings(book: Codebook, budget: int) -> dict[str, Any]:
    """Return the settings of the codebook at a budget, as `fit` takes them; its own may be automatic."""
    given = {name: value for name, value in book.settings.items() if name != "dedicated_from"}  # which follows
    return given if budget == book.budget else given | {"budget": budget}


def _fit_all(book: Codebook, counts: Counts, new_rows: Counts | None, n_steps: int) -> list[Step]:
    """Return what each budget gives, by fitting and judging."""
    steps = []
    for budget in map(int, track([*map(str, _budgets(book, book.n_values, n_steps))], "trying budgets")):
        settings = _settings(book, budget)
        found = fit(counts, settings.pop("budget"), **settings)
        judged = None if new_rows is None else judge(found, new_rows, "")
        held_out = None if judged is None else {name: one.gain for name, one in judged.items()}
        steps.append(Step(budget, found.columns, held_out))
    return steps


def _sum_all(book: Codebook, counts: Counts, new_rows: Counts | None, n_steps: int) -> list[Step]:
    """Return what each budget gives, by sums over values with equal counts."""
    steps: list[Step] = []
    with Engine(counts.memory_limit) as engine:
        pairs = pairs_of(engine, counts, book.settings)
        if any(
            _pooled(pairs[name]) != (column.n_values, column.n_rare) for name, column in book.columns.items()
        ):
            raise other_counts()
        folds, new = {}, {}
        for name in track(book.features, "trying rows", engine.progress):
            values = book.store.sql(engine, name)
            if counts.folds:
                by_fold = counts.sql(engine, name, by_fold=True)
                found = engine.run(_in_order(alike_in_folds(values, by_fold, by_id=False)))
                folds[name] = FoldSums.of(counts, pairs[name], found)
            if new_rows is not None:
                new[name] = NewSums.of(book, new_rows, pairs[name], _by_counts(engine, new_rows, name, values))
        frequent, budgets = Frequent(counts), _budgets(book, _enough(book, pairs), n_steps)
        # The largest budget first: its private values hold those of all others.
        for budget in map(int, track([*map(str, budgets[::-1])], "trying budgets")):
            try:
                solved = solve(engine, counts, pairs, _settings(book, budget), frequent)
            except InputError:
                if book.settings["shards"] == 1 or budget == book.budget:
                    raise
                continue  # fewer ids than shards
            steps.append(_step(budget, solved, pairs, folds, new))
    return steps[::-1]


def _pooled(pairs: Pairs) -> tuple[int, int]:
    """Return how many values of a column are in a codebook, and how many are too rare."""
    return int(pairs.n_values[~pairs.is_rare].sum()), int(pairs.n_values[pairs.is_rare].sum())


def _enough(book: Codebook, pairs: Mapping[str, Pairs]) -> int:
    """Return how many ids can be used, without those of values that are not in the codebook."""
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


def _by_counts(engine: Engine, new_rows: Counts, name: str, values: str) -> pa.Table:
    """Return the units of new rows by label, and by the counts that their values had at fit."""
    sums = (
        "SELECT b.neg AS all_neg, b.pos AS all_pos, sum(c.neg)::BIGINT AS neg, sum(c.pos)::BIGINT AS pos "
        f"FROM ({new_rows.sql(engine, name)}) c LEFT JOIN ({values}) b "
        "ON c.value IS NOT DISTINCT FROM b.value GROUP BY ALL"
    )
    return engine.run(_in_order(sums))


def _in_order(sql: str) -> str:
    """Return a query with its rows in order: sums of fractions then have the same last digit every time."""
    return f"{sql} ORDER BY ALL"


@dataclass(frozen=True, eq=False)
class FoldSums:
    """The rows of one column by fold and by the counts of their values, those with few rows first."""

    units: Units  # of a value, in all folds
    rest: Units  # of a value in the other folds, by label
    here: Units  # of a value in this one
    fold: NDArray[np.int32]
    n: Units  # values that are alike
    own: Floats  # what those from here on tell about rows of other folds if all are private, in nats
    pool: Units  # of pooled values, by label and fold
    units_per_row: int
    n_rows: float
    overall: float

    @classmethod
    def of(cls, counts: Counts, pairs: Pairs, found: pa.Table) -> FoldSums:
        """Return the sums over values that are alike in folds."""
        is_pooled = np.asarray(found["all_neg"].is_null())
        here, whole = (
            np.array([found[side].fill_null(0).to_numpy() for side in sides])
            for sides in (("neg", "pos"), ("all_neg", "all_pos"))
        )
        fold, n = (found[name].to_numpy() for name in ("fold", "n"))
        pool = np.zeros((2, counts.folds), np.int64)
        for sums, side in zip(pool, here, strict=True):
            np.add.at(sums, fold[is_pooled], (side * n)[is_pooled])
        units = whole.sum(axis=0)
        order = np.argsort(units, kind="stable")
        order = order[~is_pooled[order]]
        rest, here = (whole - here)[:, order], here[:, order]
        upr, overall = counts.units_per_row, counts.pos / (counts.neg + counts.pos)
        own = n[order] * told_by_rest(rest / upr, here / upr, overall, pairs.prior.strength)
        return cls(
            units[order],
            rest,
            here,
            fold[order],
            n[order],
            np.append(np.cumsum(own[::-1])[::-1], 0.0),
            pool,
            upr,
            (counts.neg + counts.pos) / upr,
            overall,
        )

    def gain(self, column: BookColumn, least: int) -> float:
        """Return what the ids tell about rows of other folds, if values with so many units are private."""
        end = int(np.searchsorted(self.units, least))  # of the tail
        ids = (
            ids_by_rate(column, self.rest[0, :end], self.rest[1, :end], self.units_per_row)
            if end
            else np.empty(0, np.int32)
        )
        rows = np.zeros((2, self.pool.shape[1], column.size))
        for total, part in zip(rows, self.here[:, :end], strict=True):
            np.add.at(total, (self.fold[:end], ids), part * self.n[:end] / self.units_per_row)
        of_pool = others(column, self.pool, self.units_per_row)[:-1]
        rows[:, np.arange(of_pool.size), of_pool] += self.pool / self.units_per_row
        rest = rows.sum(axis=1, keepdims=True) - rows
        told = told_by_rest(rest, rows, self.overall, column.strength).sum() + self.own[end]
        return float(told / self.n_rows)


@dataclass(frozen=True, eq=False)
class NewSums:
    """New rows of one column by the counts that their values had at fit, those with few rows first."""

    units: Units  # of a value at fit
    at_fit: Units  # by label
    rows: Floats  # new ones, by label
    unseen: Floats
    own: Floats  # what values from here on tell about them if all are private, in nats
    base: float
    units_per_row: int

    @classmethod
    def of(cls, book: Codebook, new_rows: Counts, pairs: Pairs, found: pa.Table) -> NewSums:
        """Return the sums that were found."""
        is_unseen = np.asarray(found["all_neg"].is_null())
        rows = np.array([found[side].to_numpy() for side in ("neg", "pos")]) / new_rows.units_per_row
        at_fit = np.array([found[side].fill_null(0).to_numpy() for side in ("all_neg", "all_pos")])
        order = np.argsort(at_fit.sum(axis=0), kind="stable")
        order = order[~is_unseen[order]]
        base, upr = book.pos / (book.neg + book.pos), book.units_per_row
        units = at_fit.sum(axis=0)[order]
        rates = pairs.prior.rates(*(at_fit[:, order] / upr))
        own = gained(hedged(rates, units / upr, base, pairs.prior.strength), base, *rows[:, order])
        return cls(
            units,
            at_fit[:, order],
            rows[:, order],
            rows[:, is_unseen].sum(axis=1),
            np.append(np.cumsum(own[::-1])[::-1], 0.0),
            base,
            upr,
        )

    def gain(self, built: Built, pairs: Pairs, split: Split) -> float:
        """Return what the ids at fit tell about the new rows, per row."""
        column, end = built.column, int(np.searchsorted(self.units, split.least))
        of_shared = split.shared(pairs)
        rows_at_fit = np.zeros(column.size)
        units = (pairs.units * pairs.n_values)[of_shared]
        np.add.at(rows_at_fit, built.of_pairs["id"].to_numpy(), units / self.units_per_row)
        private = built.of_values["neg"].to_numpy() + built.of_values["pos"].to_numpy()
        rows_at_fit[built.of_values["id"].to_numpy()] += private / self.units_per_row
        rows_at_fit[column.other] += sum(pairs.pool) / self.units_per_row
        rates = hedged(np.asarray(column.rates), rows_at_fit, self.base, column.strength)
        told = float(self.own[end] + gained(rates[[column.other]], self.base, *self.unseen[:, None])[0])
        if end:
            ids = ids_by_rate(column, self.at_fit[0, :end], self.at_fit[1, :end], self.units_per_row)
            told += float(gained(rates[ids], self.base, *self.rows[:, :end]).sum())
        return told / float(self.rows.sum() + self.unseen.sum())
