"""The header of a folder: one JSON object that ends with its own checksum, lists its files, and is not trusted.

A header with a wrong checksum is not parsed. Only plain files are opened, and none through a link.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vocabfold.errors import CodebookError

MAX_BYTES = 2**28
FILE = re.compile(r"[0-9]{3,}-[0-9a-f]{16}\.parquet")
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BEGIN = re.compile(rb'{\s*"format": "(vocabfold \w+)",\s*"version": (\d{1,9})\b')
_END = re.compile(rb'  "sha256": "([0-9a-f]{64})"\n}\n')

REMEDY = "; restore the folder from a copy, or create it again"  # if it is damaged

Json = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """What a kind of folder is called, and the version that this release writes."""

    noun: str
    header: str
    version: int = 2

    @property
    def format(self) -> str:
        """What the header says that it is."""
        return f"vocabfold {self.header.removesuffix('.json')}"


CODEBOOK = Layout("codebook", "codebook.json")
COUNTS = Layout("table of counts", "counts.json")


def saved_in(folder: Path) -> str | None:
    """Return what is saved in a folder, in words; None, if nothing is."""
    return next((layout.noun for layout in (CODEBOOK, COUNTS) if (folder / layout.header).is_file()), None)


def checksummed(header: Mapping[str, Any]) -> bytes:
    """Return a JSON object as bytes, its own sha256 in the last line."""
    text = json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False)
    body = text.removesuffix("\n}").encode() + b",\n"
    return body + f'  "sha256": "{sha256(body)}"\n}}\n'.encode()


def parse(file: Path, content: bytes, layout: Layout) -> Json:
    """Return the header if its checksum is right and its version is this one or older; parse no other."""
    begin = _BEGIN.match(content)
    if not begin or begin[1].decode() != layout.format:
        raise CodebookError(f"{file} is damaged, or not the header of a {layout.noun}.")
    if int(begin[2]) > layout.version:
        raise CodebookError(
            f"{file} has format version {int(begin[2])}; this release reads up to {layout.version}: "
            "upgrade vocabfold."
        )
    check_checksum(file, content)
    try:
        header = json.loads(content)
        if rb"\ud" in content.lower():  # perhaps halves of characters, which no text can hold
            json.dumps(header, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CodebookError(f"{file} is not valid: it is not JSON.") from error
    return dict(header)


def check_checksum(file: Path, content: bytes, remedy: str = REMEDY) -> None:
    """Refuse JSON whose last line is not the sha256 of all before it."""
    end = _END.search(content, max(0, len(content) - 128))
    if not end or end.end() < len(content) or sha256(content[: end.start()]) != end[1].decode():
        raise CodebookError(f"{file} is damaged or was changed by hand: its sha256 does not match{remedy}.")


def entries(file: Path, header: Json) -> Iterator[Json]:
    """Yield the files that a header lists, each once; their names cannot lead out of the folder."""
    seen = set()
    try:
        for column in header["columns"]:
            for entry in column["files"]:
                kinds = {"name": str, "rows": int, "bytes": int, "sha256": str}
                if not all(type(entry[key]) is kind for key, kind in kinds.items()):
                    raise TypeError
                if not FILE.fullmatch(entry["name"]) or entry["name"] in seen:
                    raise ValueError
                seen.add(entry["name"])
                yield entry
    except (KeyError, TypeError, ValueError):
        raise CodebookError(f"{file} is not valid: its list of files cannot be read.") from None


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a plain file of a folder; a link may lead out of it, and a pipe may never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _PLAIN)
    except FileNotFoundError as error:
        raise CodebookError(f"{path} is missing{REMEDY}.") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_plain(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or path.is_symlink():
        os.close(descriptor)
        raise _not_plain(path)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _not_plain(path: Path) -> CodebookError:
    return CodebookError(
        f"{path} is a link, a folder or a device, but only plain files are read; replace it with the file "
        "itself."
    )


def content(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a header, or of the provenance beside it."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise CodebookError(f"{path} is larger than {most:,} bytes, so it is not read.")
        return file.read(most)


def sha256(content: bytes) -> str:
    """Return the sha256 of some bytes as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
