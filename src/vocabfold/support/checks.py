"""What callers give -> what the steps take: checked at the door, before any work.

Every function returns its argument in the form that the steps expect, or raises `InputError` with one
sentence that says what was given, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
import errno
import numbers
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from reprlib import repr as short  # cut off after a few entries
from typing import Any

from vocabfold.errors import InputError, argument

_MAX_SHOWN = 20  # names in an error


def choice(name: str, given: str, allowed: Iterable[str]) -> str:
    """Return an argument that must be one of a few words."""
    words = list(allowed)
    if not isinstance(given, str) or given not in words:
        what = f"one of {', '.join(map(repr, words))}" if len(words) > 1 else repr(words[0])
        close = difflib.get_close_matches(given, words, n=1) if isinstance(given, str) else []
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(f"must be {what}, got {short(given)}{meant}.", argument=name)
    return given


def number(count: float, noun: str) -> str:
    """Return a number of things in words."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shown_rows(rows: float, n_rows: int | None, noun: str = "row") -> str:
    """Return rows in words: by weight, too, if they had weights."""
    if n_rows is None or n_rows == rows:
        return number(rows, noun)
    return f"{number(n_rows, noun)} ({round(rows, 1):,} by weight)"


def at_least(name: str, given: Any, least: int, why: str = "") -> int:
    """Return a whole number with a lower limit."""
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        raise InputError(f"must be a whole number, got {short(given)}.", argument=name)
    if given < least:
        raise InputError(f"must be at least {least:,}{why}, got {given:,}.", argument=name)
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
                f"{place} has the columns {firsts[name.lower()]!r} and {name!r}; names must differ by more "
                "than case: rename one of them."
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
        raise InputError(f"there is no folder {str(path)!r} to write to; create it first.")
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
    return InputError(f"{path} exists; give another name, or use {argument('overwrite', True)} to replace it.")
