"""Many threads, forks and processes at once: every answer must be the one that a single thread gets alone.

What is tried, row by row:

- `threads`: 16 threads look values up in one shared codebook (frames, files, `ids`, `row`, members, digest,
  pickle), all beginning at once with nothing in memory, while others count, fit, save, evaluate and compare.
- `first use`: new processes in which 16 threads import and compile everything for the first time, together.
- `empty cache`: processes that compile all kernels at once into one empty folder, and one that uses them later.
- `fork`, `spawn`: a codebook and counts of the parent, used in children; also children that are forked while
  other threads compile, count, fit and save, and that run what is registered for the end of a process:
  temporary folders of the parent must survive them.
- `writers`: 2 and 8 of them, threads and processes, on one folder or one file, which may be new. At least one
  wins, the others are told so or come later, and what is there in the end is whole, and of one of them.
- `readers`: they load in a loop while a writer replaces the folder in a loop; every codebook is one of the two.
- `scikit-learn`: cross-validation in processes and in threads, and one lazy compressor that threads share.
- `terminal`: threads with bars of progress and warnings: each warning arrives once, and nothing is left behind.

`tried` counts answers; `failed` those that were wrong, raised something, or did not come at all.
"""

import atexit
import faulthandler
import hashlib
import importlib
import json
import multiprocessing
import os
import pickle
import pkgutil
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib import harness
from tools.record import ROOT, Row

FEATURES = ["site", "user", "hour"]
PATIENCE = 600  # seconds, after which a process counts as stuck,
CHILD_PATIENCE = 150  # and one that was forked: it compiles what it needs, on a machine that may be busy

Answers = dict[str, str]


class Tally:
    """What was tried and what failed; threads may share it."""

    def __init__(self) -> None:
        self.tried, self.failures = 0, list[str]()
        self._lock = threading.Lock()
        self._begun = time.monotonic()

    def check(self, is_right: bool, failure: str) -> None:
        """Count an answer."""
        with self._lock:
            self.tried += 1
            if not is_right:
                self.failures.append(failure)

    def same(self, what: str, answer: Callable[[], Any], expected: Any) -> None:
        """Count an answer, which must be what is expected."""
        try:
            found = answer()
        except BaseException as error:
            self.check(False, f"{what}: {type(error).__name__}: {error}")
        else:
            self.check(found == expected, f"{what}: {str(found)[:100]} instead of {str(expected)[:100]}")

    def add(self, found: Mapping[str, Any]) -> None:
        """Count what another process has tried."""
        with self._lock:
            self.tried += found["tried"]
            self.failures += found["failures"]

    def row(self, what: str, **figures: Any) -> Row:
        """Return the row of what was tried."""
        first = {"first_failure": " ".join(self.failures[0].split())} if self.failures else {}
        seconds = round(time.monotonic() - self._begun, 2)
        return {
            "what": what,
            "tried": self.tried,
            "failed": len(self.failures),
            "seconds": seconds,
            **figures,
            **first,
        }


# ------------------------------------------------------------------------------ rows and answers


@dataclass(frozen=True)
class Sample:
    """Rows on disk, their counts and two codebooks of them."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, n_rows: int) -> "Sample":
        """Write everything that the tasks need."""
        for name, seed in (("old", 1), ("new", 2)):
            pq.write_table(rows(n_rows, seed), folder / f"{name}.parquet", row_group_size=n_rows // 3 + 1)
        counts = vf.count(folder / "old.parquet", "click", FEATURES, fold_column="fold")
        counts.save(folder / "counts")
        vf.fit(counts, 60).save(folder / "book")
        vf.fit(counts, 25, aim="information").save(folder / "other")
        return cls(folder)

    @property
    def old(self) -> pa.Table:
        """The rows that the codebooks were fitted on."""
        return pq.read_table(self.folder / "old.parquet")

    @property
    def new(self) -> pa.Table:
        """Other rows."""
        return pq.read_table(self.folder / "new.parquet")

    def counts(self) -> vf.Counts:
        """Return the counts, loaded afresh."""
        return vf.load_counts(self.folder / "counts")

    def loaded(self) -> vf.Codebook:
        """Return the codebook from disk, nothing of it in memory."""
        return vf.load(self.folder / "book")

    def fitted(self) -> vf.Codebook:
        """Return the same codebook, just fitted."""
        return vf.fit(self.counts(), 60)


def rows(n_rows: int, seed: int) -> pa.Table:
    """Return rows of text, text with missing values, numbers, a fold, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    site, user = rng.zipf(1.3, n_rows) % 2_000, rng.zipf(1.15, n_rows) % 6_000
    hour = rng.integers(0, 24, n_rows)
    rate = 0.05 + 0.4 * (site % 5 == 0) + 0.2 * (user % 7 == 1) + 0.01 * hour
    return pa.table(
        {
            "site": [f"s{i}" for i in site],
            "user": [None if i == 3 else f"ü{i}" for i in user],
            "hour": hour,
            "fold": rng.integers(0, 4, n_rows),
            "click": (rng.random(n_rows) < rate).astype(np.int8),
        }
    )


def of_table(table: pa.Table) -> str:
    """Return a hash of a table's values."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name)
        is_number = column.null_count == 0 and column.type in (pa.int8(), pa.int32(), pa.int64(), pa.float64())
        digest.update(np.asarray(column).tobytes() if is_number else repr(column.to_pylist()).encode())
    return digest.hexdigest()


def of_column(found: vf.Codebook | vf.Counts, name: str) -> str:
    """Return a hash of a column."""
    return of_table(found[name])


def of_folder(folder: Path) -> str:
    """Return a hash of what is in a folder, but for when and from what it was made."""
    files = sorted(path for path in folder.iterdir() if path.name != "provenance.json")
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def of_comparison(sample: Sample) -> str:
    """Return what a comparison finds, but for its times; one of its methods warns."""
    counts = sample.counts().without_folds()
    found = vf.compare(counts, [20, 50], ["exact", "greedy", "threshold", "frequency"], shards=4)
    return of_table(found.to_arrow().drop_columns(["seconds"]))


def of_file(sample: Sample, book: vf.Codebook, name: str) -> str:
    """Return the bytes of a transformed file."""
    out = sample.folder / f"out-{os.getpid()}-{threading.get_ident()}-{random.getrandbits(60):x}-{name}"
    try:
        written = book.transform(sample.folder / "new.parquet", out=out)
        return f"{written.rows} {written.unseen} {hashlib.sha256(out.read_bytes()).hexdigest()}"
    finally:
        out.unlink(missing_ok=True)


def of_save(sample: Sample, saved: Any) -> str:
    """Return the bytes of a saved folder."""
    folder = Path(tempfile.mkdtemp(dir=sample.folder))
    try:
        saved.save(folder / "saved")
        return of_folder(folder / "saved")
    finally:
        shutil.rmtree(folder)


def of_rows(sample: Sample, book: vf.Codebook) -> str:
    """Return the ids of single rows."""
    return str([book.row(row) for row in sample.new.slice(0, 200).to_pylist()])


LOOKUPS: Mapping[str, Callable[[Sample, vf.Codebook], Any]] = {
    "frame": lambda sample, book: of_table(book.transform(sample.new, only_ids=True)),
    "pandas": lambda sample, book: of_table(pa.table(book.transform(sample.new.to_pandas()))),
    "file": lambda sample, book: of_file(sample, book, "x.parquet"),
    "csv": lambda sample, book: of_file(sample, book, "x.csv"),
    "ids": lambda sample, book: book.ids("user", sample.new["user"]).tolist(),
    "few ids": lambda sample, book: book.ids("site", sample.new["site"].slice(0, 9)).tolist(),
    "row": of_rows,
    "members": lambda sample, book: book.members("site", 3),
    "column": lambda sample, book: of_table(book["hour"]),
    "digest": lambda sample, book: book.digest,
    "pickle": lambda sample, book: pickle.loads(pickle.dumps(book)).digest,
    "folds": lambda sample, book: of_table(book.transform(sample.old, counts=sample.counts(), only_ids=True)),
}
OTHERS: Mapping[str, Callable[[Sample, vf.Codebook], Any]] = {
    "count": lambda sample, book: of_table(vf.count(sample.old, "click", FEATURES)["user"]),
    "count a file": lambda sample, book: of_table(vf.count(sample.folder / "new.parquet", "click")["site"]),
    "fit": lambda sample, book: vf.fit(sample.counts(), 33).digest,
    "fold": lambda sample, book: vf.fold(range(1, 400), range(400, 1, -1), 17).ids.tolist(),
    "save": lambda sample, book: of_save(sample, book),
    "save counts": lambda sample, book: of_save(sample, sample.counts()),
    "evaluate": lambda sample, book: repr(book.evaluate(sample.new)),
    "compare": lambda sample, book: of_comparison(sample),
    "fit_transform": lambda sample, book: of_table(
        vf.fit_transform(sample.old, "click", 40, features=FEATURES)[1]
    ),
}
TASKS = LOOKUPS | OTHERS


def answers(sample: Sample, book: vf.Codebook, names: Sequence[str] = tuple(TASKS)) -> Answers:
    """Return the answers of tasks, one after the other."""
    return {name: TASKS[name](sample, book) for name in names}


# ------------------------------------------------------------------------------ threads


def threads(
    sample: Sample, expected: Answers, n_rounds: int, n_others: int, lookups: Sequence[str] = tuple(LOOKUPS)
) -> Iterator[Row]:
    """Sixteen threads and more on one codebook that has nothing in memory yet."""
    for where, make in (("in memory", sample.fitted), ("freshly loaded", sample.loaded)):
        tally = Tally()
        for seed in range(n_rounds):
            together(tally, sample, make(), expected, n_others, lookups, seed)
        yield tally.row(f"threads: one codebook {where}, 16 threads and {n_others} others", rounds=n_rounds)


def together(
    tally: Tally,
    sample: Sample,
    book: vf.Codebook,
    expected: Answers,
    n_others: int,
    lookups: Sequence[str],
    seed: int,
) -> None:
    """Have threads do all tasks, each in an order of its own, all beginning at once."""
    barrier = threading.Barrier(16 + n_others)

    def work(number: int) -> None:
        names = list(lookups if number < 16 else OTHERS)
        random.Random(f"{seed} {number}").shuffle(names)
        barrier.wait()
        for name in names:
            tally.same(name, partial(TASKS[name], sample, book), expected[name])

    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns much more often than they would
    try:
        with ThreadPoolExecutor(16 + n_others) as pool:
            list(pool.map(work, range(16 + n_others)))
    finally:
        sys.setswitchinterval(patience)


# ------------------------------------------------------------------------------ new processes


def apart(function: str, sample: Sample, cache: Path | None = None, **options: Any) -> subprocess.Popen[str]:
    """Begin a function of this module in a new process, whose kernels are kept in a folder."""
    code = "import sys, json; from harden.checks import concurrency; concurrency.apart_main(*sys.argv[1:])"
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    return subprocess.Popen(
        [sys.executable, "-c", code, function, str(sample.folder), json.dumps(options)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def apart_main(function: str, folder: str, options: str) -> None:
    """Run a function of this module, and print its result as the last line."""
    found = globals()[function](Sample(Path(folder)), **json.loads(options))
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
        raise RuntimeError(f"exit code {process.returncode}: {errors.strip().splitlines()[-1:]}")
    return json.loads(out.splitlines()[-1])


def hashed(found: Answers) -> Answers:
    """Return answers short enough to be told to another process."""
    return {name: hashlib.sha256(repr(answer).encode()).hexdigest() for name, answer in found.items()}


def short_answer(sample: Sample, book: vf.Codebook, name: str) -> str:
    """Return one such answer."""
    return hashed(answers(sample, book, [name]))[name]


def use_first(sample: Sample, expected: Answers, seed: int) -> dict[str, Any]:
    """Let 16 threads use everything for the first time in this process."""
    tally = Tally()
    barrier = threading.Barrier(16)
    names = list(TASKS)
    random.Random(seed).shuffle(names)

    def work(number: int) -> None:
        barrier.wait()
        for name in (names * 2)[number : number + 2]:
            tally.same(name, partial(short_answer, sample, sample.loaded(), name), expected[name])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    return {"tried": tally.tried, "failures": tally.failures}


def compile_all(sample: Sample, seed: int) -> Answers:
    """Do all tasks once, in an order that depends on the seed."""
    names = list(TASKS)
    random.Random(seed).shuffle(names)
    return hashed(answers(sample, sample.loaded(), names))


def first_use(sample: Sample, expected: Answers, n_processes: int) -> Iterator[Row]:
    """Import and compile everything from many threads at once, with kernels in the cache and without."""
    for is_empty in (False, True):
        tally = Tally()
        for seed in range(n_processes if not is_empty else max(1, n_processes // 4)):
            cache = sample.folder / f"first-{seed}" if is_empty else None
            process = apart("use_first", sample, cache, expected=hashed(expected), seed=seed)
            try:
                tally.add(result(process))
            except Exception as error:
                tally.check(False, f"{type(error).__name__}: {error}")
        yield tally.row(f"first use: 16 threads at once, {'an empty' if is_empty else 'a full'} cache")


def empty_cache(sample: Sample, expected: Answers, n_processes: int) -> Iterator[Row]:
    """Compile all kernels in several processes at once, and use what they left in one more."""
    tally = Tally()
    cache = sample.folder / "cache"
    short = hashed(expected)
    for together in (n_processes, 1):  # the last one finds the kernels of the others
        begun = [apart("compile_all", sample, cache, seed=seed) for seed in range(together)]
        for process in begun:
            try:
                found = result(process)
                for name in TASKS:
                    tally.check(found[name] == short[name], f"{name}: another answer")
            except Exception as error:
                tally.check(False, f"{type(error).__name__}: {error}")
    yield tally.row(
        f"empty cache: {n_processes} processes compile at once", kernels=len(list(cache.rglob("*.nbc")))
    )


# ------------------------------------------------------------------------------ fork and spawn


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
                tally.add(result(apart("fork_at_work", sample, cache, **options)))
            except Exception as error:
                tally.check(False, f"{type(error).__name__}: {error}")
        what = "compile" if is_empty else "count, fit and save"
        yield tally.row(f"fork: while four other threads {what}", forks=n_processes * n_forks)


# ------------------------------------------------------------------------------ writers, readers

TOLD = re.compile(r"is being (saved|written) by someone else; wait for that, or (save|write) elsewhere\.$")


def write_once(kind: str, maker: vf.Codebook, sample: Sample, place: Path) -> str:
    """Save a codebook or write a file; say how it went."""
    try:
        if kind == "folder":
            maker.save(place)
        else:
            maker.transform(sample.folder / "new.parquet", out=place)
    except vf.InputError as error:
        return "told" if TOLD.search(str(error)) else f"InputError: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "won"


def writer(kind: str, book: str, sample: Sample, place: Path, begin: Any, outcomes: Any) -> None:
    """Write once in a process of its own, when all others do."""
    maker = vf.load(sample.folder / book)
    answers(sample, maker, ["few ids"])  # what it needs is loaded
    begin.wait()
    outcomes.put(write_once(kind, maker, sample, place))


def writers(sample: Sample, n_rounds: int, sizes: Sequence[int], n_process_rounds: int) -> Iterator[Row]:
    """Let several writers begin at once on one place, new or not."""
    books = {name: vf.load(sample.folder / name) for name in ("book", "other")}
    for kind, name in (("folder", "place"), ("file", "place.parquet"), ("file", "place.csv")):
        whole = {}
        for book, maker in books.items():
            assert write_once(kind, maker, sample, sample.folder / f"{book}-{name}") == "won"
            whole[book] = of_place(sample.folder / f"{book}-{name}")
        for means, n_times in (("threads", n_rounds), ("processes", n_process_rounds)):
            for n_writers in sizes if n_times else ():
                tally, told = Tally(), 0
                for number in range(n_times):
                    room = Path(tempfile.mkdtemp(dir=sample.folder))
                    place = room / name
                    if number % 3 == 1:  # two of three times, it is new
                        write_once(kind, books["book"], sample, place)
                    outcomes = race(kind, means, books, sample, place, n_writers)
                    told += outcomes.count("told")
                    for outcome in outcomes:
                        tally.check(outcome in ("won", "told"), outcome)
                    tally.check("won" in outcomes, f"nobody has won: {outcomes}")
                    tally.same("what was written", partial(is_one_of, whole, place), True)
                    left = sorted(path.name for path in place.parent.iterdir()) if place.exists() else []
                    tally.check(left == [place.name], f"left behind: {left}")
                    shutil.rmtree(room)
                yield tally.row(f"writers: {n_writers} {means}, one {kind} {name}", told=told)


def race(
    kind: str, means: str, books: Mapping[str, vf.Codebook], sample: Sample, place: Path, n_writers: int
) -> list[str]:
    """Have all write at once, every second one the other codebook, and return how it went for each."""
    names = [("book", "other")[number % 2] for number in range(n_writers)]
    if means == "threads":
        barrier = threading.Barrier(n_writers)

        def work(name: str) -> str:
            barrier.wait()
            return write_once(kind, books[name], sample, place)

        with ThreadPoolExecutor(n_writers) as pool:
            return list(pool.map(work, names))
    context = multiprocessing.get_context("fork")
    begin, outcomes = context.Barrier(n_writers), context.SimpleQueue()
    begun = [
        context.Process(target=writer, args=(kind, name, sample, place, begin, outcomes)) for name in names
    ]
    for process in begun:
        process.start()
    found = []
    for process in begun:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
    while not outcomes.empty():
        found.append(outcomes.get())
    return found + ["a writer did not come to its end"] * (n_writers - len(found))


def is_one_of(whole: Mapping[str, str], place: Path) -> bool:
    """Tell whether a place holds what one of the writers has written, all of it."""
    return of_place(place) in whole.values()


def of_place(place: Path) -> str:
    """Return a hash of a folder or file; of a folder, after it was loaded."""
    if place.is_dir():
        return f"{vf.load(place).digest} {of_folder(place)}"
    return hashlib.sha256(place.read_bytes()).hexdigest()


def read_until(is_over: Any, place: Path, names: Sequence[str], is_counts: bool) -> dict[str, Any]:
    """Load until it is over, and once more; everything loaded must be one of two, whole."""
    tally = Tally()
    found = ""
    is_last = False
    while not is_last:
        is_last = is_over.is_set()
        try:
            found = str(vf.load_counts(place).rows) if is_counts else vf.load(place).digest
            tally.check(found in names, "loaded something else")
        except BaseException as error:
            tally.check(False, f"{type(error).__name__}: {error}")
    tally.check(found == names[-1], "the last one was not found in the end")
    return {"tried": tally.tried, "failures": tally.failures}


def read_apart(outcomes: Any, *task: Any) -> None:
    """Load in a loop, in a process of its own."""
    outcomes.put(read_until(*task))


def readers(sample: Sample, n_saves: int, n_processes: int) -> Iterator[Row]:
    """Load in loops while a writer replaces what is there by one of two in turns."""
    few = vf.count(sample.old.slice(0, 100), "click", FEATURES)
    books = [vf.load(sample.folder / name) for name in ("book", "other")]
    for what, makers in (("a codebook is", books), ("counts are", [sample.counts(), few])):
        place = sample.folder / f"read {what}"
        is_counts = what == "counts are"
        names = [str(maker.rows) if is_counts else maker.digest for maker in makers]
        makers[0].save(place)
        tally = Tally()
        context = multiprocessing.get_context("fork")
        is_over, outcomes = context.Event(), context.SimpleQueue()
        task = (is_over, place, names, is_counts)
        begun = [context.Process(target=read_apart, args=(outcomes, *task)) for _ in range(n_processes)]
        for process in begun:
            process.start()
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_until, *task)
            for number in range(n_saves):
                makers[number % 2].save(place)
            is_over.set()
            found = [reading.result()]
        found += [outcomes.get() for _ in begun]
        for process in begun:
            process.join()
        for part in found:
            tally.add(part)
        yield tally.row(f"readers: {1 + n_processes} load while {what} replaced", saves=n_saves)


# ------------------------------------------------------------------------------ scikit-learn


def scikit_learn(sample: Sample, n_rows: int, backends: Sequence[str]) -> Iterator[Row]:
    """Cross-validate in several processes or threads, and share a compressor that has no codebook yet."""
    from joblib import parallel_config
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = sample.old.slice(0, n_rows).to_pandas()
    X, y = frame[FEATURES], frame["click"]
    model = make_pipeline(
        vf.VocabularyCompressor(40), OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300)
    )
    alone = cross_val_score(model, X, y, cv=4, n_jobs=1).tolist()
    for backend in backends:
        tally = Tally()
        with parallel_config(backend, n_jobs=2):
            tally.same(backend, lambda: cross_val_score(model, X, y, cv=4).tolist(), alone)
        yield tally.row(f"scikit-learn: cross_val_score with two jobs, {backend}")
    tally = Tally()
    new = sample.new.slice(0, n_rows).to_pandas()[FEATURES]
    expected = vf.VocabularyCompressor(40).partial_fit(X, y).transform(new).tolist()
    lazy = vf.VocabularyCompressor(40).partial_fit(X, y)
    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(lambda: lazy.transform(new).tolist()) for _ in range(32)]:
            tally.same("transform", future.result, expected)
    yield tally.row("scikit-learn: 16 threads share a compressor without a codebook yet")


# ------------------------------------------------------------------------------ terminal


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

    code = "import sys; from harden.checks import concurrency; concurrency.apart_main(*sys.argv[1:])"
    options = json.dumps({"n_times": n_times})
    process = subprocess.Popen(
        [sys.executable, "-c", code, "on_a_terminal", str(sample.folder), options],
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm-256color"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
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


# ------------------------------------------------------------------------------ all of it


@contextmanager
def room() -> Iterator[Path]:
    """Yield a temporary folder, which children do not remove, however they end."""
    folder, owner = Path(tempfile.mkdtemp(prefix="harden-concurrency-")), os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def run(small: bool) -> Iterator[Row]:
    """Try everything."""
    with room() as folder:
        sample = Sample.make(folder, 1_000 if small else 70_000)
        few = ["frame", "ids", "row", "digest"]
        expected = answers(sample, sample.loaded(), [*few, "column"] if small else list(TASKS))
        expected["counts"] = of_table(sample.counts()["user"])
        if small:
            yield from threads(sample, expected, 1, 0, few)
            yield from children(sample, expected, "fork", 1, few)
            yield from writers(sample, 2, [4], 0)
            yield from readers(sample, 2, 1)
            return
        yield from threads(sample, expected, 2, 4)
        yield from first_use(sample, expected, 4)
        yield from empty_cache(sample, expected, 3)
        yield from children(sample, expected, "fork", 2, list(TASKS))
        yield from children(sample, expected, "spawn", 2, few)
        yield from forks(sample, expected, 1, 16)
        yield from writers(sample, 24, [2, 8], 3)
        yield from readers(sample, 40, 2)
        yield from scikit_learn(sample, 5_000, ["loky", "threading"])
        yield from terminal(sample, 5)


if __name__ == "__main__":
    harness.main("concurrency", __doc__, run)
