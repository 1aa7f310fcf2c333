"""Codebook + rows that it was not fitted on -> Evaluation: how well its ids generalise.

The information that a codebook keeps of its training rows shows how good the fold is, not how well it
generalises. Here new rows are counted by value, joined with the codebook, and predicted by the rates of the ids
at fit.
"""

from __future__ import annotations

import math
from dataclasses import replace
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
from vocabfold.errors import InputError, argument
from vocabfold.evaluation.chance import NORMAL, ByLabel
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

Floats = NDArray[np.float64]


def evaluate(book: Codebook, data: Any, label: str | None, **options: Any) -> Evaluation:
    """Evaluate a codebook on rows that it was not fitted on; see `Codebook.evaluate`."""
    found = judge(book, *count_new(book, data, label, **options))
    if not book.has_weights or options["weight"] is not None:
        return found
    said = (
        "the codebook was fitted with weights, but these rows have none, so their rates and gains are others: "
        f"give {argument('weight')}."
    )
    return replace(found, warnings=(said, *found.warnings))


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
        positive=book.positive if positive is None else positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
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
            shares = np.append(shares, (once.sum() + n_rare) / at_fit.rows.sum())
            # Expect as many new rows with unseen values as there were rows of values seen once (good1953).
            expected = at_fit.rows - once
            expected[book.columns[name].other] += once.sum()
            of_new = ByLabel.of(now, counts)
            drifted = drift(expected, of_new.rows, book.rows_known, counts.rows_known)
            information = order(now["neg"], now["pos"]).total
            columns[name] = _judged(book.columns[name], base, at_fit, of_new, information, drifted, shares)
    warnings = []
    is_fitted = any(book.knows(read) for read in counts.fingerprints)
    if is_fitted:
        said = "looks like the training data: the figures are optimistic. Evaluate on held-out rows."
        warnings.append(f"{place} {said}")
    for name, column in columns.items():
        warnings += warnings_of(book, name, column)
    rate = counts.pos / (counts.neg + counts.pos)
    return Evaluation(columns, counts.rows, counts.n_rows, rate, base, is_fitted, tuple(warnings))


def _at_fit(engine: Engine, book: Codebook, name: str) -> tuple[ByLabel, Floats, float]:
    """Return the rows of each id at fit; and by weight, those of values seen once, and of rare values."""
    column = book.columns[name]
    once = f"sum(neg + pos) FILTER ({sql_rows(book.sums, book.units_per_row)} <= 1)"
    sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in book.sums)
    found = engine.run(
        f"SELECT id, {sums}, coalesce({once}, 0)::BIGINT AS once "
        f"FROM ({book.store.sql(engine, name)}) GROUP BY id"
    )
    of_ids = {side: np.zeros(column.size, np.int64) for side in (*book.sums, "once")}
    for side, sums_of_ids in of_ids.items():
        sums_of_ids[found["id"].to_numpy()] = found[side].to_numpy()
    rare = {side: total - of_ids[side].sum() for side, total in book.of_all.items()}
    for side, of_rare in rare.items():
        of_ids[side][column.other] += of_rare
    n_rare = (rare["neg"] + rare["pos"]) / book.units_per_row
    return ByLabel.of(of_ids, book), of_ids["once"] / book.units_per_row, n_rare


def _now(
    engine: Engine, book: Codebook, counts: Counts, name: str
) -> tuple[dict[str, NDArray[np.int64]], Floats]:
    """Return the sums of each id in the new rows, and the shares unseen, infrequent and missing."""
    column = book.columns[name]
    found = joined(
        engine,
        book,
        counts,
        name,
        f"coalesce(id, {column.other}) AS id, id IS NULL AS is_unseen, "
        "coalesce(is_infrequent, false) AS is_infrequent, is_missing",
    )
    sums = {side: np.zeros(column.size, np.int64) for side in counts.sums}
    for side, of_ids in sums.items():
        np.add.at(of_ids, found["id"].to_numpy(), found[side].to_numpy())
    marks = [np.asarray(found[mark]) for mark in ("is_unseen", "is_infrequent", "is_missing")]
    units = found["neg"].to_numpy() + found["pos"].to_numpy()
    return sums, np.array([units[mark].sum() for mark in marks]) / units.sum()


def joined(engine: Engine, book: Codebook, counts: Counts, name: str, groups: str) -> pa.Table:
    """Return the sums of new rows by `groups`, in their order.

    Groups are expressions of the id of a value, its sums at fit (all_neg, ...), is_infrequent and is_missing.
    """
    at_fit = ", ".join(f"{side} AS all_{side}" for side in book.sums)
    is_frequent = sql_at_least(book.sums, book.units_per_row, book.settings["dedicated_min"])
    known = (
        f"SELECT value, id, {at_fit}, NOT {is_frequent} AS is_infrequent FROM ({book.store.sql(engine, name)})"
    )
    value, is_held = converted("value", counts.kinds[name], book.columns[name].kind)
    sums = ", ".join(counts.sums)
    new = f"SELECT {value} AS value, {is_held} AS is_held, {sums} FROM ({counts.sql(engine, name)})"
    both = (
        f"SELECT b.* EXCLUDE value, c.value IS NULL AND is_held AS is_missing, {sums} "
        f"FROM ({new}) c LEFT JOIN ({known}) b ON is_held AND c.value IS NOT DISTINCT FROM b.value"
    )
    sums = ", ".join(f"sum({side})::BIGINT AS {side}" for side in counts.sums)
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
    at_fit: ByLabel,
    now: ByLabel,
    information: float,
    drifted: Drift,
    shares: Floats,
) -> ColumnEvaluation:
    """Return the figures of one column."""
    rates = hedged(np.asarray(column.rates), at_fit.rows_known, base, column.strength)
    ones, zeros = np.ones(rates.size), np.zeros(rates.size)
    of_a_row = [gained(rates, base, ones, zeros), gained(rates, base, zeros, ones)]  # of each label
    gain, error = now.gain(np.array(of_a_row))
    rows, has_rows = now.rows, now.rows > 0
    low, high = now.interval
    # The rate at fit is an estimate, too, with an error of its own.
    spread = np.sqrt(now.variance(rates) + at_fit.variance(rates))
    shift = np.abs(now.rates - rates)
    is_miscalibrated = shift > NORMAL * np.maximum(spread, 1e-12)
    return ColumnEvaluation(
        kept=column.information,
        out_of_fold=column.gain,
        information=information,
        gain=gain,
        error=error,
        unseen=float(shares[0]),
        infrequent=float(shares[1]),
        missing=float(shares[2]),
        expected_unseen=float(shares[3]),
        drift=drifted.index,
        drift_error=drifted.error,
        moved=drifted.moved,
        miscalibration=float((rows[has_rows] @ shift[has_rows]) / rows.sum()),
        n_miscalibrated=int(np.count_nonzero(is_miscalibrated[has_rows])),
        ids=pa.table(
            {
                "id": np.arange(rates.size, dtype=np.int32),
                "rows_at_fit": at_fit.rows,
                "rate_at_fit": rates,
                "rows": rows,
                "rate": pa.array(now.rates, from_pandas=True),
                "low": low,
                "high": high,
                "neg_rows": now.once[0],
                "pos_rows": now.once[1],
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
