"""Functions in new processes, and their results."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harden.lib.concurrency.tasks import Sample
from tools.record import ROOT

PATIENCE = 600  # seconds, after which a process counts as stuck
_CODE = "import sys; from harden.lib.concurrency.apart import run_function; run_function(*sys.argv[1:])"


def apart(
    function: Callable[..., Any],
    sample: Sample,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    stderr: int = subprocess.PIPE,
    **options: Any,
) -> subprocess.Popen[str]:
    """Begin a function of the sample in a new process, with more in its environment."""
    words = [function.__module__, function.__name__, str(sample.folder), json.dumps(options)]
    return subprocess.Popen(
        [sys.executable, "-c", _CODE, *words],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def in_cache(folder: Path | None) -> dict[str, str]:
    """Return the environment of a process whose kernels are kept in a folder."""
    return {"NUMBA_CACHE_DIR": str(folder)} if folder else {}


def run_function(module: str, function: str, folder: str, options: str) -> None:
    """Run such a function, and print its result as the last line."""
    found = getattr(importlib.import_module(module), function)(Sample(Path(folder)), **json.loads(options))
    print(json.dumps(found), flush=True)


def result(process: subprocess.Popen[str]) -> Any:
    """Return what a function gave in its process."""
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise TimeoutError(f"no answer within {PATIENCE} s") from None
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {(errors or '').strip().splitlines()[-1:]}")
    return json.loads(out.splitlines()[-1])
