"""Children: what the parent has made is used in them, and they begin while its threads are at work."""

import atexit
import faulthandler
import importlib
import multiprocessing
import os
import pkgutil
import random
import re
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import vocabfold as vf
from harden.lib.concurrency.apart import apart, in_cache, result
from harden.lib.concurrency.tally import Tally
from harden.lib.concurrency.tasks import (
    FEATURES,
    TASKS,
    Answers,
    Sample,
    answers,
    hashed,
    of_column,
    of_table,
    short_answer,
)
from tools.record import Row

CHILD_PATIENCE = (
    150  # seconds for one that was forked: it compiles what it needs, on a machine that may be busy
)


def child_of(
    sample: Sample, book: vf.Codebook, counts: vf.Counts, names: Sequence[str], expected: Answers, said: str
) -> None:
    """Do tasks in a child, with what the parent has made or loaded; say what was wrong, and end with 1."""
    try:
        for name in names:
            found = TASKS[name](sample, book)
            assert found == expected[name], f"{name}: another answer"
        assert of_table(counts["user"]) == expected["counts"], "counts: another answer"
        assert vf.fit(counts, 60).digest == expected["digest"], "fit: another answer"
    except BaseException as error:
        Path(said).write_text(f"{type(error).__name__}: {error}")
        os._exit(1)


def on_disk(sample: Sample) -> vf.Counts:
    """Return counts that are kept in a temporary folder, as those of many rows are."""
    from vocabfold.counts import local

    many, local._MANY_ROWS = local._MANY_ROWS, 0
    try:
        return vf.count(sample.folder / "old.parquet", "click", FEATURES, fold_column="fold")
    finally:
        local._MANY_ROWS = many


def children(
    sample: Sample, expected: Answers, method: str, n_children: int, names: Sequence[str]
) -> Iterator[Row]:
    """Use a codebook and counts of the parent in children, and again in the parent."""
    tally = Tally()
    context = multiprocessing.get_context(method)
    for make in (sample.fitted, sample.loaded):
        book, counts = make(), on_disk(sample)
        if make == sample.loaded:
            answers(sample, book, ["frame", "digest"])  # with its columns in memory
        said = [str(sample.folder / f"said-{number}") for number in range(n_children)]
        begun = [
            context.Process(target=child_of, args=(sample, book, counts, names, expected, path))
            for path in said
        ]
        for process in begun:
            process.start()
        for process, path in zip(begun, said, strict=True):
            ended(tally, process, path, len(names) + 2)
        tally.same("the counts of the parent", partial(of_column, counts, "user"), expected["counts"])
        tally.same("the codebook of the parent", partial(of_column, book, "hour"), expected["column"])
    yield tally.row(f"{method}: a codebook and counts of the parent")


def ended(tally: Tally, process: Any, said: str, n_tasks: int) -> None:
    """Wait for a child, and count its tasks."""
    process.join(CHILD_PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        where = " ".join(re.findall(r"line \d+ in \w+", Path(said).read_text())) if Path(said).exists() else ""
        tally.check(False, f"a child did not come to its end: {where}"[:300])
    elif process.exitcode:
        told = Path(said).read_text() if Path(said).exists() else ""
        why = told or f"exit code {process.exitcode}"
        tally.check(False, f"a child failed: {why}")
    else:
        tally.tried += n_tasks
    Path(said).unlink(missing_ok=True)


def fork_at_work(sample: Sample, expected: Answers, n_forks: int, pause: float) -> dict[str, Any]:
    """Fork while four other threads are at work, in a process in which nothing has been compiled yet."""
    warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of it, for good reasons
    # A module that is imported just then would be half imported for ever in the child: that is Python's own.
    modules = [module.name for module in pkgutil.walk_packages(vf.__path__, "vocabfold.")]
    for module in ("pyarrow.dataset", "pyarrow.compute", "pandas", *modules):
        if module != "vocabfold.spark":
            importlib.import_module(module)
    tally, is_over = Tally(), threading.Event()
    context = multiprocessing.get_context("fork")

    def work(number: int) -> None:
        names = list(TASKS)
        random.Random(number).shuffle(names)
        book = sample.loaded()
        while True:
            for name in names:
                tally.same(name, partial(short_answer, sample, book, name), expected[name])
                if is_over.is_set():
                    return

    said = sample.folder / f"stuck-{os.getpid()}"

    def child() -> None:
        with said.open("w") as file:
            faulthandler.dump_traceback_later(CHILD_PATIENCE - 10, file=file)
            compare()

    def compare() -> None:
        found = hashed(answers(sample, sample.loaded(), ["frame", "file", "digest", "fit", "fold", "save"]))
        os._exit(any(found[name] != expected[name] for name in found))

    def ending_child() -> None:
        atexit._run_exitfuncs()  # as in a server that forks its workers, which end like any process
        os._exit(0)

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, number) for number in range(4)]
        begun = []
        for number in range(n_forks):
            time.sleep(pause)
            process = context.Process(target=ending_child if number % 2 else child)
            process.start()
            begun.append(process)
            ended(tally, process, str(said), 1)
        is_over.set()
        for future in working:
            future.result()
    return {"tried": tally.tried, "failures": tally.failures}


def forks(sample: Sample, expected: Answers, n_processes: int, n_forks: int) -> Iterator[Row]:
    """Fork while other threads compile, count, fit and save."""
    for is_empty in (True, False):
        tally = Tally()
        for number in range(n_processes):
            cache = sample.folder / f"forks-{number}" if is_empty else None
            options = {"expected": hashed(expected), "n_forks": n_forks, "pause": 0.3 + 0.1 * number}
            try:
                tally.add(result(apart(fork_at_work, sample, environment=in_cache(cache), **options)))
            except Exception as error:
                tally.check(False, f"{type(error).__name__}: {error}")
        what = "compile" if is_empty else "count, fit and save"
        yield tally.row(f"fork: while four other threads {what}", forks=n_processes * n_forks)
