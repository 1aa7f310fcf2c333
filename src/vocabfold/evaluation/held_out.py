"""Codebook + rows that it was not fitted on -> Evaluation: how well its ids generalise.

The information that a codebook keeps of its training rows shows how good the fold is, not how well it
generalises. Here new rows are counted by value, joined with the codebook, and predicted by the rates of the ids
at fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.out_of_fold import gained
from vocabfold.counts.counting import count_as
from vocabfold.counts.counts import Counts
from vocabfold.counts.units import in_rows, sql_at_least, sql_rows
from vocabfold.encoding.encoder import check_kinds, check_values
from vocabfold.errors import InputError
from vocabfold.evaluation.drift import Drift, drift
from vocabfold.evaluation.results import ColumnEvaluation, Evaluation, warnings_of
from vocabfold.folding.curve import order
from vocabfold.io.engines.duckdb import Engine, parse_memory
from vocabfold.io.engines.kinds import KINDS, converted
from vocabfold.io.rows import files
from vocabfold.io.rows.opening import opened
from vocabfold.support import checks
from vocabfold.support.checks import number
from vocabfold.support.progress import track

_NORMAL = 1.96  # standard errors on either side, for 95 %

Floats = NDArray[np.float64]


def evaluate(book: Codebook, data: Any, label: str | None, **options: Any) -> Evaluation:
    """Evaluate a codebook on rows that it was not fitted on; see `Codebook.evaluate`."""
    return judge(book, *count_new(book, data, label, **options))


def count_new(
    book: Codebook,
    data: Any,
    label: str | None,
    *,
    positive: Any,
    weight: str | None,
    drop_null_labels: bool,
    preset: str | None,
    memory_limit: int | str | None,
) -> tuple[Counts, str]:
    """Count new rows by the values of the codebook's columns; also return the name of the data."""
    limit = parse_memory(memory_limit) or book.memory_limit
    with opened(data, preset, limit) as (_, found):
        place = found.name
        checks.known("column", book.features, found.names, found.place)
        if files.are_paths(data) and not found.is_text:
            check_values(book, found.stream(book.features, {}, False).schema, place)
    counts = count_as(
        {name: column.kind for name, column in book.columns.items()},
        data,
        book.label if label is None else label,
        list(book.features),
        also=None,
        exclude=None,
        positive=book.positive if positive is None else positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
        folds=0,
        fold_seed=0,
        fold_column=None,
        memory_limit=limit,
    )
    kinds = [
        (name, KINDS[kind].arrow if kind != "missing" else pa.null()) for name, kind in counts.kinds.items()
    ]
    check_kinds(book, pa.schema(kinds), place)
    return counts, place


def judge(book: Codebook, counts: Counts, place: str) -> Evaluation:
    """Evaluate a codebook on the counts of new rows."""
    base = book.pos / (book.neg + book.pos)
    columns = {}
    with Engine(counts.memory_limit) as engine:
        for name in track(book.features, "evaluating", engine.progress):
            at_fit, once, n_rare = _at_fit(engine, book, name)
            now, shares = _now(engine, book, counts, name)
            shares = np.append(shares, (once.sum() + n_rare) / at_fit.sum())
            # Expect as many new rows with unseen values as there were rows of values seen once (good1953).
            expected = at_fit.sum(axis=0) - once
            expected[book.columns[name].other] += once.sum()
            rows = now.sum(axis=0) / counts.units_per_row
            drifted = drift(expected, rows, book.rows_known, counts.rows_known)
            columns[name] = _judged(
                book.columns[name], base, at_fit, drifted, now, shares, counts.units_per_row
            )
    warnings = []
    is_fitted = any(book.knows(read) for read in counts.fingerprints)
    if is_fitted:
        said = "looks like the training data: the figures are optimistic. Evaluate on held-out rows."
        warnings.append(f"{place} {said}")
    for name, column in columns.items():
        warnings += warnings_of(book, name, column)
    rate = counts.pos / (counts.neg + counts.pos)
    return Evaluation(columns, counts.rows, counts.n_rows, rate, base, is_fitted, tuple(warnings))


def _at_fit(engine: Engine, book: Codebook, name: str) -> tuple[Floats, Floats, float]:
    """Return the rows of each id at fit by label; its rows of values seen once; and the rows of rare values."""
    column = book.columns[name]
    once = f"sum(neg + pos) FILTER ({sql_rows(book.sums, book.units_per_row)} <= 1)"
    found = engine.run(
        f"SELECT id, sum(neg)::BIGINT AS neg, sum(pos)::BIGINT AS pos, coalesce({once}, 0)::BIGINT AS once "
        f"FROM ({book.store.sql(engine, name)}) GROUP BY id"
    )
    units = np.zeros((3, column.size), np.int64)
    for side, sums in zip(("neg", "pos", "once"), units, strict=True):
        sums[found["id"].to_numpy()] = found[side].to_numpy()
    rare = [book.neg - units[0].sum(), book.pos - units[1].sum()]
    units[:2, column.other] += rare
    rows = units / book.units_per_row
    return rows[:2], rows[2], sum(rare) / book.units_per_row


def _now(engine: Engine, book: Codebook, counts: Counts, name: str) -> tuple[NDArray[np.int64], Floats]:
    """Return the units of each id in the new rows, by label, and the shares unseen, infrequent and missing."""
    column = book.columns[name]
    found = joined(
        engine,
        book,
        counts,
        name,
        f"coalesce(id, {column.other}) AS id, id IS NULL AS is_unseen, "
        "coalesce(is_infrequent, false) AS is_infrequent, is_missing",
    )
    units = np.zeros((2, column.size), np.int64)
    ids = found["id"].to_numpy()
    sides = [found[side].to_numpy() for side in ("neg", "pos")]
    for sums, side in zip(units, sides, strict=True):
        np.add.at(sums, ids, side)
    marks = [np.asarray(found[mark]) for mark in ("is_unseen", "is_infrequent", "is_missing")]
    rows = sides[0] + sides[1]
    return units, np.array([rows[mark].sum() for mark in marks]) / rows.sum()


def joined(engine: Engine, book: Codebook, counts: Counts, name: str, groups: str) -> pa.Table:
    """Return the units of new rows by label and by `groups`, in their order.

    Groups are expressions of the id of a value, its sums at fit (all_neg, ...), is_infrequent and is_missing.
    """
    at_fit = ", ".join(f"{side} AS all_{side}" for side in book.sums)
    is_frequent = sql_at_least(book.sums, book.units_per_row, book.settings["dedicated_min"])
    known = (
        f"SELECT value, id, {at_fit}, NOT {is_frequent} AS is_infrequent FROM ({book.store.sql(engine, name)})"
    )
    value, is_held = converted("value", counts.kinds[name], book.columns[name].kind)
    new = f"SELECT {value} AS value, {is_held} AS is_held, neg, pos FROM ({counts.sql(engine, name)})"
    both = (
        "SELECT b.* EXCLUDE value, c.value IS NULL AND is_held AS is_missing, c.neg, c.pos "
        f"FROM ({new}) c LEFT JOIN ({known}) b ON is_held AND c.value IS NOT DISTINCT FROM b.value"
    )
    sums = "sum(neg)::BIGINT AS neg, sum(pos)::BIGINT AS pos"
    found = engine.run(f"SELECT {groups}, {sums} FROM ({both}) GROUP BY ALL ORDER BY ALL")
    n_joined, n_counted = int(np.sum(found["neg"]) + np.sum(found["pos"])), counts.neg + counts.pos
    if n_joined != n_counted:
        rows, of = (number(in_rows(n, counts.units_per_row), "row") for n in (n_joined, n_counted))
        raise InputError(
            f"column {name!r}: {rows} met the codebook, but {of} were counted: they changed when they were "
            "read again. Write the rows to files that do not change, and evaluate those."
        )
    return found


def _judged(
    column: BookColumn,
    base: float,
    at_fit: Floats,
    drifted: Drift,
    units: NDArray[np.int64],
    shares: Floats,
    units_per_row: int,
) -> ColumnEvaluation:
    """Return the figures of one column."""
    now = units / units_per_row
    rows_at_fit, rows = at_fit.sum(axis=0), now.sum(axis=0)
    rates = hedged(np.asarray(column.rates), rows_at_fit, base, column.strength)
    n = rows.sum()
    ones, zeros = np.ones(rates.size), np.zeros(rates.size)
    gains = np.array(
        [gained(rates, base, ones, zeros), gained(rates, base, zeros, ones)]
    )  # of one row of each label
    gain, squares = float((now * gains).sum() / n), float((now * gains**2).sum() / n)
    has_rows = rows > 0
    rate_now = np.divide(now[1], rows, out=np.full(rates.size, np.nan), where=has_rows)
    low, high = interval(now[1], rows)
    # The rate at fit is an estimate, too, with an error of its own.
    spread = np.sqrt(rates * (1 - rates) * (1 / np.maximum(rows, 1) + 1 / np.maximum(rows_at_fit, 1)))
    shift = np.abs(rate_now - rates)
    is_miscalibrated = shift > _NORMAL * np.maximum(spread, 1e-12)
    return ColumnEvaluation(
        kept=column.information,
        out_of_fold=column.gain,
        information=order(units[0], units[1]).total,
        gain=gain,
        error=math.sqrt(max(0.0, squares - gain * gain) / max(n - 1, 1)),
        unseen=float(shares[0]),
        infrequent=float(shares[1]),
        missing=float(shares[2]),
        expected_unseen=float(shares[3]),
        drift=drifted.index,
        drift_error=drifted.error,
        moved=drifted.moved,
        miscalibration=float((rows[has_rows] @ shift[has_rows]) / n),
        n_miscalibrated=int(np.count_nonzero(is_miscalibrated[has_rows])),
        ids=pa.table(
            {
                "id": np.arange(rates.size, dtype=np.int32),
                "rows_at_fit": rows_at_fit,
                "rate_at_fit": rates,
                "rows": rows,
                "rate": pa.array(rate_now, from_pandas=True),
                "low": low,
                "high": high,
            }
        ),
    )


def hedged(rates: Floats, rows: Floats, base: float, strength: float) -> Floats:
    """Return the rates by which ids with these rows at fit predict new rows."""
    if math.isinf(strength):
        return np.full(rates.size, base)  # all alike, up to rounding
    if strength > 0:
        return rates
    return (rates * rows + base) / (rows + 1)  # one more row, as a rate of 0 or 1 could cost infinitely much


def interval(pos: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval of each rate (wilson1927); from 0 to 1 if there are no rows."""
    weight = rows + _NORMAL**2
    middle = (pos + _NORMAL**2 / 2) / weight
    half = (
        _NORMAL
        / weight
        * np.sqrt(pos * np.divide(rows - pos, rows, out=np.zeros(rows.size), where=rows > 0) + _NORMAL**2 / 4)
    )
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
