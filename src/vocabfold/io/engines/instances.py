"""Instances of DuckDB, each for one task at a time, and kept for the next one.

To make an instance takes longer than many a task on few rows. Two tasks never have one at the same time: its
memory limit, its temporary folder and whether it keeps the order of rows would hold for both. So a task never
notices another one; if all that are kept are in use, it gets a new one.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import NamedTuple

import duckdb

_MOST_IDLE = 4  # each keeps 4 MB and some threads that sleep


class Instance(NamedTuple):
    """A database in memory, and the limits that it was made with: mebibytes, and threads."""

    memory: int
    threads: int
    database: duckdb.DuckDBPyConnection


_idle: list[Instance] = []
_lock = RLock()


def take(memory: int, threads: int) -> Instance:
    """Return an instance that nobody else has; it has no temporary folder yet."""
    with _lock:
        for i, instance in enumerate(_idle):
            if instance[:2] == (memory, threads):
                return _idle.pop(i)
    database = duckdb.connect(
        config={
            "memory_limit": f"{memory}MiB",
            "threads": str(threads),
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # An instance outlives the files that it reads.
            "enable_external_file_cache": "false",
            # Statistics of Parquet files leave NaN out, and DuckDB would conclude that there is none.
            "disabled_optimizers": "statistics_propagation",
            "python_enable_replacements": "false",  # a table name never finds a Python variable
        }
    )
    return Instance(memory, threads, database)


def give_back(instance: Instance) -> None:
    """Keep an instance for the next task, after one that went well and closed its connection."""
    try:
        # The limit is the same as before, but to set it gives all free memory back to the system.
        instance.database.execute(f"SET temp_directory = ''; SET memory_limit = '{instance.memory}MiB'")
    except duckdb.Error:  # it has spilled, and does not part with its folder
        instance.database.close()
        return
    with _lock:
        _idle.append(instance)
        surplus = _idle[:-_MOST_IDLE]
        del _idle[:-_MOST_IDLE]
    for other in surplus:
        other.database.close()


def _close_all() -> None:
    """Close what is idle: a forked process would have instances, and not their threads."""
    _lock.acquire()  # until the process is forked, so that no other thread gives an instance back meanwhile
    while _idle:
        _idle.pop().database.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all, after_in_parent=_lock.release, after_in_child=_lock.release)
