"""Damaged and hostile artefacts: mutated codebooks and counts are loaded and used.

    damage    every single bit of every file flipped, every file truncated at every byte, files that the header
              lists swapped, missing, doubled, grown. All must be refused; the checksums do not match.
    lies      files by somebody who knows the format and computes valid checksums: any field of the header
              replaced by something absurd, random bytes of Parquet files changed. They must be refused, or be
              usable: ids within their range, and no exception other than ours.
    tricks    names that lead out of the folder, links, pipes, devices, deep and wide JSON, compressed pages and
              encodings that unpack to hundreds of megabytes, footers that lie about sizes. All must be refused.

Everything runs in separate processes. A crash is noticed, a process that hangs for a minute is ended, and the
remaining mutants are still tried. An audit hook detects code that is compiled or run, processes, sockets, and
files opened outside of the folder. It does not see what C++ does; where strace is installed, the tricks run
under it once more. The figures are the numbers refused, used and failed, the longest processor time of one
mutant, and the largest growth of the process's memory in megabytes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO

import pyarrow as pa

import vocabfold as vf
from harden.lib import harness
from harden.lib.artefacts.mutants import (
    Make,
    Mutant,
    bombs,
    cuts,
    flips,
    header_lies,
    parquet_lies,
    saved_folders,
    swaps,
    tricks,
)
from harden.lib.artefacts.watching import LIMITS, OWN, audited, is_strange
from tools.measure import forget_peak, peak
from tools.record import ROOT, Row

LONGEST, MOST_MEMORY = 1.0, 256.0  # seconds and megabytes that one may take
_LIMIT = "256MB"  # memory of the engine
_AT_A_TIME, _TOGETHER = 4_000, 50  # mutants per process, and those whose memory is measured together
_PATIENCE = 60  # seconds by the clock after which one hangs, even if others keep the machine busy
_RIGHT = _REFUSED, _USED = "refused", "used"  # any other outcome says what went wrong


def run(small: bool) -> Iterator[Row]:
    """Yield a row for each kind of damage."""
    with tempfile.TemporaryDirectory() as name:
        originals = saved_folders(Path(name))
        for original in originals:
            use(original)  # what is imported and compiled, is so from here on
        book = vf.load(originals[1])
        for name in book:
            book.ids(name, [None] * 1000)  # so many build a table for the search, in a loop of its own
        step, n = (4999, 10) if small else (1, 6_000)
        refused: dict[str, Make] = {
            "single bits flipped": partial(flips, step=step),
            "cut off at every byte": partial(cuts, step=step),
            "swapped, missing, doubled, grown": swaps,
            "names, links, pipes, JSON": tricks,
            "decompression bombs": partial(bombs, small=small),
        }
        lies: dict[str, Make] = {
            "lies in the header, valid checksums": partial(header_lies, n=n),
            "bytes of Parquet, valid checksums": partial(parquet_lies, n=n),
        }
        for what, make in (refused | lies).items():
            if harness.is_wanted(what):
                yield _tried(originals, what, make, must_refuse=what in refused)
        traced = "files outside of the folder, as the system sees them"
        if not small and harness.is_wanted(traced):
            yield _under_strace(originals, traced)


def use(folder: Path) -> None:
    """Load a folder, and do with it what people do."""
    if (folder / "codebook.json").exists():
        book = vf.load(folder, memory_limit=_LIMIT)
        for name, size in list(book.sizes.items())[:3]:
            for ids in (book.ids(name, [None]), book[name]["id"].to_numpy()):
                assert not ids.size or 0 <= ids.min() <= ids.max() < size, "an id out of range"
            book.members(name, 0)
            repr(book)
    else:
        counts = vf.load_counts(folder, memory_limit=_LIMIT)
        repr(counts)
        for name in list(counts)[:3]:
            table = counts[name]
            assert min(table["neg"].to_numpy()) >= 0, "a negative count"
        with suppress(vf.InputError):
            repr(vf.fit(counts, 1000, aim="information"))


def _tried(originals: list[Path], what: str, make: Make, *, must_refuse: bool) -> Row:
    """Return what the mutants of all folders came to."""
    outcomes: list[str] = []
    longest = grown = 0.0
    for original in originals:
        for i, (outcome, seconds, megabytes) in enumerate(_outcomes(original, make, must_refuse)):
            outcomes.append(outcome if outcome in _RIGHT else f"mutant {i} of {original.name}: {outcome}")
            longest, grown = max(longest, seconds), max(grown, megabytes)
    return _row(what, outcomes, longest=longest, grown_mb=grown)


def _row(what: str, outcomes: list[str], **figures: float) -> Row:
    failures = [outcome for outcome in outcomes if outcome not in _RIGHT]
    return {
        "what": what,
        "tried": len(outcomes),
        "refused": outcomes.count(_REFUSED),
        "used": outcomes.count(_USED),
        "failed": len(failures),
        **figures,
        **({"first_failure": failures[0]} if failures else {}),
    }


def _outcomes(original: Path, make: Make, must_refuse: bool) -> Iterator[tuple[str, float, float]]:
    """Yield what each mutant came to, its seconds and megabytes, from processes that may crash or hang."""
    start, is_over = 0, False
    while not is_over:
        reading, writing = os.pipe()
        with tempfile.TemporaryDirectory(dir=original.parent) as folder:
            child = os.fork()
            if not child:
                os.close(reading)
                status = 1
                try:
                    mutants = islice(make(original), start, start + _AT_A_TIME)
                    with os.fdopen(writing, "w") as pipe:
                        _try_all(original, Path(folder, original.name), mutants, must_refuse, pipe)
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            os.close(writing)
            with os.fdopen(reading) as pipe:
                *done, begun = pipe.read().split("\n")
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        yield from map(json.loads, done)
        if begun:
            end = f"it hung for {_PATIENCE} s" if status == -signal.SIGALRM else f"it crashed: {status}"
            yield end, 0.0, 0.0
        elif status:
            raise RuntimeError(f"no mutant, but this check itself failed: {status}")
        start += len(done) + bool(begun)
        is_over = not begun and len(done) < _AT_A_TIME


def _try_all(original: Path, place: Path, mutants: Iterable[Mutant], must_refuse: bool, pipe: TextIO) -> None:
    """Write a line about each mutant; it is begun before, so that a crash leaves the beginning of one."""
    strange: list[str] = []
    watching = [""]
    sys.addaudithook(lambda event, args: audited(event, args, watching[0], strange))
    shutil.copytree(original, place)
    contents = {path.name: path.read_bytes() for path in original.iterdir()}
    before = grown = 0.0
    for n, mutate in enumerate(mutants, 1):
        mutate(place)
        if n % _TOGETHER == 1 or n < _TOGETHER or grown > MOST_MEMORY:  # it takes longer than a mutant
            before = _reset_peak()
        print(end=" ", file=pipe, flush=True)
        watching[0] = str(place)
        began = time.process_time()  # others may keep the machine busy
        outcome = _used(place, must_refuse=must_refuse)
        seconds = time.process_time() - began
        watching[0] = ""
        grown = peak() - before
        if outcome in _RIGHT and (strange or seconds > LONGEST or grown > MOST_MEMORY):
            outcome = strange[0] if strange else f"it took {seconds:.2f} s and {grown:.0f} MB"
        print(json.dumps([outcome, seconds, grown]), file=pipe, flush=True)
        strange.clear()
        _restore(place, contents)


def _used(place: Path, *, must_refuse: bool) -> str:
    """Use a folder, and return what came of it; if it hangs, wherever that is, the process is killed."""
    signal.alarm(_PATIENCE)
    try:
        use(place)
        return "it was not refused" if must_refuse else _USED
    except (vf.CodebookError, vf.InputError):
        return _REFUSED
    except BaseException:
        return traceback.format_exc()[-700:]
    finally:
        signal.alarm(0)


def _restore(place: Path, contents: dict[str, bytes]) -> None:
    """Undo what a mutant did."""
    for path in place.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.is_symlink() or not path.is_file() or path.read_bytes() != contents.get(path.name):
            path.unlink()
    for name, content in contents.items():
        if not (place / name).exists():
            (place / name).write_bytes(content)


def _reset_peak() -> float:
    """Forget the peak memory so far, and return what is in use, in megabytes."""
    pa.default_memory_pool().release_unused()
    forget_peak()
    return peak()


def _under_strace(originals: list[Path], what: str) -> Row:
    """Try the tricks in one process, while the system reports all that any code opens and changes."""
    if shutil.which("strace") is None:
        return {"what": what, "not_run": "strace is not installed"}
    root = originals[0].parent / "traced"
    places = []
    for original in originals:
        for i, mutate in enumerate(tricks(original)):
            places.append(root / f"{original.name}-{i}" / original.name)
            shutil.copytree(original, places[-1])
            mutate(places[-1])
    log, mark = root / "strace.txt", root / "everything-is-imported"
    folders = [list(map(str, paths)) for paths in (originals, [mark], places)]
    command = ["strace", "-f", "-y", "-qq", "-e", "trace=%file,%network", "-e", "signal=none", "-o", str(log)]
    command += [sys.executable, "-c", f"from harden.checks import artefacts; artefacts.use_all(*{folders})"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    failure = f"it ended with {ended.returncode}: {ended.stderr[-700:]}"
    outcomes = [failure] if ended.returncode else json.loads(ended.stdout)
    calls = log.read_text(errors="replace").partition(mark.name)[2].splitlines()[1:]
    readable = (*(f"{place}/" for place in places), *LIMITS, *OWN)
    outcomes += [line for line in calls if is_strange(line, readable)]
    return _row(what, outcomes, calls=len(calls)) | {"tried": len(places)}


def use_all(originals: list[str], marks: list[str], places: list[str]) -> None:
    """Use folders that must be refused, after all that is imported is there, and a mark in the log of files."""
    for folder in originals:
        use(Path(folder))
    Path(marks[0]).exists()
    print(json.dumps([_used(Path(place), must_refuse=True) for place in places]))


if __name__ == "__main__":
    harness.main("artefacts", __doc__, run)
