"""The verbs of the command line: each parses its options, calls one function and prints what it returns.

Everything heavy is imported where it is needed, so that `vocabfold --help` is quick. It lists the verbs in the
order of these imports.
"""

from vocabfold.interfaces.cli.app import app

from vocabfold.interfaces.cli.commands import making  # isort: skip
from vocabfold.interfaces.cli.commands import judging  # isort: skip

__all__ = ["app", "judging", "making"]
