"""Failing writes, in all commands that save: every single one, in turns.

A small library in C stands between the process and the system. In the process of a command, the n-th call that
writes, syncs, truncates, renames, or makes a file or folder below a folder fails with EIO (input/output error);
or it and all later ones fail with ENOSPC (no room), or write half of their bytes: for every n, up to the number
of such calls. What is written short must be continued, to the new content.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from harden.lib.crash import faults
from harden.lib.crash.saving import REFUSED, Task, fork, judge, wait
from tools.record import Row

_EVER = 2**62
_FAULTS = {  # the error, and whether it stays
    "EIO once": (errno.EIO, False),
    "ENOSPC from then on": (errno.ENOSPC, True),
    "short writes from then on": (0, True),
}


def disturbed(tasks: Sequence[Task], places: Path, temporary: Path, small: bool) -> Iterator[Row]:
    """Disturb every call of every command."""
    if reason := faults.why_not():
        yield {"what": "failing writes", "not_run": reason}
        return
    for task in tasks:
        for fault, (error, stays) in _FAULTS.items():
            n_calls = _n_calls(task, places, error)
            chosen = range(n_calls // 2, n_calls // 2 + 1) if small else range(1, n_calls + 1)
            found = [
                _disturb(task, places, temporary, call, _EVER if stays else call, error) for call in chosen
            ]
            failures = [f"call {call}: {text}" for call, (_, text) in zip(chosen, found, strict=True) if text]
            yield {
                "what": f"{fault}: {task.name}",
                "tried": len(chosen),
                "failed": len(failures),
                "refused": sum(is_refused for is_refused, _ in found),
                **({"first_failure": failures[0].strip()} if failures else {}),
            }


def _disturb(task: Task, places: Path, temporary: Path, first: int, last: int, error: int) -> tuple[bool, str]:
    """Disturb some calls of a command, and return whether it refused, and what is wrong with what it did."""
    place = task.lay(places, is_new=first % 2 == 0)
    code, said, problem = judge(task, place, temporary, lambda: faults.arm(places, first, last, error))
    if not (error or problem) and code == REFUSED:
        problem = f"what was written short was not continued: {said}"
    return code == REFUSED, problem


def _n_calls(task: Task, places: Path, error: int) -> int:
    """Return how many calls of a command could be disturbed."""
    place = task.lay(places, is_new=False)
    reader, writer = os.pipe()

    def whole() -> None:
        act = task.prepare()
        faults.arm(places, 0, 0, error)
        act(place)
        os.write(writer, str(faults.n_calls()).encode())

    child = fork(whole)
    os.close(writer)
    found = int(os.read(reader, 20) or 0)
    os.close(reader)
    if wait(child) or not found:
        raise SystemExit(f"{task.name} fails without any fault, or writes nothing")
    return found
