"""How far a long task is: shown on a terminal after two seconds, never in a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from vocabfold.errors import printable

_PATIENCE = 2.0  # seconds before anything is shown
_REFRESH = 0.2
_shown = threading.Lock()  # one bar at a time: those of other threads, or of a step within a step, would mix
_began = 0.0  # when the command began, if there is one: its steps together are what takes long


def begin() -> None:
    """Count the seconds from now on, and not from the beginning of every step."""
    global _began
    _began = time.monotonic()


def track(items: Sequence[str], what: str, fraction: Callable[[], float] = lambda: 0.0) -> Iterator[str]:
    """Yield the items, showing the current one; `fraction` returns how much of it is done, 0 to 1."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # what other threads print would go to stderr
    )
    task = bar.add_task(printable(what), total=len(items))
    done, finished, is_shown = 0, threading.Event(), False

    def watch() -> None:
        # A task may take several queries: then what is done does not become less, but it takes longer.
        nonlocal is_shown
        shown = 0.0
        wait = max(0.0, _PATIENCE - (time.monotonic() - _began if _began else 0.0))
        while not finished.wait(wait):
            shown = max(shown, done + min(fraction(), 1.0))
            bar.update(task, completed=shown)
            is_shown = is_shown or _shown.acquire(blocking=False)
            if is_shown:
                bar.start()
            wait = _REFRESH

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        for item in items:
            short = item if len(item) <= 40 else item[:39] + "…"
            bar.update(task, description=printable(f"{what} {short}" if item else what))
            yield item
            done += 1
    finally:
        finished.set()
        watcher.join()
        bar.stop()
        if is_shown:
            _shown.release()
