"""All exceptions of vocabfold.

VocabfoldError
└── InputError (also a ValueError): the caller's counts, sizes or options cannot be used
"""


class VocabfoldError(Exception):
    """Base of every error that vocabfold raises on purpose."""


class InputError(VocabfoldError, ValueError):
    """The given input cannot be used; the message says what is allowed and what to do."""
