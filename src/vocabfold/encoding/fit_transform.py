"""Rows -> Codebook and the ids of the same rows, to train a model on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.settings import FitSettings
from vocabfold.counts.counting import count
from vocabfold.encoding.transform import transform
from vocabfold.errors import InputError
from vocabfold.fitting.fitting import fit_counts
from vocabfold.io.engines import spark
from vocabfold.io.rows import files, frames
from vocabfold.io.rows.destinations import check_out
from vocabfold.support import checks


def fit_transform(
    data: Any,
    label: str | None = None,
    budget: int | str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    folds: int = 5,
    fold_seed: int = 0,
    fold_column: str | None = None,
    offset_ids: bool = False,
    only_ids: bool = False,
    overwrite: bool = True,
    features: str | Sequence[str] | None = None,
    also: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    positive: Any = None,
    weight: str | None = None,
    drop_null_labels: bool = False,
    preset: str | None = None,
    memory_limit: int | str | None = None,
    aim: str = "model",
    method: str = "exact",
    allocation: str = "joint",
    smoothing: float | str | None = None,
    min_count: int | None = None,
    dedicated_min: int = 30,
    shared_ids: int = 8,
    unseen: str = "other",
    epsilon: float = 0.1,
    shards: int = 1,
    seed: int = 0,
) -> tuple[Codebook, Any]:
    """Fit a codebook on rows, and encode the same rows out of fold, to train a model on.

    A row of an infrequent value gets its id from the rows of the other folds, so that its own label has no part
    in it. So the result differs from `fit(...)` followed by `transform`, on purpose; both use the ids of one
    codebook.

    Parameters
    ----------
    data : path, pattern, list of paths or frame
        As for `count`; the rows are read twice. A lazy frame is collected; a Spark frame needs a `fold_column`.
    label : str
        As for `count`.
    budget : int or "auto"
        As for `fit`.
    out : path, optional
        As for `Codebook.transform`; without it, data must be a frame.
    folds : int
        As for `count`, at least 2; with a `fold_column`, its values set the number.
    fold_seed, fold_column
        As for `count`.
    offset_ids, only_ids, overwrite
        As for `Codebook.transform`.
    features, also, exclude, positive, weight, drop_null_labels, preset, memory_limit
        As for `count`.
    aim, ..., seed
        As for `fit` of counts with folds.

    Returns
    -------
    book : Codebook
        To encode other rows with.
    encoded : frame or Transformed
        The rows given, with ids; what `Codebook.transform` returns.

    Raises
    ------
    InputError
        The rows or the options cannot be used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import vocabfold as vf
    >>> rows = pa.table({"site": ["a", "b", "a", "c"] * 9, "click": [1, 0, 1, 1] * 9})
    >>> book, encoded = vf.fit_transform(rows, "click", budget=10)
    >>> book.ids("site", ["a", "b", "c"])
    array([2, 0, 1], dtype=int32)
    >>> encoded.schema.types
    [DataType(int32), DataType(int64)]
    """
    settings = FitSettings.of(locals(), with_folds=True)  # all arguments, and nothing else yet
    settings.check_training()
    if fold_column is None:
        checks.at_least("folds", folds, 2)
    is_spark = spark.is_frame(data)
    if is_spark and fold_column is None:
        raise InputError(
            "rows of a Spark frame have no numbers by which to assign them to folds; give a column with the "
            "fold of each row as fold_column=, for example a hash of the id of the row."
        )
    if not (is_spark or files.are_paths(data) or frames.is_frame(data)):
        raise InputError(
            "fit_transform reads the rows twice, in the same order, so it needs files or a frame, got "
            f"{type(data).__name__}; write the rows to a Parquet file first."
        )
    is_lazy = frames.is_lazy(data)
    if is_lazy:
        with frames.reading(frames.described(data)):
            data = data.collect()
    check_out(data, out, preset, overwrite=overwrite)
    counts = count(
        data,
        label,
        features,
        also=also,
        exclude=exclude,
        positive=positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
        folds=folds if fold_column is None else 0,
        fold_seed=fold_seed,
        fold_column=fold_column,
        memory_limit=memory_limit,
    )
    book = fit_counts(counts, settings)
    encoded = transform(
        book,
        data,
        out,
        offset_ids=offset_ids,
        only_ids=only_ids,
        expect=None,
        counts=counts,
        fold_column=None,
        preset=preset,
        overwrite=overwrite,
        memory_limit=None,
        is_counted=True,
    )
    return book, encoded.lazy() if is_lazy and out is None else encoded
