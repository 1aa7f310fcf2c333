"""Data -> fingerprints, by which the same rows are known again; cheap, and no proof.

A table is known by its number of rows and the values in its first and last thousand of them, be it a frame or a
Parquet file. A text file is known by its size and the bytes at both ends: its rows are not counted for this.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold.engines import files, frames

_ROWS = 1000  # at each end
_BYTES = 2**16
_MOST_FILES = 50  # that are looked into; of all others, the number counts


def of_frame(data: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the fingerprint of a frame in memory; none of a lazy one, which would have to be run."""
    n_rows = frames.n_rows(data)
    if n_rows is None:
        return ()
    ends = [frames.to_arrow(part, names) for part in frames.ends(data, _ROWS)]
    return (_of_rows(n_rows, names, ends),)


def of_parquet(paths: Sequence[Path], names: Sequence[str]) -> tuple[str, ...]:
    """Return the fingerprints of Parquet files, one each."""
    with frames.reading(str(paths[0])):
        return _of_files(paths, [_of_parquet(path, names) for path in paths[:_MOST_FILES]])


def of_text(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the fingerprints of text files, one each."""
    with frames.reading(str(paths[0])):
        return _of_files(paths, [_of_bytes(path) for path in paths[:_MOST_FILES]])


def _of_files(paths: Sequence[Path], found: list[str]) -> tuple[str, ...]:
    return (*found, f"{len(paths)} files") if len(paths) > _MOST_FILES else tuple(found)


def _of_parquet(path: Path, names: Sequence[str]) -> str:
    n_rows = files.footer(path)[1]
    with pq.ParquetFile(path, pre_buffer=False) as file:
        groups = range(file.num_row_groups)
        ends = [_first(file, names, groups), _first(file, names, reversed(groups), from_end=True)]
    return _of_rows(n_rows, names, ends)


def _first(
    file: pq.ParquetFile,
    names: Sequence[str],
    groups: Iterator[int] | Sequence[int] | range,
    from_end: bool = False,
) -> pa.Table:
    """Return the first or last rows of a file, from as few row groups as hold them."""
    tables: list[pa.Table] = []
    for group in groups:
        table = file.read_row_group(group, columns=list(names)).select(list(names))
        tables = [table, *tables] if from_end else [*tables, table]
        if sum(table.num_rows for table in tables) >= _ROWS:
            break
    table = pa.concat_tables(tables) if tables else file.schema_arrow.empty_table().select(list(names))
    return table.slice(max(0, table.num_rows - _ROWS)) if from_end else table.slice(0, _ROWS)


def _of_rows(n_rows: int, names: Sequence[str], ends: Sequence[pa.Table]) -> str:
    digest = hashlib.sha256()
    for table in ends:
        for name in names:
            values = table[name].to_pylist()
            digest.update(json.dumps([name, [_text(value) for value in values]]).encode())
    return f"{n_rows} rows {digest.hexdigest()}"


def _text(value: Any) -> str | None:
    """Return a value as text, whatever its reader made of it: beside missing ones, integers may be floats."""
    if value is None or value != value:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _of_bytes(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_BYTES))
        file.seek(max(0, size - _BYTES))
        digest.update(file.read(_BYTES))
    return f"{size} bytes {digest.hexdigest()}"
