"""Run a command line in this process, and judge what a user would see of it."""

import contextlib
import io
import os
import sys
import warnings
from typing import Any


class Wrong(Exception):
    """What a door said or printed is not what a user should see."""


def command(words: list[str]) -> tuple[int, str, str]:
    """Run a command as `vocabfold` does, in this process; return its exit code and what it printed."""
    from vocabfold.interfaces.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors=how) for how in ("strict", "backslashreplace")]
    sys.argv = ["vocabfold", *words]
    code: Any = 0
    try:
        with (
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
            warnings.catch_warnings(),
        ):
            main.main()
    except SystemExit as error:
        code = error.code
    finally:
        os.environ.pop("VOCABFOLD_DEBUG", None)
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    is_clean = all(text.replace("\n", "").isprintable() for text in (out, err))
    problem = (
        f"exit code {code}"
        if code not in (0, 1, 2)
        else "a traceback"
        if "Traceback" in out + err or "unexpected: " in err
        else "control characters"
        if not is_clean
        else "no word about it"
        if code and not (out + err).strip()
        else ""
    )
    if problem:
        raise Wrong(f"{problem} of {words!r}: {err[-600:]!r} {out[-200:]!r}")
    return int(code), out, err
