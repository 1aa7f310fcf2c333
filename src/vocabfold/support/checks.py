"""What callers give -> what the steps take: checked at the door, before any work.

Every function returns its argument in the form that the steps expect, or raises `InputError` with one
sentence that says what was given, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
import errno
import numbers
import os
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from reprlib import repr as short  # cut off after a few entries

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vocabfold.errors import InputError

MAX_ROWS = 2**53  # up to here counts are exact in float64
_MAX_SHOWN = 20  # names in an error


def choice(name: str, given: str, allowed: Iterable[str]) -> str:
    """Return a word that must be one of a few."""
    words = list(allowed)
    if not isinstance(given, str) or given not in words:
        what = f"one of {', '.join(map(repr, words))}" if len(words) > 1 else repr(words[0])
        close = difflib.get_close_matches(given, words, n=1) if isinstance(given, str) else []
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(f"{name} must be {what}, got {short(given)}{meant}.")
    return given


def number(count: float, noun: str) -> str:
    """Return a number of things in words."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def at_least(name: str, given: int, least: int, why: str = "") -> int:
    """Return a whole number with a lower limit."""
    if isinstance(given, bool | np.bool_) or not isinstance(given, numbers.Integral):
        raise InputError(f"{name} must be a whole number, got {short(given)}.")
    if given < least:
        raise InputError(f"{name} must be at least {least:,}{why}, got {given:,}.")
    return int(given)


def known(noun: str, given: Iterable[str], names: Sequence[str], place: str) -> None:
    """Refuse names that are not there, all together, each with the one that it may stand for."""
    unknown = [name for name in given if name not in names]
    if not unknown:
        return
    lower = {str(name).lower(): name for name in names}
    asked = []
    for name in unknown[:_MAX_SHOWN]:
        close = difflib.get_close_matches(str(name).lower(), lower, n=1)
        asked.append(f"{name!r} (did you mean {lower[close[0]]!r}?)" if close else repr(name))
    what = f"{noun} {asked[0]} is" if len(unknown) == 1 else f"{noun}s {', '.join(asked)} are"
    raise InputError(f"{what} not in {place}. Columns: {listed(names)}")


def distinct(names: Iterable[str], place: str) -> None:
    """Refuse names that are equal, or differ by upper and lower case alone."""
    firsts: dict[str, str] = {}
    for name in names:
        if name.lower() in firsts:
            raise InputError(
                f"{place} has the columns {firsts[name.lower()]!r} and {name!r}; names must differ, and by "
                "more than upper and lower case: rename one of them."
            )
        firsts[name.lower()] = name


def listed(names: Sequence[str]) -> str:
    """Return names as the end of a sentence; not all, if they are many."""
    return ", ".join(map(str, names[:_MAX_SHOWN])) + (", ..." if len(names) > _MAX_SHOWN else ".")


def spelled(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is not UTF-8, as file systems allow it: the engines cannot open it."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"the path {os.fspath(path)!r} is not UTF-8; rename it first.") from None


def folder(path: Path) -> None:
    """Refuse a folder to which nothing can be written."""
    if not path.is_dir():
        raise InputError(f"there is no folder {str(path)!r} to write to; make it first.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"nothing can be written to {str(path)!r}; check its permissions.")


def is_disk_full(error: Exception) -> bool:
    """Tell whether there was no room left for what was to be written."""
    return getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)


def reason(error: Exception) -> str:
    """Return why a file could not be read or written, in a few words."""
    return getattr(error, "strerror", None) or str(error).splitlines()[0].rstrip(".")


def taken(path: Path) -> InputError:
    """Say that a place for results is taken."""
    return InputError(f"{path} exists; give another name, or overwrite=True to replace it.")


def pair(given: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of a column that come as one argument."""
    if not isinstance(given, tuple | list | np.ndarray) or len(given) != 2:
        size = f" of {len(given)}" if isinstance(given, Sized) else ""
        raise InputError(f"counts must be a pair (neg, pos), got {type(given).__name__}{size}.")
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
        raise InputError(f"{name} has masked entries; fill or drop them first.")
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InputError(f"{name} must be a flat array, got nested ones of unequal length.") from error
    if array.ndim != 1:
        what = f"one of shape {array.shape}" if array.ndim else type(given).__name__
        raise InputError(f"{name} must be a list or flat array of counts, got {what}.")
    if array.dtype.kind == "f":
        _refuse(name, array, ~(np.isfinite(array) & (array == np.floor(array))))
    elif array.dtype.kind == "O":
        _refuse(name, array, [not _is_whole(count) for count in array])
    elif array.dtype.kind not in "iub":
        what = "text" if array.dtype.kind in "UST" else str(array.dtype)
        raise InputError(f"{name} must hold whole numbers, got {what}.")
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
