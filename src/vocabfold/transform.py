"""Codebook + rows -> ids: every value is replaced by its id; rows keep their order, and other columns stay.

Frames are looked up in memory. Files are read, looked up and written in batches: while one batch is written,
the next is read. If the values of all columns do not fit into the memory limit, columns take turns, and the ids
of those that come first wait in temporary files.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from vocabfold import checks, outputs
from vocabfold.cluster.encoding import encode_frame
from vocabfold.codebook import BLIND, Codebook
from vocabfold.counts import Counts
from vocabfold.crossfit import Folds
from vocabfold.encoding import (
    DIGEST,
    AnyIndex,
    AnyStore,
    Encoder,
    Ids,
    check_kinds,
    check_values,
    encode,
    fill,
    loaded,
    offsets,
)
from vocabfold.engines import files, fingerprints, frames, spark, streams, writing
from vocabfold.engines.duckdb import Engine, parse_memory
from vocabfold.engines.rows import Source, source
from vocabfold.engines.streams import Stream
from vocabfold.engines.text import PRESETS
from vocabfold.errors import InputError
from vocabfold.loading import SavedStore
from vocabfold.progress import track

OFFSET_IDS = b"vocabfold.offset_ids"  # a key in the metadata of Parquet files
_MANY_STRANGE = 0.05  # of the rows, that were not counted in their fold
_OWN_MEMORY = 300 * 2**20  # bytes that Python, its compiled code and batches need; of what is left,
_KEPT_SHARE = 1 / 2  # the part for the values of the codebook,
_LEAST_SHARE = 1 / 8  # and if little is left, this part of the limit
_verified: WeakSet[Codebook] = WeakSet()  # codebooks whose digest was computed from their values
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


@dataclass(frozen=True)
class Plan:
    """What is to be done to every table."""

    book: Codebook
    offset_ids: bool
    offsets: Mapping[str, int]  # what is added to the ids of each column
    only_ids: bool
    overwrite: bool
    folds: Folds | None = None  # of the rows, if they are those that the codebook was fitted on,
    is_counted: bool = False  # which is certain, as they have just been counted

    @property
    def kept(self) -> dict[str, Any]:
        """The columns that stay in memory."""
        return self.folds.indexes if self.folds else self.book.indexes

    @property
    def store(self) -> AnyStore:
        """Where the columns are loaded from."""
        return self.folds.store if self.folds else self.book.store

    def load(self, name: str) -> AnyIndex:
        """Return the values of a column in memory, for as long as they are needed."""
        return self.kept.get(name) or self.store.load([name])[name]

    @property
    def fold_column(self) -> str | None:
        """The column that tells the folds of the rows."""
        return self.folds.column if self.folds else None

    @property
    def beside(self) -> list[str]:
        """What is needed of the rows beside the columns that are looked up."""
        name = self.fold_column
        return [] if name is None or name in self.book.columns else [name]

    def schema(self, given: pa.Schema) -> pa.Schema:
        """Return the columns of the result, with the digest of the codebook in their metadata."""
        names = self.book.features if self.only_ids else given.names
        about = {DIGEST: self.book.digest.encode(), OFFSET_IDS: json.dumps(self.offset_ids).encode()}
        fields = [
            pa.field(name, pa.int32(), metadata=about)
            if name in self.book.columns
            else writing.field_of(given.field(name))
            for name in names
        ]
        return pa.schema(fields, frames.metadata_of_ids(given.metadata, self.book.columns) | about)


def transform(
    book: Codebook,
    data: Any,
    out: str | os.PathLike[str] | None,
    *,
    offset_ids: bool,
    only_ids: bool,
    expect: str | None,
    counts: Counts | None,
    fold_column: str | None,
    preset: str | None,
    overwrite: bool,
    memory_limit: int | str | None,
    is_counted: bool = False,
) -> Any:
    """Replace the values of a frame, or of files, by their ids; see `Codebook.transform`."""
    limit = parse_memory(memory_limit) or book.memory_limit
    if preset is not None:
        checks.choice("preset", preset, PRESETS)
    if expect is not None:
        if expect != book.digest:
            raise InputError(
                f"the codebook has the digest {book.digest}, and {expect!r} was expected; take the codebook "
                "with which the model was trained."
            )
        if book not in _verified:
            book.verify()
            _verified.add(book)
    folds = None
    if counts is not None:
        folds = Folds.of(book, counts, fold_column, limit)
    elif fold_column is not None:
        raise InputError("fold_column is for the rows of counts with folds; give these as counts=.")
    plan = Plan(book, bool(offset_ids), offsets(book, offset_ids), only_ids, overwrite, folds, is_counted)
    if spark.is_frame(data):
        return _of_spark(plan, data, out, preset)
    return _of_frame(plan, data) if out is None else _of_files(plan, data, out, preset, limit)


def _of_spark(plan: Plan, data: Any, out: str | os.PathLike[str] | None, preset: str | None) -> Any:
    """Return a Spark frame like the one given; nothing is run until somebody asks for its rows."""
    outputs.check_out(data, out, preset, overwrite=plan.overwrite)
    spark.session_of(data)
    if plan.folds is None:
        _check_rows(plan, (spark.fingerprint(data),), spark.NAME)
    elif plan.fold_column is None:
        raise InputError(
            "rows of a Spark frame have no number, by which they were dealt to folds when they were counted; "
            "count them with a fold_column."
        )
    return encode_frame(plan.book, data, plan.offsets, plan.only_ids, plan.folds)


def _of_frame(plan: Plan, data: Any) -> Any:
    """Return a frame like the one given."""
    book = plan.book
    outputs.check_frame(data)
    if frames.is_lazy(data):
        with frames.reading(frames.described(data)):
            data = data.collect()
        return _of_frame(plan, data).lazy()
    place, names = frames.described(data), frames.names(data)
    checks.known("column", book.features, names, place)
    twice = [name for name in book.features if names.count(name) > 1]
    if twice:
        raise InputError(f"{place} has the column {twice[0]!r} twice; rename one of them.")
    table = frames.to_arrow(data, book.features)
    check_kinds(book, table.schema, place)
    if plan.folds:
        known = fingerprints.of_frame(data, book.features)
    else:
        known = fingerprints.of_frame_like(chain(*book.fingerprints), data, book.features)
    _check_rows(plan, known, place)
    folds = _folds_of_frame(plan.folds, data, table.num_rows) if plan.folds else None
    fill(plan.kept, plan.store, book.features)
    encoder = Encoder(book, plan.kept, plan.offsets)
    ids = encode(encoder, table, folds)
    _check_folds(plan, encoder.strange, table.num_rows, place)
    return frames.replaced(data, ids, plan.only_ids)


def _folds_of_frame(folds: Folds, data: Any, n_rows: int) -> Ids:
    """Return the fold of each row of a frame."""
    if folds.column is None:
        return folds.of_rows(0, n_rows, None)
    checks.known("column", [folds.column], frames.names(data), frames.described(data))
    return folds.of_rows(0, n_rows, frames.to_arrow(data, [folds.column]).column(0).combine_chunks())


def _check_rows(plan: Plan, known: tuple[str, ...], place: str) -> None:
    """Warn if rows are looked up that the codebook was fitted on; or refuse, if they were dealt otherwise."""
    if plan.folds:
        plan.folds.check(known, place)
    elif plan.book.settings["method"] not in BLIND and plan.book.knows(known):
        warnings.warn(
            f"{place} seems to be what the codebook was fitted on: its ids tell the labels of these rows, and "
            "a model that is trained on them trusts rare values too much; use fit_transform, or transform(..., "
            "counts=) with counts by fold, or fit on older rows.",
            stacklevel=5,
        )


def _check_folds(plan: Plan, strange: Mapping[str, int], n_rows: int, place: str) -> None:
    """Warn if many rows have values that were not counted in the fold that a column gives them.

    A few may: rows without a label, or of weight 0, are not counted.
    """
    name = max(strange, key=lambda name: strange[name], default="")
    if plan.fold_column is not None and not plan.is_counted and strange.get(name, 0) > _MANY_STRANGE * n_rows:
        warnings.warn(
            f"{strange[name]:,} of {n_rows:,} rows of {place} have a value in column {name!r} that was not "
            "counted in their fold: unless these have no label, or no weight, they are other rows or their "
            "folds have changed, and ids tell labels; give the rows and folds as they were counted.",
            stacklevel=5,
        )


def _of_files(
    plan: Plan, data: Any, out: str | os.PathLike[str], preset: str | None, limit: int | None
) -> Transformed:
    """Write a file of ids for all the data, or for each file of it."""
    jobs = outputs.jobs(data, out, preset)
    for _, target in jobs:
        writing.check_place(target, writing.place(out), overwrite=plan.overwrite)
    unseen, strange = dict.fromkeys(plan.book.features, 0), dict.fromkeys(plan.book.features, 0)
    needed = [*plan.book.features, *plan.beside]
    with Engine(limit) as engine:
        _check_room(plan.book, engine)
        whole = source(engine, data, preset)
        checks.known("column", needed, whole.names, whole.place)
        _check_rows(plan, whole.fingerprints(plan.book.features), whole.name)
        # All files are looked at before one is written, but for text, which has to be read for that.
        opened: list[tuple[Source, Stream | None]] = []
        for given, target in jobs:
            found = whole if given is data else source(engine, given, preset)
            checks.known("column", needed, found.names, found.place)
            opened.append((found, None if found.is_text else _open(plan, found, target)))
        n_rows = 0
        for (found, stream), (_, target) in zip(opened, jobs, strict=True):
            engine.subject = found.name
            if stream is None:
                for _ in track([""], f"reading {found.name}", engine.progress):
                    stream = _open(plan, found, target)
            assert stream is not None
            n_rows += _write(engine, plan, stream, n_rows, target, found.name, unseen, strange)
    _check_folds(plan, strange, n_rows, whole.name)
    return Transformed(tuple(target for _, target in jobs), n_rows, unseen)


def _check_room(book: Codebook, engine: Engine) -> None:
    """Refuse a column whose values alone do not fit into the memory limit."""
    memory_limit = engine.memory_limit
    for name, column in book.columns.items():
        needed = column.n_values * _VALUE_BYTES
        if isinstance(book.store, SavedStore) and column.kind == "text" and needed <= memory_limit:
            needed = max(needed, _COPIES * book.store.value_bytes(name))
        if needed > memory_limit:
            raise InputError(
                f"column {name!r} of the codebook has {column.n_values:,} values, which need about "
                f"{needed / 1e9:.3g} GB in memory, and the limit is {memory_limit / 1e9:.3g} GB; raise "
                "memory_limit."
            )


class Watched:
    """A stream that knows how far it has been read."""

    def __init__(self, stream: Stream, first: int, folds: Folds | None) -> None:
        self._stream = stream
        self._first = first  # the number of its first row
        self._folds = folds
        self.n_rows = 0

    def read(
        self, names: Sequence[str], dictionaries: Collection[str]
    ) -> Iterator[tuple[pa.RecordBatch, Ids | None]]:
        """Yield the rows, and the fold of each, if that is needed."""
        by = self._folds.column if self._folds else None
        wanted = names if by is None or by in names else [*names, by]
        for batch in self._stream.read(wanted, dictionaries):
            folds = None
            if self._folds:
                column = batch.column(by) if by is not None else None
                folds = self._folds.of_rows(self._first + self.n_rows, batch.num_rows, column)
            self.n_rows += batch.num_rows
            yield batch, folds

    def fraction(self) -> float:
        """Return how much has been read, 0 to 1; 0 if nobody knows."""
        return self.n_rows / self._stream.n_rows if self._stream.n_rows else 0.0


def _open(plan: Plan, found: Source, target: Path) -> Stream:
    """Return the rows of a file, after checking that they can be looked up and written."""
    is_csv = writing.format_of(target) != files.PARQUET
    kinds = {name: column.kind for name, column in plan.book.columns.items()}
    stream = found.stream([*plan.book.features, *plan.beside] if plan.only_ids else None, kinds, is_csv)
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
    strange: dict[str, int],
) -> int:
    """Write a file, whose first row has a number among all, and return its rows."""
    aside: dict[str, Path] = {}
    n_rows = 0
    room = max(engine.memory_limit * _LEAST_SHARE, (engine.memory_limit - _OWN_MEMORY) * _KEPT_SHARE)
    for indexes, is_last in loaded(plan.book.features, plan.load, room):
        if len(indexes) == len(plan.book.features):
            plan.kept.update(indexes)  # for the next time
        if not is_last:
            with writing.explained(engine.folder):
                stream = streams.kept(engine, stream, engine.folder / "kept.parquet", plan.book.features)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            n_wanted = [stream.n_rows or streams.BATCH_ROWS] * len(indexes)
            list(pool.map(lambda index, n: index.prepare(n), indexes.values(), n_wanted))
        watched = Watched(stream, first, plan.folds)
        encoder = Encoder(plan.book, indexes, plan.offsets, unseen, strange)
        for _ in track([""], f"transforming {name}", watched.fraction):
            if is_last:
                schema = plan.schema(stream.schema)
                batches = _ahead(_finished(schema, watched, encoder, aside))
                writing.write(engine, target, schema, batches, overwrite=plan.overwrite)
            else:
                aside |= _put_aside(engine.folder, watched, encoder)
        n_rows = watched.n_rows
        del indexes, encoder  # before the next ones are loaded
    return n_rows


def _encoded(
    stream: Watched, encoder: Encoder, carried: list[str]
) -> Iterator[tuple[pa.RecordBatch, dict[str, Ids]]]:
    """Yield batches with the carried columns and those of the encoder, and the ids of these."""
    names = list(encoder.indexes)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch, folds in stream.read([*carried, *names], names):
            columns = [batch.column(name) for name in names]
            ids = pool.map(encoder.ids, names, columns, [folds] * len(names))
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
