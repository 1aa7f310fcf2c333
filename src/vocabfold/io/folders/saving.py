"""Content -> a folder on disk: a JSON header, and Parquet files that it lists with their sha256.

Files are named after their content, so a save adds files beside those that the old header lists, and one rename
puts the new header in its place: whatever happens in between, a reader finds the old content or the new. The
header ends with a sha256 of itself. `docs/format.md` is the specification.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

import vocabfold
from vocabfold.errors import CodebookError, InputError
from vocabfold.io.folders import headers
from vocabfold.io.folders.atomic import put_in_place
from vocabfold.io.folders.loading import MAX_PROVENANCE, Origin
from vocabfold.io.folders.locks import FOLDER, Held, open_locked
from vocabfold.io.folders.parquet_writer import Saver, unfinished
from vocabfold.io.folders.places import PROVENANCE, check_replaceable, folder_at, is_ours
from vocabfold.support import checks

_MAX_TRIES = 50  # to lock a folder that is removed meanwhile


@contextmanager
def saving(path: str | os.PathLike[str], layout: headers.Layout, origin: Origin) -> Iterator[Saver]:
    """Yield a saver for the files and, last, the header of a folder; at the end, they replace the old ones."""
    folder = folder_at(path)
    try:
        with _locked(folder):
            check_replaceable(folder, layout)
            saver = Saver(folder)
            try:
                yield saver
                header = _checksummed(saver, layout)
                _put(folder, header, layout.header)
            except BaseException:
                _remove(
                    folder, keep=_listed(folder, layout)
                )  # by the header in place, be it the old or the new
                raise
            _put_provenance(folder, header, origin)
            _remove(folder, keep={file["name"] for file in saver.files})
    except FileExistsError as error:
        raise InputError(f"{folder} is a file; give a folder.") from error
    except (OSError, pa.ArrowException) as error:
        if checks.is_disk_full(error):
            raise InputError(f"the disk is full; {folder} is unchanged.") from error
        raise InputError(f"{folder} cannot be written: {checks.reason(error)}.") from error


def _checksummed(saver: Saver, layout: headers.Layout) -> bytes:
    """Return the bytes of the header."""
    assert saver.header is not None, "a folder needs a header"
    header = headers.checksummed({"format": layout.format, "version": layout.version, **saver.header})
    if len(header) > headers.MAX_BYTES:
        raise InputError(
            f"the header of {saver.folder} would have {len(header):,} bytes, but at most "
            f"{headers.MAX_BYTES:,} are allowed; use fewer ids or columns."
        )
    return header


def _put_provenance(folder: Path, header: bytes, origin: Origin) -> None:
    """Write what the folder was made from, beside the header."""
    about = {
        "header": headers.sha256(header),  # the notes count only beside this header
        **asdict(origin),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "vocabfold": vocabfold.__version__,
    }
    notes = headers.checksummed(about)
    with suppress(OSError):
        if len(notes) <= MAX_PROVENANCE:
            _put(folder, notes, PROVENANCE)
        else:  # on tens of thousands of files: too long to be of use
            (folder / PROVENANCE).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make a folder, and keep other writers out of it; one that was new and stays empty is removed again.

    That happens under the lock, too: else it could be the folder of a writer who has just begun.
    """
    is_new = not folder.exists()
    held = _hold(folder)
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):
                folder.rmdir()  # if nothing was saved to it
        if held is not None:
            held.release()


def _hold(folder: Path) -> Held | None:
    """Make a folder, open and lock it, where folders can be opened."""
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return open_locked(folder, FOLDER) if os.name == "posix" else None
        except BlockingIOError as error:
            raise InputError(
                f"{folder} is being saved by another process; wait until it has finished, or save elsewhere."
            ) from error
        except (FileExistsError, FileNotFoundError):
            if os.path.lexists(folder) and not folder.is_dir():
                raise  # a file
            if not tries_left or not folder.parent.exists():
                raise
            # Someone who held the lock, or who gave up, has just removed it.
    raise AssertionError


def _put(folder: Path, content: bytes, name: str) -> None:
    """Write a file beside, and put it in its place."""
    path = folder / unfinished()
    path.write_bytes(content)
    put_in_place(path, folder / name)


def _listed(folder: Path, layout: headers.Layout) -> set[str]:
    """Return the files that the header in place lists, or all files if it cannot be read."""
    if not (folder / layout.header).exists():
        return set()
    try:
        file = folder / layout.header
        header = headers.parse(file, headers.content(file), layout)
        return {entry["name"] for entry in headers.entries(folder, header)}
    except (OSError, CodebookError):
        return {entry.name for entry in folder.iterdir() if headers.FILE.fullmatch(entry.name)}


def _remove(folder: Path, keep: set[str]) -> None:
    for entry in folder.iterdir():
        if is_ours(entry.name) and entry.name not in keep:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
