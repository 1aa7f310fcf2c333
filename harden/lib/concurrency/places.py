"""Several who write to one place, or read from it while it is replaced."""

import hashlib
import multiprocessing
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import vocabfold as vf
from harden.lib.concurrency.apart import PATIENCE
from harden.lib.concurrency.tally import Tally
from harden.lib.concurrency.tasks import FEATURES, Sample, answers, of_folder
from tools.record import Row

TOLD = re.compile(
    r"is being (saved|written) by another process; wait until it has finished, or (save|write) elsewhere\.$"
)


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
