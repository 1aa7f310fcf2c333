"""Warnings: each points to the line of the caller; a comparison of methods collects those of a method as notes.

Python's own `catch_warnings` would take those of all threads, and its filters may stay if two use it at once.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from vocabfold.errors import VocabfoldWarning, in_python

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_BETWEEN = ("contextlib", "functools", "joblib", "pyspark", "sklearn")  # they call the package for its caller
_taken: ContextVar[list[str] | None] = ContextVar("taken", default=None)


def warn(text: str, category: type[VocabfoldWarning] = VocabfoldWarning) -> None:
    """Warn at the line that called the package, or add to the notes that are taken in this thread."""
    notes = _taken.get()
    if notes is None:
        warnings.warn(category(text), stacklevel=_level_of_caller())
    else:
        notes.append(in_python(text))


def _level_of_caller() -> int:
    """Return how far above `warn` the first frame outside the package is."""
    # Python 3.12 has skip_file_prefixes for this.
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_inside(frame):
        frame, level = frame.f_back, level + 1
    return level


def _is_inside(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename.startswith(_PACKAGE) or module.partition(".")[0] in _BETWEEN


@contextmanager
def taking() -> Iterator[list[str]]:
    """Yield the list of notes, to which each warning in this thread is added."""
    notes: list[str] = []
    token = _taken.set(notes)
    try:
        yield notes
    finally:
        _taken.reset(token)
