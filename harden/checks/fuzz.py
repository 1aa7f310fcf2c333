"""No traceback reaches a user, nothing hangs, nothing crashes: random bytes go through every parser.

Targets (`harden/lib/fuzz/`): the command line with odd words and files; CSV, TSV, JSON lines and Criteo's
layout; damaged Parquet files; saved codebooks and counts that were changed and given valid checksums; the words
of options. Each target runs in a process of its own, which is watched. A `failed` input causes a `traceback`
(any exception other than ours, a message of several lines, an exit code beyond 2, control characters on a
terminal), a `hang` (more than ten seconds of processor time or a minute in total, and again so in a new
process) or a `crash` (the end of the process). `build/fuzz` keeps such inputs.

atheris drives the targets by coverage where it is installed; otherwise seeded mutations of the same inputs
do. At full size the targets share an hour (or get FUZZ_SECONDS each). A row says how many inputs were tried,
how many succeeded (`done`) and how many were refused in one sentence (`refused`).
"""

import argparse
import contextlib
import faulthandler
import hashlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harden.lib import harness
from tools.record import Row

SECONDS = 12 * 60  # of each target
HANG, DEADLOCK = 10.0, 60.0  # seconds of the processor, and of a clock
NAMES = ["command line", "text files", "Parquet files", "saved folders, valid checksums", "words of options"]
KEPT = Path("build/fuzz").absolute()

_START = 300.0  # seconds for a process to load everything, and to compile
_MEMORY = 16 * 2**30  # bytes of address space: an input must not take the machine down
_MAX_BYTES = 2**17  # of an input
_SMALL = 0.6  # seconds of each target
_COUNTERS = ("tried", "done", "refused", "tracebacks")
# Modules that numba compiles, which atheris must leave alone.
_COMPILED = (
    "codebook._search encoding.crossfit folding.curve folding.information folding.solve._kernels "
    "folding.solve.baselines folding.solve.cut_tree folding.solve.greedy folding.solve.threshold"
)
_TOKENS = [
    *(
        b'"',
        b'""',
        b",",
        b"\t",
        b"\r",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"{",
        b"}",
        b"[",
    ),
    *(
        b"]",
        b":",
        b"\\",
        b"'",
        b"null",
        b"NaN",
        b"1e999",
        b"-",
        b"0" * 40,
        b"9" * 25,
        b"\\ud800",
        b"\\u0000",
        b"true",
    ),
    *(b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80", b"\0\0\0\x80", b"[" * 2000, b"x" * 70_000, b"PAR1"),
]


def run(small: bool) -> Iterator[Row]:
    """Try all targets; at full size two at a time."""
    names = list(filter(harness.is_wanted, NAMES))
    if small:
        with tempfile.TemporaryDirectory() as folder:
            yield from (_in_this_process(name, Path(folder)) for name in names)
        return
    seconds = float(os.environ.get("FUZZ_SECONDS", SECONDS))
    with ThreadPoolExecutor(2) as pool:
        for done in as_completed([pool.submit(_watched, name, seconds) for name in names]):
            yield done.result()


def _in_this_process(name: str, folder: Path) -> Row:
    """Try a few inputs of a target."""
    from harden.lib.fuzz.targets import TARGETS

    before = os.getcwd()
    (folder / name).mkdir()
    try:
        tally = Tally(name, folder / name)
        target = TARGETS[name](folder / name)
        end = time.monotonic() + _SMALL
        for data in _mutations(name, target.seeds, seed=0):
            tally.run(target, data)
            if time.monotonic() > end:
                break
    finally:
        os.chdir(before)
    return {"what": name, "driver": "mutations", "failed": tally.counts["tracebacks"], **tally.counts}


class Tally:
    """The inputs of a target, counted in a file for whoever watches, and the failures, kept."""

    def __init__(self, name: str, folder: Path) -> None:
        self.counts = dict.fromkeys(_COUNTERS, 0)
        self._current, self._state, self._kept = folder / "current", folder / "state", KEPT / name
        self._seen: set[str] = set()

    def run(self, target: Any, data: bytes) -> None:
        """Try one input, and go on whatever happens."""
        self._current.write_bytes(data)
        self.counts["tried"] += 1
        try:
            self.counts[target(data)] += 1
        except BaseException as error:  # a panic of a library in Rust is none of the usual ones
            if isinstance(error, KeyboardInterrupt):
                raise
            self.counts["tracebacks"] += 1
            self._keep(error, data)
        self._state.write_text(" ".join(map(str, self.counts.values())))

    def _keep(self, error: BaseException, data: bytes) -> None:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "vocabfold" in frame.filename]
        place = f"{type(error).__name__} {[(frame.filename, frame.lineno) for frame in frames[-2:]]}"
        if place not in self._seen:
            self._seen.add(place)
            kept = keep(self._kept, data, "".join(traceback.format_exception(error)))
            print(f"failed: {kept}: {type(error).__name__}: {str(error)[:500]!r}", flush=True)


def keep(folder: Path, data: bytes, why: str) -> Path:
    """Keep an input that failed, and why."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(why, encoding="utf-8", errors="backslashreplace")
    return path


def _watched(name: str, seconds: float) -> Row:
    """Try a target for some time, in processes that may end or hang."""
    total = dict.fromkeys(_COUNTERS, 0)
    hangs = crashes = slow = seed = 0
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 1 or not seed:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary)
            ended = _observe(name, folder, ["--seed", str(seed), "--seconds", str(left)])
            with contextlib.suppress(OSError, ValueError):
                counts = map(int, (folder / "state").read_text().split())
                total = {key: total[key] + more for key, more in zip(_COUNTERS, counts, strict=True)}
            seed += 1
            if ended == 0:
                continue
            data = (folder / "current").read_bytes() if (folder / "current").exists() else b""
            said = (folder / "said").read_text(errors="replace")[-4000:]
            total["tried"] += 1
        if ended is None and _hangs(name, data):
            hangs += 1
            keep(KEPT / name, data, "hang\n" + said)
        elif ended is None:
            slow += 1
        else:
            crashes += 1
            keep(KEPT / name, data, f"crash {ended}\n{said}")
    failed = total["tracebacks"] + hangs + crashes
    return {
        "what": name,
        "driver": "atheris" if find_spec("atheris") else "mutations",
        "tried": total.pop("tried"),
        "failed": failed,
        **total,
        "hangs": hangs,
        "crashes": crashes,
        "slow_once": slow,
        "seconds": round(seconds),
    }


def _hangs(name: str, data: bytes) -> bool:
    """Try an input once more, alone: on a busy machine, any input may be slow once."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        input = Path(temporary) / "input"
        input.write_bytes(data)
        return _observe(name, Path(temporary), ["--input", str(input)]) is None


def _observe(name: str, folder: Path, options: list[str]) -> int | None:
    """Run a process until it ends, and return how; None, if an input takes too long."""
    command = [sys.executable, "-m", "harden.checks.fuzz", "--target", name, "--folder", str(folder), *options]
    environment = os.environ | {"TMPDIR": str(folder)}
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environment)
        current, began, used, patience = 0.0, time.monotonic(), 0.0, _START
        try:
            while child.poll() is None:
                time.sleep(0.2)
                with contextlib.suppress(FileNotFoundError):
                    changed = (folder / "current").stat().st_mtime
                    if changed != current:  # another input
                        current, began, used, patience = (
                            changed,
                            time.monotonic(),
                            _processor(child.pid),
                            DEADLOCK,
                        )
                is_busy = current and _processor(child.pid) - used > HANG
                if is_busy or time.monotonic() - began > patience:
                    return None
            return child.returncode
        finally:
            child.kill()
            child.wait()


def _processor(pid: int) -> float:
    """Return the seconds of the processor that a process has used; Linux only."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _child(options: argparse.Namespace) -> None:
    """Feed a target until the time is over."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    if find_spec("atheris"):
        _instrument()
    from harden.lib.fuzz.targets import TARGETS

    place = options.folder / "place"
    place.mkdir()
    target = TARGETS[options.target](place)
    assert set(NAMES) == set(TARGETS)
    with contextlib.suppress(Exception):
        target(target.seeds[0])  # which compiles
    tally = Tally(options.target, options.folder)
    if options.input:
        tally.run(target, options.input.read_bytes())
    elif find_spec("atheris"):
        _by_coverage(tally, target, options)
    else:
        end = time.monotonic() + options.seconds
        for data in _mutations(options.target, target.seeds, options.seed):
            tally.run(target, data)
            if time.monotonic() > end:
                return


def _instrument() -> None:
    """Let atheris see which lines run, of modules that are imported from now on."""
    import atheris

    compiled = [f"vocabfold.{module}" for module in _COMPILED.split()]
    atheris.instrument_imports(include=["vocabfold"], exclude=compiled).__enter__()


def _by_coverage(tally: Tally, target: Any, options: argparse.Namespace) -> None:
    import atheris

    corpus = options.folder / "corpus"
    corpus.mkdir()
    for i, seed in enumerate(target.seeds):
        (corpus / str(i)).write_bytes(seed)
    limits = {"max_total_time": int(options.seconds), "max_len": _MAX_BYTES, "rss_limit_mb": 0, "timeout": 3600}
    limits |= {"seed": options.seed + 1, "len_control": 0}

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, most))
        chance = random.Random(seed)
        return _mutated(chance, _mutated(chance, data, target.seeds), target.seeds)[:most]

    words = [sys.argv[0], *(f"-{key}={value}" for key, value in limits.items()), str(corpus)]
    atheris.Setup(words, lambda data: tally.run(target, data), custom_mutator=mutated)
    atheris.Fuzz()


def _mutations(name: str, seeds: list[bytes], seed: int) -> Iterator[bytes]:
    """Yield what chance makes of the seeds, again and again: now and then nothing."""
    chance = random.Random(f"{name} {seed}")
    while True:
        data = chance.choice(seeds)
        if chance.random() < 0.1:
            yield data
        for _ in range(1 + int(chance.expovariate(0.6))):
            data = _mutated(chance, data, seeds)[:_MAX_BYTES]
        yield data


def _mutated(chance: random.Random, data: bytes, seeds: list[bytes]) -> bytes:
    """Change a few bytes, put something in, take something out, or join two inputs."""
    i, j = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    few = min(j, i + int(chance.expovariate(0.2)))
    what = chance.randrange(7)
    if what == 0 and data:
        i = min(i, len(data) - 1)
        return data[:i] + bytes([data[i] ^ (1 << chance.randrange(8))]) + data[i + 1 :]
    if what == 1:
        return data[:i] + chance.randbytes(1 + int(chance.expovariate(0.2))) + data[few:]
    if what == 2:
        return data[:i] + chance.choice(_TOKENS) + data[chance.choice((i, few)) :]
    if what == 3:
        return data[:i] + data[few:]
    if what == 4:
        return data[:i] + data[i:j] * chance.choice((2, 2, 3, 9)) + data[j:]
    if what == 5:
        other = chance.choice(seeds)
        return data[:i] + other[chance.randrange(len(other) + 1) :]
    return data + chance.randbytes(chance.randrange(1, 24))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--target")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--input", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    given, _ = parser.parse_known_args()
    if given.target:
        _child(given)
    else:
        harness.main("fuzz", __doc__, run)
