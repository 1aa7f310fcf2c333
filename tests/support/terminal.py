"""How a command is run, and how it ends."""

import signal
import sys

import pytest

from vocabfold.interfaces.cli import main

COMMAND = [sys.executable, "-c", "from vocabfold.interfaces.cli.main import main; main()"]


def command_line(monkeypatch, capsys):
    """Return what runs a command in this process; that returns its exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["vocabfold", *map(str, words)])
        before = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGHUP)}
        try:
            with pytest.raises(SystemExit) as ended:
                main.main()
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def ok(result):
    code, out, err = result
    assert (code, err if not err.startswith("note: columns that are not text") else "") == (0, "")
    return out


def bad(result):
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err.endswith((".\n", ")\n", "?\n"))
    return err.removeprefix("error: ").strip()


FOLD = ("--aim", "information", "--features", "site,zip", "--label", "click", "--budget", "5")
