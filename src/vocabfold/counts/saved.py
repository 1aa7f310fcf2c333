"""Counts <-> folder: `docs/format.md` is the specification."""

from __future__ import annotations

import os
from typing import Any

from vocabfold.counts.counts import Counts
from vocabfold.counts.local import LocalPart, Said
from vocabfold.counts.table import schema_of
from vocabfold.counts.target import MAX_FOLDS
from vocabfold.counts.totals import Totals
from vocabfold.counts.units import FRACTIONS, MAX_UNITS
from vocabfold.errors import CodebookError
from vocabfold.io.engines.duckdb import parse_memory
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.engines.spark import session_of
from vocabfold.io.folders import headers
from vocabfold.io.folders.loading import Loaded, Origin, load_folder
from vocabfold.io.folders.saving import saving
from vocabfold.support import notes

_NUMBERS = ("units_per_row", "folds", "fold_seed", "neg", "pos")
_OF_ALL = ("units_per_row", "neg", "pos", "neg_rows", "pos_rows")
_PERHAPS = ("neg_rows", "pos_rows", "skipped")  # null if unknown; format 1 lacks them


def save(counts: Counts, path: str | os.PathLike[str]) -> None:
    """Write counts to a folder; see `Counts.save`."""
    with saving(path, headers.COUNTS, Origin(counts.sources, counts.fingerprints)) as saver:
        files = counts.table.write(saver)
        saver.header = {
            "label": counts.label,
            "positive": counts.positive,
            "units_per_row": counts.units_per_row,
            "folds": counts.folds,
            "fold_seed": counts.fold_seed,
            "fold_column": counts.fold_column,
            "neg": counts.neg,
            "pos": counts.pos,
            **{key: getattr(counts, key) for key in _PERHAPS},
            "columns": [
                {"name": name, "type": kind, "files": files[name]} for name, kind in counts.kinds.items()
            ],
        }


def load_counts(
    path: str | os.PathLike[str], *, memory_limit: int | str | None = None, spark: Any = None
) -> Counts:
    """Load counts from the folder to which `Counts.save` wrote them.

    Parameters
    ----------
    path : path
        The folder. It must stay in place: columns are read when they are needed.
    memory_limit : int or str, optional
        As for `count`.
    spark : SparkSession, optional
        Where to add and fit the counts, if they are too many for this machine: columns beyond 1 MiB are read by
        the workers, so the folder must be on a file system that they share.

    Returns
    -------
    Counts

    Raises
    ------
    CodebookError
        The folder is missing, damaged, changed by hand, or newer than this release.
    """
    session = None if spark is None else session_of(spark)
    limit = parse_memory(memory_limit)
    loaded = load_folder(path, headers.COUNTS)
    header = loaded.header
    _check(loaded)
    if header["version"] == 1:
        _say_what_is_missing(loaded)
    of_all: dict[str, Any] = {key: header.get(key) for key in _OF_ALL}
    totals = Totals(**of_all)
    sums, folds = totals.sums, header["folds"]
    kinds = {column["name"]: column["type"] for column in header["columns"]}
    files = {
        column["name"]: loaded.files(column["files"], schema_of(column["type"], folds, sums))
        for column in header["columns"]
    }
    said = Said(folds, totals.of_all, limit)
    part = LocalPart(files, kinds, totals.units_per_row, sums, is_by_fold=folds > 0, session=session, said=said)
    return Counts(
        **vars(totals),
        kinds=kinds,
        label=header["label"],
        positive=header["positive"],
        folds=folds,
        fold_seed=header["fold_seed"],
        fold_column=header["fold_column"],
        sources=loaded.origin.sources,
        fingerprints=loaded.origin.fingerprints,
        parts=(part,),
        readings=(_reading(loaded.origin),),
        memory_limit=limit,
        skipped=header.get("skipped"),
    )


def _reading(origin: Origin) -> tuple[str, ...] | None:
    """Return the fingerprints of the rows, if they were one reading."""
    is_one = len(origin.sources) == len(origin.fingerprints) == 1
    return origin.fingerprints[0] if is_one else None


def _say_what_is_missing(loaded: Loaded) -> None:
    """Warn that counts of format 1 may be sums of weights."""
    notes.warn(
        f"{loaded.folder} has format 1, which does not tell rows from their weights: if its rows had "
        "weights, a few heavy ones make a value frequent, and its id may leak their labels. Then count the "
        "rows again."
    )


def _check(loaded: Loaded) -> None:
    """Refuse a header with a field that is missing or out of range."""
    header = loaded.header
    try:
        kinds = {column["name"]: column["type"] for column in header["columns"]}
        numbers = {key: header[key] for key in _NUMBERS}
        perhaps = {key: header.get(key) for key in _PERHAPS}
        is_valid = (
            len(kinds) == len(header["columns"]) > 0
            and all(isinstance(name, str) for name in kinds)
            and all(kind in KINDS for kind in kinds.values())
            and all(type(number) is int and number >= 0 for number in numbers.values())
            and numbers["units_per_row"] in (1, FRACTIONS)
            and numbers["folds"] <= MAX_FOLDS
            and 0 < numbers["neg"] + numbers["pos"] <= MAX_UNITS
            and all(type(number) is int and number >= 0 for number in perhaps.values() if number is not None)
            and (perhaps["neg_rows"] is None) == (perhaps["pos_rows"] is None)
            and all(isinstance(header[key], str) for key in ("label", "positive"))
            and isinstance(header["fold_column"], str | None)
        )
    except (KeyError, TypeError, AttributeError):
        is_valid = False
    if not is_valid:
        raise CodebookError(f"{loaded.file} is not valid: a field is missing or absurd.")
