"""How far a long task is: shown on a terminal after two seconds, never in a pipe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence

_PATIENCE = 2.0  # seconds before anything is shown
_REFRESH = 0.2


def track(items: Sequence[str], what: str, fraction: Callable[[], float] = lambda: 0.0) -> Iterator[str]:
    """Yield the items, showing which one is worked on; `fraction` tells how much of it is done, 0 to 1."""
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
    )
    task = bar.add_task(what, total=len(items))
    done, finished = 0, threading.Event()

    def watch() -> None:
        if finished.wait(_PATIENCE):
            return
        bar.start()
        while not finished.wait(_REFRESH):
            bar.update(task, completed=done + min(fraction(), 1.0))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        for item in items:
            short = item if len(item) <= 40 else item[:39] + "…"
            bar.update(task, description=f"{what} {short}" if item else what)
            yield item
            done += 1
    finally:
        finished.set()
        watcher.join()
        bar.stop()
