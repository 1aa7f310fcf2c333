"""The command line as a process: errors in one sentence, signals, exit codes.

Results go to stdout, for people as a table and for machines as JSON; messages and progress go to stderr. Exit
code 0 means done, 1 that a check that was asked for failed, 2 that the command or the data cannot be used.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from typing import NoReturn

import typer

from vocabfold.errors import VocabfoldError, VocabfoldWarning, in_shell, printable
from vocabfold.interfaces.cli.app import DEBUG
from vocabfold.interfaces.cli.commands import app
from vocabfold.support import progress

_INTERRUPTED = 130  # what typer returns after Ctrl-C
_signals: list[int] = [signal.SIGINT]  # the last one is what ended the command


def main() -> None:
    """Run the command line; every error is one sentence."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _interrupt)  # so that temporary files are removed
    progress.begin()
    warnings.showwarning = _warn  # type: ignore[assignment]
    code = 0
    try:
        code = app(prog_name="vocabfold", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except SystemExit:
        pass  # nobody is reading the help any more
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        if isinstance(error, VocabfoldError):
            _fail(error.said(in_shell), 2)
        if hasattr(error, "format_message"):  # a wrong option or argument
            message = error.format_message()
            _fail(message if message.endswith((".", "?", ")")) else f"{message}.", 2)
        _fail(f"{type(error).__name__}: {error} (unexpected: 'vocabfold --debug ...' shows where)", 2)
    if code == _INTERRUPTED:
        _fail("interrupted.", 128 + _signals[-1])
    sys.exit(code)


def _warn(message: Warning | str, *_: object) -> None:
    """Print a warning of the library in one line; one of another library is not for users."""
    if isinstance(message, VocabfoldWarning):
        sys.stderr.write(f"warning: {printable(message.said(in_shell))}\n")


def _fail(message: str, code: int) -> NoReturn:
    with suppress(OSError, AttributeError):  # nobody is reading it
        sys.stderr.write(f"error: {printable(message)}\n")
        sys.stderr.flush()
    sys.exit(code)


def _interrupt(number: int, _: object) -> NoReturn:
    _signals.append(number)
    raise KeyboardInterrupt
