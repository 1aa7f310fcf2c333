"""Codebook, budgets, evaluation, comparison -> one dict of plain figures, from which plots and page are made.

Information is in nats per row.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vocabfold
from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.settings import OPTIONS, default_of
from vocabfold.errors import flag, printable
from vocabfold.evaluation.chance import ByLabel
from vocabfold.evaluation.comparison import Comparison
from vocabfold.evaluation.results import ColumnEvaluation, Evaluation
from vocabfold.evaluation.sweep import Step
from vocabfold.folding.printing import shown_gap
from vocabfold.report.contents import Contents, contents, shown
from vocabfold.support.checks import shown_rows

_ALIKE = 0.01  # of the best: a smaller difference does not matter
_PLATEAU = 0.9  # of the best: from here on, differences between neighbouring budgets are chance
_POSITIVE = ("1", "1.0", "true", "True")  # the default positive values
_MOST_OF_COMMAND = 600  # characters
_MOST_OF_NOTE = 200  # characters
_MOST_OF_WARNING = 400
_FEW_ROWS = 100  # too few to evaluate on
_MOST_BINS = 15  # of a calibration
_NEAR = 0.03  # octaves
_DIGITS = 12  # for comparing budgets, so that rounding is no reason for more ids

Json = dict[str, Any]


def summarise(
    book: Codebook,
    steps: Sequence[Step] | None = None,
    held_out: Evaluation | None = None,
    compared: Comparison | None = None,
) -> Json:
    """Return all figures of the report."""
    inside = contents(book)
    unbiased = None if held_out is None or held_out.is_fitted else held_out
    columns = [
        _column(name, column, inside[name], None if unbiased is None else unbiased[name])
        for name, column in book.columns.items()
    ]
    return {
        "version": vocabfold.__version__,
        "about": _about(book, unbiased) | {"n_shared": sum(column["n_shared"] for column in columns)},
        "columns": _named_apart(columns),
        "budgets": None if steps is None else _budgets(book, steps),
        "ids": _named_apart([_ids(book, name, inside[name]) for name in book.features]),
        "trust": None if held_out is None else _trust(held_out),
        "comparison": None if compared is None else _comparison(book, compared),
    }


def _named_apart(columns: list[Json]) -> list[Json]:
    """Add numbers to names that became equal when long ones were cut."""
    seen: Counter[str] = Counter()
    for column in columns:
        seen[column["name"]] += 1
        if seen[column["name"]] > 1:
            column["name"] = f"{column['name']} ({seen[column['name']]})"
    return columns


def _gap(result: Any) -> float | None:
    """Return a gap, 0 if it is only rounding."""
    return 0.0 if shown_gap(result) == "0" else result.gap


def _about(book: Codebook, held_out: Evaluation | None) -> Json:
    base = book.pos / (book.neg + book.pos)
    names = ("n_values", "n_rare", "n_dedicated", "n_rates", "size", "budget", "rows", "rows_known", "digest")
    return {name: getattr(book, name) for name in names} | {
        "label": shown(book.label),
        "positive": shown(book.positive),
        "rate": base,
        "entropy": book.entropy,
        "n_columns": len(book),
        "saved": None if book.saved is None else shown(book.saved),
        "information": book.information,
        "total": book.total,
        "loss": book.loss,
        "kept": _share(book.loss, book.total),
        "gap": _gap(book),
        "bound": book.bound,
        "gain": book.gain,
        "held_out": None if held_out is None else held_out.gain,
        "is_plain": book.settings["smoothing"] == 0 and not book.n_rare,  # so the gap is that of the rows
        "settings": {
            name: shown(value) if isinstance(value, str) else value for name, value in book.settings.items()
        },
        "commands": _commands(book),
        "sources": [shown(source, 200) for source in book.sources],
    }


def _commands(book: Codebook) -> Json:
    """Return the commands that count these rows, and that fit the counts at another budget."""
    given = "".join(
        f" {flag(name)} {shlex.quote(str(book.settings[name]))}"
        for name in OPTIONS
        if name != "budget" and book.settings[name] != default_of(name, book.settings["aim"], with_folds=True)
    )
    names = io.StringIO()
    csv.writer(names, lineterminator="").writerow(book.features)
    features = shlex.quote(names.getvalue())
    of_rows = f"--label {shlex.quote(book.label)}"
    of_rows += "" if book.positive in _POSITIVE else f" --positive {shlex.quote(book.positive)}"
    of_rows += " --weight COLUMN" if book.units_per_row > 1 or book.has_weights else ""
    of_rows += f" --features {features if len(features) <= _MOST_OF_COMMAND else 'COLUMNS'}"
    return {
        "label": printable(f"--label {shlex.quote(book.label)}"),
        "fit": printable(f"vocabfold fit COUNTS --budget BUDGET{given} -o BOOK"),
        "count": printable(f"vocabfold count DATA {of_rows} --folds 5 -o COUNTS"),
    }


def _share(loss: float, total: float) -> float:
    """Return the share of the information kept."""
    return 1 - loss / total if total else 1.0


def _column(name: str, column: BookColumn, inside: Contents, held_out: ColumnEvaluation | None) -> Json:
    names = ("kind", "n_values", "n_rare", "n_rates", "n_dedicated", "size", "other")
    return {fact: getattr(column, fact) for fact in names} | {
        "name": shown(name),
        "n_shared": inside.n_shared,
        "information": column.information,
        "total": column.total,
        "loss": column.loss,
        "kept": _share(column.loss, column.total),
        "gap": _gap(column),
        "gain": column.gain,
        "held_out": None if held_out is None else held_out.gain,
        "infrequent": inside.infrequent,
        "missing": inside.missing,
        "expected_unseen": inside.expected_unseen,
        "unseen": None if held_out is None else held_out.unseen,
    }


def _budgets(book: Codebook, steps: Sequence[Step]) -> Json:
    """Return the results of each budget, in total and per column, and which budget is enough."""
    budgets = [step.budget for step in steps]
    columns: list[Json] = [
        {
            "size": [step.columns[name].size for step in steps],
            "n_dedicated": [step.columns[name].n_dedicated for step in steps],
            "information": [step.columns[name].information for step in steps],
            "gain": [step.columns[name].gain for step in steps],
            "held_out": [None if step.held_out is None else step.held_out[name] for step in steps],
        }
        for name in book.features
    ]
    whole = {
        fact: [_sum(column[fact][i] for column in columns) for i in range(len(steps))]
        for fact in ("size", "information", "gain", "held_out")
    }
    by = next(fact for fact in ("held_out", "gain", "information") if whole[fact][0] is not None)
    return whole | {
        "budget": budgets,
        "total": book.total,
        "chosen": budgets.index(book.budget),
        "is_auto": book.settings["budget"] == "auto",
        "half": [_nearest(budgets, i, 1 / 2) for i in range(len(budgets))],
        "double": [_nearest(budgets, i, 2) for i in range(len(budgets))],
        "by": by,
        "columns": columns,
        **_enough(budgets, whole[by], is_chance=by != "information"),
    }


def _enough(budgets: Sequence[int], figures: Sequence[float], *, is_chance: bool) -> Json:
    """Return the budgets that are as good as the best, up to one per cent or to chance between neighbours.

    Gains fluctuate from one budget to the next, so their running median is compared.
    """
    exact = np.round(figures, _DIGITS)
    levels = exact
    if is_chance:
        sizes = np.asarray(budgets, float)
        near = (np.abs(np.log2(sizes / size)) <= 0.5 for size in sizes)
        levels = np.array([np.median(exact[around]) for around in near])
    best = int(np.argmax(levels))
    wobble = float(np.abs(exact - levels)[levels >= _PLATEAU * levels[best]].max(initial=0.0))
    tolerance = max(_ALIKE * abs(float(levels[best])), wobble)
    alike = np.flatnonzero(levels >= levels[best] - tolerance)
    return {
        "best": best,
        "level": levels.tolist(),
        "tolerance": tolerance,
        "enough": int(alike[0]),
        "last_alike": int(alike[-1]),
    }


def _sum(figures: Any) -> Any:
    """Return the sum, or None if a figure is missing."""
    there = list(figures)
    if None in there:
        return None
    return sum(there) if isinstance(there[0], int) else math.fsum(there)


def _nearest(budgets: Sequence[int], i: int, times: float) -> int | None:
    """Return the index of the budget that is `times` another one, up to rounding; None if there is none."""
    wanted = budgets[i] * times
    near = min(range(len(budgets)), key=lambda j: abs(math.log(budgets[j] / wanted)))
    is_near = abs(math.log2(budgets[near] / wanted)) < _NEAR or abs(budgets[near] - wanted) <= max(
        0.5, times / 2
    )
    return near if is_near and near != i else None


def _ids(book: Codebook, name: str, inside: Contents) -> Json:
    column = book.columns[name]
    return {
        "name": shown(name),
        "other": column.other,
        "segment_of_other": inside.other,
        "size": column.size,
        "kind": column.kind,
        "n_rare": column.n_rare,
        "is_refused": book.settings["unseen"] == "error",
        "segments": inside.segments,
        "values": inside.values,
    }


def _trust(held_out: Evaluation) -> Json:
    names = [field.name for field in fields(ColumnEvaluation) if field.name != "ids"]
    columns = [
        {"name": shown(name), "n_ids": len(column.ids)}
        | {fact: getattr(column, fact) for fact in names}
        | {"moved": list(column.moved)}
        | {"calibration": _calibration([column])}
        for name, column in held_out.items()
    ]
    warnings = list(held_out.warnings)
    if held_out.rows_known < _FEW_ROWS:
        rows = shown_rows(held_out.rows, held_out.n_rows, "held-out row")
        warnings.append(f"{rows} cannot show whether the codebook generalises. Give some thousands.")
    return {
        "rows": held_out.rows,
        "rows_known": held_out.rows_known,
        "rate": held_out.rate,
        "rate_at_fit": held_out.rate_at_fit,
        "is_fitted": held_out.is_fitted,
        "miscalibration": float(np.mean([column.miscalibration for column in held_out.values()])),
        "kept": held_out.kept,
        "out_of_fold": held_out.out_of_fold,
        "gain": held_out.gain,
        "warnings": [shown(text, _MOST_OF_WARNING) for text in warnings],
        "columns": _named_apart(columns),
        "calibration": _calibration(list(held_out.values())),
    }


def _calibration(columns: Sequence[ColumnEvaluation]) -> Json:
    """Bin ids by rate: return the rate of each bin at fit, and in the new rows with its 95 % interval."""
    rates, of_ids = _of_ids(columns)
    by_rate = np.argsort(rates, kind="stable")
    rows = of_ids.rows[by_rate]
    middles = (np.cumsum(rows) - rows / 2) / rows.sum()
    bins = np.empty(rates.size, np.int64)
    bins[by_rate] = np.unique(np.floor(middles * _MOST_BINS), return_inverse=True)[1]
    found = of_ids.grouped(bins, int(bins.max()) + 1)
    expected = np.bincount(bins, rates * of_ids.rows)
    # With several columns, each row is counted once in every one of them, but is only one observation.
    low, high = ByLabel(found.weight / len(columns), found.once / len(columns)).interval
    return {
        "rate_at_fit": (expected / found.rows).tolist(),
        "rate": found.rates.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "rows": found.rows.tolist(),
        "n_ids": np.bincount(bins).tolist(),
    }


def _of_ids(columns: Sequence[ColumnEvaluation]) -> tuple[NDArray[np.float64], ByLabel]:
    """Return the rate at fit of each id with new rows, and these rows."""
    names = ("rate_at_fit", "rows", "rate", "neg_rows", "pos_rows")
    ids = np.array([np.concatenate([column.ids[name].to_numpy() for column in columns]) for name in names])
    rates, rows, rate, *once = ids[:, ids[1] > 0]
    return rates, ByLabel(np.array([rows * (1 - rate), rows * rate]), np.array(once))


def _comparison(book: Codebook, found: Comparison) -> Json:
    facts = ("method", "allocation", "name", "budget", "size", "seconds", "note")
    trials = [
        {fact: _plain(getattr(trial, fact)) for fact in facts}
        | {fact: getattr(trial, fact) for fact in ("information", "loss")}
        | {"gap": 0.0 if found.times_optimum(trial) == 1 else trial.gap}
        | {"lost": _finite(found.lost(trial)), "times_optimum": _finite(found.times_optimum(trial))}
        for trial in found
    ]
    return {
        "n_columns": found.n_columns,
        "n_values": found.n_values,
        "total": found.total,
        "trials": trials,
        "own": {"budget": book.budget, "size": book.size, "lost": 1 - _share(book.loss, book.total)},
    }


def _plain(fact: Any) -> Any:
    """Make a text from a file safe to show."""
    return shown(fact, _MOST_OF_NOTE) if isinstance(fact, str) and fact else fact


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
