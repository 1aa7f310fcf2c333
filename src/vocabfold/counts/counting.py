"""Rows -> Counts: the only step that reads rows.

First the label, weights and folds are checked, so that problems with them are reported before long work. Then
DuckDB groups one column after another: one GROUP BY per column is faster than one pass over all of them.
A Spark frame is counted by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from reprlib import repr as short
from typing import Any

from vocabfold.counts import local, spark
from vocabfold.counts.counts import Counts
from vocabfold.counts.table import Part
from vocabfold.counts.target import MAX_FOLDS, look_over
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import DUCKDB, parse_memory
from vocabfold.io.engines.spark import SPARK
from vocabfold.io.rows import files
from vocabfold.io.rows.opening import opened
from vocabfold.io.rows.source import Rows, Source
from vocabfold.io.rows.text import CRITEO_NAMES, MIXED, PRESETS
from vocabfold.support import checks
from vocabfold.support.progress import track

_MAX_SHOWN = 20  # names in an error
_COUNTERS: Mapping[str, Callable[..., Part]] = {DUCKDB: local.count_rows, SPARK: spark.count_rows}


def count(
    data: Any,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    *,
    also: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    positive: Any = None,
    weight: str | None = None,
    drop_null_labels: bool = False,
    preset: str | None = None,
    folds: int = 0,
    fold_seed: int = 0,
    fold_column: str | None = None,
    memory_limit: int | str | None = None,
) -> Counts:
    """Count the rows of every value, by label.

    Parameters
    ----------
    data : path, pattern, list of paths, frame, stream or relation
        Parquet, CSV, TSV or JSON-lines files (the text ones also as .gz or .zst), patterns such as
        "day*.parquet", a folder of Parquet files; a pandas or polars frame; an Arrow table, reader or
        dataset; a DuckDB relation; a Spark frame, whose counts stay on its cluster.
    label : str
        The column with two values. 0 and 1, 0.0 and 1.0, or booleans need nothing else; of any other two,
        `positive` names the positive one. The preset has its own.
    features : list of str, optional
        The columns to count; by default every text-like column.
    also : list of str, optional
        Columns of numbers or dates to count beside the text-like ones, if the features are not named.
    exclude : list of str, optional
        Columns to leave out, if the features are not named.
    positive : optional
        The value of the label that is positive.
    weight : str, optional
        A column with the weight of each row, 0 or more; rows of weight 0 are left out. A row of weight 3 counts
        as three rows in rates and in what ids keep, but as one row where it matters how many rows a value has.
        Weights that are not whole are rounded to 2**-20 rows, each on its own.
    drop_null_labels : bool
        Leave out rows whose label is missing, instead of refusing them.
    preset : {"criteo"}, optional
        The layout of the Criteo challenge: tabs, no header, label, I1 to I13, C1 to C26; the features are C1
        to C26.
    folds : int
        Count each of so many folds separately, to encode out of fold. Rows are assigned to folds by their
        number, in the order of files and rows; those of a Spark frame have none and need a `fold_column`.
    fold_seed : int
        Another number assigns the rows to folds in another way.
    fold_column : str, optional
        A column with the fold of each row, 0 to `folds` - 1. By default, its largest value sets `folds`.
    memory_limit : int or str, optional
        Bytes, or a text such as "4GB"; by default half of the machine's memory. What does not fit goes to
        temporary files, which are removed at the end.

    Returns
    -------
    Counts

    Raises
    ------
    InputError
        The rows or the options cannot be used.

    Notes
    -----
    Missing (None, NaN, an empty field of CSV) is a value like any other. Values keep their type: 1 and "1" are
    two values. In CSV a column is an integer, a float, a date or a boolean if all of its fields are, and text
    otherwise; no two different fields become one value of a feature.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import vocabfold as vf
    >>> rows = pa.table({"site": ["a", "b", "a", None], "click": [1, 0, 0, 1]})
    >>> counts = vf.count(rows, "click")
    >>> counts["site"].to_pylist()[0]
    {'value': None, 'neg': 0, 'pos': 1}
    """
    return count_as({}, **locals())  # all arguments, and nothing else yet


def count_as(
    kinds: Mapping[str, str],
    data: Any,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    *,
    also: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    positive: Any = None,
    weight: str | None = None,
    drop_null_labels: bool = False,
    preset: str | None = None,
    folds: int = 0,
    fold_seed: int = 0,
    fold_column: str | None = None,
    memory_limit: int | str | None = None,
) -> Counts:
    """Count rows whose columns have these kinds, which those of text files do not show; see `count`."""
    limit = parse_memory(memory_limit)
    if files.are_paths(data):
        files.find(data)  # before anything else, as names are easily mistyped
    added, left_out = _names("also", also) or [], _names("exclude", exclude) or []
    for name, given, verb in (("also", added, "add"), ("exclude", left_out, "leave out")):
        if features is not None and given:
            raise InputError(
                f"{argument('features')} and {argument(name)} cannot both be given; name the columns to "
                f"count, or those to {verb}."
            )
    if both := [name for name in added if name in left_out]:
        raise InputError(
            f"{argument('also')} and {argument('exclude')} both name {checks.listed([*map(repr, both)])} "
            "Name each column in one of them."
        )
    if preset is not None:
        checks.choice("preset", preset, PRESETS)
        label = CRITEO_NAMES[0] if label is None else label
        if features is None:
            chosen = [name for name in CRITEO_NAMES if name.startswith("C") or name in added]
            features = [name for name in chosen if name not in left_out]
    folds, fold_seed = checks.at_least("folds", folds, 0), checks.at_least("fold_seed", fold_seed, 0)
    if folds == 1 or folds > MAX_FOLDS:
        raise InputError(f"must be 0 (none) or between 2 and {MAX_FOLDS:,}, got {folds:,}.", argument="folds")
    roles = {"label": label, "weight": weight, "fold_column": fold_column}
    _check_roles(roles)
    features = _names("features", features)
    if label in (*(features or []), *added):
        raise InputError(f"{label!r} is the label and cannot be a feature too.")
    used = [name for name in roles.values() if name is not None]
    with opened(data, preset, limit) as (engine, found):
        checks.known("column", [*used, *(features or []), *added, *left_out], found.names, found.place)
        candidates = [name for name in found.names if name not in left_out]
        wanted = list(dict.fromkeys([*used, *(candidates if features is None else features)]))
        engine.subject = found.name
        for _ in track([""], f"reading {found.name}", engine.progress):
            rows = found.open(wanted, folds > 0 and fold_column is None, kinds)
        _check_columns(rows, [*used, *(features or []), *added])
        for _ in track([""], f"looking at {label}", engine.progress):
            target = look_over(
                engine,
                rows,
                found.name,
                roles,
                positive=positive,
                drop_null_labels=drop_null_labels,
                folds=folds,
                fold_seed=fold_seed,
            )
        rows = rows.as_features
        not_named: list[str] = []
        if features is None:
            features = _text_like(found, rows, used, added)
            not_named = [name for name in rows.columns if name not in (*features, *used)]
        fingerprints = found.fingerprints(features)
        part = _COUNTERS[engine.name](engine, rows, features, target)
    return Counts(
        kinds=part.kinds,
        label=str(label),
        positive=target.positive,
        units_per_row=target.units_per_row,
        folds=target.folds,
        fold_seed=fold_seed if target.folds and fold_column is None else 0,
        fold_column=fold_column,
        neg=target.neg,
        pos=target.pos,
        neg_rows=target.neg_rows,
        pos_rows=target.pos_rows,
        sources=(found.name,),
        fingerprints=(fingerprints,) if fingerprints else (),
        parts=(part,),
        readings=(fingerprints or None,),
        memory_limit=limit,
        left_out=tuple(not_named),
        skipped=target.skipped,
    )


def _check_roles(roles: dict[str, str | None]) -> None:
    if roles["label"] is None:
        raise InputError("is missing: name the column that holds it.", argument="label")
    for role, name in roles.items():
        if name is not None and not isinstance(name, str):
            raise InputError(f"must be the name of a column, got {type(name).__name__}.", argument=role)


def _names(what: str, given: str | Sequence[str] | None) -> list[str] | None:
    """Return names of columns as a list, after checking them."""
    if given is None:
        return None
    # The order of the features numbers the columns of the codebook, so a set will not do.
    is_listed = isinstance(given, str | Sequence) or type(given).__name__ in ("Index", "ndarray", "Series")
    names = [given] if isinstance(given, str) else list(given) if is_listed else []
    if not names or not all(isinstance(name, str) for name in names):
        shown = short(given) if isinstance(given, list | tuple) else type(given).__name__
        raise InputError(f"must be a list of at least one column name, got {shown}.", argument=what)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"names the column {twice!r} twice.", argument=what)
    return names


def _check_columns(rows: Rows, wanted: Sequence[str]) -> None:
    """Refuse columns that cannot be counted, all together."""
    problems = [
        f"column {name!r} holds {rows.columns[name].type}, which cannot be counted; convert it to text or "
        "numbers."
        for name in wanted
        if rows.columns[name].kind is None
    ]
    if problems:
        raise InputError(" ".join(problems[:_MAX_SHOWN]))


def _text_like(found: Source, rows: Rows, used: Sequence[str], added: Sequence[str]) -> list[str]:
    """Return the features, if none were named."""
    mixed = [name for name, column in rows.columns.items() if column.type == MIXED]
    if mixed:
        raise InputError(
            f"column {mixed[0]!r} mixes types, so 1 and '1' would be two values; convert it to one type, or "
            "name the features."
        )
    chosen = [
        name
        for name, column in rows.columns.items()
        if name in added or (column.kind in ("text", "missing") and not column.is_number and name not in used)
    ]
    if not chosen:
        kinds = [f"{name} ({column.type})" for name, column in rows.columns.items() if name not in used]
        raise InputError(
            f"{found.name} has no other text-like column; name the features to count. "
            f"Columns: {checks.listed(kinds)}"
        )
    return chosen
