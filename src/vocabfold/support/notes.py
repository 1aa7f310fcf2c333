"""Warnings of a method, which a comparison of methods collects as notes.

Python's own `catch_warnings` would take those of all threads, and its filters may stay if two use it at once.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from vocabfold.errors import VocabfoldWarning, in_python

_taken: ContextVar[list[str] | None] = ContextVar("taken", default=None)


def warn(text: str, stacklevel: int) -> None:
    """Warn, or add to the notes that are taken in this thread."""
    notes = _taken.get()
    if notes is None:
        warnings.warn(VocabfoldWarning(text), stacklevel=stacklevel + 1)
    else:
        notes.append(in_python(text))


@contextmanager
def taking() -> Iterator[list[str]]:
    """Yield the list of notes, to which each warning in this thread is added."""
    notes: list[str] = []
    token = _taken.set(notes)
    try:
        yield notes
    finally:
        _taken.reset(token)
