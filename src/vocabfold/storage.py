"""Folders on disk: a JSON header, and Parquet files that it lists with their sha256.

Files are named after their content, so a save adds files beside those that the old header lists, and one rename
puts the new header in its place: whatever happens in between, a reader finds the old content or the new. The
header ends with a sha256 of itself. `docs/format.md` is the specification.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold
from vocabfold import checks, headers, unpacking
from vocabfold.errors import CodebookError, InputError
from vocabfold.locks import lock, unlock

_SAMPLE = 2**11  # rows of the first row group, by which the size of the others is chosen:
_ROW_GROUP, _GROUP_BYTES = 2**18, 2**25  # at most so many rows, and about so many bytes of text
_PIECE = 2**8  # rows that are copied at a time
_MAX_TRIES = 50  # to load a folder that is replaced meanwhile, or to lock one that is removed
_PROVENANCE, _MAX_PROVENANCE = "provenance.json", 2**23  # bytes
_UNFINISHED = re.compile(r"unfinished-[0-9a-f]{16}")

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Origin:
    """What a folder was made from: names, and what its rows are known by. It stands outside of the header."""

    sources: tuple[str, ...] = ()
    fingerprints: tuple[tuple[str, ...], ...] = ()
    saved: str | None = None  # when, if it was


class Saver:
    """A folder that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[headers.Json] = []

    def add(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> headers.Json:
        """Write a table to a file, and return its entry in the header."""
        is_text = schema.field("value").type == pa.string()
        n_rows = n_bytes = 0
        path = self.folder / _unfinished()
        with pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name != "value"],
            column_encoding={"value": "DELTA_BYTE_ARRAY"} if is_text else None,
            data_page_size=unpacking.PAGE if is_text else None,
        ) as writer:
            for group in _row_groups(batches):
                n_rows, n_bytes = n_rows + group.num_rows, n_bytes + group.nbytes
                writer.write_table(group, row_group_size=group.num_rows or 1)
        (path,) = self._readable([path], n_bytes)
        return self._listed(path, n_rows)

    def _readable(self, paths: list[Path], n_bytes: int) -> list[Path]:
        """Return the files of a column, which hold so many bytes, so that nobody takes them for bombs."""
        return paths if unpacking.are_readable(paths, n_bytes) else [self._unpacked(path) for path in paths]

    def _unpacked(self, path: Path) -> Path:
        """Return the same file without compression and encodings."""
        plain = self.folder / _unfinished()
        with (
            pq.ParquetFile(path) as packed,
            pq.ParquetWriter(
                plain,
                packed.schema_arrow,
                compression="none",
                use_dictionary=False,
                data_page_size=unpacking.PAGE,
            ) as writer,
        ):
            for group in _row_groups(packed.iter_batches(_PIECE)):
                writer.write_table(group, row_group_size=group.num_rows)
        path.unlink()
        return plain

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """Yield a folder for files that someone else writes; it is removed in the end."""
        folder = self.folder / _unfinished()
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def take(self, paths: list[Path]) -> list[headers.Json]:
        """Take in the files of a column that someone else wrote aside, and return their entries."""
        footers = [pq.read_metadata(path) for path in paths]
        rows = [footer.num_rows for footer in footers]
        groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
        n_bytes = sum(group.total_byte_size for group in groups) + unpacking.ROW_BYTES * sum(rows)
        return list(map(self._listed, self._readable(paths, n_bytes), rows))

    def _listed(self, path: Path, n_rows: int) -> headers.Json:
        number = f"{len(self.files):03}"
        name, n_bytes, digest = _finish(path, self.folder, lambda digest: f"{number}-{digest[:16]}.parquet")
        self.files.append({"name": name, "rows": n_rows, "bytes": n_bytes, "sha256": digest})
        return self.files[-1]


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Regroup batches into tables of one size: engines cut them as they like, and bytes must not show it."""
    held: list[pa.RecordBatch] = []
    size = _SAMPLE
    for batch in batches:
        held.append(batch)
        while sum(part.num_rows for part in held) >= size:
            table = pa.Table.from_batches(held)
            yield table.slice(0, size).combine_chunks()
            held = table.slice(size).to_batches()
            size = _group_size(table["value"].slice(0, size)) if size == _SAMPLE else size
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _group_size(first: pa.ChunkedArray) -> int:
    """Return how many rows make a row group, by the length of the first values: it has to fit into memory."""
    if not pa.types.is_string(first.type):
        return _ROW_GROUP
    import pyarrow.compute as pc  # slow to import, and readers do without

    n_bytes = pc.sum(pc.binary_length(first)).as_py() or 0
    return max(_SAMPLE, min(_ROW_GROUP, _SAMPLE * _GROUP_BYTES // max(n_bytes, 1)))


def save(
    path: str | os.PathLike[str], layout: headers.Layout, fill: Callable[[Saver], headers.Json], origin: Origin
) -> None:
    """Write a folder, replacing one of the same kind; `fill` adds the files and returns the header."""
    folder = _folder(path)
    try:
        with _locked(folder):
            _check_replaceable(folder, layout)
            _write(folder, layout, fill, origin)
    except FileExistsError as error:
        raise InputError(f"{folder} is a file; give a folder.") from error
    except (OSError, pa.ArrowException) as error:
        if checks.is_disk_full(error):
            raise InputError(f"the disk is full: {folder} is as it was before.") from error
        raise InputError(f"{folder} cannot be written: {checks.reason(error)}.") from error


def check_place(path: str | os.PathLike[str], layout: headers.Layout, *, overwrite: bool) -> None:
    """Refuse a folder that could not be saved to, or that holds anything, before the work is done."""
    folder = _folder(path)
    checks.folder(folder.parent)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder.")
    if folder.is_dir():
        checks.folder(folder)
        if not overwrite and any(folder.iterdir()):
            raise checks.taken(folder)
        _check_replaceable(folder, layout)


def load(
    path: str | os.PathLike[str], layout: headers.Layout, build: Callable[[Path, headers.Json, Origin], Loaded]
) -> Loaded:
    """Return what `build` makes of a folder, its header and its origin; every byte is the one written."""
    folder = _folder(path)
    file = folder / layout.header
    for tries_left in reversed(range(_MAX_TRIES)):
        before = None
        try:
            if not os.path.lexists(file):
                raise _absent(folder, layout)
            before = _stamp(file)
            content = headers.content(file)
            header = headers.parse(file, content, layout)
            for entry in headers.entries(file, header):
                _check_file(folder / entry["name"], entry)
            return build(folder, header, _origin(folder, content))
        except (CodebookError, OSError) as error:
            # If the header has been replaced meanwhile, someone was saving: what counts is the new one.
            if tries_left and before is not None and _stamp(file) not in (before, None):
                continue
            if isinstance(error, CodebookError):
                raise
            raise CodebookError(f"{folder} cannot be read: {checks.reason(error)}.") from error
    raise AssertionError


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what a file is told by from one that took its place, even one of the same content."""
    try:
        found = file.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _write(folder: Path, layout: headers.Layout, fill: Callable[[Saver], headers.Json], origin: Origin) -> None:
    """Add the new files, put the new header in its place, remove the old files."""
    saver = Saver(folder)
    try:
        header = headers.signed({"format": layout.format, "version": layout.version, **fill(saver)})
        if len(header) > headers.MAX_BYTES:
            raise InputError(
                f"the header of {folder} would have {len(header):,} bytes, and {headers.MAX_BYTES:,} are "
                "allowed; give fewer ids or columns."
            )
        _put(folder, header, layout.header)
    except BaseException:
        _remove(folder, keep=_listed(folder, layout))  # by the header in place, be it the old or the new
        raise
    about = {
        "header": headers.sha256(header),  # of another header, it would not count
        **asdict(origin),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "vocabfold": vocabfold.__version__,
    }
    notes = headers.signed(about)
    with suppress(OSError):
        if len(notes) <= _MAX_PROVENANCE:
            _put(folder, notes, _PROVENANCE)
        else:  # on tens of thousands of files: nobody would read them
            (folder / _PROVENANCE).unlink(missing_ok=True)
    _remove(folder, keep={file["name"] for file in saver.files})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make a folder, and keep other writers out of it; one that was new and stays empty is removed again.

    That happens under the lock, too: else it could be the folder of a writer who has just begun.
    """
    is_new = not folder.exists()
    descriptor = _lock(folder)
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):
                folder.rmdir()  # if nothing was saved to it
        if descriptor is not None:
            unlock(descriptor)
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Make a folder, open and lock it, where there are locks."""
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.name != "posix":
                return None  # where folders cannot be opened
            descriptor = os.open(folder, os.O_RDONLY)
        except (FileExistsError, FileNotFoundError):
            if not tries_left or os.path.lexists(folder) or not folder.parent.exists():
                raise
            continue  # someone who gave up has just removed it
        try:
            lock(descriptor)
            # Whoever held the lock before may have removed the folder.
            if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise InputError(
                f"{folder} is being saved by someone else; wait for that, or save elsewhere."
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise InputError(f"{folder} is being removed by someone else again and again; save elsewhere.")


def _folder(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise InputError(f"the path of a folder is needed, got {path!r}.")
    address = re.match(r"([A-Za-z][\w+.-]*)://", str(path))
    if address and address[1] != "file":
        raise InputError(
            f"{path} is not a folder: {address[1]} and other stores are not supported yet; give a folder, for "
            "Spark one that the driver and the workers share."
        )
    checks.spelled(path)
    try:
        folder = Path(str(path)[len("file://") :] if address else path).expanduser()
        folder.exists()
    except (OSError, RuntimeError) as error:  # a name that is too long, or nobody's home
        raise InputError(f"{str(path)[:100]!r} cannot be used: {error.args[-1]}.") from error
    return folder


def _absent(folder: Path, layout: headers.Layout) -> CodebookError:
    """Say why a folder is not what was asked for."""
    if not folder.exists():
        return CodebookError(f"there is no folder {str(folder)!r}.")
    if folder.is_file() and folder.name != layout.header:
        return CodebookError(f"{folder} is a file; a {layout.noun} is a folder.")
    if folder.name == layout.header:
        return CodebookError(f"{folder} is the header; give its folder, {str(folder.parent)!r}.")
    for other, remedy in ((headers.COUNTS, "vf.load_counts"), (headers.CODEBOOK, "vf.load")):
        if other is not layout and (folder / other.header).exists():
            return CodebookError(f"{folder} holds a {other.noun}; load it with {remedy}.")
    return CodebookError(f"{folder} holds no {layout.noun}: there is no {layout.header} in it.")


def _unfinished() -> str:
    return f"unfinished-{secrets.token_hex(8)}"


def _put(folder: Path, content: bytes, name: str) -> None:
    """Write a file beside, sync it, and rename it."""
    path = folder / _unfinished()
    path.write_bytes(content)
    _finish(path, folder, lambda _: name)


def _finish(path: Path, folder: Path, name: Callable[[str], str]) -> tuple[str, int, str]:
    """Sync a file, and rename it into a folder, to the name that its sha256 gives."""
    with path.open("rb+") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    n_bytes = path.stat().st_size
    os.replace(path, folder / name(digest))
    _sync_folder(folder)
    return name(digest), n_bytes, digest


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _check_replaceable(folder: Path, layout: headers.Layout) -> None:
    """Refuse a folder with anything in it that is not ours."""
    names = {entry.name for entry in folder.iterdir()}
    strange = {name for name in names if not (_is_ours(name) or name in (layout.header, _PROVENANCE))}
    if strange or (layout.header not in names and _PROVENANCE in names):
        raise InputError(
            f"{folder} holds {sorted(strange or names)[0]!r}, so it is not replaced; give a folder that is new "
            f"or empty, or one with a {layout.noun} that vocabfold saved."
        )


def _listed(folder: Path, layout: headers.Layout) -> set[str]:
    """Return the files that the header in place lists: all, if it cannot be read."""
    if not (folder / layout.header).exists():
        return set()
    try:
        file = folder / layout.header
        header = headers.parse(file, headers.content(file), layout)
        return {entry["name"] for entry in headers.entries(folder, header)}
    except (OSError, CodebookError):
        return {entry.name for entry in folder.iterdir() if headers.FILE.fullmatch(entry.name)}


def _is_ours(name: str) -> bool:
    return bool(headers.FILE.fullmatch(name) or _UNFINISHED.fullmatch(name))


def _remove(folder: Path, keep: set[str]) -> None:
    for entry in folder.iterdir():
        if _is_ours(entry.name) and entry.name not in keep:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


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


def tables(folder: Path, entries: Sequence[headers.Json], schema: pa.Schema) -> list[Path]:
    """Return the files of a column, after a look at their footers and the sizes of their pages."""
    paths = [folder / entry["name"] for entry in entries]
    for path, entry in zip(paths, entries, strict=True):
        # Spark says of some columns that they are never missing, which is as good.
        if unpacking.look(path) != (entry["rows"], schema.names, schema.types):
            raise CodebookError(
                f"{path} is not valid: it must hold {entry['rows']:,} rows of {', '.join(schema.names)}."
            )
    if not paths:
        raise CodebookError(f"{folder} is not valid: a column has no files.")
    return paths


def _origin(folder: Path, header: bytes) -> Origin:
    """Return what a folder was made from, if it says so: no id depends on it."""
    file = folder / _PROVENANCE
    if not os.path.lexists(file):
        return Origin()
    content = headers.content(file, _MAX_PROVENANCE)
    headers.check_signature(file, content, "; the folder is as good without this file, so it may be removed")
    with suppress(ValueError, RecursionError, TypeError, KeyError):
        found = json.loads(content)
        if found["header"] == headers.sha256(header):
            fingerprints = tuple(map(_texts, found["fingerprints"]))
            return Origin(_texts(found["sources"]), fingerprints, str(found["saved"]))
    return Origin()


def _texts(found: list[Any]) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list) else ()
