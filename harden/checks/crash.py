"""Crash while saving: processes are killed, disks are full, and writes fail, while something is saved.

Killed: kill -9 at 200 moments spread over the whole task. The target must contain the old
content or the new one (a new target: nothing or the new one). Then the task runs once more and must
succeed, and nothing may be left in the target, beside it, or among the temporary files. `before`, `within` and
`after` count the kills at which nothing had been written yet, something unfinished existed, and the new
content was there.

Disk full: the target, or the temporary files, are on a disk of a few megabytes with less and less room. Failing
writes: see `harden/lib/crash/injection.py`. In both cases a command ends with one sentence, exit code 2 and the
old content, or with the new content, and leaves nothing else. `refused` counts the first outcome.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import duckdb

from harden.lib import harness
from harden.lib.crash import faults
from harden.lib.crash.injection import disturbed
from harden.lib.crash.saving import (
    ABSENT,
    NEW,
    OLD,
    REFUSED,
    Task,
    fork,
    ground,
    judge,
    run_command,
    use_temporary,
    wait,
)
from tools.record import Row

_KILLED = {  # and whether to a new place
    "save counts": (False, True),
    "save a codebook": (False, True),
    "merge": (False,),
    "transform to Parquet": (False,),
    "transform to CSV": (False,),
}
_COMMANDS = ("fit", "merge", "transform to Parquet", "transform to CSV")
_SMALL = ("transform to CSV",)
_MANY_ROWS = 1_000_000
_DISK = 16 << 20  # bytes
_SPARE = 64 << 10  # that a task may need beyond its content
_LEAST_PHASE = 0.02  # of the kills, that hit within and after the writing, each


def run(small: bool) -> Iterator[Row]:
    """Try everything, in all ways."""
    with ground() as (places, temporary, tasks):
        chosen = [tasks[name] for name in (_SMALL if small else _COMMANDS)]
        yield from disturbed(chosen, places, temporary, small)
        yield from full_disks(chosen, places, temporary, small)
        for name in ["save a codebook"] if small else _KILLED:
            for is_new in _KILLED[name]:
                yield killed(tasks[name], places, temporary, 2 if small else 200, is_new=is_new)


def killed(task: Task, places: Path, temporary: Path, times: int, *, is_new: bool) -> Row:
    """Kill a task so many times, and look what is left."""
    rng = random.Random(task.name)
    seconds = [_undisturbed(task, task.lay(places, is_new=is_new))[1] for _ in range(3)]
    failures = []
    phases = dict.fromkeys(("before", "within", "after"), 0)
    for i in range(times):
        place = task.lay(places, is_new=is_new)
        child = _begin(task, place)
        time.sleep((i + rng.random()) / times * 1.15 * median(seconds[-9:]))  # other processes come and go
        os.kill(child, signal.SIGKILL)
        wait(child)
        found = task.state(place)
        is_left = bool(task.strange(place))
        phases["after" if found == NEW else "within" if is_left else "before"] += 1
        if found not in (ABSENT if is_new else OLD, NEW):
            failures.append(f"after a kill: {found}")
        code, again = _undisturbed(task, place)
        seconds.append(again)
        left = task.strange(place) + os.listdir(temporary)
        if (code, task.state(place), left) != (0, NEW, []):
            failures.append(f"done once more: exit code {code}, {task.state(place)}, left {left}")
            _empty(temporary)
    # Not `before`: a new folder is made at once, and empty.
    if times > 50 and min(phases["within"], phases["after"]) < _LEAST_PHASE * times:
        failures.append(f"the kills did not hit all of the task: {phases}")
    return {
        "what": f"kill -9: {task.name}, {'to a new place' if is_new else 'over an old one'}",
        "tried": times,
        "failed": len(failures),
        **phases,
        "milliseconds": round(1000 * median(seconds)),
        **_first(failures),
    }


def _first(failures: list[str]) -> Row:
    return {"first_failure": failures[0].strip()} if failures else {}


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def _begin(task: Task, place: Path) -> int:
    """Begin a task in a process of its own, and return its id when all is prepared."""
    reader, writer = os.pipe()

    def whole() -> None:
        act = task.prepare()
        os.write(writer, b"!")
        act(place)

    child = fork(whole)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    return child


def _undisturbed(task: Task, place: Path) -> tuple[int, float]:
    """Do a task, and return its exit code, and how many seconds it took, once it was prepared."""
    child = _begin(task, place)
    start = time.perf_counter()
    return wait(child), time.perf_counter() - start


def full_disks(tasks: Sequence[Task], places: Path, temporary: Path, small: bool) -> Iterator[Row]:
    """Save to a disk with less and less room, and count with too little of it for temporary files."""
    disk = places.with_name("disk")
    with small_disk(disk) as problem:
        if problem:
            yield {"what": "disk full", "not_run": problem}
            return
        for task in tasks:
            yield _saved_to(disk, task, temporary, 2 if small else 40)
        if not small:
            yield _counted_with(disk, places)


def _saved_to(disk: Path, task: Task, temporary: Path, times: int) -> Row:
    failures = []
    refused = 0
    made = Path(task.new)
    size = sum(path.stat().st_size for path in (made.iterdir() if made.is_dir() else [made]))
    for i in range(times):
        place = task.lay(disk / "place", is_new=i % 2 == 1)
        room = (size + _SPARE) * i // times
        with (disk / "ballast").open("wb") as ballast:
            ballast.write(bytes(shutil.disk_usage(disk).free - room))
        code, _, problem = judge(task, place, temporary)
        (disk / "ballast").unlink()
        refused += code == REFUSED
        failures += [f"room for {room:,} bytes: {problem}"] if problem else []
    if not refused:
        failures.append("there was always room enough")
    what = f"disk full: {task.name}"
    return {"what": what, "tried": times, "failed": len(failures), "refused": refused, **_first(failures)}


def _counted_with(disk: Path, places: Path) -> Row:
    """Count many values, for which temporary files are needed, on a disk with less and less room."""
    rows, temporary = places.with_name("rows.parquet"), disk / "temporary"
    texts = "md5(i::VARCHAR) || repeat('-', 400) || i AS page, i % 2 AS click"
    duckdb.sql(f"SELECT {texts} FROM range({_MANY_ROWS}) t(i)").write_parquet(str(rows))
    temporary.mkdir()
    before = os.environ["TMPDIR"]
    use_temporary(temporary)
    words = [
        "count",
        str(rows),
        "--label",
        "click",
        "--memory",
        "200MiB",
        "-o",
        str(places.with_name("counts")),
    ]
    said = places.with_name("said.txt")
    failures = []
    for room in (0, 1 << 20, 8 << 20):
        with (disk / "ballast").open("wb") as ballast:
            ballast.write(bytes(shutil.disk_usage(disk).free - room))
        code = wait(fork(lambda: run_command(words), said))
        text, left = said.read_text(), os.listdir(temporary)
        is_sentence = text.startswith("error: ") and text.count("\n") == 1 and "temporary files" in text
        if code != REFUSED or not is_sentence or left:
            failures.append(f"room for {room:,} bytes: exit code {code}, left {left}: {text}")
            _empty(temporary)
        (disk / "ballast").unlink()
    use_temporary(Path(before))
    return {
        "what": "disk full: temporary files of count",
        "tried": 3,
        "failed": len(failures),
        **_first(failures),
    }


@contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """Mount a disk of a few megabytes, and yield why that is not possible, if so."""
    folder.mkdir()
    try:
        words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "harden", str(folder)]
        mounted = subprocess.run(words, capture_output=True, text=True, check=False)
        problem = mounted.stderr.strip() if mounted.returncode else ""
    except OSError as error:
        problem = str(error)
    try:
        yield problem and f"no small disk can be mounted: {problem}"
    finally:
        if not problem:
            subprocess.run(["umount", str(folder)], check=True)


if __name__ == "__main__":
    faults.begin_anew()
    harness.main("crash", __doc__, run)
