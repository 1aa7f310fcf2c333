"""Parquet files of strangers -> tables, within bounds.

A few bytes of Parquet may unpack to gigabytes: by compression, by encodings that repeat, or by rows that are
only said to be there. What a file may unpack to is bounded by its own size. Its footer does not tell, since it
may lie, and readers believe the head of each page, so these are read first: structs in Thrift's compact
protocol, of which only the sizes matter here. Texts may still grow when their encoding is undone, so they are
read in small pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold import checks
from vocabfold.errors import CodebookError

_ROOM, _RATIO = 2**26, 2**10  # bytes that any file may unpack to, and more per byte of it
_ROW_BYTES = 28  # of a value that is no text, its id, neg and pos
_PIECE = 2**24  # bytes of a piece at the very most: as if all its values were as long as the longest page
_TEXTS, _ROWS = 2**12, 2**16  # of a piece, at most
PAGE = 2**15  # bytes of a page of texts, as vocabfold writes them: pieces of larger ones have fewer rows
_MAX_HEAD = 2**16  # bytes of a page's head, with its statistics
_MAX_DEPTH = 8  # of structs in it

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12  # types of Thrift
_VARINTS = (4, 5, 6)
_UNPACKED, _PACKED = 2, 3  # fields of a page's head: its bytes, without compression and with it


def check_sizes(path: Path, footer: pq.FileMetaData) -> None:
    """Refuse a file that would unpack to far more than it is, or whose pages are not where its footer says."""
    with _explained(path), path.open("rb") as file:
        n_bytes = path.stat().st_size
        unpacked = footer.num_rows * _ROW_BYTES
        for chunk in _chunks(footer):
            if unpacked <= _most(n_bytes):
                unpacked += sum(_page_sizes(file, path, chunk, n_bytes))
        if unpacked > _most(n_bytes):
            raise _too_large(path, n_bytes)


def opened(path: Path) -> pq.ParquetFile:
    """Open a file that a header lists."""
    with _explained(path):
        return pq.ParquetFile(path)


def batches(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of a file whose sizes were checked; no more of them at a time than there is room for."""
    with _explained(path), pq.ParquetFile(path) as table:
        n_bytes = path.stat().st_size
        room = _most(n_bytes)
        n_rows = _ROWS
        if pa.types.is_string(table.schema_arrow.field("value").type):
            with path.open("rb") as file:
                texts = [chunk for chunk in _chunks(table.metadata) if chunk.path_in_schema == "value"]
                sizes = (size for chunk in texts for size in _page_sizes(file, path, chunk, n_bytes))
                n_rows = max(1, min(_TEXTS, _PIECE // max(sizes, default=_PIECE)))
        for batch in table.iter_batches(n_rows, columns=list(names), use_threads=False):
            room -= batch.nbytes
            if room < 0:
                raise _too_large(path, n_bytes)
            batch.validate(full=True)  # texts may be no UTF-8
            yield batch


def gone(path: Path) -> CodebookError:
    """Say that a file has changed under a codebook or counts in use."""
    return CodebookError(f"{path} has been removed or replaced since it was loaded; load the folder again.")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise gone(path) from error
    except (OSError, pa.ArrowException) as error:
        raise CodebookError(f"{path} is not valid: {checks.reason(error)}.") from error


def _most(n_bytes: int) -> int:
    return _ROOM + _RATIO * n_bytes


def _too_large(path: Path, n_bytes: int) -> CodebookError:
    return CodebookError(
        f"{path} has {n_bytes:,} bytes and would unpack to more than {_most(n_bytes):,}; no honest file does, "
        "so it is not read."
    )


def _damaged(path: Path) -> CodebookError:
    return CodebookError(f"{path} is not valid: its pages are not where its footer says.")


def _chunks(footer: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        for j in range(group.num_columns):
            yield group.column(j)


def _page_sizes(file: BinaryIO, path: Path, chunk: pq.ColumnChunkMetaData, n_bytes: int) -> Iterator[int]:
    """Yield how many bytes each page of a chunk is said to unpack to."""
    if not chunk.num_values:
        return  # and no page, or none that anybody reads
    place = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < place:
        place = chunk.dictionary_page_offset
    end = place + chunk.total_compressed_size
    if chunk.file_path or not 0 < place <= end <= n_bytes:
        raise _damaged(path)
    while place < end:
        file.seek(place)
        try:
            fields, length = _struct(file.read(_MAX_HEAD), 0, 0)
            unpacked, packed = fields[_UNPACKED], fields[_PACKED]
        except (IndexError, KeyError, ValueError):
            raise _damaged(path) from None
        if min(unpacked, packed) < 0:
            raise _damaged(path)
        yield unpacked
        place += length + packed
    if place != end:
        raise _damaged(path)


def _struct(head: bytes, at: int, depth: int) -> tuple[dict[int, int], int]:
    """Return the whole numbers of a struct by their fields, and where it ends."""
    if depth > _MAX_DEPTH:
        raise ValueError
    fields: dict[int, int] = {}
    field = 0
    while head[at]:
        kind, step = head[at] & 15, head[at] >> 4
        at += 1
        if step:
            field += step
        else:
            field, at = _number(head, at)
        if kind in _VARINTS:
            fields[field], at = _number(head, at)
        else:
            at = _skipped(head, at, kind, depth)
    return fields, at + 1


def _skipped(head: bytes, at: int, kind: int, depth: int) -> int:
    """Return where something that does not matter ends."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind in (_BYTE, _DOUBLE):
        return at + (1 if kind == _BYTE else 8)
    if kind == _BINARY:
        size, at = _varint(head, at)
        return at + size
    if kind == _STRUCT:
        return _struct(head, at, depth + 1)[1]
    raise ValueError  # heads of pages hold nothing else


def _number(head: bytes, at: int) -> tuple[int, int]:
    """Return a whole number with a sign, and where it ends."""
    number, at = _varint(head, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(head: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while head[at] & 128:
        number |= (head[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if shift > 63:
            raise ValueError
    return number | head[at] << shift, at + 1
