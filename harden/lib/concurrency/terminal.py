"""Threads with bars of progress and warnings, in a process whose standard error is a terminal."""

import os
import pty
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from harden.lib.concurrency.apart import apart, result
from harden.lib.concurrency.tally import Tally
from harden.lib.concurrency.tasks import TASKS, Sample
from tools.record import Row

TALK = "a thread of the caller prints"


def on_a_terminal(sample: Sample, n_times: int) -> dict[str, Any]:
    """Show progress and warn from many threads, in a process whose standard error is a terminal."""
    from vocabfold.support import progress

    progress._PATIENCE = 0.0  # shown at once
    progress._REFRESH = 0.01
    tally, said = Tally(), list[str]()
    lock = threading.Lock()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        with lock:
            said.append(str(message))

    warnings.simplefilter("always")
    warnings.showwarning = show  # type: ignore[assignment]
    book = sample.fitted()
    expected = {name: TASKS[name](sample, book) for name in ("compare", "evaluate", "save", "file")}
    assert not said, said
    filters, streams = (
        list(warnings.filters),
        (sys.stdout, sys.stderr),
    )  # packages add some when they are imported
    begin = threading.Barrier(8)

    def work(number: int) -> None:
        begin.wait()
        for _ in range(n_times):
            if number % 2:
                name = list(expected)[number // 2]
                tally.same(name, partial(TASKS[name], sample, book), expected[name])
            else:
                tally.same("warn", lambda: len(book.transform(sample.old, only_ids=True)), sample.old.num_rows)

    is_over = threading.Event()

    def talk() -> None:
        while not is_over.wait(0.01):
            print(TALK, flush=True)

    talker = threading.Thread(target=talk)
    talker.start()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    is_over.set()
    talker.join()
    tally.check(len(said) == 4 * n_times, f"{len(said)} warnings instead of {4 * n_times}")
    tally.check(warnings.filters == filters, "the filters of warnings are not as they were")
    tally.check(warnings.showwarning is show, "warnings are shown by someone else")
    tally.check((sys.stdout, sys.stderr) == streams, "the standard streams are not as they were")
    alive = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    tally.check(not alive, f"threads are left: {alive}")
    return {"tried": tally.tried, "failures": tally.failures}


def terminal(sample: Sample, n_times: int) -> Iterator[Row]:
    """Run threads with bars of progress in a process whose standard error is a terminal."""
    tally = Tally()
    ours, theirs = pty.openpty()
    shown = []

    def drain() -> None:
        while True:
            try:
                text = os.read(ours, 2**16)
            except OSError:  # nobody has it open any more
                return
            if not text:
                return
            shown.append(text)

    environment = {"TERM": "xterm-256color"}
    process = apart(on_a_terminal, sample, environment=environment, stderr=theirs, n_times=n_times)
    os.close(theirs)
    reader = threading.Thread(target=drain)
    reader.start()
    try:
        tally.add(result(process))
    except Exception as error:
        last = b"".join(shown).decode(errors="replace").strip().splitlines()[-1:]
        tally.check(False, f"{type(error).__name__}: {error} {last}")
    reader.join()
    os.close(ours)
    text = b"".join(shown).decode(errors="replace")
    tally.check("elapsed" in text, "no bar was shown")
    tally.check(TALK not in text, "what a thread printed went to standard error")
    tally.check("Traceback" not in text, f"an error in a thread: {text[-300:]}")
    tally.check(text.count("\x1b[?25l") <= text.count("\x1b[?25h"), "the cursor is left hidden")
    yield tally.row("terminal: 8 threads with bars and warnings", bytes_shown=len(text))
