"""How a command is run, and how it ends."""

import sys

COMMAND = [sys.executable, "-c", "from vocabfold.interfaces.cli.main import main; main()"]


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
