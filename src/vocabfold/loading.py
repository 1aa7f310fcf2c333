"""Folder -> Codebook: every byte is checked, and every field, before anything is used."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Any

import pyarrow as pa

from vocabfold import headers, storage, unpacking
from vocabfold.codebook import UNSEEN, Codebook
from vocabfold.columns import BookColumn, schema_of
from vocabfold.counts import FRACTIONS, MAX_UNITS, add_up
from vocabfold.engines.duckdb import Engine, parquet, parse_memory
from vocabfold.errors import CodebookError
from vocabfold.kinds import KINDS
from vocabfold.lookup import Index

_SETTINGS: dict[str, tuple[type, ...]] = {
    "aim": (str,),
    "method": (str,),
    "allocation": (str,),
    "budget": (int, str),
    "smoothing": (int, float, str),
    "min_count": (int,),
    "private_min": (int,),
    "private_from": (int, float, NoneType),
    "tail": (int,),
    "unseen": (str,),
    "epsilon": (float,),
    "shards": (int,),
    "seed": (int,),
}

_AUTOMATIC = ("budget", "smoothing")  # settings whose only text is "auto"


@dataclass(frozen=True)
class SavedStore:
    """The values of a codebook in the Parquet files of its folder, each column sorted."""

    files: Mapping[str, list[Path]]
    columns: Mapping[str, BookColumn]
    masses: tuple[int, int]  # units of all rows, by label
    checked: set[str] = field(default_factory=set)  # columns whose values have been looked at
    lengths: dict[str, int] = field(default_factory=dict)  # bytes of the values of columns, once they are known

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id, neg, pos of a column."""
        for path in self.files[name]:
            if not path.exists():
                raise unpacking.gone(path)
        if name not in self.checked:
            self._check(engine, name)
        return f"SELECT * FROM {parquet(self.files[name])}"

    def value_bytes(self, name: str) -> int:
        """Return how many bytes the values of a column have; too many of them, and disorder, are refused."""
        if name not in self.lengths:
            column = self.columns[name]
            schema = pa.schema([schema_of(column.kind).field("value")])
            n_rows = n_bytes = 0
            last = pa.nulls(0, schema.types[0])
            for batch in unpacking.batches(self.files[name], schema):
                values = batch.column(0)
                if not _is_rising(pa.concat_arrays([last, values])):
                    raise self._invalid(name)
                last = values.slice(len(values) - 1)
                n_rows, n_bytes = n_rows + len(values), n_bytes + batch.nbytes
            if n_rows != column.n_values:
                raise self._invalid(name)
            self.lengths[name] = n_bytes
        return self.lengths[name]

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory."""
        return {name: self._index(name) for name in names}

    def _index(self, name: str) -> Index:
        whole = schema_of(self.columns[name].kind)
        schema = pa.schema([whole.field("value"), whole.field("id")])
        table = pa.Table.from_batches(unpacking.batches(self.files[name], schema), schema)
        ids = table["id"].to_numpy()
        index = Index(table["value"], ids)
        is_in_range = not ids.size or 0 <= ids.min() <= ids.max() < self.columns[name].size
        if not index.is_sorted or not is_in_range:
            raise self._invalid(name)
        return index

    def _invalid(self, name: str) -> CodebookError:
        return CodebookError(
            f"{self.files[name][0]} is not valid: its values must rise, its ids be below "
            f"{self.columns[name].size:,}, and its counts add up to those of the header."
        )

    def _check(self, engine: Engine, name: str) -> None:
        """Refuse what the engine would not: values that are too long or in disorder, absurd ids and counts."""
        self.value_bytes(name)
        column, (neg, pos) = self.columns[name], self.masses
        is_id = f"id >= 0 AND id < {column.size}"
        if not add_up(engine, self.files[name], is_id, neg, pos, at_most=column.n_pooled > 0):
            raise self._invalid(name)
        self.checked.add(name)

    def forget(self, name: str) -> None:
        """Look at a column again when it is used the next time: its files may have been changed."""
        self.checked.discard(name)
        self.lengths.pop(name, None)


def _is_rising(values: pa.Array) -> bool:
    """Tell whether each value is above the one before it; the first may be missing."""
    import pyarrow.compute as pc  # slow to import, and who looks values up does without

    present = values.slice(1) if len(values) and not values[0].is_valid else values
    if len(present) < 2:
        return not present.null_count
    return not present.null_count and bool(pc.all(pc.less(present[:-1], present[1:])).as_py())


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
    return storage.load(path, headers.CODEBOOK, partial(_book, limit))


def _book(limit: int | None, folder: Path, header: headers.Json, origin: storage.Origin) -> Codebook:
    """Return the codebook of a header."""
    try:
        columns = {entry["name"]: _column(entry) for entry in header["columns"]}
        _require(len(columns) == len(header["columns"]) > 0, "columns")
        files = {
            entry["name"]: storage.tables(folder, entry["files"], schema_of(entry["kind"]))
            for entry in header["columns"]
        }
        hashes = {entry["name"]: _text(entry["rows_sha256"]) for entry in header["columns"]}
        settings = {key: _typed(header["settings"][key], key, *kinds) for key, kinds in _SETTINGS.items()}
        _require(settings["unseen"] in UNSEEN, "unseen")
        _require(
            all(settings[key] == "auto" or type(settings[key]) is not str for key in _AUTOMATIC), "settings"
        )
        _require(settings["private_from"] is None or 0 <= settings["private_from"] <= MAX_UNITS, "private_from")
        _require(len({column.gain is None for column in columns.values()}) == 1, "gain")
        _require(_typed(header["units_per_row"], "units_per_row", int) in (1, FRACTIONS), "units_per_row")
        masses = [_typed(header[side], side, int) for side in ("neg", "pos")]
        _require(min(masses) > 0 and sum(masses) <= MAX_UNITS, "neg and pos")
        book = Codebook(
            columns=columns,
            gap=_typed(header["gap"], "gap", float, NoneType),
            bound=_typed(header["bound"], "bound", float, NoneType),
            settings=settings,
            label=_text(header["label"]),
            positive=_text(header["positive"]),
            units_per_row=header["units_per_row"],
            neg=masses[0],
            pos=masses[1],
            store=SavedStore(files, columns, (masses[0], masses[1])),
            sources=origin.sources,
            fingerprints=origin.fingerprints,
            saved=origin.saved,
            memory_limit=limit,
            hashes=hashes,
        )
        _require(book.digest == header["digest"], "digest")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, CodebookError):
            raise
        detail = f"the field {error}" if isinstance(error, KeyError) else str(error)
        raise CodebookError(
            f"{folder / headers.CODEBOOK.header} is not valid: {detail} is missing or absurd."
        ) from error
    return book


def _column(entry: dict[str, Any]) -> BookColumn:
    """Return a column from its entry in the header."""
    _text(entry["name"])
    found = {field.name: entry[field.name] for field in fields(BookColumn)}
    for name in ("size", "n_values", "n_pooled", "n_private", "n_rates", "other"):
        _typed(found[name], name, int)
    for name, kind in (("tail", int), ("borders", float), ("rates", float)):
        found[name] = tuple(_typed(number, name, kind) for number in _typed(found[name], name, list))
    found["strength"] = math.inf if found["strength"] is None else _typed(found["strength"], "strength", float)
    for name in ("mean", "information", "total", "loss"):
        found[name] = _typed(found[name], name, float)
    for name in ("gap", "gain"):
        found[name] = _typed(found[name], name, float, NoneType)
    column = BookColumn(**found)
    _require(column.kind in KINDS, "kind")
    _require(0 < column.size < 2**31 and 0 <= column.other < column.size, "size")
    _require(0 <= column.n_values == sum(file["rows"] for file in entry["files"]), "n_values")
    _require(column.n_pooled >= 0, "n_pooled")
    _require(0 <= column.n_private <= min(column.n_values, column.size), "n_private")
    _require(0 <= column.n_rates <= column.n_values + 1, "n_rates")
    _require(all(a < b for a, b in pairwise((-1, *column.tail, column.size))), "tail")
    _require(len(column.borders) == max(0, len(column.tail) - 1), "borders")
    _require(list(column.borders) == sorted(column.borders), "borders")
    _require(len(column.rates) == column.size and all(0 <= rate <= 1 for rate in column.rates), "rates")
    _require(0 <= column.mean <= 1 and column.strength >= 0, "mean and strength")
    return column


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
