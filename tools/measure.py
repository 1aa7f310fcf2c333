"""Time a call, and watch its memory."""

import ctypes
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")  # of Linux


def timed(repeats: int, call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, dict[str, float]]:
    """Return the result of a call, and its least and largest time over the repeats, in seconds."""
    return _timed(time.perf_counter, repeats, lambda: call(*args, **options))


def cpu_timed(repeats: int, call: Callable[..., Any], *args: Any) -> tuple[Any, dict[str, float]]:
    """Return the result of a call, and its least and largest time, in seconds of all processors together."""
    return _timed(time.process_time, repeats, lambda: call(*args))


def _timed(clock: Callable[[], float], repeats: int, call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    seconds = []
    for _ in range(repeats):
        start = clock()
        result = call()
        seconds.append(clock() - start)
    return result, {"seconds": min(seconds), "slowest": max(seconds), "repeats": repeats}


def extra_memory(call: Callable[..., Any], *args: Any) -> float:
    """Return by how many megabytes a call raises the peak memory of this process; Linux only."""
    if not _STATUS.exists():
        return float("nan")
    ctypes.CDLL(None).malloc_trim(0)  # return what is free, or the call could hide in it
    forget_peak()
    before = _megabytes("VmRSS")
    call(*args)
    return peak() - before


def forget_peak() -> None:
    """Let the peak memory of this process be what it has now, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    """Return the peak memory of this process in megabytes."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return _megabytes("VmHWM")


def _megabytes(field: str) -> float:
    found = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(found.split()[1]) / 1024
