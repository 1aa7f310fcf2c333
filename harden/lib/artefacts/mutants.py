"""Saved folders, and everything that may be wrong with one: damage, lies, tricks."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib.corpus import ODD_JSON
from harden.lib.headers import checksummed

Mutant = Callable[[Path], None]  # changes a folder
Make = Callable[[Path], Iterable[Mutant]]
_ABSURD: list[Any] = [*ODD_JSON, -(2**63), -0.0, "\ud800", "/etc/passwd", "x" * 10**5, [*range(1000)]]


def saved_folders(folder: Path) -> list[Path]:
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


def flips(folder: Path, step: int) -> Iterator[Mutant]:
    """Flip single bits of all files."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for bit in range(0, 8 * len(content), step):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            yield _written(path.name, bytes(changed))


def cuts(folder: Path, step: int) -> Iterator[Mutant]:
    """Cut all files off."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        yield from (_written(path.name, content[:end]) for end in range(0, len(content), step))


def swaps(folder: Path) -> Iterator[Mutant]:
    """Swap files, leave them out, double them, let them grow."""
    # Without the notes on where it comes from a folder is as good.
    files = [path for path in sorted(folder.iterdir()) if path.name != "provenance.json"]
    for path in files:
        yield lambda place, path=path: (place / path.name).unlink()
        yield _written(path.name, path.read_bytes() + b"\0")
        yield _written(path.name, 2 * path.read_bytes())
        for other in files:
            if other != path:
                yield _written(path.name, other.read_bytes())


def header_lies(folder: Path, n: int) -> Iterator[Mutant]:
    """Replace up to three nodes of the header by something absurd, or leave them out, with a valid checksum."""
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
        _write_checksummed(place, header)

    return (partial(lie, seed=seed) for seed in range(n))


def _nodes(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all places of a JSON value, but for what says which format it is."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        if key not in ("format", "version", "sha256"):
            yield node, key
            yield from _nodes(node[key])


def parquet_lies(folder: Path, n: int) -> Iterator[Mutant]:
    """Change some bytes of a Parquet file, in its pages or its footer, with valid checksums."""
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
        _write_checksummed(place, changed)

    return (partial(lie, seed=seed) for seed in range(n))


def tricks(folder: Path) -> Iterator[Mutant]:
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
            _write_checksummed(place, changed)

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
        yield lambda place, wide=wide: _write_checksummed(
            place, json.loads(json.dumps(header)) | {"columns": wide}
        )


def bombs(folder: Path, *, small: bool) -> Iterator[Mutant]:
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
        _write_checksummed(place, changed)

    return lie


def _header(folder: Path) -> Path:
    return folder / ("codebook.json" if (folder / "codebook.json").exists() else "counts.json")


def _written(name: str, content: bytes) -> Mutant:
    return lambda place: (place / name).write_bytes(content) and None


def _put(place: Path, entry: Any, content: bytes) -> None:
    (place / entry["name"]).write_bytes(content)
    entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def _write_checksummed(place: Path, header: Any) -> None:
    """Write a header with the digest and the sha256 that it asks for."""
    path = _header(place)
    path.write_bytes(checksummed(header, is_book=path.name == "codebook.json"))
