"""What callers give -> Rows: a table that the engine scans, and its columns with their kinds.

Parquet files, Arrow tables and datasets are scanned in place. What can be read only once, or is costly to read
(text, streams, relations), is read once into a Parquet file in the engine's temporary folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from vocabfold.errors import InputError
from vocabfold.io.engines.duckdb import Engine, identifier, literal, parquet
from vocabfold.io.engines.kinds import KINDS, kind_of
from vocabfold.io.rows import files, fingerprints, frames, streams, text
from vocabfold.io.rows.streams import Stream
from vocabfold.support import checks

if TYPE_CHECKING:  # it loads pandas, half a second
    import pyarrow.dataset as ds

_BATCH = 2**17  # rows of a stream
_NUMBERING = {"file_row_number", "file_index"}  # what DuckDB adds to Parquet files, unless they have it


@dataclass(frozen=True)
class Column:
    """A column as the engine finds it."""

    kind: str | None  # None: it cannot be counted
    sql: str  # the expression of a value; NULL is missing
    type: str  # in words, for messages
    is_number: bool = False  # text, but every field is a number, such as "007"
    field: str | None = None  # the expression of the text, if other texts are the same number

    @property
    def as_feature(self) -> Column:
        """The column as a feature, in which different texts are different values."""
        return self if self.field is None else Column("text", self.field, "text", is_number=True)


@dataclass(frozen=True)
class Rows:
    """A table that the engine scans."""

    scan: str
    columns: Mapping[str, Column]
    number: str  # the expression of the row's number, from 0; only if asked for
    arrays: Mapping[str, pa.ChunkedArray] | None = None  # the columns, if they are in memory

    @property
    def as_features(self) -> Rows:
        """The rows with all columns as features."""
        columns = {name: column.as_feature for name, column in self.columns.items()}
        return replace(self, columns=columns)


@dataclass(frozen=True)
class Source:
    """Rows that are not read yet, so that requests can be checked against the names first."""

    name: str
    names: Sequence[str]
    open: Callable[[Sequence[str], bool, Mapping[str, str]], Rows]
    # (columns, are the numbers of the rows needed, the kinds of those that are compared with a codebook)
    stream: Callable[[Sequence[str] | None, Mapping[str, str], bool], Stream]
    # (columns or None for all, the kinds of those to be looked up, do all others of a text file stay text)
    fingerprints: Callable[[Sequence[str]], tuple[str, ...]] = lambda names: ()  # of what can be read again
    is_text: bool = False  # which is read as a whole before it is streamed
    has_header: bool = False  # a first line with the names, which could be missing

    @property
    def place(self) -> str:
        """Where the names are."""
        return f"the first line of {self.name}" if self.has_header else self.name


def source(engine: Engine, data: Any, preset: str | None = None) -> Source:
    """Return the rows that a path, a pattern, a list of paths, a frame, a stream or a relation holds."""
    if files.are_paths(data):
        found = _from_files(engine, files.find(data), preset)
    elif isinstance(data, duckdb.DuckDBPyRelation):
        found = _from_relation(engine, data)
    elif _is_dataset(data):
        found = _from_dataset(engine, data)
    elif isinstance(data, pa.RecordBatchReader):
        found = _from_stream(engine, "the Arrow reader", data.schema.names, lambda _: data)
    elif frames.is_frame(data):
        found = _from_frame(engine, data)
    elif (stream := frames.stream(data)) is not None:
        found = _from_stream(engine, "the Arrow stream", stream.schema.names, lambda _: stream)
    else:
        raise InputError(
            "data must be a path, a pattern, a list of paths, a pandas or polars frame, an Arrow table, reader "
            f"or dataset, a DuckDB relation, or a Spark frame, got {short(data)}."
        )
    _check_names(found)
    return found


def _check_names(found: Source) -> None:
    if not found.names:
        raise InputError(f"{found.name} has no columns.")
    wrong = [name for name in found.names if not isinstance(name, str)]
    if wrong:
        raise InputError(
            f"column names must be text, got {wrong[0]!r} ({type(wrong[0]).__name__}) in {found.name}; "
            "rename the columns first."
        )
    checks.distinct(found.names, found.name)


def _column(name: str, type: pa.DataType, reference: str) -> Column:
    """Return a column of an Arrow type."""
    kind = kind_of(type)
    if kind is None:
        return Column(None, "NULL", str(type))
    if kind == "timestamp" and _unit(type) == "ns":
        # Truncated to microseconds, two instants could become one.
        problem = literal(f"column {name!r} has timestamps finer than a microsecond; round them first")
        reference = f"CASE WHEN epoch_ns({reference}) % 1000 <> 0 THEN error({problem}) ELSE {reference} END"
    return Column(kind, KINDS[kind].read.format(reference), kind)


def _unit(type: pa.DataType) -> str:
    return str((type.value_type if pa.types.is_dictionary(type) else type).unit)


def _from_files(engine: Engine, paths: Sequence[Path], preset: str | None) -> Source:
    format = files.format_of(paths, text=preset)
    source_name = str(paths[0]) + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")
    if format == files.PARQUET:
        return _from_parquet(engine, source_name, paths)
    table = text.table(engine, paths, format)

    def open(names: Sequence[str], numbered: bool, kinds: Mapping[str, str]) -> Rows:
        staged = engine.folder / "rows.parquet"
        columns = {}
        for i, (name, found) in enumerate(
            zip(names, table.stage(names, staged, ordered=numbered), strict=True)
        ):
            if kinds.get(name) == "text" and format != files.JSON:  # which says what its values are
                found = text.TEXT
            sql = KINDS[found.kind].read.format(f"c{i}") if found.kind else "NULL"
            # Where a codebook holds numbers, they are compared by value, however they are written.
            field = None if found.is_exact or name in kinds else f"c{i}"
            columns[name] = Column(found.kind, sql, found.type, found.is_number, field)
        return Rows(parquet([staged]), columns, "file_row_number")

    def stream(names: Sequence[str] | None, kinds: Mapping[str, str], verbatim: bool) -> Stream:
        staged = engine.folder / "rows.parquet"
        names = table.names if names is None else names
        found = table.stage(names, staged, ordered=True, whole=True)
        types = {}
        for name, (kind, type, *_) in zip(names, found, strict=True):
            if kind is None and name in kinds:
                raise InputError(
                    f"column {name!r} of {source_name} holds {type}; convert it to {kinds[name]} first."
                )
            wanted = kinds.get(name, "text" if verbatim else None)
            # Digits are text where the codebook holds texts; JSON says itself what its values are.
            is_wanted = wanted is not None and (
                kind == "missing" or (wanted == "text" and format != files.JSON)
            )
            types[name] = KINDS[str(wanted) if is_wanted else kind or "text"].arrow
        return streams.from_staged(engine, source_name, staged, types)

    has_header = format in (files.CSV, files.TSV)
    return Source(
        source_name,
        table.names,
        open,
        stream,
        lambda _: fingerprints.of_text(paths),
        is_text=True,
        has_header=has_header,
    )


def _from_parquet(engine: Engine, source_name: str, paths: Sequence[Path]) -> Source:
    def open(names: Sequence[str], numbered: bool, kinds: Mapping[str, str]) -> Rows:
        first, _ = files.footer(paths[0])
        starts, types = [0], {name: {first.field(name).type} for name in names}
        for path in paths:
            schema, n_rows = files.footer(path)
            starts.append(starts[-1] + n_rows)
            for name in names:
                if schema.get_field_index(name) < 0:
                    raise InputError(f"{path} lacks the column {name!r}, which {paths[0]} has.")
                type, expected = schema.field(name).type, first.field(name).type
                if kind_of(type) != kind_of(expected):
                    raise InputError(
                        f"column {name!r} is {type} in {path} but {expected} in {paths[0]}; write them with "
                        "one type, or count them separately."
                    )
                types[name].add(type)
        if numbered and {name.lower() for name in first.names} & _NUMBERING:
            from pyarrow.dataset import dataset

            return _from_dataset(engine, dataset(paths, first)).open(names, numbered, {})
        # A column of several widths is read with the widest, not with that of the first file; nanoseconds in
        # any of them must be looked at.
        is_uneven = any(len(found) > 1 for found in types.values())
        finest = {name: max(found, key=lambda type: "[ns" in str(type)) for name, found in types.items()}
        columns = {name: _column(name, finest[name], identifier(name)) for name in names}
        number = f"(file_row_number + list_extract({starts[:-1]}, (file_index + 1)::BIGINT))"
        number = number if len(paths) > 1 else "file_row_number"
        return Rows(parquet(paths, union_by_name=is_uneven), columns, number)

    return Source(
        source_name,
        files.footer(paths[0])[0].names,
        open,
        lambda names, kinds, _: streams.from_parquet(engine, paths, names, kinds),
        lambda names: fingerprints.of_parquet(paths, names),
    )


def _from_frame(engine: Engine, data: Any) -> Source:
    def open(names: Sequence[str], numbered: bool, kinds: Mapping[str, str]) -> Rows:
        table = frames.to_arrow(data, names)
        columns = {
            name: _column(name, type, f"c{i}")
            for i, (name, type) in enumerate(zip(names, table.schema.types, strict=True))
        }
        arrays = dict(zip(names, table.columns, strict=True))
        # Columns that cannot be counted are left out: DuckDB does not know all of Arrow's types.
        kept = [i for i, column in enumerate(columns.values()) if column.kind]
        table = pa.table([table.column(i) for i in kept], [f"c{i}" for i in kept])
        if numbered:
            table = table.append_column("row", pa.array(np.arange(table.num_rows)))
        return Rows(engine.table(table), columns, "row", arrays)

    return Source(
        frames.described(data),
        frames.names(data),
        open,
        lambda names, _, __: streams.from_table(frames.to_arrow(data, names or frames.names(data))),
        lambda names: fingerprints.of_frame(data, names),
    )


def _is_dataset(data: object) -> bool:
    """Say whether it is a dataset; whoever has one has loaded the module."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(data, module.Dataset)


def _from_dataset(engine: Engine, data: ds.Dataset) -> Source:
    def read(names: Sequence[str]) -> pa.RecordBatchReader:
        # By default, a scanner reads so far ahead that it needs gigabytes.
        ahead = {"batch_size": _BATCH, "batch_readahead": 1, "fragment_readahead": 1}
        return data.scanner(columns=list(names), **ahead).to_reader()

    ordered = _from_stream(engine, "the Arrow dataset", data.schema.names, read)

    def open(names: Sequence[str], numbered: bool, kinds: Mapping[str, str]) -> Rows:
        # A scan in place does not keep the order, and DuckDB must know the types of all columns.
        if numbered or any(kind_of(type) is None for type in data.schema.types):
            return ordered.open(names, numbered, {})
        columns = {name: _column(name, data.schema.field(name).type, identifier(name)) for name in names}
        return Rows(engine.table(data), columns, "NULL")

    return Source(ordered.name, ordered.names, open, ordered.stream)


def _from_relation(engine: Engine, data: duckdb.DuckDBPyRelation) -> Source:
    name = "the DuckDB relation"

    def read(names: Sequence[str]) -> pa.RecordBatchReader:
        with frames.reading(name):
            return data.project(", ".join(map(identifier, names))).to_arrow_reader(_BATCH)

    with frames.reading(name):
        return _from_stream(engine, name, data.columns, read)


def _from_stream(
    engine: Engine,
    source_name: str,
    all_names: Sequence[str],
    read: Callable[[Sequence[str]], pa.RecordBatchReader],
) -> Source:
    def open(names: Sequence[str], numbered: bool, kinds: Mapping[str, str]) -> Rows:
        reader = read(list(names))
        types = [reader.schema.field(name).type for name in names]
        columns = {
            name: _column(name, type, f"c{i}") for i, (name, type) in enumerate(zip(names, types, strict=True))
        }
        kept = [(i, name) for i, (name, column) in enumerate(columns.items()) if column.kind]
        # Renamed by position, so that no name gets into the query.
        schema = pa.schema([(f"c{i}", reader.schema.field(name).type) for i, name in kept])
        batches = (pa.record_batch([batch.column(name) for _, name in kept], schema=schema) for batch in reader)
        staged = engine.folder / "rows.parquet"
        stream = engine.table(pa.RecordBatchReader.from_batches(schema, batches))
        engine.write(f"SELECT * FROM {stream}", staged, ordered=numbered)
        return Rows(parquet([staged]), columns, "file_row_number")

    def stream(names: Sequence[str] | None, _: Mapping[str, str], __: bool) -> Stream:
        names = list(names or all_names)
        return streams.from_reader(source_name, read(names), names)

    return Source(source_name, all_names, open, stream)
