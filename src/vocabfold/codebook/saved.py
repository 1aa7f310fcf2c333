"""Codebook <-> folder: `docs/format.md` is the specification.

When a folder is loaded, every byte is checked, and every field, before anything is used.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from types import NoneType
from typing import Any

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn, facts_of
from vocabfold.codebook.settings import NOTED, UNSEEN
from vocabfold.codebook.stores import SavedStore, schema_of
from vocabfold.counts.totals import Totals
from vocabfold.counts.units import FRACTIONS, MAX_UNITS, ROWS, UNITS
from vocabfold.errors import CodebookError
from vocabfold.io.engines.duckdb import parse_memory
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.folders import headers
from vocabfold.io.folders.loading import Loaded, Origin, load_folder
from vocabfold.io.folders.saving import saving

_AUTOMATIC = ("budget", "smoothing")  # settings whose only text is "auto"

# The keys of format 1, where they differ from those of today.
_FIRST_KEYS = {
    "dedicated_min": "private_min",
    "dedicated_from": "private_from",
    "shared_ids": "tail",
    "n_dedicated": "n_private",
    "n_rare": "n_pooled",
    "shared": "tail",
}

# What columns lack that were saved by earlier versions.
_UNSAID: Mapping[str, Any] = {"training_rows": [], "is_other_trained": False}


def save(book: Codebook, path: str | os.PathLike[str]) -> None:
    """Write a codebook to a folder; see `Codebook.save`."""
    with saving(path, headers.CODEBOOK, Origin(book.sources, book.fingerprints)) as saver:
        files = book.store.write(saver)
        digest = book.digest
        columns = [
            {"name": name} | facts_of(column) | {"rows_sha256": book.hashes[name], "files": files[name]}
            for name, column in book.columns.items()
        ]
        saver.header = {
            "digest": digest,
            "label": book.label,
            "positive": book.positive,
            "units_per_row": book.units_per_row,
            "neg": book.neg,
            "pos": book.pos,
            "neg_rows": book.neg_rows,
            "pos_rows": book.pos_rows,
            "gap": book.gap,
            "bound": book.bound,
            "settings": dict(book.settings),
            "columns": columns,
        }


def load(path: str | os.PathLike[str], *, memory_limit: int | str | None = None) -> Codebook:
    """Load a codebook from the folder to which `Codebook.save` wrote it.

    Parameters
    ----------
    path : path
        The folder. It must stay in place: columns are read when they are needed.
    memory_limit : int or str, optional
        As for `count`.

    Returns
    -------
    Codebook

    Raises
    ------
    CodebookError
        The folder is missing, damaged, changed by hand, or newer than this release.

    Notes
    -----
    Every byte is read once and checked against its sha256. Nothing in a codebook is ever executed.
    """
    limit = parse_memory(memory_limit)
    loaded = load_folder(path, headers.CODEBOOK)
    try:
        return _book(loaded, limit)
    except CodebookError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        detail = f"the field {error}" if isinstance(error, KeyError) else str(error)
        raise CodebookError(f"{loaded.file} is not valid: {detail} is missing or absurd.") from error


def _book(loaded: Loaded, limit: int | None) -> Codebook:
    """Return the codebook of a header."""
    header = loaded.header
    if header["version"] == 1:
        header = _renamed(header)
    columns = {entry["name"]: _column(entry) for entry in header["columns"]}
    _require(len(columns) == len(header["columns"]) > 0, "columns")
    hashes = {entry["name"]: _text(entry["rows_sha256"]) for entry in header["columns"]}
    settings = {name: _typed(header["settings"][name], name, *kinds) for name, kinds in NOTED.items()}
    _require(settings["unseen"] in UNSEEN, "unseen")
    _require(all(settings[key] == "auto" or type(settings[key]) is not str for key in _AUTOMATIC), "settings")
    _require(
        settings["dedicated_from"] is None or 0 <= settings["dedicated_from"] <= MAX_UNITS, "dedicated_from"
    )
    _require(len({column.gain is None for column in columns.values()}) == 1, "gain")
    _require(_typed(header["units_per_row"], "units_per_row", int) in (1, FRACTIONS), "units_per_row")
    neg, pos = (_typed(header[side], side, int) for side in UNITS)
    _require(min(neg, pos) > 0 and neg + pos <= MAX_UNITS, "neg and pos")
    # Format 1 does not have them.
    rows = [_typed(header.get(side), side, int, NoneType) for side in ROWS]
    _require(rows == [None, None] or (None not in rows and min(rows) > 0), "neg_rows and pos_rows")
    totals = Totals(header["units_per_row"], neg, pos, *rows)
    files = {
        entry["name"]: loaded.files(entry["files"], schema_of(entry["kind"], totals.sums))
        for entry in header["columns"]
    }
    book = Codebook(
        **vars(totals),
        columns=columns,
        gap=_typed(header["gap"], "gap", float, NoneType),
        bound=_typed(header["bound"], "bound", float, NoneType),
        settings=settings,
        label=_text(header["label"]),
        positive=_text(header["positive"]),
        store=SavedStore(files, columns, totals.of_all, limit),
        sources=loaded.origin.sources,
        fingerprints=loaded.origin.fingerprints,
        saved=loaded.origin.saved,
        memory_limit=limit,
        hashes=hashes,
    )
    _require(book.digest == header["digest"], "digest")
    return book


def _column(entry: dict[str, Any]) -> BookColumn:
    """Return a column from its entry in the header."""
    _text(entry["name"])
    found = {field.name: ({**_UNSAID, **entry})[field.name] for field in fields(BookColumn)}
    for name in ("size", "n_values", "n_rare", "n_dedicated", "n_rates", "other"):
        _typed(found[name], name, int)
    lists = {"shared": (int,), "borders": (float,), "rates": (float,), "training_rows": (int, float)}
    for name, kinds in lists.items():
        found[name] = tuple(_typed(number, name, *kinds) for number in _typed(found[name], name, list))
    _typed(found["is_other_trained"], "is_other_trained", bool)
    found["strength"] = math.inf if found["strength"] is None else _typed(found["strength"], "strength", float)
    for name in ("mean", "information", "total", "loss"):
        found[name] = _typed(found[name], name, float)
    for name in ("gap", "gain"):
        found[name] = _typed(found[name], name, float, NoneType)
    column = BookColumn(**found)
    _require(column.kind in KINDS, "kind")
    _require(0 < column.size < 2**31 and 0 <= column.other < column.size, "size")
    _require(0 <= column.n_values == sum(file["rows"] for file in entry["files"]), "n_values")
    _require(column.n_rare >= 0, "n_rare")
    _require(0 <= column.n_dedicated <= min(column.n_values, column.size), "n_dedicated")
    _require(0 <= column.n_rates <= column.n_values + 1, "n_rates")
    _require(all(a < b for a, b in pairwise((-1, *column.shared, column.size))), "shared")
    _require(len(column.borders) == max(0, len(column.shared) - 1), "borders")
    _require(list(column.borders) == sorted(column.borders), "borders")
    _require(len(column.rates) == column.size and all(0 <= rate <= 1 for rate in column.rates), "rates")
    _require(len(column.training_rows) in (0, column.size), "training_rows")
    _require(min(column.training_rows, default=0) >= 0, "training_rows")
    _require(0 <= column.mean <= 1 and column.strength >= 0, "mean and strength")
    return column


def _renamed(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header of format 1 with the keys of today."""
    columns = [_with_new_keys(entry) for entry in header["columns"]]
    return header | {"columns": columns, "settings": _with_new_keys(header["settings"])}


def _with_new_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, **{new: fields[old] for new, old in _FIRST_KEYS.items() if old in fields}}


def _typed(value: Any, name: str, *kinds: type) -> Any:
    if type(value) is int and float in kinds and int not in kinds:
        value = float(value)
    _require(type(value) in kinds and (type(value) is not float or math.isfinite(value)), name)
    return value


def _text(value: Any) -> str:
    _require(isinstance(value, str), "a text")
    return str(value)


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise ValueError(f"the field '{name}'")
