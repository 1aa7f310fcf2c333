"""Damaged and hostile artefacts: mutated codebooks and counts are loaded and used.

    damage    every single bit of every file flipped, every file cut off at every byte, files swapped, missing,
              doubled, grown: all must be refused. Nobody has signed for these.
    lies      what somebody makes who knows the format and signs for it: any field of the header replaced by
              something absurd, bytes of Parquet files changed at random. These must be refused, or be of use:
              ids within their range, and no other exception than ours.
    tricks    names that lead out of the folder, links, pipes, devices, deep and wide JSON, compressed pages and
              encodings that unpack to hundreds of megabytes, footers that lie about sizes: all must be refused.

Everything runs in processes of their own, so that a crash is noticed, with an audit hook that finds code that
is compiled or run, processes, sockets, and files opened outside of the folder. What C++ opens, it does not
see; where strace is installed, the tricks are tried under it once more. The figures: refused, used, failed, the
longest time of the processor for one, and by how many megabytes the memory of the process grew at most.
"""

import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from benchmarks.measure import Row
from harden import record

LONGEST, MOST_MEMORY = 1.0, 256.0  # seconds and megabytes that one may take
_LIMIT = "256MB"  # memory of the engine
_AT_A_TIME, _TOGETHER = 4_000, 50  # mutants per process, and those whose memory is measured together
_ROOT = Path(__file__).parents[1]
_PATIENCE = 600  # seconds after which a process hangs

Mutant = Callable[[Path], None]  # changes a folder
_ABSURD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        2**31,
        2**53,
        2**63,
        10**30,
        -(2**63),
        0.0,
        -0.0,
        0.5,
        1e308,
        -1e308,
        1e-320,
    ),
    *(
        "",
        "x",
        "\0",
        "\ud800",
        "../x",
        "/etc/passwd",
        "auto",
        "1",
        "x" * 10**5,
        [],
        {},
        [[]],
        [None],
        ["x"],
        [0, 0],
    ),
    *({"name": "x"}, [[[[[]]]]], list(range(1000))),
]


@dataclass
class Seen:
    """What the mutants of one process came to."""

    refused: int = 0
    used: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    megabytes: float = 0.0

    def row(self, what: str) -> Row:
        """Return the figures."""
        tried = self.refused + self.used + len(self.failures)
        first = {"first_failure": self.failures[0]} if self.failures else {}
        return {
            "what": what,
            "tried": tried,
            "refused": self.refused,
            "used": self.used,
            "failed": len(self.failures),
            "longest": self.seconds,
            "grown_mb": self.megabytes,
            **first,
        }


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
        refused: dict[str, Callable[[Path], Iterable[Mutant]]] = {
            "single bits flipped": partial(_flips, step=step),
            "cut off at every byte": partial(_cuts, step=step),
            "swapped, missing, doubled, grown": _swaps,
            "names, links, pipes, JSON": _tricks,
            "decompression bombs": partial(_bombs, small=small),
        }
        lies: dict[str, Callable[[Path], Iterable[Mutant]]] = {
            "lies in the header, signed for": partial(_header_lies, n=n),
            "bytes of Parquet, signed for": partial(_parquet_lies, n=n),
        }
        for what, make in (refused | lies).items():
            if record.is_wanted(what):
                yield _tried(originals, what, make, must_refuse=what in refused)
        if not small:
            yield from _under_strace(originals)


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


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.name != "provenance.json"]


def _flips(folder: Path, step: int) -> Iterator[Mutant]:
    for path in _files(folder):
        content = path.read_bytes()
        for bit in range(0, 8 * len(content), step):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            yield _written(path.name, bytes(changed))


def _cuts(folder: Path, step: int) -> Iterator[Mutant]:
    for path in _files(folder):
        content = path.read_bytes()
        yield from (_written(path.name, content[:end]) for end in range(0, len(content), step))


def _swaps(folder: Path) -> Iterator[Mutant]:
    files = _files(folder)
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
    outside = folder.parent / "outside.parquet"
    outside.write_bytes((folder / name).read_bytes())

    def named(given: Any) -> Mutant:
        def lie(place: Path) -> None:
            changed = json.loads(json.dumps(header))
            changed["columns"][0]["files"][0]["name"] = given
            _sign(place, changed)

        return lie

    for given in (
        *(
            "../outside.parquet",
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
            small = _varint(2 * 100).ljust(len(_varint(2 * size)), b"\0")
            yield _bomb(header, _padded(content, _varint(2 * size), small), n)
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
    """Write a header with the sha256 that it asks for."""
    header.pop("sha256", None)
    body = json.dumps(header, indent=2).removesuffix("\n}").encode() + b",\n"
    _header(place).write_bytes(body + f'  "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode())


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


def _tried(
    originals: list[Path],
    what: str,
    make: Callable[[Path], Iterable[Mutant]],
    *,
    must_refuse: bool = False,
) -> Row:
    """Return what the mutants of all folders came to, in processes that one after another are forked."""
    total = Seen()
    for original in originals:
        start = 0
        while True:
            seen, n = _in_a_fork(original, make, start, must_refuse)
            total = Seen(
                total.refused + seen.refused,
                total.used + seen.used,
                total.failures + seen.failures,
                max(total.seconds, seen.seconds),
                max(total.megabytes, seen.megabytes),
            )
            start += _AT_A_TIME
            if n < _AT_A_TIME:
                break
    if total.seconds > LONGEST or total.megabytes > MOST_MEMORY:
        total.failures.append(f"one took {total.seconds:.2f} s, or {total.megabytes:.0f} MB")
    return total.row(what)


def _in_a_fork(
    original: Path, make: Callable[[Path], Iterable[Mutant]], start: int, must_refuse: bool
) -> tuple[Seen, int]:
    """Try some of the mutants of a folder in a process that may crash."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            try:
                pipe.write(json.dumps(_try_all(original, make, start, must_refuse)))
            except BaseException:
                pipe.write(json.dumps([{"failures": [traceback.format_exc()]}, 0]))
            pipe.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if not said:
        return Seen(
            failures=[f"a process crashed within {_AT_A_TIME} mutants of {original.name} from {start} on"]
        ), 0
    fields, n = json.loads(said)
    return Seen(**fields), n


def _try_all(
    original: Path, make: Callable[[Path], Iterable[Mutant]], start: int, must_refuse: bool
) -> tuple[dict[str, Any], int]:
    seen = Seen()
    strange: list[str] = []
    watching = [""]
    sys.addaudithook(lambda event, args: _audited(event, args, watching[0], strange))
    place = original.parent / f"mutant-{os.getpid()}" / original.name
    shutil.copytree(original, place)
    contents = {path.name: path.read_bytes() for path in original.iterdir()}
    before, n = 0.0, 0
    for i, mutate in enumerate(islice(make(original), start, start + _AT_A_TIME), start):
        n += 1
        mutate(place)
        if n % _TOGETHER == 1 or n < _TOGETHER:  # it takes longer than a mutant
            before = _reset_peak()
        watching[0] = str(place)
        seconds, problem = _used(place, seen, must_refuse=must_refuse)
        watching[0] = ""
        problem = problem or "".join(strange[:1])
        strange.clear()
        if problem:
            seen.failures.append(f"mutant {i} of {original.name}: {problem}")
        seen.seconds = max(seen.seconds, seconds)
        seen.megabytes = max(seen.megabytes, _peak() - before)
        _restore(place, contents)
    shutil.rmtree(place.parent)
    return vars(seen), n


def _used(place: Path, seen: Seen, *, must_refuse: bool) -> tuple[float, str]:
    """Use a folder, and return how long it took, and what went wrong."""
    began = time.process_time()  # others may keep the machine busy
    problem = ""
    try:
        use(place)
        seen.used += not must_refuse
        problem = "it was not refused" * must_refuse
    except (vf.CodebookError, vf.InputError):
        seen.refused += 1
    except BaseException:
        problem = traceback.format_exc()[-700:]
    return time.process_time() - began, problem


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
    own = (sys.prefix, sys.base_prefix, str(_ROOT), "<frozen")
    is_imported = event == "exec" and args[0].co_filename.startswith(own)  # a part of Python, or of ours
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
        path = os.fsdecode(args[0])
        allowed = (place, tempfile.gettempdir() + "/vocabfold-", "/proc/", "/sys/", *own)
        if os.path.isabs(path) and not path.startswith(allowed):
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
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _under_strace(originals: list[Path]) -> Iterator[Row]:
    """Try the tricks in one process, while the system tells which files are opened, whoever does it."""
    what = "files outside of the folder, as the system sees them"
    if shutil.which("strace") is None:
        yield {"what": what, "not_run": "strace is not installed"}
        return
    root = originals[0].parent / "traced"
    places = []
    for original in originals:
        for i, mutate in enumerate(_tricks(original)):
            places.append(root / str(i) / original.name)
            shutil.copytree(original, places[-1])
            mutate(places[-1])
    log, mark = root / "strace.txt", root / "everything-is-imported"
    code = f"from harden import artefacts; artefacts.use_all({list(map(str, originals))}, {str(mark)!r}, "
    command = [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=open,openat,execve,connect,unlink,rename,mkdir",
        "-o",
        str(log),
    ]
    command += [sys.executable, "-c", f"{code}{list(map(str, places))})"]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    allowed = (str(root), tempfile.gettempdir() + "/vocabfold-", "/proc/", "/sys/", sys.prefix, sys.base_prefix)
    calls = log.read_text(errors="replace").partition(mark.name)[2].splitlines()
    done = [line for line in calls if " = -1 " not in line and "AT_FDCWD, " in line or "execve(" in line]
    strange = [
        line
        for line in done
        for path in re.findall(r'"([^"]*)"', line)[:1]
        if (path.startswith("/") and not path.startswith((*allowed, str(_ROOT)))) or "/outside.parquet" in path
    ]
    failures = [ended.stderr[-700:]] if ended.returncode else strange
    yield Seen(refused=len(places), failures=failures[:1]).row(what) | {"opened": len(done)}


def use_all(originals: list[str], mark: str, places: list[str]) -> None:
    """Use folders that must be refused, after all that is imported is there, and a mark in the log of files."""
    for original in originals:
        use(Path(original))
    Path(mark).touch()
    for place in places:
        with suppress(vf.CodebookError, vf.InputError):
            use(Path(place))


if __name__ == "__main__":
    record.main("artefacts", __doc__, run)
