"""Arrays -> ids: columns of a codebook in memory, as many of them at a time as there is room for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.index import Index
from vocabfold.codebook.stores import Store
from vocabfold.encoding.crossfit import FoldedIndex, FoldedStore, RowFolds
from vocabfold.encoding.order import Seen
from vocabfold.errors import InputError
from vocabfold.io.engines.kinds import as_kind, is_comparable, kind_of
from vocabfold.support.progress import track

_PIECE = 2**16  # values of a table that a thread looks up at a time
DIGEST = b"vocabfold.digest"  # a key in the metadata of Parquet files, and of the columns that hold ids

Ids = NDArray[np.int32]
AnyIndex = Index | FoldedIndex
AnyStore = Store | FoldedStore


@dataclass(frozen=True)
class Encoder:
    """Columns of a codebook, ready to be looked up by several threads."""

    book: Codebook
    indexes: Mapping[str, AnyIndex]
    offsets: Mapping[str, int]  # what is added to the ids
    unseen: dict[str, int] = field(default_factory=dict)  # values that were not in the codebook
    seen: Seen = field(default_factory=Seen)
    _lock: Lock = field(default_factory=Lock)

    def ids(self, name: str, values: pa.Array, rows: RowFolds | None = None) -> Ids:
        """Return the ids of values of a column, whose kind was checked before, in the folds of their rows."""
        ids = self._find(name, values)
        index = self.indexes[name]
        if isinstance(index, FoldedIndex):
            assert rows is not None
            ids, n_uncounted, sums = index.resolve(ids, rows)
            self.seen.add(name, n_uncounted, sums, index.counted)
        n_unseen = int((ids < 0).sum())
        if n_unseen:
            with self._lock:  # several threads look values of one column up
                self.unseen[name] = self.unseen.get(name, 0) + n_unseen
            is_unseen = ids < 0
            ids = self.book.resolved(name, ids, values)
            if isinstance(index, FoldedIndex):
                ids[is_unseen] = index.others[rows.folds[is_unseen]]  # type: ignore[union-attr]
        return ids + np.int32(self.offsets[name]) if self.offsets[name] else ids

    def _find(self, name: str, values: pa.Array) -> Ids:
        if pa.types.is_dictionary(values.type):
            if len(values.dictionary) > len(values):
                return self._find(name, values.dictionary_decode())
            missing = pa.nulls(1, values.type.value_type)
            of_words: Ids = np.append(self._find(name, values.dictionary), self._find(name, missing))
            codes = np.asarray(values.indices.cast(pa.int64()).fill_null(len(values.dictionary)))
            return np.take(of_words, codes)
        converted = as_kind(values, self.book.columns[name].kind)
        assert converted is not None, "another kind"
        ids = self.indexes[name].find(converted[0])
        ids[converted[1]] = -1
        return ids


def fill(kept: dict[str, Any], store: AnyStore, names: Sequence[str]) -> None:
    """Load the columns that are not in memory yet."""
    missing = [name for name in names if name not in kept]
    if missing:
        kept.update(store.load(track(missing, "loading the codebook")))


def encode(encoder: Encoder, table: pa.Table, rows: RowFolds | None = None) -> dict[str, Ids]:
    """Return the ids of a table's rows, whose kinds were checked before; `rows` has the fold of each."""
    names = encoder.book.features  # in this order, and not as they happened to be loaded
    for name in names:
        encoder.indexes[name].prepare(table.num_rows)
    pieces = [(name, *piece) for name in names for piece in _pieces(table[name], rows)]
    if len(pieces) > len(names):
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            found = list(threads.map(lambda piece: encoder.ids(*piece), pieces))
    else:  # a few rows: threads would take longer to begin
        found = [encoder.ids(*piece) for piece in pieces]
    ids: dict[str, list[Ids]] = {name: [np.empty(0, np.int32)] for name in names}
    for (name, *_), of_piece in zip(pieces, found, strict=True):
        ids[name].append(of_piece)
    return {name: np.concatenate(parts) for name, parts in ids.items()}


def _pieces(column: pa.ChunkedArray, rows: RowFolds | None) -> Iterator[tuple[pa.Array, RowFolds | None]]:
    """Cut a column for several threads; a dictionary stays whole, as each of its words is looked up once."""
    row = 0
    for chunk in column.chunks:
        size = max(len(chunk), 1) if pa.types.is_dictionary(chunk.type) else _PIECE
        for start in range(0, len(chunk), size):
            piece = chunk.slice(start, size)
            yield piece, rows and rows.part(row, len(piece))
            row += len(piece)


def offsets(book: Codebook, offset_ids: bool) -> dict[str, int]:
    """Return what is added to the ids of each column."""
    if not offset_ids:
        return dict.fromkeys(book.features, 0)
    if book.size >= 2**31:
        raise InputError(f"offset_ids needs fewer than 2**31 ids in all, and the codebook has {book.size:,}.")
    return book.offsets


def check_values(book: Codebook, schema: pa.Schema, place: str) -> None:
    """Refuse columns that were transformed before, by the metadata of a Parquet file."""
    for name in book.features:
        if DIGEST in (schema.field(name).metadata or {}):
            raise holds_ids(name, place)


def holds_ids(name: str, place: str) -> InputError:
    """Return the error for a column that was transformed before."""
    return InputError(f"column {name!r} of {place} holds ids already; give the original rows.")


def check_kinds(book: Codebook, schema: pa.Schema, place: str) -> None:
    """Refuse columns whose values cannot be in the codebook, all together."""
    types = {name: schema.field(name).type for name in book.features}
    check_found(book, {name: (kind_of(type), str(type)) for name, type in types.items()}, place)


def check_found(book: Codebook, found: Mapping[str, tuple[str | None, str]], place: str) -> None:
    """Refuse columns, given their kinds and types, whose values cannot be in the codebook, all together."""
    problems = [
        f"column {name!r} holds {kind or type} in {place}, but {book.columns[name].kind} in the codebook; "
        "values of different types never match, so convert it first."
        for name, (kind, type) in found.items()
        if not is_comparable(kind, book.columns[name].kind)
    ]
    if problems:
        raise InputError(" ".join(problems))


def loaded(
    names: Sequence[str], index_of: Callable[[str], AnyIndex], room: float
) -> Iterator[tuple[dict[str, AnyIndex], bool]]:
    """Yield the columns in groups that fit into so many bytes, and whether a group is the last one."""
    while names:
        group: dict[str, AnyIndex] = {}  # the one before is no longer needed
        n_bytes = 0
        for name in track(names, "loading the codebook"):
            if n_bytes > room:  # one column is: another one would be loaded beside it, and in vain
                break
            index = index_of(name)
            n_bytes += index.nbytes
            if group and n_bytes > room:
                break
            group[name] = index
        del index
        pa.default_memory_pool().release_unused()
        names = names[len(group) :]
        yield group, not names
