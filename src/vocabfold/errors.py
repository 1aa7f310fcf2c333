"""All exceptions of vocabfold.

VocabfoldError
├── InputError (also a ValueError): the caller's rows, counts, sizes or options cannot be used
│   └── WrongType (also a TypeError): a column holds Python objects of several types, or of one unfit
├── CodebookError (also a ValueError): a saved codebook or saved counts cannot be trusted or read
└── MissingDependency (also an ImportError): an optional package is not installed
"""

_LONGEST = 2000  # characters of a message: names and values are quoted, however long they are
_END = 500  # characters at its end, which says what to do


def printable(text: str) -> str:
    """Return a text in one line, with its control characters as they are spelled in Python.

    Names and values come from files, and could carry the control codes of a terminal.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class VocabfoldError(Exception):
    """Base of every error that vocabfold raises on purpose: one line, as fit for a terminal as for a log."""

    def __str__(self) -> str:
        said = printable(super().__str__())
        return said if len(said) <= _LONGEST else f"{said[: _LONGEST - _END]} ... {said[-_END:]}"


class InputError(VocabfoldError, ValueError):
    """The given input cannot be used; the message says what is allowed and what to do."""


class WrongType(InputError, TypeError):
    """A column holds Python objects of several types, or of one that is no value; scikit-learn asks for it."""


class CodebookError(VocabfoldError, ValueError):
    """A saved folder is missing, damaged, changed by hand, or newer than this release."""


class MissingDependency(VocabfoldError, ImportError):
    """An optional package is not installed; the message says how to get it."""
