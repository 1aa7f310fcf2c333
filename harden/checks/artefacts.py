"""Damaged and hostile artefacts: mutated codebooks and counts are loaded and used.

    damage    every single bit of every file flipped, every file cut off at every byte, files that the header
              lists swapped, missing, doubled, grown: all must be refused. Nobody has signed for these.
    lies      what somebody makes who knows the format and signs for it: any field of the header replaced by
              something absurd, bytes of Parquet files changed at random. These must be refused, or be of use:
              ids within their range, and no other exception than ours.
    tricks    names that lead out of the folder, links, pipes, devices, deep and wide JSON, compressed pages and
              encodings that unpack to hundreds of megabytes, footers that lie about sizes: all must be refused.

Everything runs in processes of their own, so that a crash is noticed, and one that hangs for a minute is ended;
the mutants after it are still tried. An audit hook finds code that is compiled or run, processes, sockets, and
files opened outside of the folder. What C++ does, it does not see; where strace is installed, the tricks are
tried under it once more. The figures: refused, used, failed, the longest time of the processor for one, and by
how many megabytes the memory of the process grew at most.
"""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib import harness
from harden.lib.corpus import ODD_JSON
from harden.lib.fuzz.targets import signed
from tools.measure import forget_peak, peak
from tools.record import ROOT, Row

LONGEST, MOST_MEMORY = 1.0, 256.0  # seconds and megabytes that one may take
_LIMIT = "256MB"  # memory of the engine
_AT_A_TIME, _TOGETHER = 4_000, 50  # mutants per process, and those whose memory is measured together
_PATIENCE = 60  # seconds by the clock after which one hangs, even if others keep the machine busy
_RIGHT = _REFUSED, _USED = "refused", "used"  # any other outcome says what went wrong

# What may be touched besides the folder itself, by how its path begins, with a slash at its end: parts of
# Python and of ours, limits of the machine, temporary folders.
_OWN = (f"{sys.prefix}/", f"{sys.base_prefix}/", f"{ROOT}/")
_LIMITS = ("/proc/self/cgroup/", "/proc/meminfo/", "/sys/fs/cgroup/", "/sys/devices/system/")
_TEMPORARY = f"{tempfile.gettempdir()}/vocabfold-"

_LOOKS = re.compile(r"\w*stat\w*|f?access\w*|readlink\w*|getcwd")  # calls that neither open nor change anything
_TOUCHES = re.compile(r"open(at2?)?|(mk|rm)dir(at)?|unlink(at)?")  # calls that are right in the right places

Mutant = Callable[[Path], None]  # changes a folder
Make = Callable[[Path], Iterable[Mutant]]
_ABSURD: list[Any] = [*ODD_JSON, -(2**63), -0.0, "\ud800", "/etc/passwd", "x" * 10**5, [*range(1000)]]


def run(small: bool) -> Iterator[Row]:
    """Yield a row for each kind of damage."""
    with tempfile.TemporaryDirectory() as name:
        originals = _originals(Path(name))
        for original in originals:
            use(original)  # what is imported and compiled, is so from here on
        book = vf.load(originals[1])
        for name in book:
            book.ids(name, [None] * 1000)  # so many build a table for the search, in a loop of its own
        step, n = (4999, 10) if small else (1, 6_000)
        refused: dict[str, Make] = {
            "single bits flipped": partial(_flips, step=step),
            "cut off at every byte": partial(_cuts, step=step),
            "swapped, missing, doubled, grown": _swaps,
            "names, links, pipes, JSON": _tricks,
            "decompression bombs": partial(_bombs, small=small),
        }
        lies: dict[str, Make] = {
            "lies in the header, signed for": partial(_header_lies, n=n),
            "bytes of Parquet, signed for": partial(_parquet_lies, n=n),
        }
        for what, make in (refused | lies).items():
            if harness.is_wanted(what):
                yield _tried(originals, what, make, must_refuse=what in refused)
        traced = "files outside of the folder, as the system sees them"
        if not small and harness.is_wanted(traced):
            yield _under_strace(originals, traced)


def _originals(folder: Path) -> list[Path]:
    """Save a small codebook and small counts with folds: every kind of value."""
    generator = random.Random(0)
    n = 60
    rows = pa.table(
        {
            "text": [generator.choice([None, "", "é", *"abcdefgh"]) for _ in range(n)],
            "number": [generator.randrange(-5, 5) for _ in range(n)],
            "float": [generator.choice([0.5, -1.5, None, 1e300]) for _ in range(n)],
            "day": pa.array([generator.randrange(9) for _ in range(n)], pa.date32()),
            "is": [generator.random() < 0.5 for _ in range(n)],
            "y": [generator.randrange(2) for _ in range(n)],
        }
    )
    counts = vf.count(rows, "y", ["text", "number", "float", "day", "is"], folds=3)
    counts.save(folder / "counts")
    vf.fit(counts, 14, aim="information").save(folder / "book")
    return [folder / "counts", folder / "book"]


def _flips(folder: Path, step: int) -> Iterator[Mutant]:
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for bit in range(0, 8 * len(content), step):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            yield _written(path.name, bytes(changed))


def _cuts(folder: Path, step: int) -> Iterator[Mutant]:
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        yield from (_written(path.name, content[:end]) for end in range(0, len(content), step))


def _swaps(folder: Path) -> Iterator[Mutant]:
    # Without the notes on where it comes from a folder is as good.
    files = [path for path in sorted(folder.iterdir()) if path.name != "provenance.json"]
    for path in files:
        yield lambda place, path=path: (place / path.name).unlink()
        yield _written(path.name, path.read_bytes() + b"\0")
        yield _written(path.name, 2 * path.read_bytes())
        for other in files:
            if other != path:
                yield _written(path.name, other.read_bytes())


def _header_lies(folder: Path, n: int) -> Iterator[Mutant]:
    """Replace up to three nodes of the header by something absurd, or leave them out, and sign for it."""
    original = _header(folder).read_text(encoding="utf-8")

    def lie(place: Path, seed: int) -> None:
        generator = random.Random(seed)
        header = json.loads(original)
        for _ in range(generator.randrange(1, 4)):
            parent, key = generator.choice(list(_nodes(header)))
            if generator.random() < 0.1:
                with suppress(KeyError, IndexError):
                    del parent[key]
            elif generator.random() < 0.3 and isinstance(parent[key], int | float):
                parent[key] = parent[key] + generator.choice([1, -1, 0.5, 2**40])
            else:
                parent[key] = deepcopy(generator.choice(_ABSURD))
        _sign(place, header)

    return (partial(lie, seed=seed) for seed in range(n))


def _nodes(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all places of a JSON value, but for what says which format it is."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        if key not in ("format", "version", "sha256"):
            yield node, key
            yield from _nodes(node[key])


def _parquet_lies(folder: Path, n: int) -> Iterator[Mutant]:
    """Change some bytes of a Parquet file, in its pages or its footer, and sign for it."""
    header = json.loads(_header(folder).read_text(encoding="utf-8"))
    contents = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}

    def lie(place: Path, seed: int) -> None:
        generator = random.Random(seed)
        changed = json.loads(json.dumps(header))
        entry = generator.choice(changed["columns"])["files"][0]
        content = bytearray(contents[entry["name"]])
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        for _ in range(generator.choice([1, 1, 2, 4, 16])):
            first, last = (footer, len(content)) if generator.random() < 0.6 else (4, footer)
            content[generator.randrange(first, last)] = generator.choice(
                [generator.randrange(256), 0, 255, 127, 128]
            )
        if generator.random() < 0.1:
            start = generator.randrange(4, len(content))
            del content[start : start + generator.randrange(1, 9)]
        _put(place, entry, bytes(content))
        _sign(place, changed)

    return (partial(lie, seed=seed) for seed in range(n))


def _tricks(folder: Path) -> Iterator[Mutant]:
    """Lead readers out of the folder, or keep them busy."""
    header = json.loads(_header(folder).read_text(encoding="utf-8"))
    name = header["columns"][0]["files"][0]["name"]
    outside = folder.parent / f"outside-{folder.name}.parquet"
    shutil.copy(folder / name, outside)

    def named(given: Any) -> Mutant:
        def lie(place: Path) -> None:
            changed = json.loads(json.dumps(header))
            changed["columns"][0]["files"][0]["name"] = given
            shutil.copy(outside, place.parent)  # to where `../` leads; what is missing would be refused anyway
            _sign(place, changed)

        return lie

    for given in (
        *(
            f"../{outside.name}",
            str(outside),
            "/etc/passwd",
            "/dev/zero",
            ".",
            "..",
            "",
            "\0",
            name + "/../" + name,
        ),
        *(
            f"./{name}",
            f"{name}\0",
            f" {name}",
            name.upper(),
            "*.parquet",
            f"{name[:-8]}?parquet",
            "~/.profile",
        ),
        *("file:///etc/passwd", "C:\\x.parquet", "\\\\host\\x", f"..\\{name}", f"٣{name[1:]}", f"{name}\n"),
    ):
        yield named(given)

    def replaced(path: str, make: Callable[[Path], object]) -> Mutant:
        def trick(place: Path) -> None:
            (place / path).unlink()
            make(place / path)

        return trick

    for path in (name, _header(folder).name):
        for target in (outside, Path("/etc/passwd"), Path("/dev/zero"), Path("/proc/self/mem"), folder / path):
            yield replaced(path, lambda place, target=target: place.symlink_to(target))
        yield replaced(path, os.mkfifo)
        yield replaced(path, Path.mkdir)
        if os.geteuid() == 0:
            yield replaced(path, lambda place: os.mknod(place, 0o20666, os.makedev(1, 5)))  # /dev/zero
    for text in (
        "[" * 10**6,
        '{"a":' * 10**6,
        "[" * 10**6 + "]" * 10**6,
        "[" + "[]," * 10**6 + "[]]",
        '"' + "x" * 10**7,
        "9" * 10**6,
        '{"format": "vocabfold codebook", "version": ' + "9" * 5000 + "}",
        '{"format": "vocabfold codebook", "version": 1e999}',
        '{"format": "vocabfold codebook", "version": NaN}',
        "\ufeff{}",
    ):
        yield _written(_header(folder).name, text.encode())
    for wide in ([[]] * 10**5, {str(i): {} for i in range(10**5)}, [{"files": []}] * 10**5):
        yield lambda place, wide=wide: _sign(place, json.loads(json.dumps(header)) | {"columns": wide})


def _bombs(folder: Path, *, small: bool) -> Iterator[Mutant]:
    """Put a file in the place of the first column's, a text, that unpacks to gigabytes."""
    header = json.loads(_header(folder).read_text(encoding="utf-8"))
    is_book = folder.name == "book"
    plain = {"use_dictionary": False, "write_batch_size": 200, "data_page_size": 2**31 - 1}
    delta = {"use_dictionary": False, "column_encoding": {"value": "DELTA_BYTE_ARRAY"}}
    bombs: list[tuple[Callable[[], Any], dict[str, Any]]] = [
        (lambda: _words(10**5, "y" * 10**6), {}),
        *((partial(_long, 200), plain | {"compression": packed}) for packed in ("zstd", "gzip", "brotli")),
        (partial(_long, 200), plain | delta),
        (partial(_long, 100), delta),
        (lambda: _words(10**6, "y" * 10**6), {"row_group_size": 10**5}),
        (lambda: _words(10**7, "z"), {"row_group_size": 10**7}),
        (lambda: pa.nulls(10**7, pa.string()), {"row_group_size": 10**7}),
    ]
    for make, options in bombs[:1] if small else bombs:
        values = make()
        n = len(values)
        fields: dict[str, Any] = {"value": values}
        fields |= {"id": np.zeros(n, np.int32)} if is_book else {"fold": np.zeros(n, np.int32)}
        fields |= {"neg": np.ones(n, np.int64), "pos": np.ones(n, np.int64)}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(fields), sink, **{"compression": "zstd", "store_schema": False, **options})
        content = sink.getvalue().to_pybytes()
        del values, fields, sink
        yield _bomb(header, content, n)
        # The same with a footer that says that all chunks are small, and one with few rows.
        yield _bomb(header, content, n, rows=7)
        metadata = pq.ParquetFile(pa.BufferReader(content)).metadata
        for size in {
            metadata.row_group(0).column(0).total_uncompressed_size,
            metadata.row_group(0).total_byte_size,
        }:
            few = _varint(2 * 100).ljust(len(_varint(2 * size)), b"\0")
            yield _bomb(header, _padded(content, _varint(2 * size), few), n)
    sums = {"value": pa.array(["a"]), **({"id": [2**31 - 1]} if is_book else {"fold": [2**31 - 1]})}
    for neg, pos in ((2**62, 2**62), (-(2**63), 5), (2**63 - 1, 2**63 - 1)):
        table = pa.table(sums | {"neg": [neg], "pos": [pos]})
        table = table.set_column(1, table.schema.field(1).name, table.column(1).cast(pa.int32()))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        yield _bomb(header, sink.getvalue().to_pybytes(), 1)


def _long(n: int) -> pa.Array:
    """Return texts of a megabyte each that differ at their ends."""
    return pa.array(["x" * 10**6 + f"{i:05}" for i in range(n)])


def _words(n: int, word: str) -> pa.Array:
    """Return one word many times, as a dictionary."""
    return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [word])


def _padded(content: bytes, old: bytes, new: bytes) -> bytes:
    """Replace a number in the footer by one of as many bytes; a varint may be longer than it has to be."""
    number = bytes(byte | 128 for byte in new[:-1]) + new[-1:]
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:footer] + content[footer:].replace(old, number)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _bomb(header: Any, content: bytes, n: int, *, rows: int | None = None) -> Mutant:
    def lie(place: Path) -> None:
        changed = json.loads(json.dumps(header))
        column = changed["columns"][0]
        _put(place, column["files"][0], content)
        column["files"][0]["rows"] = n if rows is None else rows
        if "n_values" in column:
            column["n_values"] = column["files"][0]["rows"]
        _sign(place, changed)

    return lie


def _header(folder: Path) -> Path:
    return folder / ("codebook.json" if (folder / "codebook.json").exists() else "counts.json")


def _written(name: str, content: bytes) -> Mutant:
    return lambda place: (place / name).write_bytes(content) and None


def _put(place: Path, entry: Any, content: bytes) -> None:
    (place / entry["name"]).write_bytes(content)
    entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def _sign(place: Path, header: Any) -> None:
    """Write a header with the digest and the sha256 that it asks for."""
    path = _header(place)
    path.write_bytes(signed(header, is_book=path.name == "codebook.json"))


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
    sys.addaudithook(lambda event, args: _audited(event, args, watching[0], strange))
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


def _audited(event: str, args: tuple[Any, ...], place: str, strange: list[str]) -> None:
    """Note what no codebook may bring about."""
    if not place:
        return
    is_imported = event == "exec" and args[0].co_filename.startswith((*_OWN, "<frozen"))
    # numba keeps compiled loops as pickles, in the package's own folder.
    is_imported = is_imported or (event == "pickle.find_class" and _is_called_by("numba"))
    is_code = event in ("exec", "compile", "pickle.find_class") and not is_imported
    if is_code or event.startswith(
        ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.", "ctypes.dlopen")
    ):
        strange.append(f"{event} {str(args)[:200]}")
    if event in ("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "shutil.rmtree") and isinstance(
        args[0], str | bytes
    ):
        path = os.path.abspath(os.fsdecode(args[0]))  # without `..`
        if not f"{path}/".startswith((f"{place}/", _TEMPORARY, *_LIMITS, *_OWN)):
            strange.append(f"{event} {path}")


def _is_called_by(package: str) -> bool:
    """Tell whether code of a package is at work."""
    frame = sys._getframe()
    while frame and f"/{package}/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def _reset_peak() -> float:
    """Forget the peak memory so far, and return what is in use, in megabytes."""
    pa.default_memory_pool().release_unused()
    forget_peak()
    return peak()


def _under_strace(originals: list[Path], what: str) -> Row:
    """Try the tricks in one process, while the system tells what is opened and changed, whoever does it."""
    if shutil.which("strace") is None:
        return {"what": what, "not_run": "strace is not installed"}
    root = originals[0].parent / "traced"
    places = []
    for original in originals:
        for i, mutate in enumerate(_tricks(original)):
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
    readable = (*(f"{place}/" for place in places), *_LIMITS, *_OWN)
    outcomes += [line for line in calls if _is_strange(line, readable)]
    return _row(what, outcomes, calls=len(calls)) | {"tried": len(places)}


def _is_strange(line: str, readable: tuple[str, ...]) -> bool:
    """Tell whether a line of strace is more than a look, a file opened to be read, or a temporary file."""
    call = re.match(r"(?:\d+ +)?(?:<\.\.\. )?([a-z_]\w*)", line)
    if call is None or _LOOKS.fullmatch(call[1]):
        return False
    # Each path with the folder that it begins in, and what was opened in the end, through whatever links.
    paths = re.findall(r'(?:<([^<>]*)>, )?"((?:[^"\\]|\\.)*)"', line)
    paths += re.findall(r" = \d+<()(/[^>]*)>", line)
    found = [os.path.normpath(ROOT / folder / path) + "/" for folder, path in paths]
    # The rest of a call that another thread interrupted says no more how; its beginning did.
    is_reading = re.search(r" resumed>|O_RDONLY(?!.*O_(CREAT|TRUNC))", line)
    allowed = (_TEMPORARY, *(readable if is_reading else ()))
    return not _TOUCHES.fullmatch(call[1]) or not all(
        re.sub(r"^/proc/\d+/", "/proc/self/", path).startswith(allowed) for path in found
    )


def use_all(originals: list[str], marks: list[str], places: list[str]) -> None:
    """Use folders that must be refused, after all that is imported is there, and a mark in the log of files."""
    for folder in originals:
        use(Path(folder))
    Path(marks[0]).exists()
    print(json.dumps([_used(Path(place), must_refuse=True) for place in places]))


if __name__ == "__main__":
    harness.main("artefacts", __doc__, run)
