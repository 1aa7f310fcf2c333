"""What scikit-learn hands over -> an Arrow table: X and y as arrays, lists or frames; weights; folds.

Every problem with them is reported here, before rows are counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as short
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_array, check_random_state, column_or_1d

from vocabfold.counts.target import MAX_FOLDS
from vocabfold.errors import InputError
from vocabfold.io.engines.kinds import as_kind, kind_of
from vocabfold.io.rows import fingerprints, frames
from vocabfold.support import checks

_SHOWN = 4  # values of y in an error
_FEW_ROWS = 5  # too few to say anything about


def matrix(X: Any, least_rows: int = 1) -> Any:
    """Return X as a frame in memory, or as an array of two dimensions."""
    if type(X) in (str, bytes, dict) or isinstance(X, os.PathLike):
        raise InputError(
            f"X must be an array or a frame, got {type(X).__name__}; use vf.fit_transform for files."
        )
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    if frames.is_lazy(X):
        raise InputError("X is a polars LazyFrame, which has no rows yet; give X.collect().")
    if frames.is_frame(X):
        n_rows, n_columns = X.shape
        if n_rows < least_rows or not n_columns:
            what = checks.number(n_rows, "row")
            raise InputError(f"X has {what} and {checks.number(n_columns, 'column')}; at least one is needed.")
        names = [name for name in frames.names(X) if isinstance(name, str)]
        frames.check_names(names)
        checks.distinct(names, "X")
        return X
    options = {"ensure_all_finite": False, "ensure_min_samples": least_rows}
    array = check_array(_unmasked(X), dtype=None, **options)
    if array.dtype.kind == "U" and not hasattr(X, "dtype"):  # NumPy makes texts of numbers in the same list
        array = check_array(X, dtype=object, **options)
    return array.astype(np.float64) if array.dtype == np.longdouble else array


def _unmasked(array: Any) -> Any:
    """Return an array in which what was masked is missing; scikit-learn would take the numbers behind."""
    if not np.ma.isMaskedArray(array):
        return array
    missing = {"f": np.nan, "M": np.datetime64("NaT")}.get(array.dtype.kind)
    filled = np.array(array.data, None if missing is not None else object)
    filled[np.ma.getmaskarray(array)] = missing
    return filled


def described(X: Any) -> str:
    """Return the name of a matrix in the provenance."""
    return frames.described(X) if frames.is_frame(X) else "the NumPy array"


def table(X: Any, names: Sequence[str]) -> pa.Table:
    """Return the columns of a matrix, in their order, under names of ours."""
    if isinstance(X, np.ndarray):
        columns = [frames.column(name, X[:, i]) for i, name in enumerate(names)]
    elif hasattr(X, "iloc"):
        columns = [frames.column(name, X.iloc[:, i]) for i, name in enumerate(names)]
    else:
        columns = frames.to_arrow(X, frames.names(X)).columns
    return pa.table(columns, list(names))


def adapted(found: pa.Table, kinds: Mapping[str, str]) -> pa.Table:
    """Return a table whose columns have the kinds of earlier rows, if their values allow it.

    Beside missing ones, pandas makes floats of integers, and a column of NaN alone may stand for anything.
    """
    for i, name in enumerate(found.column_names):
        column = found.column(i)
        n_nan = np.isnan(column).sum() if pa.types.is_floating(column.type) and not column.null_count else 0
        if column.null_count + n_nan == len(column):
            found = found.set_column(i, name, pa.nulls(len(column)))
        elif kinds.get(name) not in (None, "missing", kind_of(column.type)):
            converted = as_kind(column.combine_chunks(), kinds[name])
            if converted is not None and not np.ones(len(column))[converted[1]].any():
                found = found.set_column(i, name, converted[0])
    return found


def spelt(found: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return a table with the values of some columns as text: which kind they have does not matter."""
    for name in names:
        column = found[name]
        if column.null_count < len(column):
            values = (None if value is None or value != value else str(value) for value in column.to_pylist())
            texts = pa.array(values, pa.string())
            found = found.set_column(found.schema.get_field_index(name), name, texts)
    return found


def labels(y: Any, n_rows: int) -> pa.Array:
    """Return y as a flat array with one entry for each row."""
    if y is None:
        raise InputError(
            "VocabularyCompressor requires y to be passed, but the target y is None; give a label for each row."
        )
    if isinstance(y, str | bytes):
        raise InputError(f"y must be an array with the label of each row, got the text {short(y)}.")
    flat = column_or_1d(_unmasked(y), warn=True)
    array = frames.column("y", flat + 0.0 if flat.dtype.kind == "f" else flat)  # which makes one zero of two
    if pa.types.is_timestamp(array.type):
        try:
            array = array.cast(pa.timestamp("us"))  # as finer ones do not come back as Python's
        except pa.ArrowException as error:
            raise InputError("y has timestamps finer than a microsecond; round them first.") from error
    if len(array) != n_rows:
        raise InputError(
            f"X has {checks.number(n_rows, 'row')} and y has {len(array):,}; give a label for each row."
        )
    if array.null_count:
        raise InputError(
            f"y is missing in {checks.number(array.null_count, 'row')}; leave these rows out, or fill them in."
        )
    return array


def classes_of(found: pa.Array) -> NDArray[Any]:
    """Return the two values of y, in their order."""
    values = found.unique()
    if len(values) > 2:
        counted = found.value_counts().sort("descending", by="counts")[:_SHOWN].to_pylist()
        shown = ", ".join(f"{short(v['values'])} in {checks.number(v['counts'], 'row')}" for v in counted)
        raise InputError(
            f"y has {len(values):,} distinct values ({shown}{', ...' if len(values) > _SHOWN else ''}), but "
            "exactly two are needed: multiclass and continuous targets are not supported yet, so recode it "
            "first."
        )
    if len(values) < 2:
        raise InputError(
            f"y has one class only ({short(values[0].as_py())}); give rows of both classes, or, to start "
            "partial_fit with these rows, name both with classes=."
        )
    return np.sort(values.to_numpy(zero_copy_only=False))


def known_classes(found: pa.Array, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes, after checking that y has no other values."""
    others = [value for value in found.unique().to_pylist() if value not in classes.tolist()]
    if others:
        raise InputError(
            f"y has the value {short(others[0])}, but the classes are {_listed(classes)}; recode it first."
        )
    return classes


def positive_of(classes: NDArray[Any], positive: Any) -> Any:
    """Return the class that is positive: the one that is named, or the larger one."""
    if positive is None:
        return classes.tolist()[1]
    found = classes[np.asarray(classes == positive, bool)]
    if not found.size:
        raise InputError(
            f"positive is {short(positive)}, but y has the values {_listed(classes)}; name one of them."
        )
    return found.tolist()[0]


def are(found: pa.Array, value: Any) -> NDArray[np.bool_]:
    """Tell which entries of y have a value."""
    import pyarrow.compute as pc  # slow to import

    return np.asarray(pc.equal(found, pa.scalar(value, found.type)))


def _listed(classes: NDArray[Any]) -> str:
    return " and ".join(short(value) for value in classes.tolist())


def weights(sample_weight: Any, n_rows: int) -> pa.Array:
    """Return the weights as a flat array with one entry for each row; counting looks at their values."""
    array = numbers("sample_weight", sample_weight)
    if array.shape != (n_rows,):
        raise InputError(
            f"sample_weight must have one entry for each of the {checks.number(n_rows, 'row')} of X, got an "
            f"array of shape {array.shape}."
        )
    return pa.array(array)


def numbers(what: str, given: Any) -> NDArray[Any]:
    """Return an array of whole numbers as it is, and any other as floats."""
    try:
        array = np.asarray(_unmasked(given))
        return array if array.dtype.kind in "iu" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must hold numbers, got {short(given)}.") from error


def folds(cv: Any, X: Any, is_positive: NDArray[np.bool_], random_state: Any) -> NDArray[np.int32]:
    """Assign rows to folds: each class evenly and at random, or as a splitter or an iterable of splits says."""
    assigned = np.full(is_positive.size, -1, np.int32)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        n_folds = checks.at_least("cv", int(cv), 2)
        if n_folds > MAX_FOLDS:
            raise _too_many(cv)
        random = check_random_state(random_state)
        for rows in (np.flatnonzero(~is_positive), np.flatnonzero(is_positive)):
            if rows.size < n_folds:
                raise InputError(
                    f"cv is {n_folds:,}, but one class has only {checks.number(rows.size, 'row')}; "
                    "give a smaller cv, or more rows."
                )
            assigned[rows] = random.permutation(np.arange(rows.size, dtype=np.int32) % n_folds)
        return assigned
    try:
        for fold, (train, test) in enumerate(check_cv(cv, is_positive, classifier=True).split(X, is_positive)):
            if fold == MAX_FOLDS:
                raise _too_many(cv)
            is_test = np.zeros(is_positive.size, bool)
            is_test[test] = True
            is_train = np.zeros(is_positive.size, bool)
            is_train[train] = True
            if (is_train == is_test).any() or (assigned[is_test] >= 0).any():
                raise _no_partition(cv)
            assigned[is_test] = fold
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"cv must be a number of folds, a splitter without groups, or a list of splits, got {short(cv)}."
        ) from error
    if (assigned < 0).any():
        raise _no_partition(cv)
    return assigned


def _too_many(cv: Any) -> InputError:
    return InputError(f"cv must make at most {MAX_FOLDS:,} folds, got {short(cv)}.")


def _no_partition(cv: Any) -> InputError:
    return InputError(
        f"cv must test each row in exactly one split and train on it in all others, but {short(cv)} does not; "
        "give a number of folds, or StratifiedKFold, for example."
    )


def fingerprint(table: pa.Table, like: Iterable[str] | None = None) -> frozenset[str]:
    """Return the fingerprint of rows, or none, if they are so few that others may well be equal.

    With the fingerprints of other rows, nothing either if none of these are as many.
    """
    if table.num_rows < _FEW_ROWS:
        return frozenset()
    looked_into = table, table.column_names, table.num_columns
    if like is None:
        return frozenset(fingerprints.of_frame(*looked_into))
    return frozenset(fingerprints.of_frame_like(like, *looked_into))


def with_column(table: pa.Table, name: str, column: Any) -> tuple[pa.Table, str]:
    """Return a table with one column more, and its name, which no other column has."""
    frames.check_names([name])  # that of y may be anything
    taken = {other.lower() for other in table.column_names}
    while name.lower() in taken:
        name += "_"
    return table.append_column(name, column), name
