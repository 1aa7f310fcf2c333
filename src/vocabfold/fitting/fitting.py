"""Counts -> Codebook: the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.out_of_fold import one_fold, with_gain
from vocabfold.codebook.settings import AUTO, LEAST_IDS, FitSettings
from vocabfold.codebook.spark import SparkStore
from vocabfold.codebook.stores import FittedStore
from vocabfold.counts.counts import Counts, not_counts
from vocabfold.counts.units import MAX_UNITS, whole
from vocabfold.errors import AdviceWarning, InputError, argument
from vocabfold.fitting import fold_rates
from vocabfold.fitting.advice import advice
from vocabfold.fitting.at_budget import pairs_of, solve
from vocabfold.fitting.by_rate import Frequent
from vocabfold.fitting.enough import Trained
from vocabfold.io.engines.duckdb import DUCKDB, Engine
from vocabfold.io.engines.spark import SPARK
from vocabfold.support import checks, notes

_STORES: Mapping[str, Callable[..., FittedStore | SparkStore]] = {DUCKDB: FittedStore, SPARK: SparkStore}


def fit(
    counts: Counts,
    budget: int | str,
    *,
    aim: str = "model",
    method: str = "exact",
    allocation: str = "joint",
    smoothing: float | str | None = None,
    min_count: int | None = None,
    dedicated_min: int = 30,
    shared_ids: int = 8,
    unseen: str = "other",
    epsilon: float = 0.1,
    shards: int = 1,
    seed: int = 0,
) -> Codebook:
    """Fold all columns of the counts into at most `budget` ids, and return the codebook.

    Parameters
    ----------
    counts : Counts
        From `count` or `load_counts`; rows of both classes are needed.
    budget : int or "auto"
        Ids in all, at least one per column (two with unseen="own"). "auto", for aim="model": every value with
        `dedicated_min` rows has a dedicated id, and each shared id pays for itself.
    aim : {"model", "information"}
        "model": ids to train a model on. Frequent values get dedicated ids; the infrequent values of a column
        are folded by their rates, with chance taken into account. "information": the paper's objective, which
        is to keep the most information about the label in the rows that were counted.
    method, allocation, epsilon, shards, seed
        As for `fold_table`; with aim="model" they fold the infrequent values. "frequency", "selection" and
        "hashing", which do not fold by rate, are for aim="information"; "hashing" hashes the values themselves.
    smoothing : float or "auto", optional
        How many rows at the rate of the column are added to each value, whatever rows weigh. "auto", the
        default with aim="model": the number that makes the counts of the column most likely. 0, the default
        with aim="information": none.
    min_count : int, optional
        Values with fewer rows than this are rare, and grouped as `other`: with aim="model" an id of
        its own, with aim="information" folded like any value. By default 1, which groups none; but 20 with
        aim="model" if the counts have no folds, as the counted rows could not be encoded out of fold.
    dedicated_min : int
        With aim="model": the rows that a value needs for a dedicated id, if the budget allows it.
    shared_ids : int
        With aim="model": target number of shared ids per column with infrequent values; together at most half
        of the budget.
    unseen : {"other", "own", "error"}
        What happens to values that are not in the codebook. "other": they get the id of rare values, or, if
        there are none, the id whose rates are around the overall rate. "own": they get an id of their own in
        every column, the last one, which counts in the budget. With aim="model", training rows have it out of
        fold if their value has no rows in the other folds; and if folds were counted, ids with fewer than
        `dedicated_min` training rows are merged. "error": looking them up is an error.

    Returns
    -------
    Codebook

    Raises
    ------
    InputError
        The counts or the options cannot be used.

    Warns
    -----
    VocabfoldWarning
        The folds of the counts depend on the label, so that ids of training rows would tell it, inverted.

    Notes
    -----
    The id of an infrequent value leaks the labels of its rows: a model trained on the rows that were counted
    would trust it too much. `fit_transform` encodes such rows out of fold; or fit on older rows than those the
    model is trained on.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import vocabfold as vf
    >>> rows = pa.table({"site": ["a", "b", "a", "c"] * 9, "click": [1, 0, 1, 1] * 9})
    >>> book = vf.fit(vf.count(rows, "click"), budget=2, aim="information")
    >>> book
    Codebook(1 column, budget 2: 3 values -> 2 ids: 100 % of 0.5623 nats kept, loss 0, gap 0)
      site  3 values -> 2 ids: 100 % of 0.5623 nats kept, loss 0, gap 0
    >>> book.ids("site", ["a", "b", "unknown"])
    array([1, 0, 1], dtype=int32)
    """
    if not isinstance(counts, Counts):
        raise not_counts(counts)
    # All arguments, and nothing else yet.
    return fit_counts(counts, FitSettings.of(locals(), with_folds=counts.folds > 0))


def fit_counts(counts: Counts, settings: FitSettings) -> Codebook:
    """Fold all columns of the counts, and return the codebook; see `fit`."""
    _check_counts(counts, settings.budget, settings.unseen)
    is_model = settings.aim == "model"
    with Engine(counts.memory_limit) as engine:
        pairs = pairs_of(engine, counts, settings)
        solved = solve(engine, counts, pairs, settings, Frequent(counts), Trained(counts, pairs, engine))
        built, ids = solved.built, solved.split
        store = _STORES[counts.engine](counts, built)
        columns = {name: of_column.column for name, of_column in built.items()}
        is_misled = False
        if counts.folds:
            of_folds: dict[str, fold_rates.Sums] = {}
            even: list[str] = []
            for name, by_fold in store.by_fold(engine):
                columns[name] = with_gain(counts, columns[name], by_fold)
                of_folds = of_folds or fold_rates.sums_of(counts, by_fold)  # all columns add up to the same
                if len(columns[name].shared) > 1 and fold_rates.is_even(counts, by_fold):
                    even.append(name)
            if sum(np.any(list(of_folds.values()), axis=0)) < 2:
                raise one_fold()
            is_misled = fold_rates.check(counts, columns, of_folds, even)
    if is_model:
        columns = {name: replace(column, gap=None) for name, column in columns.items()}
    dedicated_from = whole(ids.least) if ids.has_dedicated else None
    book = Codebook(
        columns=columns,
        gap=None if is_model else solved.gap,
        bound=None if is_model else solved.kept + solved.gap,
        settings=settings.noted(dedicated_from),
        label=counts.label,
        positive=counts.positive,
        units_per_row=counts.units_per_row,
        neg=counts.neg,
        pos=counts.pos,
        neg_rows=counts.neg_rows,
        pos_rows=counts.pos_rows,
        store=store,
        sources=counts.sources,
        fingerprints=counts.fingerprints,
        memory_limit=counts.memory_limit,
        left_out=counts.left_out,
    )
    dedicated = {
        name: of_column.of_values["value"] for name, of_column in built.items() if not of_column.buckets
    }
    least = min(settings.dedicated_min, MAX_UNITS)
    n_frequent = sum(
        int(of_column.n_values[~of_column.is_rare & (of_column.rows >= least)].sum())
        for of_column in pairs.values()
    )
    for line in advice(book, n_frequent, dedicated, is_misled=is_misled):
        notes.warn(line, AdviceWarning)
    return book


def _check_counts(counts: Counts, budget: int | str, unseen: str) -> None:
    """Refuse counts that cannot be fitted, and a budget that is too small for them."""
    n_columns = len(counts.features)
    why = " (one id per column)"
    if unseen == "own":
        why = f" (two ids per column with {argument('unseen', 'own')})"
    if budget != AUTO:
        checks.at_least("budget", budget, n_columns * LEAST_IDS.get(unseen, 1), why)
    for side, name in ((counts.neg, "negative"), (counts.pos, "positive")):
        if not side:
            raise InputError(
                f"no row has a {name} label ({counts.label!r}, positive is {counts.positive!r}); "
                "both classes are needed to fit."
            )
