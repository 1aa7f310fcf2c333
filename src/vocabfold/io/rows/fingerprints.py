"""Data -> fingerprints, by which the same rows are recognised; cheap, and no proof.

The fingerprint of a frame or a Parquet file is its number of rows and the values of a few columns in its first
and last thousand rows. That of a text file is its size and the bytes at both ends: its rows are not counted for
this.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold.io.rows import files, frames

_ROWS = 1000  # at each end
_BYTES = 2**16
_MOST_COLUMNS = 4  # that are looked into: in a Parquet file, whole row groups have to be read
_MOST_VALUES = 40_000  # of a frame, at each end
_MOST_FILES = 50  # that are looked into; of all others, the number counts


def of_frame(data: Any, names: Sequence[str], most_columns: int = _MOST_COLUMNS) -> tuple[str, ...]:
    """Return the fingerprint of a frame in memory; none of a lazy one, which would have to be run."""
    n_rows = frames.n_rows(data)
    if n_rows is None:
        return ()
    chosen = _chosen(names, most_columns)
    n_ends = min(_ROWS, max(10, _MOST_VALUES // len(chosen)))
    ends = [frames.to_arrow(part, chosen) for part in frames.ends(data, n_ends)]
    return (_of_rows(n_rows, [{name: table[name] for name in chosen} for table in ends]),)


def of_frame_like(
    known: Iterable[str], data: Any, names: Sequence[str], most_columns: int = _MOST_COLUMNS
) -> tuple[str, ...]:
    """Return the fingerprint of a frame if known rows are as many; no other frame has to be looked into."""
    begin = f"{frames.n_rows(data)} rows "
    return of_frame(data, names, most_columns) if any(part.startswith(begin) for part in known) else ()


def of_parquet(paths: Sequence[Path], names: Sequence[str]) -> tuple[str, ...]:
    """Return the fingerprints of Parquet files, one each."""
    with frames.reading(str(paths[0])):
        return _of_files(paths, [_of_parquet(path, names) for path in paths[:_MOST_FILES]])


def of_text(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the fingerprints of text files, one each."""
    with frames.reading(str(paths[0])):
        return _of_files(paths, [_of_bytes(path) for path in paths[:_MOST_FILES]])


def _of_files(paths: Sequence[Path], found: list[str]) -> tuple[str, ...]:
    return (*found, f"{len(paths)}-files") if len(paths) > _MOST_FILES else tuple(found)


def _of_parquet(path: Path, names: Sequence[str]) -> str:
    n_rows = files.footer(path)[1]
    with pq.ParquetFile(path, pre_buffer=False) as file:
        # One column at a time: a row group has to be read as a whole, and may be large.
        columns = {name: _ends_of(file, name) for name in _chosen(names)}
    return _of_rows(n_rows, [{name: both[end] for name, both in columns.items()} for end in (0, 1)])


def _ends_of(file: pq.ParquetFile, name: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the first and the last rows of a column."""
    first: list[pa.Array] = []
    for batch in file.iter_batches(_ROWS, columns=[name]):  # of a dictionary, they end with the row group
        first.append(batch.column(0))
        if sum(map(len, first)) >= _ROWS:
            break
    last: list[pa.Array] = []
    for group in reversed(range(file.num_row_groups)):
        last = [*file.read_row_group(group, columns=[name])[name].chunks, *last]
        if sum(map(len, last)) >= _ROWS:
            break
    type = file.schema_arrow.field(name).type
    begin, end = (
        pa.chunked_array(chunks) if chunks else pa.chunked_array([], type) for chunks in (first, last)
    )
    return begin.slice(0, _ROWS), end.slice(max(0, len(end) - _ROWS))


def _chosen(names: Sequence[str], most: int = _MOST_COLUMNS) -> list[str]:
    """Return the columns that are looked into, whatever their order."""
    return sorted(names)[:most]


def _of_rows(n_rows: int, ends: Sequence[Mapping[str, pa.ChunkedArray]]) -> str:
    digest = hashlib.sha256()
    spelled: list[bytes] = []
    for i, columns in enumerate(ends):
        is_same = i > 0 and all(len(column) == n_rows for column in columns.values())  # both ends are all rows
        if not is_same:
            spelled = [json.dumps([name, _texts(column)]).encode() for name, column in columns.items()]
        for text in spelled:
            digest.update(text)
    return f"{n_rows} rows {digest.hexdigest()}"


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a column as texts."""
    if pa.types.is_dictionary(column.type):  # which would be looked up value by value
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type
        )
    values: list[Any] = column.to_pylist()
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return values if is_text else [_text(value) for value in values]


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
