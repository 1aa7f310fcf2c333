"""Rows -> what each of them counts as: its class, its weight, its fold.

One pass over the label, the weights and the folds finds everything that is wrong with them, before long work.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabfold.counts.totals import Totals
from vocabfold.counts.units import FRACTIONS, MAX_UNITS
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.spark import Cluster
from vocabfold.io.rows.source import Rows
from vocabfold.support.checks import number

MAX_FOLDS = 1000
_PRIME = 2**31 - 1
_SHOWN = 4  # values of a label in an error

Row = dict[str, Any]


@dataclass(frozen=True)
class Target(Totals):
    """What each row counts as, in SQL, and what all of them sum to."""

    is_positive: str
    units: str | None  # None: every row counts one
    fold: str | None
    conditions: tuple[str, ...]  # that a row meets if it is counted
    positive: str  # the positive label as text
    folds: int
    neg_rows: int
    pos_rows: int
    skipped: int  # rows that are not counted, as they have no label or no weight

    @property
    def n_rows(self) -> int:
        """Rows that are counted."""
        return self.neg_rows + self.pos_rows

    @property
    def where(self) -> str:
        """The clause for rows that are counted."""
        return " WHERE " + " AND ".join(self.conditions) if self.conditions else ""


def look_over(
    engine: Engine | Cluster,
    rows: Rows,
    data_name: str,
    roles: dict[str, str | None],
    *,
    positive: Any,
    drop_null_labels: bool,
    folds: int,
    fold_seed: int,
) -> Target:
    """Check label, weights and folds, and return what each row counts as."""
    label, weight, fold_column = (roles[role] for role in ("label", "weight", "fold_column"))
    assert label is not None
    label_sql = rows.columns[label].sql
    chosen = {"label": label_sql, "n": "count(*)"}
    if weight is not None:
        column = _numbers("weight", weight, rows, ("integer", "unsigned", "float"))
        is_float = rows.columns[weight].kind == "float"
        units = (
            f"TRY_CAST({_units(column, FRACTIONS)} AS BIGINT)::{engine.huge}"
            if is_float
            else f"{column}::{engine.huge} * {FRACTIONS}"
        )
        chosen |= {
            "n_bad": f"count_if(NOT coalesce({column} >= 0 AND {column} < 'Infinity'::DOUBLE, false))",
            "n_fractions": f"count_if({column} <> floor({column}))" if is_float else "0",
            "n_weightless": f"count_if({_units(column, FRACTIONS)} = 0)",
            "total": f"sum({column}::DOUBLE)",
            "units": f"sum({units})::{engine.text}",
        }
    if fold_column is not None:
        column = _numbers("fold_column", fold_column, rows, ("integer", "unsigned"))
        chosen |= {
            "n_no_fold": f"count_if({column} IS NULL)",
            "first": f"min({column})",
            "last": f"max({column})",
        }
    selected = ", ".join(f"{sql} AS {name}" for name, sql in chosen.items())
    groups = engine.run(
        f"SELECT * FROM (SELECT {selected} FROM {rows.scan} GROUP BY 1) "
        f"ORDER BY label IS NULL DESC, n DESC, label LIMIT {_SHOWN + 2}"
    ).to_pylist()
    n_values = sum(group["label"] is not None for group in groups)
    if len(groups) == _SHOWN + 2:  # there may be more
        n_values = engine.run(f"SELECT count(DISTINCT {label_sql}) AS n FROM {rows.scan}")["n"][0].as_py()
    classes = _classes(groups, n_values, label, data_name, drop_null_labels)
    value = _positive(classes, label, str(rows.columns[label].kind), positive)
    is_present = any(group["label"] is value for group in classes)
    where = [f"{label_sql} IS NOT NULL"] if len(classes) < len(groups) else []
    in_units, units_per_row = None, 1
    if weight is not None:
        units_per_row = _check_weights(weight, classes)
        in_units = f"{_units(rows.columns[weight].sql, units_per_row)}::BIGINT"
        where.append(f"{in_units} > 0")  # a row of weight 0 is no row
    sums = np.zeros((2, 2), object)  # units and rows, by label
    for group in classes:
        n_rows = group["n"] if weight is None else group["n"] - int(group["n_weightless"])
        n_units = n_rows if weight is None else int(group["units"]) * units_per_row // FRACTIONS
        sums[:, int(group["label"] is value)] = n_units, n_rows
    units_of, rows_of = sums.tolist()
    if not any(units_of):
        raise InputError(
            f"all weights in {weight!r} are zero, or round to zero; at least one row needs a positive weight."
        )
    fold: str | None = None
    if fold_column is not None:
        folds = _check_folds(fold_column, folds, classes)
        fold = rows.columns[fold_column].sql
    elif folds:
        fold = _assigned(rows.number, folds, fold_seed)
    return Target(
        is_positive=f"({label_sql} = {engine.variable('positive', value)})" if is_present else "false",
        units=in_units,
        fold=fold and f"({fold})::INTEGER",
        conditions=tuple(where),
        positive=as_text(value),
        units_per_row=units_per_row,
        folds=folds,
        neg=units_of[0],
        pos=units_of[1],
        neg_rows=rows_of[0],
        pos_rows=rows_of[1],
        skipped=sum(group["n"] for group in groups) - sum(rows_of),
    )


def _units(column: str, units_per_row: int) -> str:
    return f"round({column}::DOUBLE * {units_per_row})" if units_per_row > 1 else column


def _numbers(role: str, name: str, rows: Rows, kinds: Sequence[str]) -> str:
    column = rows.columns[name]
    if column.kind not in kinds:
        what = "numbers" if "float" in kinds else "whole numbers"
        raise InputError(f"{name!r} must hold {what}, got {column.type}.", argument=role)
    return column.sql


def _classes(groups: list[Row], n_values: int, label: str, data_name: str, drop_null_labels: bool) -> list[Row]:
    """Return the rows of each value of the label, or say why there are not one or two."""
    n_missing = sum(group["n"] for group in groups if group["label"] is None)
    classes = [group for group in groups if group["label"] is not None]
    if n_missing and not drop_null_labels:
        raise InputError(
            f"label {label!r} is missing in {number(n_missing, 'row')}; fill them in, or leave them out with "
            f"{argument('drop_null_labels', True)}."
        )
    if not classes:
        raise InputError(f"{data_name} has no rows" + (f" with a label in {label!r}." if n_missing else "."))
    if n_values > 2:
        values = ", ".join(
            f"{short(group['label'])} in {number(group['n'], 'row')}" for group in classes[:_SHOWN]
        )
        more = ", ..." if n_values > _SHOWN else ""
        raise InputError(
            f"label {label!r} has {n_values:,} distinct values ({values}{more}); exactly two are needed, "
            "so filter or recode it first."
        )
    return classes


def _positive(classes: list[Row], label: str, kind: str, positive: Any) -> Any:
    """Return the positive value of the label; the very object of a class, if it occurs."""
    values = [group["label"] for group in classes]
    shown = " and ".join(short(value) for value in sorted(values, key=str))
    if positive is None:
        if not all(value in (0, 1) for value in values):
            raise InputError(
                f"label {label!r} has the values {shown}; name the positive one with "
                f"{argument('positive', ...)}."
            )
        return next((value for value in values if value == 1), 1)
    if not isinstance(positive, str | numbers.Number | np.generic | datetime.date):
        raise InputError(f"must be a value of the label, got {type(positive).__name__}.", argument="positive")
    named = as_text(_converted(positive, kind))
    found = [value for value in values if as_text(value) == named]
    if not found and len(values) == 2:
        raise InputError(
            f"label {label!r} has the values {shown}, and none of them is {argument('positive', positive)}."
        )
    return found[0] if found else _converted(positive, kind)


def _converted(positive: Any, kind: str) -> Any:
    """Return a positive value that came as text as what the label holds."""
    if kind == "boolean" and str(positive).lower() in ("true", "false"):
        return str(positive).lower() == "true"
    if kind in ("integer", "unsigned", "float") and isinstance(positive, str):
        with suppress(ValueError):
            return float(positive)
    return positive


def as_text(value: Any) -> str:
    """Return a value of the label as text; 1, 1.0 and true are one."""
    if isinstance(value, bool | np.bool_ | numbers.Real) and value == value // 1:
        return str(int(value))  # type: ignore[arg-type]
    return str(value)


def _check_weights(weight: str, classes: list[Row]) -> int:
    """Return how many units a row has: 1 if all weights are whole numbers."""
    n_bad = sum(group["n_bad"] for group in classes)
    if n_bad:
        raise InputError(
            f"{weight!r} is negative, missing or not a finite number in {number(n_bad, 'row')}; weights must "
            "be 0 or more.",
            argument="weight",
        )
    total = sum(group["total"] for group in classes)
    if total * FRACTIONS > MAX_UNITS:
        raise InputError(
            f"the weights in column {weight!r} sum to {total:.3g}, but only sums up to "
            f"{MAX_UNITS / FRACTIONS:.3g} are counted exactly; scale the weights down first."
        )
    return FRACTIONS if any(group["n_fractions"] for group in classes) else 1


def _check_folds(fold_column: str, folds: int, classes: list[Row]) -> int:
    """Return the number of folds in a column."""
    n_missing = sum(group["n_no_fold"] for group in classes)
    if n_missing:
        raise InputError(
            f"{fold_column!r} is missing in {number(n_missing, 'row')}; fill them in first.",
            argument="fold_column",
        )
    first, last = min(group["first"] for group in classes), max(group["last"] for group in classes)
    most = folds or MAX_FOLDS
    if first < 0 or last >= most:
        raise InputError(
            f"{fold_column!r} must hold whole numbers from 0 to {most - 1:,}, got {first:,} to {last:,}.",
            argument="fold_column",
        )
    return folds or max(2, last + 1)


def _assigned(number: str, folds: int, seed: int) -> str:
    """Return the fold of a row by its number: two rounds of a multiplicative generator with shifts between."""
    mixed = f"(({number} + {1 + seed * 40692 % _PRIME}) % {_PRIME} * 48271 % {_PRIME})"
    mixed = f"(xor({mixed}, {mixed} >> 15) * 69621 % {_PRIME})"
    return f"xor({mixed}, {mixed} >> 13) % {folds}"


def assigned(numbers: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int32]:
    """Return the folds of rows by their numbers: those that the query for them gives."""
    mixed = (numbers + (1 + seed * 40692 % _PRIME)) % _PRIME * 48271 % _PRIME
    mixed = (mixed ^ mixed >> 15) * 69621 % _PRIME
    return ((mixed ^ mixed >> 13) % folds).astype(np.int32)
