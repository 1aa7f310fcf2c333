"""Files, tables and readers -> Stream: rows in their order, in batches, with their columns as they are.

DuckDB's scans and joins are free to change the order of rows, and know fewer types than Arrow, so rows that are
written again are read by Arrow. Texts that a Parquet file holds as dictionaries stay so: each distinct one is
looked up once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine, file_list
from vocabfold.io.engines.kinds import kind_of
from vocabfold.io.rows import files, frames

BATCH_ROWS, BATCH_BYTES = 2**17, 2**26  # at most, of a batch
_LEAST_ROWS, _JOINED_ROWS = 2**10, 2**14
_BATCH_SHARE = 1 / 64  # of the memory limit: some are on their way at once, and they are larger unpacked
_DICTIONARY_BYTES, _CODE_BYTES = 2**20, 3  # at most, of a dictionary that a writer keeps, and of a code
_READ_AHEAD = 2**20  # bytes of each column that are read from a file at a time


@dataclass(frozen=True)
class Stream:
    """Rows in their order."""

    schema: pa.Schema
    n_rows: int | None  # if it is known beforehand
    read: Callable[[Sequence[str], Collection[str]], Iterator[pa.RecordBatch]]
    # (columns, those which may come as dictionaries)
    is_lasting: bool = True  # it can be read again


def from_table(table: pa.Table) -> Stream:
    """Return the rows of a table in memory."""

    def read(names: Sequence[str], _: Collection[str]) -> Iterator[pa.RecordBatch]:
        yield from _joined(table.select(list(names)).to_batches(BATCH_ROWS))

    return Stream(table.schema, table.num_rows, read)


def from_reader(name: str, reader: pa.RecordBatchReader, names: Sequence[str]) -> Stream:
    """Return the named columns of what can be read once."""

    def read(names: Sequence[str], _: Collection[str]) -> Iterator[pa.RecordBatch]:
        with frames.reading(name):
            for batch in _joined(batch.select(list(names)) for batch in reader):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)

    return Stream(_chosen(reader.schema, names), None, read, is_lasting=False)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield small batches as one, as each takes some time however few rows it has."""
    held: list[pa.RecordBatch] = []
    n_rows = 0

    def together() -> list[pa.RecordBatch]:
        if len(held) < 2:
            return held
        try:
            table = pa.Table.from_batches(held).unify_dictionaries().combine_chunks()
        except (
            pa.ArrowException
        ):  # together, dictionaries have too many words for their codes, or one has nulls
            return held
        return list(table.to_batches())

    for batch in batches:
        held.append(batch)
        n_rows += batch.num_rows
        if n_rows >= _JOINED_ROWS:
            yield from together()
            held, n_rows = [], 0
    yield from together()


def spooled(engine: Engine, stream: Stream, path: Path, dictionaries: Collection[str]) -> Stream:
    """Return a stream that can be read again, from a file if need be; some columns may come as dictionaries."""
    if stream.is_lasting:
        return stream
    with pq.ParquetWriter(path, stream.schema) as writer:
        for batch in stream.read(stream.schema.names, ()):
            writer.write_batch(batch)
    return from_parquet(engine, [path], None, dictionaries)


def from_parquet(
    engine: Engine, paths: Sequence[Path], names: Sequence[str] | None, free: Collection[str]
) -> Stream:
    """Return the named columns of Parquet files, or all, one file after the other.

    Those that are `free` may have another type in every file, as long as they hold the same kind of values.
    """
    footers = {path: files.footer(path) for path in paths}
    schemas = {path: schema for path, (schema, _) in footers.items()}
    wanted = schemas[paths[0]].names if names is None else names
    schema = _chosen(schemas[paths[0]], wanted)
    for path, other in schemas.items():
        lacking = _beyond(wanted, other.names)
        more = _beyond(other.names, wanted) if names is None else []
        if lacking or more:
            with_it, without = (paths[0], path) if lacking else (path, paths[0])
            raise InputError(
                f"{without} lacks the column {(lacking or more)[0]!r}, which {with_it} has; write them to a "
                f"folder, or leave all other columns out ({argument('only_ids', True)})."
            )
        schema = _unified(schema, other, free, paths[0], path)
    encoded = _dictionaries(engine, schemas, free)

    def read(names: Sequence[str], dictionaries: Collection[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            texts = encoded[path].intersection(dictionaries)
            for batch in _batches(path, names, texts, engine.memory_limit):
                yield _cast(batch, schema, names, dictionaries)

    return Stream(schema, sum(footers[path][1] for path in paths), read)


def from_staged(engine: Engine, source_name: str, path: Path, types: Mapping[str, pa.DataType]) -> Stream:
    """Return the rows of text files, which were written to a Parquet file as c0, c1, ..., with these types."""
    schema = pa.schema(types.items())
    numbered = {name: f"c{i}" for i, name in enumerate(types)}
    staged, n_rows = files.footer(path)
    encoded = _dictionaries(engine, {path: staged}, set(staged.names))[path]

    def read(names: Sequence[str], dictionaries: Collection[str]) -> Iterator[pa.RecordBatch]:
        columns = {numbered[name]: schema.field(name) for name in names}
        # Only texts stay dictionaries: all others are cast.
        texts = {c for c, field in columns.items() if field.name in dictionaries and field.type == pa.string()}
        for batch in _batches(path, list(columns), encoded & texts, engine.memory_limit):
            with frames.reading(source_name):
                arrays = [
                    array if column in texts else as_type(array, field.type)
                    for array, (column, field) in zip(batch.columns, columns.items(), strict=True)
                ]
            yield pa.record_batch(arrays, list(names))

    return Stream(schema, n_rows, read)


def _chosen(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    known = set(schema.names)
    return pa.schema([schema.field(name) for name in names if name in known], schema.metadata)


def _beyond(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the names that are not among others; there may be thousands of both."""
    known = set(others)
    return [name for name in names if name not in known]


def _unified(schema: pa.Schema, other: pa.Schema, free: Collection[str], first: Path, path: Path) -> pa.Schema:
    """Return a schema that holds the columns of both files."""
    if other.equals(schema):
        return schema
    fields = []
    for name in schema.names:
        if name in free and kind_of(schema.field(name).type) == kind_of(other.field(name).type):
            fields.append(schema.field(name))
            continue
        mine, theirs = schema.field(name), other.field(name)
        if mine.type != theirs.type:  # then one of them may be a dictionary
            mine, theirs = (field.with_type(value_type(field.type)) for field in (mine, theirs))
        try:
            both = [pa.schema([field]) for field in (mine, theirs)]
            fields.append(pa.unify_schemas(both, promote_options="permissive").field(0))
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r} is {theirs.type} in {path} but {mine.type} in {first}; write them to a "
                "folder, or with one type."
            ) from error
    return pa.schema(fields, schema.metadata)


def value_type(type: pa.DataType) -> pa.DataType:
    """Return the type of what a column holds, be it a dictionary or not."""
    return type.value_type if pa.types.is_dictionary(type) else type


def _batches(
    path: Path, names: Sequence[str], dictionaries: Collection[str], memory_limit: int
) -> Iterator[pa.RecordBatch]:
    options = {"read_dictionary": list(dictionaries), "pre_buffer": False, "buffer_size": _READ_AHEAD}
    with frames.reading(str(path)), pq.ParquetFile(path, **options) as file:
        for batch in file.iter_batches(_batch_rows(file.metadata, memory_limit), columns=list(names)):
            yield batch.select(list(names))


def _cast(
    batch: pa.RecordBatch, schema: pa.Schema, names: Sequence[str], free: Collection[str]
) -> pa.RecordBatch:
    """Return a batch with the types of the schema, but for columns that are free to have their own."""
    arrays = []
    for name in names:
        array = batch.column(name)
        try:
            arrays.append(array if name in free else as_type(array, schema.field(name).type))
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r} is {array.type} in one file and {schema.field(name).type} in another, which "
                "does not hold all of its values; write them to a folder, or with one type."
            ) from error
    return pa.record_batch(arrays, list(names))


def as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Return an array of a type; one that has it needs no cast, and not all types have one."""
    return array if array.type == type else array.cast(type)


def _dictionaries(
    engine: Engine, schemas: Mapping[Path, pa.Schema], names: Collection[str]
) -> dict[Path, set[str]]:
    """Return which of the named columns are texts that each file has as dictionaries in every row group.

    Of plain texts, Arrow would make one dictionary that grows with the file. And writers give a dictionary up
    when it gets too large: the rest of the row group is plain, and the column takes more bytes than codes do.
    DuckDB looks this up, as Arrow ends the process at the sight of some damaged columns.
    """
    texts = {
        path: {field.name for field in schema if field.name in names and kind_of(field.type) == "text"}
        for path, schema in schemas.items()
    }
    wanted = sorted(set().union(*texts.values()))
    if not wanted:
        return texts
    try:
        found = engine.run(
            f"SELECT file_name, path_in_schema AS name FROM parquet_metadata({file_list(schemas)}) "
            f"WHERE list_contains({engine.variable('dictionaries', wanted)}, path_in_schema) GROUP BY ALL "
            "HAVING bool_and(dictionary_page_offset IS NOT NULL AND "
            f"total_uncompressed_size < {_DICTIONARY_BYTES} + {_CODE_BYTES} * num_values)"
        )
    except InputError:  # a file that Arrow alone can read
        if len(schemas) == 1:
            return {path: set() for path in schemas}
        return {path: _dictionaries(engine, {path: schemas[path]}, names)[path] for path in schemas}
    encoded = {(chunk["file_name"], chunk["name"]) for chunk in found.to_pylist()}
    return {path: {name for name in texts[path] if (str(path), name) in encoded} for path in schemas}


def _batch_rows(footer: pq.FileMetaData, memory_limit: int) -> int:
    """Return how many rows fit into a batch."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    row_bytes = sum(group.total_byte_size for group in groups) / max(footer.num_rows, 1)
    n_bytes = min(BATCH_BYTES, memory_limit * _BATCH_SHARE)
    return max(_LEAST_ROWS, min(BATCH_ROWS, int(n_bytes / max(row_bytes, 1))))
