"""How loops are compiled: with numba, kept on disk where there is a place to keep them.

Kernels are plain functions of arrays and numbers, so they also run with NUMBA_DISABLE_JIT=1.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

_Function = TypeVar("_Function", bound=Callable[..., Any])

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
        return cast(_Function, njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return cast(_Function, njit(**options)(function))
