"""Plan + files -> files with ids: rows keep their order, and all other columns stay as they are.

Rows are read, looked up and written in batches: while one batch is written, the next is read. If the values of
all columns do not fit into the memory limit, columns take turns, and the ids of those that come first wait in
temporary files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from vocabfold.codebook.codebook import Codebook
from vocabfold.encoding.crossfit import Folds, RowFolds
from vocabfold.encoding.encoder import Encoder, Ids, check_kinds, check_values, loaded
from vocabfold.encoding.order import Seen
from vocabfold.encoding.plan import Plan
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.rows import destinations, files, streams, writing
from vocabfold.io.rows.source import Source, source
from vocabfold.io.rows.streams import Stream
from vocabfold.support import checks
from vocabfold.support.progress import track

_OWN_MEMORY = 300 * 2**20  # bytes that Python, its compiled code and batches need; of what is left,
_KEPT_SHARE = 1 / 2  # the part for the values of the codebook,
_LEAST_SHARE = 1 / 8  # and if little is left, this part of the limit
_VALUE_BYTES = 64  # of a value of the codebook, while it is loaded,
_COPIES = 2  # and of its text, if that is long

T = TypeVar("T")


@dataclass(frozen=True)
class Transformed:
    """What was written.

    Attributes
    ----------
    paths : tuple of Path
        The files.
    rows : int
        Their rows, in all.
    unseen : dict
        For each column, the rows whose value is not in the codebook.
    """

    paths: tuple[Path, ...]
    rows: int
    unseen: Mapping[str, int]


def encode_files(
    plan: Plan, data: Any, out: str | os.PathLike[str], preset: str | None, limit: int | None
) -> Transformed:
    """Write a file of ids for all the data, or for each file of it."""
    jobs = destinations.jobs(data, out, preset)
    for _, target in jobs:
        writing.check_place(target, writing.place(out), overwrite=plan.overwrite)
    unseen, seen = dict.fromkeys(plan.book.features, 0), Seen()
    with Engine(limit) as engine, ExitStack() as unfinished:
        _check_room(plan.book, engine)
        whole = source(engine, data, preset)
        checks.known("column", plan.needed, whole.names, whole.place)
        plan = plan.of_rows(whole.fingerprints(plan.book.features), whole.name)
        # All files are looked at before one is written, but for text, which has to be read for that.
        opened: list[tuple[Source, Stream | None]] = []
        for given, target in jobs:
            found = whole if given is data else source(engine, given, preset)
            checks.known("column", plan.needed, found.names, found.place)
            opened.append((found, None if found.is_text else _open(plan, found, target)))
        n_rows = 0
        for (found, stream), (_, target) in zip(opened, jobs, strict=True):
            engine.subject = found.name
            if stream is None:
                for _ in track([""], f"reading {found.name}", engine.progress):
                    stream = _open(plan, found, target)
            assert stream is not None
            n_rows = _write(engine, plan, stream, n_rows, target, found.name, unseen, seen, unfinished)
            if not plan.needs_order:  # else none takes its place before all rows have been seen
                unfinished.close()
        plan.check(seen, n_rows, whole.name)
    return Transformed(tuple(target for _, target in jobs), n_rows, unseen)


def _check_room(book: Codebook, engine: Engine) -> None:
    """Refuse a column whose values alone do not fit into the memory limit."""
    memory_limit = engine.memory_limit
    for name, column in book.columns.items():
        needed = column.n_values * _VALUE_BYTES
        if column.kind == "text" and needed <= memory_limit:
            needed = max(needed, _COPIES * book.store.value_bytes(name))
        if needed > memory_limit:
            raise InputError(
                f"column {name!r} of the codebook has {column.n_values:,} values, which need about "
                f"{needed / 1e9:.3g} GB in memory, but the limit is {memory_limit / 1e9:.3g} GB; raise "
                f"{argument('memory_limit')}."
            )


class Watched:
    """A stream that notes how far it has been read."""

    def __init__(self, stream: Stream, first: int, folds: Folds | None) -> None:
        self._stream = stream
        self._first = first  # the number of its first row
        self._folds = folds
        self.n_rows = 0

    def read(
        self, names: Sequence[str], dictionaries: Collection[str]
    ) -> Iterator[tuple[pa.RecordBatch, RowFolds | None]]:
        """Yield the rows, and the fold of each, if that is needed."""
        by, label_name = (self._folds.column, self._folds.label) if self._folds else (None, None)
        beside = [name for name in (by, label_name) if name is not None and name in self._stream.schema.names]
        for batch in self._stream.read(list(dict.fromkeys([*names, *beside])), dictionaries):
            rows = None
            if self._folds:
                column, label = (batch.column(name) if name in beside else None for name in (by, label_name))
                rows = self._folds.of_rows(self.end, batch.num_rows, column, label)
            self.n_rows += batch.num_rows
            yield batch, rows

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self._first + self.n_rows

    def fraction(self) -> float:
        """Return how much has been read, 0 to 1; 0 if that is unknown."""
        return self.n_rows / self._stream.n_rows if self._stream.n_rows else 0.0


def _open(plan: Plan, found: Source, target: Path) -> Stream:
    """Return the rows of a file, after checking that they can be looked up and written."""
    is_csv = writing.format_of(target) != files.PARQUET
    kinds = {name: column.kind for name, column in plan.book.columns.items()}
    stream = found.stream(plan.used(found.names) if plan.only_ids else None, kinds, is_csv)
    check_values(plan.book, stream.schema, found.name)
    check_kinds(plan.book, stream.schema, found.name)
    if is_csv:
        writing.check_csv(plan.schema(stream.schema), target)
    return stream


def _write(
    engine: Engine,
    plan: Plan,
    stream: Stream,
    first: int,
    target: Path,
    name: str,
    unseen: dict[str, int],
    seen: Seen,
    unfinished: ExitStack,
) -> int:
    """Write a file, whose first row has a number among all, and return that of the next.

    It takes its place once `unfinished` is closed.
    """
    aside: dict[str, Path] = {}
    room = max(engine.memory_limit * _LEAST_SHARE, (engine.memory_limit - _OWN_MEMORY) * _KEPT_SHARE)
    for indexes, is_last in loaded(plan.book.features, plan.load, room):
        if len(indexes) == len(plan.book.features):
            plan.kept.update(indexes)  # for the next time
        if not is_last:
            with writing.explained(engine.folder):
                stream = streams.spooled(engine, stream, engine.folder / "spooled.parquet", plan.book.features)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            n_wanted = [stream.n_rows or streams.BATCH_ROWS] * len(indexes)
            list(threads.map(lambda index, n: index.prepare(n), indexes.values(), n_wanted))
        watched = Watched(stream, first, plan.folds)
        encoder = Encoder(plan.book, indexes, plan.offsets, unseen, seen)
        for _ in track([""], f"transforming {name}", watched.fraction):
            if is_last:
                schema = plan.schema(stream.schema)
                batches = _ahead(_finished(schema, watched, encoder, aside))
                unfinished.enter_context(
                    writing.written(engine, target, schema, batches, overwrite=plan.overwrite)
                )
            else:
                aside |= _put_aside(engine.folder, watched, encoder)
        end = watched.end
        del indexes, encoder  # before the next ones are loaded
    return end


def _encoded(
    stream: Watched, encoder: Encoder, carried: list[str]
) -> Iterator[tuple[pa.RecordBatch, dict[str, Ids]]]:
    """Yield batches with the carried columns and those of the encoder, and the ids of these."""
    names = list(encoder.indexes)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for batch, rows in stream.read([*carried, *names], names):
            columns = [batch.column(name) for name in names]
            ids = threads.map(encoder.ids, names, columns, [rows] * len(names))
            yield batch, dict(zip(names, ids, strict=True))


def _put_aside(folder: Path, stream: Watched, encoder: Encoder) -> dict[str, Path]:
    """Write the ids of each column to a file, as they are in memory."""
    paths = {name: folder / f"ids-{encoder.book.features.index(name)}" for name in encoder.indexes}
    with writing.explained(folder), ExitStack() as opened:
        files = {name: opened.enter_context(path.open("wb")) for name, path in paths.items()}
        for _, ids in _ahead(_encoded(stream, encoder, [])):
            for name, of_batch in ids.items():
                files[name].write(of_batch.data)
    return paths


def _finished(
    schema: pa.Schema, stream: Watched, encoder: Encoder, aside: Mapping[str, Path]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of the result; the ids that were put aside come from their files."""
    carried = [name for name in schema.names if name not in encoder.book.columns]
    with ExitStack() as opened:
        files = {name: opened.enter_context(path.open("rb")) for name, path in aside.items()}
        for batch, ids in _encoded(stream, encoder, carried):
            ids |= {name: np.fromfile(file, np.int32, batch.num_rows) for name, file in files.items()}
            columns = [
                pa.array(ids[field.name])
                if field.name in ids
                else streams.as_type(batch.column(field.name), field.type)
                for field in schema
            ]
            yield pa.record_batch(columns, schema=schema)


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, the next of which is made meanwhile."""
    end: Any = object()
    with ThreadPoolExecutor(1) as maker:
        waiting = maker.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = maker.submit(next, items, end)
            yield item
