"""Counts -> Codebook: the steps in order."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import pyarrow as pa

from vocabfold import checks
from vocabfold.budget import BY_VALUE, METHODS, OPTIMAL, Tuning, check_method
from vocabfold.building import Built
from vocabfold.cluster.store import ClusterStore
from vocabfold.codebook import UNSEEN, Codebook
from vocabfold.columns import sorted_by_value
from vocabfold.counts import Counts, in_rows
from vocabfold.crossfit import gain, grouped
from vocabfold.engines.duckdb import Engine
from vocabfold.errors import InputError
from vocabfold.lookup import Index
from vocabfold.progress import track
from vocabfold.solving import AUTO, Frequent, pairs_of, solve

AIMS = ("model", "information")
_SAFE_COUNT = 20  # rows, below which the id of a value would tell a model the labels of these rows


@dataclass(frozen=True, eq=False)
class FittedStore:
    """The values of a codebook as a query: counts joined with the ids of their (neg, pos); private values."""

    counts: Counts
    built: Mapping[str, Built]

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id, neg, pos of a column."""
        built = self.built[name]
        of_pairs, of_values = (engine.table(table) for table in (built.of_pairs, built.of_values))
        counts = self.counts.sql(engine, name)
        if built.buckets:
            hashed = built.buckets.sql(counts, self.counts.kinds[name])
            return f"SELECT h.value, id, h.neg, h.pos FROM ({hashed}) h JOIN {of_values} v ON bucket = v.value"
        if built.is_divided:
            is_same = "c.value IS NOT DISTINCT FROM v.value"
            counts = f"SELECT * FROM ({counts}) c ANTI JOIN {of_values} v ON {is_same}"
        return (
            f"SELECT value, id, neg, pos FROM ({counts}) JOIN {of_pairs} USING (neg, pos) "
            f"UNION ALL SELECT value, id, neg, pos FROM {of_values}"
        )

    def by_fold(self, engine: Engine) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column how many values have the same id, counts, fold and counts there."""
        for name in track(self.counts.features, "trying other folds", engine.progress):
            yield name, grouped(engine, self.counts, name, self.sql(engine, name))

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory."""
        with Engine(self.counts.memory_limit) as engine:
            tables = {name: engine.run(sorted_by_value(self.sql(engine, name), "value, id")) for name in names}
        return {name: Index(table["value"], table["id"].to_numpy()) for name, table in tables.items()}


def fit(
    counts: Counts,
    budget: int | str,
    *,
    aim: str = "model",
    method: str = "exact",
    allocation: str = "joint",
    smoothing: float | str | None = None,
    min_count: int | None = None,
    private_min: int = 30,
    tail: int = 8,
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
        `private_min` rows has an id of its own, and each id of a tail pays for itself.
    aim : {"model", "information"}
        "model": ids for a model to learn from. Values with many rows keep ids of their own; all others of a
        column, its tail, are folded by their rates, with chance taken into account. "information": the paper's
        objective, the fold that keeps the most information about the label in the rows that were counted.
    method, allocation, epsilon, shards, seed
        As for `fold_table`; with aim="model" they fold the tails. "frequency", "selection" and "hashing", which
        do not fold by rate, are for aim="information"; "hashing" hashes the values themselves.
    smoothing : float or "auto", optional
        How many rows at the overall rate each value is credited with. "auto", the default with aim="model": as
        many as the column's counts are most likely with. 0, the default with aim="information": none.
    min_count : int, optional
        Values with fewer rows than this (by weight) are pooled as `other`: with aim="model" an id of its own,
        with aim="information" folded like any value. By default 20 with aim="model", as a codebook is often
        applied to the rows that it was fitted on, and 1, which pools none, with aim="information".
    private_min : int
        With aim="model": the fewest rows that earn a value an id of its own, budget permitting.
    tail : int
        With aim="model": ids for each column that has a tail, on average; at most half of the budget.
    unseen : {"other", "own", "error"}
        What values get that are not in the codebook. "other": the id of the pool, or, if nothing was pooled,
        the id whose rates are around the overall rate. "own": in every column an id of their own, the last one,
        which counts in the budget. "error": asking for them is an error.

    Returns
    -------
    Codebook

    Raises
    ------
    InputError
        The counts or the options cannot be used.

    Notes
    -----
    The id of a rare value tells its labels: a model trained on the rows that were counted would trust it too
    much. `fit_transform` encodes such rows without their own labels; or fit on older rows than those the model
    sees.

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
        raise InputError(f"counts must come from vf.count or vf.load_counts, got {type(counts).__name__}.")
    check_options(
        budget,
        aim=aim,
        method=method,
        allocation=allocation,
        smoothing=smoothing,
        min_count=min_count,
        private_min=private_min,
        tail=tail,
        unseen=unseen,
        epsilon=epsilon,
        shards=shards,
        seed=seed,
    )
    _check_counts(counts, budget, unseen)
    is_model, defaults = aim == "model", defaults_of(aim)
    if smoothing is None:
        smoothing = defaults["smoothing"]
    if min_count is None:
        min_count = defaults["min_count"]
    settings = {
        "aim": aim,
        "method": method,
        "allocation": allocation,
        "budget": budget if budget == AUTO else int(budget),
        "smoothing": smoothing if smoothing in (AUTO, 0) else float(smoothing),
        "min_count": int(min_count),
        "private_min": int(private_min),
        "private_from": None,  # rows: as the budget allows
        "tail": int(tail),
        "unseen": unseen,
        "epsilon": float(epsilon),
        "shards": int(shards),
        "seed": int(seed),
    }
    with Engine(counts.memory_limit) as engine:
        pairs = pairs_of(engine, counts, settings)
        solved = solve(engine, counts, pairs, settings, Frequent(counts))
        built, ids = solved.built, solved.split
        store = ClusterStore(counts.cluster, built) if counts.cluster else FittedStore(counts, built)
        columns = {name: of_column.column for name, of_column in built.items()}
        if counts.folds:
            for name, found in store.by_fold(engine):
                columns[name] = replace(columns[name], gain=gain(counts, columns[name], found))
    if is_model:
        columns = {name: replace(column, gap=None) for name, column in columns.items()}
    private_from = in_rows(ids.least, counts.units_per_row) if ids.has_private else None
    return Codebook(
        columns=columns,
        gap=None if is_model else solved.gap,
        bound=None if is_model else solved.kept + solved.gap,
        settings=settings | {"private_from": private_from},
        label=counts.label,
        positive=counts.positive,
        units_per_row=counts.units_per_row,
        neg=counts.neg,
        pos=counts.pos,
        store=store,
        sources=counts.sources,
        fingerprints=counts.fingerprints,
        memory_limit=counts.memory_limit,
        left_out=counts.left_out,
    )


def defaults_of(aim: str) -> dict[str, Any]:
    """Return what depends on the aim if nobody says it."""
    if aim == "model":
        return {"smoothing": AUTO, "min_count": _SAFE_COUNT}
    return {"smoothing": 0, "min_count": 1}


def _is_strength(smoothing: object) -> bool:
    """Tell whether something is a number of rows, and none that is too large for a double."""
    if not isinstance(smoothing, Real) or isinstance(smoothing, bool):
        return False
    try:
        return 0 <= float(smoothing) < math.inf
    except OverflowError:
        return False


def check_options(
    budget: int | str,
    *,
    aim: str,
    method: str,
    allocation: str,
    smoothing: float | str | None,
    min_count: int | None,
    private_min: int,
    tail: int,
    unseen: str,
    epsilon: float,
    shards: int,
    seed: int,
) -> None:
    """Refuse options that cannot be used, before anything is counted."""
    checks.choice("aim", aim, AIMS)
    checks.choice("method", method, METHODS)
    checks.choice("unseen", unseen, UNSEEN)
    Tuning(epsilon, shards, seed)
    if method in BY_VALUE and aim == "model":
        also = " and allocation='uniform'" if method == "hashing" and allocation == "joint" else ""
        raise InputError(
            f"method {method!r} does not fold by rate, which aim='model' does with rare values; give "
            f"aim='information'{also}."
        )
    if budget == AUTO and aim != "model":
        raise InputError("budget='auto' is for aim='model'; give a number of ids.")
    if budget == AUTO and method not in OPTIMAL:
        raise InputError("budget='auto' is for method='exact'; give that method, or a number of ids.")
    check_method(method, allocation)
    if method in BY_VALUE and smoothing not in (None, 0):
        raise InputError(f"method {method!r} takes counts as they are; leave smoothing out.")
    if budget != AUTO:
        if isinstance(budget, str):
            raise InputError(f"budget must be a number of ids, or 'auto', got {budget!r}.")
        checks.at_least("budget", budget, 1)
    if not (smoothing in (None, AUTO) or _is_strength(smoothing)):
        raise InputError(f"smoothing must be 'auto' or a number of rows, 0 or more, got {smoothing!r}.")
    if min_count is not None:
        checks.at_least("min_count", min_count, 1)
    checks.at_least("private_min", private_min, 1)
    checks.at_least("tail", tail, 1)


def check_training(unseen: str, min_count: int, method: str) -> None:
    """Refuse options with which the rows that are fitted cannot be encoded; warn of ids that tell labels."""
    if method == "selection":
        warnings.warn(
            "method 'selection' chooses values by the labels of these rows, so that the id of a rare one tells "
            "them even here; use another method, or fit on older rows.",
            stacklevel=3,
        )
    if unseen == "error" and min_count > 1:
        raise InputError("unseen='error' refuses pooled values, which these rows would have; give min_count=1.")


def _check_counts(counts: Counts, budget: int | str, unseen: str) -> None:
    """Refuse counts that cannot be fitted, and a budget that is too small for them."""
    n_columns = len(counts.features)
    least, why = n_columns, " (one id per column)"
    if unseen == "own":
        least, why = 2 * n_columns, " (two ids per column with unseen='own')"
    if budget != AUTO:
        checks.at_least("budget", budget, least, why)  # type: ignore[arg-type]
    for side, name in ((counts.neg, "negative"), (counts.pos, "positive")):
        if not side:
            raise InputError(
                f"no row has a {name} label ({counts.label!r}, positive is {counts.positive!r}); "
                "both classes are needed to fit."
            )
