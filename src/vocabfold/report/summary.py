"""Codebook, counts, new rows, comparison -> one dict of plain figures, which plots and page are made of.

Information is in bits per row here, and here alone: 1 bit is ln 2 = 0.693 nats.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vocabfold
from vocabfold.codebook import Codebook
from vocabfold.columns import BookColumn
from vocabfold.comparison import Comparison
from vocabfold.evaluate import interval
from vocabfold.evaluation import ColumnEvaluation, Evaluation, warnings_of
from vocabfold.fitting import fit
from vocabfold.folds import shown_gap
from vocabfold.report.budgets import Step
from vocabfold.report.contents import Contents, contents, shown

_ENOUGH = 0.99  # of the best: so many ids are enough
_MOST_BINS = 15  # of a calibration
_DIGITS = 12  # in which budgets are compared, so that rounding is no reason for more ids

Json = dict[str, Any]


def summarise(
    book: Codebook,
    steps: Sequence[Step] | None = None,
    held_out: Evaluation | None = None,
    compared: Comparison | None = None,
) -> Json:
    """Return everything that the report says."""
    inside = contents(book)
    return {
        "version": vocabfold.__version__,
        "about": _about(book, held_out),
        "columns": [
            _column(name, column, inside[name], None if held_out is None else held_out[name])
            for name, column in book.columns.items()
        ],
        "budgets": None if steps is None else _budgets(book, steps),
        "ids": [_ids(book, name, inside[name]) for name in book.features],
        "trust": None if held_out is None else _trust(book, held_out),
        "comparison": None if compared is None else _comparison(compared),
    }


def bits(nats: float) -> float:
    """Return nats in bits."""
    return nats / math.log(2)


def _maybe(nats: float | None) -> float | None:
    return None if nats is None else bits(nats)


def _gap(result: Any) -> float | None:
    """Return a gap; one that is only rounding is none."""
    return 0.0 if shown_gap(result) == "0" else _maybe(result.gap)


def _about(book: Codebook, held_out: Evaluation | None) -> Json:
    base = book.pos / (book.neg + book.pos)
    names = ("n_values", "n_pooled", "n_private", "n_rates", "size", "budget", "rows", "digest", "saved")
    return {name: getattr(book, name) for name in names} | {
        "label": shown(book.label),
        "positive": shown(book.positive),
        "rate": base,
        "entropy": bits(-(base * math.log(base) + (1 - base) * math.log1p(-base))),
        "n_columns": len(book),
        "n_tail": sum(len(column.tail) for column in book.columns.values()),
        "information": bits(book.information),
        "total": bits(book.total),
        "loss": bits(book.loss),
        "kept": _share(book.loss, book.total),
        "gap": _gap(book),
        "bound": _maybe(book.bound),
        "gain": _maybe(book.gain),
        "held_out": None if held_out is None else bits(held_out.gain),
        "settings": dict(book.settings),
        "command": _command(book),
        "sources": [shown(source, 200) for source in book.sources],
    }


def _command(book: Codebook) -> str:
    """Return the command that fits the same counts at another budget."""
    defaults = {name: option.default for name, option in signature(fit).parameters.items()}
    of_aim = (
        {"smoothing": "auto", "min_count": 20}
        if book.settings["aim"] == "model"
        else {"smoothing": 0, "min_count": 1}
    )
    given = [
        f" --{name.replace('_', '-')} {shlex.quote(str(value))}"
        for name, value in book.settings.items()
        if name in defaults and name != "budget" and value != (defaults | of_aim)[name]
    ]
    return f"vocabfold fit COUNTS --budget BUDGET{''.join(given)} -o BOOK"


def _share(loss: float, total: float) -> float:
    """Return the share that is kept."""
    return 1 - loss / total if total else 1.0


def _column(name: str, column: BookColumn, inside: Contents, held_out: ColumnEvaluation | None) -> Json:
    names = ("kind", "n_values", "n_pooled", "n_rates", "n_private", "size", "other")
    return {fact: getattr(column, fact) for fact in names} | {
        "name": shown(name),
        "n_tail": len(column.tail),
        "information": bits(column.information),
        "total": bits(column.total),
        "loss": bits(column.loss),
        "kept": _share(column.loss, column.total),
        "gap": _gap(column),
        "gain": _maybe(column.gain),
        "held_out": None if held_out is None else bits(held_out.gain),
        "rare": inside.rare,
        "missing": inside.missing,
        "expected_unseen": inside.expected_unseen,
        "unseen": None if held_out is None else held_out.unseen,
    }


def _budgets(book: Codebook, steps: Sequence[Step]) -> Json:
    """Return what each budget gives in all and to every column, and which would be enough."""
    budgets = [step.budget for step in steps]
    chosen = budgets.index(book.size if book.settings["budget"] == "auto" else book.budget)
    columns: list[Json] = [
        {
            "size": [step.columns[name].size for step in steps],
            "n_private": [step.columns[name].n_private for step in steps],
            "information": [bits(step.columns[name].information) for step in steps],
            "gain": [_maybe(step.columns[name].gain) for step in steps],
            "held_out": [None if step.held_out is None else bits(step.held_out[name]) for step in steps],
        }
        for name in book.features
    ]
    whole = {
        fact: [_sum(column[fact][i] for column in columns) for i in range(len(steps))]
        for fact in ("size", "information", "gain", "held_out")
    }
    by = next(fact for fact in ("held_out", "gain", "information") if whole[fact][0] is not None)
    figures = [round(figure, _DIGITS) for figure in whole[by]]
    best = figures.index(max(figures))
    wanted = figures[best] - (1 - _ENOUGH) * abs(figures[best])
    enough = next(i for i, figure in enumerate(figures) if figure >= wanted)
    return whole | {
        "budget": budgets,
        "total": bits(book.total),
        "chosen": chosen,
        "half": [_nearest(budgets, budget / 2) for budget in budgets],
        "double": [_nearest(budgets, budget * 2) for budget in budgets],
        "by": by,
        "best": best,
        "enough": enough,
        "columns": columns,
    }


def _sum(figures: Any) -> Any:
    """Return a sum; of figures that are not there, none."""
    there = list(figures)
    if None in there:
        return None
    return sum(there) if isinstance(there[0], int) else math.fsum(there)


def _nearest(budgets: Sequence[int], wanted: float) -> int | None:
    """Return the budget that is nearest by ratio, if one is near."""
    near = min(range(len(budgets)), key=lambda i: abs(math.log(budgets[i] / wanted)))
    is_near = abs(math.log2(budgets[near] / wanted)) < 0.25 or abs(budgets[near] - wanted) <= 1
    return near if is_near else None


def _ids(book: Codebook, name: str, inside: Contents) -> Json:
    column = book.columns[name]
    return {
        "name": shown(name),
        "other": column.other,
        "size": column.size,
        "base": column.mean,
        "is_refused": book.settings["unseen"] == "error",
        "segments": inside.segments,
        "values": inside.values,
    }


def _trust(book: Codebook, held_out: Evaluation) -> Json:
    facts = ("unseen", "expected_unseen", "rare", "missing", "drift", "miscalibration", "n_off")
    columns, warned = [], []
    for name, column in held_out.items():
        in_bits = ("kept", "out_of_fold", "information", "gain", "error")
        columns.append(
            {"name": shown(name), "n_ids": len(column.ids)}
            | {fact: _maybe(getattr(column, fact)) for fact in in_bits}
            | {fact: getattr(column, fact) for fact in facts}
            | {"calibration": _calibration([column])}
        )
        warned += warnings_of(book, name, column, unit="bits")
    first = held_out.warnings[:1] if held_out.is_fitted else ()
    return {
        "rows": held_out.rows,
        "rate": held_out.rate,
        "rate_at_fit": held_out.rate_at_fit,
        "is_fitted": held_out.is_fitted,
        "kept": bits(held_out.kept),
        "out_of_fold": _maybe(held_out.out_of_fold),
        "gain": bits(held_out.gain),
        "warnings": [shown(text, 400) for text in (*first, *warned)],
        "columns": columns,
        "calibration": _calibration(list(held_out.values())),
    }


def _calibration(columns: Sequence[ColumnEvaluation]) -> Json:
    """Return ids of like rates together: their rate at fit, and that of the new rows with its 95 % interval."""
    rates, rows, pos = (np.concatenate(parts) for parts in zip(*map(_of_ids, columns), strict=True))
    by_rate = np.argsort(rates, kind="stable")
    rates, rows, pos = rates[by_rate], rows[by_rate], pos[by_rate]
    middles = (np.cumsum(rows) - rows / 2) / rows.sum()
    bins = np.unique(np.floor(middles * _MOST_BINS), return_inverse=True)[1]
    n, positive, expected = (np.bincount(bins, part) for part in (rows, pos, rates * rows))
    # With all columns together, a row is in each of them once, and tells no more than one row.
    low, high = interval(positive / len(columns), n / len(columns))
    return {
        "rate_at_fit": (expected / n).tolist(),
        "rate": (positive / n).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "rows": n.tolist(),
        "n_ids": np.bincount(bins).tolist(),
    }


def _of_ids(column: ColumnEvaluation) -> tuple[NDArray[np.float64], ...]:
    """Return the rate at fit, the new rows, and those with a positive label, of each id that has any."""
    rates, rows, rate = (column.ids[name].to_numpy() for name in ("rate_at_fit", "rows", "rate"))
    there = rows > 0
    return rates[there], rows[there], (rows * rate)[there]


def _comparison(found: Comparison) -> Json:
    facts = ("method", "allocation", "name", "budget", "size", "seconds", "note")
    trials = [
        {fact: getattr(trial, fact) for fact in facts}
        | {fact: _maybe(getattr(trial, fact)) for fact in ("information", "loss")}
        | {"gap": 0.0 if found.of_least(trial) == 1 else _maybe(trial.gap)}
        | {"lost": _finite(found.lost(trial)), "of_least": _finite(found.of_least(trial))}
        for trial in found
    ]
    return {
        "n_columns": found.n_columns,
        "n_values": found.n_values,
        "total": bits(found.total),
        "trials": trials,
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
