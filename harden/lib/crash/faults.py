"""The library in `faults.c`, which lets writes fail: compiled, and loaded before all others."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_LIBRARY = "HARDEN_FAULTS"  # where it is, in the environment of a process that has it


def begin_anew() -> None:
    """Run this very command in a process with the library, and end as it does; return, if there is none."""
    compiler = shutil.which("cc")
    if os.environ.get(_LIBRARY) or sys.platform != "linux" or not compiler:
        return
    with tempfile.TemporaryDirectory() as folder:
        library, source = Path(folder) / "faults.so", Path(__file__).with_suffix(".c")
        words = [compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"]
        if subprocess.run(words, check=False).returncode == 0:
            environment = os.environ | {"LD_PRELOAD": str(library), _LIBRARY: str(library)}
            ended = subprocess.run([sys.executable, *sys.orig_argv[1:]], env=environment, check=False)
            sys.exit(ended.returncode)


def why_not() -> str:
    """Return why there is no such library in this process; nothing, if there is."""
    return "" if os.environ.get(_LIBRARY) else "writes fail at will only on Linux, with a C compiler"


def arm(folder: Path, first: int, last: int, error: int) -> None:
    """Let calls that write below a folder fail, by their numbers; without an error, they write half."""
    _library().arm(os.fsencode(folder), ctypes.c_long(first), ctypes.c_long(last), error)


def n_calls() -> int:
    """Return how many such calls there were since."""
    return int(_library().n_calls())


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ[_LIBRARY])
