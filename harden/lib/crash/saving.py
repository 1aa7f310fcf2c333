"""Tasks that save something, and what is found afterwards: for the checks of crashes, full disks and faults.

Every task runs in a process that is forked from one which has imported and compiled everything, so that nearly
all of its time goes into the task itself. Before it, its place holds the old content, or nothing; afterwards it
must hold the old or the new, and once a task has come to its end, nothing else may be anywhere.
"""

import gc
import hashlib
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer.main

import vocabfold as vf
from vocabfold.errors import CodebookError
from vocabfold.interfaces.cli import main

OLD, NEW, ABSENT = "old", "new", "absent"
CLEAN_END, REFUSED = 0, 2  # exit codes
_HEADERS = {"codebook.json": vf.load, "counts.json": vf.load_counts}
_ROWS, _SITES, _PAGES = 12_000, 900, 9_000

Act = Callable[[Path], None]  # what saves to a place


@dataclass(frozen=True)
class Task:
    """Something that is saved: what it does to the place that it is given, and the two contents."""

    name: str
    place: str  # the name of what is saved
    prepare: Callable[[], Act]  # whatever comes before
    old: str
    new: str

    def lay(self, folder: Path, *, is_new: bool) -> Path:
        """Return the place in a folder that is emptied; with the old content, if it is not to be new."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place = folder / self.place
        if not is_new:
            (shutil.copytree if os.path.isdir(self.old) else shutil.copy)(self.old, place)
        return place

    def state(self, place: Path) -> str:
        """Return what a place holds, OLD, NEW or ABSENT; or in other words what is wrong with it."""
        if not place.exists() or (place.is_dir() and not any((place / name).exists() for name in _HEADERS)):
            return ABSENT
        try:
            found = _content(place)
        except (CodebookError, OSError, pa.ArrowException) as error:
            return f"torn: {error}"
        known = {_known(self.old): OLD, _known(self.new): NEW}
        return known.get(found, "neither the old content nor the new")

    def strange(self, place: Path) -> list[str]:
        """Return what is beside the place, and what is in it beyond its content."""
        found = [path.name for path in place.parent.iterdir() if path != place]
        if place.is_dir():
            content = {OLD: self.old, NEW: self.new}.get(self.state(place))
            listed = os.listdir(content) if content else []
            found += [path.name for path in place.iterdir() if path.name not in listed]
            found += [] if content else [place.name]  # a folder without content
        return found


@cache
def _known(made: str) -> str:
    return _content(Path(made))


def _content(place: Path) -> str:
    """Return what a place holds, in short, after checking all of it."""
    if place.is_file():
        return hashlib.sha256(place.read_bytes()).hexdigest()
    name = next(name for name in _HEADERS if (place / name).exists())
    _HEADERS[name](place)
    return hashlib.sha256((place / name).read_bytes()).hexdigest()


@contextmanager
def ground() -> Iterator[tuple[Path, Path, dict[str, Task]]]:
    """Yield a folder for places, one for temporary files, and the tasks; this process is ready to be forked."""
    before = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="harden-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = Path(name)
        found = _tasks(root / "made")
        temporary = root / "temporary"
        temporary.mkdir()
        use_temporary(temporary)
        gc.freeze()  # children need not look through what is here
        try:
            yield root / "place", temporary, found
        finally:
            gc.unfreeze()
            use_temporary(Path(before))


def use_temporary(folder: Path) -> None:
    """Have temporary files written to a folder."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def _tasks(folder: Path) -> dict[str, Task]:
    """Make all contents in a folder, once, and return the tasks that save them."""
    folder.mkdir()
    rows = {day: str(_rows(folder / f"{day}.parquet", seed)) for seed, day in enumerate(("old", "new", "more"))}

    def path(name: str) -> str:
        return str(folder / name)

    def count(day: str) -> list[str]:
        return ["count", rows[day], "--label", "click"]

    def fit(day: str) -> list[str]:
        return ["fit", path(f"counts-{day}"), "-b", "500", "--aim", "information"]

    def transform(day: str) -> list[str]:
        return ["transform", path(f"book-{day}"), rows["more"]]

    merge = ["merge", path("counts-new"), path("counts-more")]
    made = {f"counts-{day}": count(day) for day in rows} | {"counts-both": merge}
    for day in ("old", "new"):
        made |= {
            f"book-{day}": fit(day),
            f"ids-{day}.parquet": transform(day),
            f"ids-{day}.csv": transform(day),
        }
    for name, words in made.items():  # by commands, so that all is imported and compiled for those that come
        with redirect_stdout(StringIO()):
            run_command([*words, "-o", path(name)])

    def command(words: list[str]) -> Callable[[], Act]:
        return lambda: lambda place: run_command([*words, "-o", str(place), "--force"])

    old_counts, old_book, counts, book = (
        path(f"{what}-{day}") for day in ("old", "new") for what in ("counts", "book")
    )
    found = [
        Task("save counts", "counts", lambda: vf.load_counts(counts).save, old_counts, counts),
        Task("save a codebook", "book", lambda: vf.load(book).save, old_book, book),
        Task("fit", "book", command(fit("new")), old_book, book),
        Task("merge", "counts", command(merge), old_counts, path("counts-both")),
    ]
    for name, end in (("Parquet", ".parquet"), ("CSV", ".csv")):
        to = command(transform("new"))
        found.append(
            Task(f"transform to {name}", f"ids{end}", to, path(f"ids-old{end}"), path(f"ids-new{end}"))
        )
    return {task.name: task for task in found}


def _rows(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    sites = rng.zipf(1.2, _ROWS) % _SITES
    columns = {
        "site": [f"site-{i}" for i in sites],
        "page": [f"page-{i:x}" for i in rng.integers(0, _PAGES, _ROWS) + seed * _PAGES // 3],
        "click": rng.random(_ROWS) < 0.1 + 0.5 * (sites % 7 == 0),
    }
    pq.write_table(pa.table(columns), path)
    return path


typer.main.get_command = cache(typer.main.get_command)  # it takes as long as the saving


def run_command(words: list[str]) -> None:
    """Run the command line in this process; if it fails, that is a SystemExit."""
    sys.argv = ["vocabfold", *words]
    try:
        main.main()
    except SystemExit as end:
        if end.code:
            raise


def fork(task: Callable[[], None], said: Path | None = None) -> int:
    """Run a task in a process of its own, which ends as a command does, and return its id.

    What it says on stderr goes to a file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, all of which wait for work
        child = os.fork()
    if child:
        return child
    code = 70
    try:
        for number, path in ((1, None), (2, said)):
            descriptor = os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(descriptor, number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        task()
        code = CLEAN_END
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(child: int) -> int:
    """Return the exit code of a process, or the signal that ended it as a number below 0."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def judge(
    task: Task, place: Path, temporary: Path, arm: Callable[[], None] = lambda: None
) -> tuple[int, str, str]:
    """Run a command, and return its exit code, what it said, and what is wrong with what it did, if anything.

    `arm` is called before it, in its process. It may save, or refuse in one sentence, with all as it was; in
    any case nothing may be left.
    """
    before = task.state(place)
    said = temporary.with_name("said.txt")

    def whole() -> None:
        act = task.prepare()
        arm()
        act(place)

    code = wait(fork(whole, said))
    text, found = said.read_text(), task.state(place)
    left = (task.strange(place) if found != ABSENT or place.exists() else []) + os.listdir(temporary)
    if left:
        return code, text, f"exit code {code}, {found}, left {left}: {text}"
    is_sentence = text.startswith("error: ") and text.count("\n") == 1 and "unexpected" not in text
    if (code, found) == (CLEAN_END, NEW) or (code == REFUSED and is_sentence and found in (before, NEW)):
        return code, text, ""
    return code, text, f"exit code {code}, {found}: {text}"
