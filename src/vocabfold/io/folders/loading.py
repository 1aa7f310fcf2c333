"""Folder -> its header, files and origin: every byte is checked before any of it is used.

Folders may be replaced while they are read. So if anything is wrong and the header has changed by then, the
folder is read once more, with its new content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vocabfold.errors import CodebookError
from vocabfold.io.folders import headers, parquet_guard
from vocabfold.io.folders.places import PROVENANCE, absent, folder_at
from vocabfold.support import checks

_MAX_TRIES = 50
MAX_PROVENANCE = 2**23  # bytes


@dataclass(frozen=True)
class Origin:
    """What a folder was made from: names and fingerprints of rows. It is saved beside the header."""

    sources: tuple[str, ...] = ()
    fingerprints: tuple[tuple[str, ...], ...] = ()
    saved: str | None = None  # when, if it was


@dataclass(frozen=True)
class Loaded:
    """A folder whose bytes are those that its header lists."""

    folder: Path
    file: Path  # the header's
    header: headers.Json
    footers: Mapping[str, parquet_guard.Footer]  # of the files that the header lists
    origin: Origin

    def files(self, entries: Sequence[headers.Json], schema: pa.Schema) -> list[Path]:
        """Return the files of a column, which must have that schema, and as many rows as the header says."""
        paths = [self.folder / entry["name"] for entry in entries]
        for path, entry in zip(paths, entries, strict=True):
            # Spark declares some columns as never null, which is accepted.
            if self.footers[entry["name"]] != (entry["rows"], schema.names, schema.types):
                rows = checks.number(entry["rows"], "row")
                raise CodebookError(f"{path} is not valid: it must hold {rows} of {', '.join(schema.names)}.")
        if not paths:
            raise CodebookError(f"{self.folder} is not valid: a column has no files.")
        return paths


def load_folder(path: str | os.PathLike[str], layout: headers.Layout) -> Loaded:
    """Read the header of a folder, and check every byte that it lists."""
    folder = folder_at(path)
    file = folder / layout.header
    for tries_left in reversed(range(_MAX_TRIES)):
        before = _stamp(file)
        try:
            if not os.path.lexists(file):
                raise absent(folder, layout)
            return _load(folder, layout)
        except (CodebookError, OSError) as error:
            # If the header has been replaced meanwhile, someone was saving.
            if tries_left and before is not None and _stamp(file) not in (before, None):
                continue
            if isinstance(error, CodebookError):
                raise
            raise CodebookError(f"{folder} cannot be read: {checks.reason(error)}.") from error
    raise AssertionError


def _load(folder: Path, layout: headers.Layout) -> Loaded:
    file = folder / layout.header
    content = headers.content(file)
    header = headers.parse(file, content, layout)
    entries = list(headers.entries(file, header))
    for entry in entries:
        _check_file(folder / entry["name"], entry)
    footers = {entry["name"]: parquet_guard.look(folder / entry["name"]) for entry in entries}
    return Loaded(folder, file, header, footers, _origin(folder, content))


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what distinguishes a file from one that took its place, even one of the same content."""
    try:
        found = file.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _check_file(path: Path, entry: headers.Json) -> None:
    with headers.opened(path) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        if n_bytes != entry["bytes"]:
            raise CodebookError(
                f"{path} has {n_bytes:,} bytes instead of {entry['bytes']:,}: it is damaged{headers.REMEDY}."
            )
        if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
            raise CodebookError(
                f"{path} is damaged or was changed by hand: its sha256 does not match{headers.REMEDY}."
            )


def _origin(folder: Path, header: bytes) -> Origin:
    """Return what a folder was made from, if that is saved; no id depends on it."""
    file = folder / PROVENANCE
    if not os.path.lexists(file):
        return Origin()
    content = headers.content(file, MAX_PROVENANCE)
    headers.check_checksum(file, content, "; the folder works without this file, so you may delete it")
    with suppress(ValueError, RecursionError, TypeError, KeyError):
        found = json.loads(content)
        if found["header"] == headers.sha256(header):
            fingerprints = tuple(map(_texts, found["fingerprints"]))
            return Origin(_texts(found["sources"]), fingerprints, str(found["saved"]))
    return Origin()


def _texts(found: list[Any]) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list) else ()
