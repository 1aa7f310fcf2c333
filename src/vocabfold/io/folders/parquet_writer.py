"""Tables -> the Parquet files of a folder, named after their content; the same bytes for the same tables."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vocabfold.io.folders import headers, parquet_guard
from vocabfold.io.folders.atomic import put_in_place

_SAMPLE = 2**11  # rows of the first row group, by which the size of the others is chosen:
_ROW_GROUP, _GROUP_BYTES = 2**18, 2**25  # at most so many rows, and about so many bytes of text
_PIECE = 2**8  # rows that are copied at a time


class Saver:
    """A folder that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[headers.Json] = []
        self.header: headers.Json | None = None  # to be set last: what is said of the files

    def add(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> headers.Json:
        """Write a table to a file, and return its entry in the header."""
        is_text = schema.field("value").type == pa.string()
        n_rows = n_bytes = 0
        path = self.folder / unfinished()
        with pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name != "value"],
            column_encoding={"value": "DELTA_BYTE_ARRAY"} if is_text else None,
            data_page_size=parquet_guard.PAGE if is_text else None,
        ) as writer:
            for group in _row_groups(batches):
                n_rows, n_bytes = n_rows + group.num_rows, n_bytes + group.nbytes
                writer.write_table(group, row_group_size=group.num_rows or 1)
        (path,) = self._readable([path], n_bytes)
        return self._listed(path, n_rows)

    def _readable(self, paths: list[Path], n_bytes: int) -> list[Path]:
        """Return the files of a column, which hold so many bytes, in a form that readers accept."""
        return paths if parquet_guard.are_readable(paths, n_bytes) else [self._unpacked(path) for path in paths]

    def _unpacked(self, path: Path) -> Path:
        """Return the same file without compression and encodings."""
        plain = self.folder / unfinished()
        with (
            pq.ParquetFile(path) as packed,
            pq.ParquetWriter(
                plain,
                packed.schema_arrow,
                compression="none",
                use_dictionary=False,
                data_page_size=parquet_guard.PAGE,
            ) as writer,
        ):
            for group in _row_groups(packed.iter_batches(_PIECE)):
                writer.write_table(group, row_group_size=group.num_rows)
        path.unlink()
        return plain

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """Yield a folder for files that others write; it is removed in the end."""
        folder = self.folder / unfinished()
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def take(self, paths: list[Path]) -> list[headers.Json]:
        """Take in the files of a column that others wrote, and return their entries."""
        footers = [pq.read_metadata(path) for path in paths]
        rows = [footer.num_rows for footer in footers]
        groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
        row_bytes = parquet_guard.row_bytes(footers[0].num_columns)
        n_bytes = sum(group.total_byte_size for group in groups) + row_bytes * sum(rows)
        return list(map(self._listed, self._readable(paths, n_bytes), rows))

    def _listed(self, path: Path, n_rows: int) -> headers.Json:
        """Put a file in its place, under the name that its content gives, and return its entry."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name, n_bytes = f"{len(self.files):03}-{digest[:16]}.parquet", path.stat().st_size
        put_in_place(path, self.folder / name)
        self.files.append({"name": name, "rows": n_rows, "bytes": n_bytes, "sha256": digest})
        return self.files[-1]


def unfinished() -> str:
    """Return a new name for what is being written."""
    return f"unfinished-{secrets.token_hex(8)}"


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Regroup batches into tables of one size: engines cut them as they like, and bytes must not show it."""
    held: list[pa.RecordBatch] = []
    size = _SAMPLE
    for batch in batches:
        held.append(batch)
        while sum(part.num_rows for part in held) >= size:
            table = pa.Table.from_batches(held)
            yield table.slice(0, size).combine_chunks()
            held = table.slice(size).to_batches()
            size = _group_size(table["value"].slice(0, size)) if size == _SAMPLE else size
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _group_size(first: pa.ChunkedArray) -> int:
    """Return how many rows make a row group, by the length of the first values: it has to fit into memory."""
    if not pa.types.is_string(first.type):
        return _ROW_GROUP
    import pyarrow.compute as pc  # slow to import, and readers do without

    n_bytes = pc.sum(pc.binary_length(first)).as_py() or 0
    return max(_SAMPLE, min(_ROW_GROUP, _SAMPLE * _GROUP_BYTES // max(n_bytes, 1)))
