"""Counts as callers give them -> int64 arrays, or an error that says which entry is none."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vocabfold.errors import InputError

MAX_ROWS = 2**53  # up to here counts are exact in float64


def pair(given: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of a column that come as one argument."""
    if not isinstance(given, tuple | list | np.ndarray) or len(given) != 2:
        size = f" of {len(given)}" if isinstance(given, Sized) else ""
        raise InputError(f"must be a pair (neg, pos), got {type(given).__name__}{size}.", argument="counts")
    return counts(given[0], given[1])


def counts(neg: ArrayLike, pos: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of a column as contiguous int64 arrays."""
    negative, positive = _whole_numbers("neg", neg), _whole_numbers("pos", pos)
    if negative.size != positive.size:
        raise InputError(
            "neg and pos must have one entry per value each, "
            f"got {negative.size:,} and {positive.size:,} entries."
        )
    if negative.size == 0:
        raise InputError("neg and pos are empty; at least one value is needed.")
    rows = _sum(negative) + _sum(positive)
    if rows == 0:
        raise InputError("all counts are zero; at least one row is needed.")
    if rows > MAX_ROWS:
        raise _too_many(f"the counts sum to {rows:,}")
    return negative, positive


def _sum(array: NDArray[np.int64]) -> int:
    """Return the sum of non-negative counts without overflow."""
    if int(array.max()) < 2**62 // array.size:
        return int(array.sum())
    high, low = int((array >> 32).sum()), int((array & (2**32 - 1)).sum())
    return (high << 32) + low


def _whole_numbers(name: str, given: ArrayLike) -> NDArray[np.int64]:
    """Return one array of counts, whatever type of number it holds."""
    if np.ma.is_masked(given):
        raise InputError("has masked entries; fill or drop them first.", argument=name)
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InputError("must be a flat array, got nested ones of unequal length.", argument=name) from error
    if array.ndim != 1:
        what = f"one of shape {array.shape}" if array.ndim else type(given).__name__
        raise InputError(f"must be a list or flat array of counts, got {what}.", argument=name)
    if array.dtype.kind == "f":
        _refuse(name, array, ~(np.isfinite(array) & (array == np.floor(array))))
    elif array.dtype.kind == "O":
        _refuse(name, array, [not _is_whole(count) for count in array])
    elif array.dtype.kind not in "iub":
        what = "text" if array.dtype.kind in "UST" else str(array.dtype)
        raise InputError(f"must hold whole numbers, got {what}.", argument=name)
    if array.size and array.min() < 0:
        _refuse(name, array, array < 0)
    if array.size and int(array.max()) > MAX_ROWS:
        raise _too_many(f"{name} holds a count of {int(array.max()):,}")
    return np.require(array, np.int64, ["C", "A"])


def _is_whole(count: object) -> bool:
    """Tell whether an object is a whole number of any type, such as a Decimal from a database."""
    try:
        return bool(count == int(count))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return False


def _refuse(name: str, array: NDArray[np.generic], is_bad: ArrayLike) -> None:
    bad = np.flatnonzero(is_bad)
    if bad.size:
        raise InputError(
            f"{name}[{bad[0]}] is {array[bad[0]]}; counts must be whole numbers, 0 or more"
            + (f" ({bad.size:,} entries are not)." if bad.size > 1 else ".")
        )


def _too_many(what: str) -> InputError:
    return InputError(
        f"{what}; at most 2**53 = {MAX_ROWS:,} rows in all are counted exactly, "
        "so scale all counts down and round them first."
    )
