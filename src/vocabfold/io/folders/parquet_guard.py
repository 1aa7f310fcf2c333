"""Untrusted Parquet files -> tables, within bounds.

A few bytes of Parquet may unpack to gigabytes: by compression, by encodings that repeat, or by rows that are
only claimed to be there. What a file may unpack to is bounded by its own size. Its footer may lie about that,
and readers believe the head of each page, so these are read first. Texts may still grow when their
encoding is undone, so they are read in small pieces.

Footers and heads of pages are structs in Thrift's compact protocol. `_thrift` reads them, and not Arrow, which
ends the process at the sight of some footers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold.errors import CodebookError
from vocabfold.io.folders._thrift import Parser, Struct
from vocabfold.support import checks

_ROOM, _RATIO = 2**26, 2**7  # bytes that any file may unpack to, and more per byte of it
_PIECE = 2**24  # bytes of a piece at the very most: as if all its values were as long as the longest page
_TEXTS, _ROWS = 2**12, 2**16  # of a piece, at most
PAGE = 2**15  # bytes of a page of texts, as vocabfold writes them: pieces of larger ones have fewer rows
_LEAST_PAGE = 2**10  # bytes, on average, of many pages of a large file
_MAX_FOOTER = 2**23  # bytes
_HEADS = (2**10, 2**14, 2**18, 2**24)  # bytes of a page's head: its statistics may hold two long texts

# The fields of Parquet's structs that matter here.
_FILE_ROWS, _GROUPS = 3, 4
_GROUP_CHUNKS = 1
_CHUNK_FILE, _CHUNK_FACTS = 1, 3
_PATH, _N_VALUES, _CHUNK_BYTES, _DATA, _DICTIONARY = 3, 5, 7, 9, 11
_UNPACKED, _PACKED = 2, 3  # bytes of a page, without compression and with it

Footer = tuple[int, list[str], list[pa.DataType]]
"""Rows of a file, and the names and types of its columns."""


def check_sizes(path: Path) -> None:
    """Refuse a file that would unpack to far more than it is, or whose pages are not where its footer says."""
    with _explained(path), path.open("rb") as file, _parsing(path):
        n_bytes = path.stat().st_size
        footer = _footer(file, path, n_bytes)
        groups = list(_groups(footer, path))
        chunks = [chunk for group in groups for chunk in group]
        sizes = [chunk[_CHUNK_BYTES] for chunk in chunks]
        if min(sizes, default=0) < 0 or sum(sizes) > n_bytes:  # then some are the same bytes
            raise ValueError
        pages = chain.from_iterable(_page_sizes(file, path, chunk, n_bytes) for chunk in chunks)
        unpacked = footer[_FILE_ROWS] * row_bytes(max(map(len, groups), default=0))
        for n_pages, size in enumerate(pages):
            unpacked += size
            if n_pages * _LEAST_PAGE > _ROOM + n_bytes:  # millions of empty ones
                raise ValueError
            if unpacked > _most(n_bytes):
                break
        if unpacked > _most(n_bytes):
            raise _too_large(path, n_bytes)


def row_bytes(n_columns: int) -> int:
    """Return the bytes of a row in memory: a value that is no text, its id, and sums; at least neg and pos."""
    return 8 * max(4, n_columns) - 4


def are_readable(paths: Sequence[Path], unpacked: int) -> bool:
    """Tell whether the files of a column, which together hold so many bytes, would be read."""
    try:
        for path in paths:
            check_sizes(path)
    except CodebookError:
        return False
    return unpacked <= _most(sum(path.stat().st_size for path in paths))


def look(path: Path) -> Footer:
    """Return how many rows a file has, and the names and types of its columns; its sizes are checked."""
    check_sizes(path)
    with _explained(path), pq.ParquetFile(path) as table:
        schema = table.schema_arrow
        return table.metadata.num_rows, schema.names, schema.types


def batches(paths: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield columns of files whose sizes were checked, in pieces; there is room for all files together."""
    n_bytes = sum(path.stat().st_size for path in paths if path.exists())
    room = _most(n_bytes)
    for path in paths:
        with _explained(path), pq.ParquetFile(path) as table, path.open("rb") as file:
            for i, n_rows in enumerate(_piece_rows(file, path, schema)):
                for batch in table.iter_batches(
                    n_rows, row_groups=[i], columns=schema.names, use_threads=False
                ):
                    room -= batch.nbytes
                    if room < 0:
                        raise _too_large(path, n_bytes)
                    batch.validate(full=True)  # texts may be no UTF-8
                    # What a writer says of missing values does not matter.
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def read(paths: Sequence[Path], names: Sequence[str] | None = None) -> pa.Table:
    """Return columns of files whose sizes were checked, or all, in memory; there is room as in `batches`."""
    with _explained(paths[0]), pq.ParquetFile(paths[0]) as table:
        found = table.schema_arrow
    schema = pa.schema([found.field(name) for name in names or found.names])
    return pa.Table.from_batches(batches(paths, schema), schema)


def _piece_rows(file: BinaryIO, path: Path, schema: pa.Schema) -> Iterator[int]:
    """Yield for each row group how many rows may be read at a time, by its largest page of values."""
    n_bytes = path.stat().st_size
    for group in _groups(_footer(file, path, n_bytes), path):
        values = [chunk for chunk in group if chunk.get(_PATH) == [b"value"]]
        sizes = [size for chunk in values for size in _page_sizes(file, path, chunk, n_bytes)]
        is_text = pa.types.is_string(schema.field("value").type)
        yield max(1, min(_TEXTS, _PIECE // max([1, *sizes]))) if is_text else _ROWS


def gone(path: Path) -> CodebookError:
    """Say that a file has changed under a codebook or counts in use."""
    return CodebookError(f"{path} has been removed or replaced since it was loaded; load the folder again.")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise gone(path) from error
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise CodebookError(f"{path} is not valid: {checks.reason(error)}.") from error


def _most(n_bytes: int) -> int:
    return _ROOM + _RATIO * n_bytes


def _too_large(path: Path, n_bytes: int) -> CodebookError:
    return CodebookError(
        f"{path} has {n_bytes:,} bytes and would unpack to more than {_most(n_bytes):,}; vocabfold writes no "
        "such file, so it is not read."
    )


def _damaged(path: Path) -> CodebookError:
    return CodebookError(f"{path} is not valid: its pages are not where its footer says.")


def _footer(file: BinaryIO, path: Path, n_bytes: int) -> Struct:
    """Return the footer of a file."""
    file.seek(max(0, n_bytes - 8))
    length = int.from_bytes(file.read(8)[:4], "little")
    if not 0 < length <= min(n_bytes - 12, _MAX_FOOTER):
        raise _damaged(path)
    file.seek(n_bytes - 8 - length)
    with _parsing(path):
        return Parser(file.read(length)).struct()


def _groups(footer: Struct, path: Path) -> Iterator[list[Struct]]:
    """Yield what the footer says of the columns in each row group, if they are in this file."""
    with _parsing(path):
        for group in footer.get(_GROUPS, []):
            if any(_CHUNK_FILE in chunk for chunk in group[_GROUP_CHUNKS]):
                raise ValueError
            yield [chunk[_CHUNK_FACTS] for chunk in group[_GROUP_CHUNKS]]


def _page_sizes(file: BinaryIO, path: Path, chunk: Struct, n_bytes: int) -> Iterator[int]:
    """Yield how many bytes each page of a chunk is said to unpack to."""
    with _parsing(path):
        if not chunk[_N_VALUES]:
            return  # and no page, or none that anybody reads
        place = chunk[_DATA]
        if 0 < chunk.get(_DICTIONARY, 0) < place:
            place = chunk[_DICTIONARY]
        end = place + chunk[_CHUNK_BYTES]
        if not 0 < place <= end <= n_bytes:
            raise ValueError
        while place < end:
            head, length = _head(file, place)
            if min(head[_UNPACKED], head[_PACKED]) < 0:
                raise ValueError
            yield head[_UNPACKED]
            place += length + head[_PACKED]
        if place != end:
            raise ValueError


def _head(file: BinaryIO, place: int) -> tuple[Struct, int]:
    """Return the head of a page, and its length."""
    for n_bytes in _HEADS:
        file.seek(place)
        parser = Parser(file.read(n_bytes))
        with suppress(IndexError):  # there may be more of it
            return parser.struct(), parser.at
    raise ValueError


@contextmanager
def _parsing(path: Path) -> Iterator[None]:
    """Say that what was found is not what should be there: too short, without a field, or of another type."""
    try:
        yield
    except CodebookError:  # which is a ValueError
        raise
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        raise _damaged(path) from None
