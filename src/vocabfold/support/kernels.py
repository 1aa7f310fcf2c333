"""How loops are compiled: with numba, kept on disk where there is a place to keep them.

Kernels are plain functions of arrays and numbers, so they also run with NUMBA_DISABLE_JIT=1. numba finds the
place: NUMBA_CACHE_DIR, else beside this file, else the user's cache. It would keep a compiled function until
its own file changes, and not see that another one has changed, which is compiled into it. So what is compiled
here is kept in a folder that is named by the sources of all kernels.
"""

import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

import numba
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

_Function = TypeVar("_Function", bound=Callable[..., Any])

_HOLDS_KERNELS = b"from vocabfold.support.kernels import "
_FOLDER = re.compile("kernels-[0-9a-f]{16}")
_MOST_FOLDERS = 8  # of 2 MB: other versions of Python and numba may use the same place

if hasattr(os, "register_at_fork"):
    # A process that is forked while another thread compiles would wait for a thread that it does not have.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def kernel(function: _Function) -> _Function:
    """Compile a loop when it is first called."""
    return _compile(function)


def inlined(function: _Function) -> _Function:
    """Compile a function into every kernel that calls it."""
    return _compile(function, inline="always")


def _compile(function: _Function, **options: Any) -> _Function:
    options["nogil"] = True  # kernels touch arrays alone, so that threads may run them side by side
    options["error_model"] = "numpy"  # no test for zero before each division: kernels never divide by it
    try:
        compiled = njit(cache=True, **options)(function)
        if compiled is not function:  # as it is with NUMBA_DISABLE_JIT=1
            compiled._cache._cache_file = _Kept(_folder(), f"{function.__module__}.{function.__qualname__}")
        return cast(_Function, compiled)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return cast(_Function, njit(**options)(function))


class _Kept:
    """What was compiled of one kernel: a file for each list of types of its arguments.

    numba itself numbers these files, in an index. Two processes that compile a function at once, for different
    types, may both take the same number, and would later run code that is not for their arguments.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def load(self, key: object) -> Any:
        """Return what was compiled, or None."""
        with suppress(Exception):  # it is not there, or was never wholly written: a cache is no reason to fail
            return pickle.loads(self._path(key).read_bytes())
        return None

    def save(self, key: object, compiled: object) -> None:
        """Keep what was compiled, if there is room, and if sources have not changed since they were read."""
        path = self._path(key)
        unfinished = path.with_suffix(f".{uuid4().hex}")
        with suppress(OSError):
            if _find_folder() != self._folder:
                return
            _make(self._folder)
            try:
                unfinished.write_bytes(dumps(compiled))  # type: ignore[no-untyped-call]
                unfinished.replace(path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise

    def _path(self, key: object) -> Path:
        """Return the file for a key of numba: the types, the processor, and the function's own code."""
        return self._folder / f"{self._name}-{sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def _find_folder() -> Path:
    """Return the folder for what this Python and this numba compile of the sources as they are now."""
    place = FunctionCache(kernel)  # type: ignore[no-untyped-call]
    # Where a program is frozen there are no sources: then numba's own stamp is one of the whole program.
    stamp = sys.version, numba.__version__, place._impl.locator.get_source_stamp()
    found = sha256(repr(stamp).encode())
    for source in _sources(resources.files("vocabfold")):
        found.update(sha256(source).digest())
    return Path(place.cache_path, f"kernels-{found.hexdigest()[:16]}")


_folder = cache(_find_folder)


def _sources(folder: Traversable) -> Iterator[bytes]:
    """Yield the sources of this module and of all that hold kernels; the package may be in an archive."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py") and _HOLDS_KERNELS in (source := entry.read_bytes()):
            yield source


def _make(folder: Path) -> None:
    """Make the folder, and remove those that nobody has added to for longest."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # another process removes them, too
        others = [other for other in folder.parent.iterdir() if _FOLDER.fullmatch(other.name)]
        others.sort(key=lambda other: other.stat().st_mtime)
        for other in others[:-_MOST_FOLDERS]:
            shutil.rmtree(other, ignore_errors=True)
