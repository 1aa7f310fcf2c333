"""Codebook + rows -> ids: every value is replaced by its id.

This is the one place where encoding begins: options are checked and become a plan, which is carried out on a
frame, on files or on a Spark frame. scikit-learn and `vocabfold.spark` make a plan of their own.
"""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakSet

from vocabfold.codebook.codebook import Codebook
from vocabfold.counts.counts import Counts
from vocabfold.encoding.crossfit import Folds
from vocabfold.encoding.files import encode_files
from vocabfold.encoding.frames import encode_frame
from vocabfold.encoding.plan import Plan
from vocabfold.encoding.spark import encode_spark_frame
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import parse_memory
from vocabfold.io.engines.spark import is_frame
from vocabfold.io.rows import destinations
from vocabfold.io.rows.text import PRESETS
from vocabfold.support import checks

_verified: WeakSet[Codebook] = WeakSet()  # codebooks whose digest was computed from their values


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
        _check_digest(book, expect)
    folds = None
    if counts is not None:
        folds = Folds.of(book, counts, fold_column, limit)
    elif fold_column is not None:
        raise InputError(
            f"is for rows that were counted with folds; give their counts with {argument('counts', ...)}.",
            argument="fold_column",
        )
    plan = Plan.of(
        book,
        offset_ids=offset_ids,
        only_ids=only_ids,
        overwrite=overwrite,
        folds=folds,
        is_counted=is_counted,
    )
    if is_frame(data):
        destinations.check_out(data, out, preset, overwrite=overwrite)
        return encode_spark_frame(plan, data)
    return encode_frame(plan, data) if out is None else encode_files(plan, data, out, preset, limit)


def _check_digest(book: Codebook, expect: str) -> None:
    """Refuse a codebook with another digest; the first time, it is computed from all values."""
    if expect != book.digest:
        raise InputError(
            f"the codebook has the digest {book.digest}, but {expect!r} was expected; use the codebook with "
            "which the model was trained."
        )
    if book not in _verified:
        book.verify()
        _verified.add(book)
