"""Batches -> a Parquet or CSV file, which appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.folders.atomic import put_in_place
from vocabfold.io.folders.locks import NEW_FILE, Held, Moved, open_locked
from vocabfold.io.rows import files
from vocabfold.io.rows.streams import BATCH_BYTES, BATCH_ROWS, as_type, value_type
from vocabfold.support import checks

_SEPARATORS = {files.CSV: ",", files.TSV: "\t"}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_CSV_TYPES = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)
_GROUP_SHARE = 1 / 16  # of the memory limit, for a row group: its rows, and their pages beside them
FORMATS = (files.PARQUET, *_SEPARATORS)


def format_of(path: Path) -> str:
    """Return the format of a file to be written, by the end of its name."""
    problem = (
        f"cannot tell the format of {path} from its name, or cannot write it; the name must end in .parquet, "
        ".csv or .tsv (the last two may be followed by .gz or .zst), or in / for a folder."
    )
    try:
        format = files.format_of([path])
    except InputError:
        raise InputError(problem) from None
    if format not in FORMATS:
        raise InputError(problem)
    return format


def place(out: str | os.PathLike[str]) -> Path:
    """Return the path of a file or folder to be written."""
    if not isinstance(out, str | os.PathLike) or not os.fspath(out) or "\0" in os.fspath(out):
        raise InputError(
            f"must be the path of a file, or of a folder with a / at its end, got {out!r}.", argument="out"
        )
    checks.spelled(out)
    try:
        path = Path(out).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, or an unknown home
        raise InputError(f"{os.fspath(out)[:100]!r} cannot be written: {error.args[-1]}.") from error
    return path


def check_place(path: Path, out: Path, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written to `out`, be that itself or a folder, or that exists."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; end it in / to write the files into it.")
    if path.exists() and not overwrite:
        raise checks.taken(path)
    checks.folder(path.parent if path.parent.exists() else out.parent)


@contextmanager
def written(
    engine: Engine, path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, overwrite: bool
) -> Iterator[None]:
    """Write batches to a file in the format of its name, which takes its place at the end of the context.

    Whatever happens, it is the old one or the new one.
    """
    format = format_of(path)
    with replacing(path, overwrite=overwrite) as partial:
        if format == files.PARQUET:
            _write_parquet(partial, schema, batches, min(BATCH_BYTES, engine.memory_limit * _GROUP_SHARE))
        else:
            _write_csv(engine, partial, schema, batches, format, _COMPRESSIONS.get(path.suffix.lower(), "none"))
        yield


def field_of(field: pa.Field) -> pa.Field:
    """Return the field of a column that is written as it is.

    A row group may hold batches with different dictionaries: their words together need wider codes.
    """
    if not pa.types.is_dictionary(field.type):
        return field
    return field.with_type(pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered))


def check_csv(schema: pa.Schema, path: Path) -> None:
    """Refuse columns that a CSV file cannot hold."""
    for field in schema:
        if not any(is_fit(value_type(field.type)) for is_fit in _CSV_TYPES):
            raise InputError(
                f"column {field.name!r} holds {field.type}, which {path} cannot hold; write Parquet, or leave "
                f"all other columns out ({argument('only_ids', True)})."
            )


def _write_parquet(
    path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch], group_bytes: float
) -> None:
    with pq.ParquetWriter(path, schema) as writer:
        for table in _row_groups(batches, group_bytes):
            writer.write_table(table)


def _write_csv(
    engine: Engine,
    path: Path,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    format: str,
    compression: str,
) -> None:
    # The engine would show instants in the time zone of this machine, and does not know all units of time.
    texts = [
        pa.types.is_temporal(value_type(field.type)) and not pa.types.is_date(field.type) for field in schema
    ]
    fields = [
        (f"c{i}", pa.string() if is_text else field.type)
        for i, (field, is_text) in enumerate(zip(schema, texts, strict=True))
    ]
    errors: list[BaseException] = []

    def watched() -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                columns = [
                    as_type(column, type) for column, (_, type) in zip(batch.columns, fields, strict=True)
                ]
                yield pa.record_batch(columns, schema=pa.schema(fields))
        except Exception as error:
            errors.append(error)  # the engine would wrap it in another error
            raise

    try:
        reader = pa.RecordBatchReader.from_batches(pa.schema(fields), watched())
        engine.write_csv(reader, schema.names, path, _SEPARATORS[format], compression)
    except InputError:
        if errors:
            raise errors[0] from None
        raise


def _row_groups(batches: Iterator[pa.RecordBatch], group_bytes: float) -> Iterator[pa.Table]:
    """Yield batches together that are small alone: each table becomes a row group."""
    held: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        held.append(batch)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        if n_rows >= BATCH_ROWS or n_bytes >= group_bytes:
            yield pa.Table.from_batches(held)
            held, n_rows, n_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


@contextmanager
def replacing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a file beside a path, which takes its place at the end; of two writers, one gets an error."""
    partial = path.with_name(f".{path.name}.unfinished")
    made = [folder for folder in path.parents if not folder.exists()]
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        held = _hold(partial, path)
    try:
        if path.exists() and not overwrite:
            raise checks.taken(path)
        with explained(path):
            yield partial
            if path.exists():
                os.chmod(partial, path.stat().st_mode & 0o777)
            put_in_place(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
            for folder in made:
                folder.rmdir()
        raise
    finally:
        os.close(held.descriptor)


def _hold(partial: Path, path: Path) -> Held:
    """Open and lock an empty file; the lock goes with the process that holds it."""
    while True:
        try:
            held = open_locked(partial, NEW_FILE)
        except Moved:  # whoever held the lock before has finished: that was the result
            continue
        except BlockingIOError as error:
            raise InputError(
                f"{path} is being written by another process; wait until it has finished, or write elsewhere."
            ) from error
        os.truncate(held.descriptor, 0)
        return held


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in one sentence why a file could not be written."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if checks.is_disk_full(error):
            raise InputError(f"the disk is full while writing {path}.") from error
        raise InputError(f"{path} cannot be written: {checks.reason(error)}.") from error
