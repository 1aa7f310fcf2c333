"""All exceptions of vocabfold.

VocabfoldError
├── InputError (also a ValueError): the caller's rows, counts, sizes or options cannot be used
│   └── WrongType (also a TypeError): a column holds Python objects of several types, or of one unfit
├── CodebookError (also a ValueError): a saved codebook or saved counts cannot be trusted or read
└── MissingDependency (also an ImportError): an optional package is not installed
"""


class VocabfoldError(Exception):
    """Base of every error that vocabfold raises on purpose."""


class InputError(VocabfoldError, ValueError):
    """The given input cannot be used; the message says what is allowed and what to do."""


class WrongType(InputError, TypeError):
    """A column holds Python objects of several types, or of one that is no value; scikit-learn asks for it."""


class CodebookError(VocabfoldError, ValueError):
    """A saved folder is missing, damaged, changed by hand, or newer than this release."""


class MissingDependency(VocabfoldError, ImportError):
    """An optional package is not installed; the message says how to get it."""
