"""Plan + frame -> the same kind of frame with ids; and the tables that scikit-learn's frames become."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from vocabfold.encoding.crossfit import Folds, RowFolds
from vocabfold.encoding.encoder import Encoder, Ids, check_kinds, encode, fill
from vocabfold.encoding.order import Seen
from vocabfold.encoding.plan import Plan
from vocabfold.errors import InputError
from vocabfold.io.rows import destinations, fingerprints, frames
from vocabfold.support import checks


def encode_frame(plan: Plan, data: Any) -> Any:
    """Return a frame like the one given."""
    book = plan.book
    destinations.check_frame(data)
    if frames.is_lazy(data):
        with frames.reading(frames.described(data)):
            data = data.collect()
        return encode_frame(plan, data).lazy()
    place, names = frames.described(data), frames.names(data)
    checks.known("column", book.features, names, place)
    twice = [name for name in book.features if names.count(name) > 1]
    if twice:
        raise InputError(f"{place} has the column {twice[0]!r} twice; rename one of them.")
    table = frames.to_arrow(data, book.features)
    check_kinds(book, table.schema, place)
    if not plan.is_counted:  # these rows may be any
        like = chain(*book.fingerprints)
        of_frame = fingerprints.of_frame if plan.folds else partial(fingerprints.of_frame_like, like)
        plan = plan.of_rows(of_frame(data, book.features), place)
    rows = _folds_of(plan.folds, data, table.num_rows) if plan.folds else None
    ids, seen = encode_table(plan, table, rows)
    plan.check(seen, table.num_rows, place)
    return frames.replaced(data, ids, plan.only_ids)


def encode_table(plan: Plan, table: pa.Table, rows: RowFolds | None) -> tuple[dict[str, Ids], Seen]:
    """Return the ids of a table's rows, whose kinds were checked, and what was seen of the rows.

    `rows` has the fold of each row, if the ids are to be those out of fold.
    """
    fill(plan.kept, plan.store, plan.book.features)
    encoder = Encoder(plan.book, plan.kept, plan.offsets)
    return encode(encoder, table, rows), encoder.seen


def _folds_of(folds: Folds, data: Any, n_rows: int) -> RowFolds:
    """Return the fold of each row of a frame."""
    if folds.column is None:
        return folds.of_rows(0, n_rows, None, _label_of(folds, data))
    checks.known("column", [folds.column], frames.names(data), frames.described(data))
    return folds.of_rows(0, n_rows, frames.to_arrow(data, [folds.column]).column(0).combine_chunks(), None)


def _label_of(folds: Folds, data: Any) -> pa.ChunkedArray | None:
    """Return the label of each row of a frame, if it has it once, and Arrow can hold it."""
    if folds.label is None or list(frames.names(data)).count(folds.label) != 1:
        return None
    try:
        return frames.to_arrow(data, [folds.label]).column(0)
    except InputError:
        return None
