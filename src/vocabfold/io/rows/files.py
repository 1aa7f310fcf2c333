"""Paths -> the files they mean and their format; nothing but names and Parquet footers is read here."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vocabfold.errors import InputError
from vocabfold.support import checks

if TYPE_CHECKING:  # names are checked before anything heavy is loaded
    import pyarrow as pa

PARQUET, CSV, TSV, JSON = "Parquet", "CSV", "TSV", "JSON lines"
_FORMATS = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".csv": CSV,
    ".tsv": TSV,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".json": JSON,
}
_COMPRESSIONS = (".gz", ".zst")


def are_paths(data: object) -> bool:
    """Tell whether data are given by a path or a list of paths."""
    return all(
        isinstance(path, str | os.PathLike) for path in (data if isinstance(data, list | tuple) else [data])
    )


def find(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that a path, a pattern, a folder of Parquet files or a list of these means.

    The files of a pattern or folder are sorted by name; those of a list come in its order.
    """
    if isinstance(given, str | os.PathLike):
        given = [given]
    if not given:
        raise InputError("the list of files is empty; give at least one.")
    files = [file for path in given for file in _find_one(os.fspath(path))]
    seen: set[Path] = set()
    for file in files:
        checks.spelled(file)
        if file.resolve() in seen:
            raise InputError(f"{file} is given twice; its rows would count twice.")
        seen.add(file.resolve())
    return files


def format_of(files: Sequence[Path], *, text: str | None = None) -> str:
    """Return the format of all the files, by the ends of their names; `text` is that of all but Parquet."""
    formats: dict[str, Path] = {}
    for file in files:
        name = _unpacked(file)
        found = _FORMATS.get(Path(name).suffix.lower())
        if found != PARQUET and text:
            found = text
        if found is None or (found == PARQUET and name != file.name):
            raise InputError(
                f"cannot tell the format of {file} from its name; it must end in .parquet, .csv, .tsv or "
                ".jsonl, and all but .parquet may be followed by .gz or .zst."
            )
        formats.setdefault(found, file)
    if len(formats) > 1:
        (one, file), (other, other_file) = list(formats.items())[:2]
        raise InputError(f"{file} is {one} and {other_file} is {other}; give files of one format.")
    return next(iter(formats))


def bare_name(file: Path) -> str:
    """Return the name of a file without the endings for format and compression."""
    return Path(_unpacked(file)).stem


def _unpacked(file: Path) -> str:
    return file.stem if file.suffix.lower() in _COMPRESSIONS else file.name


def footer(file: Path) -> tuple[pa.Schema, int]:
    """Return the columns and the number of rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            return opened.schema_arrow, opened.metadata.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names may not be UTF-8
        raise InputError(f"{file} is not a readable Parquet file: {_first_line(error)}") from error


def _find_one(given: str) -> list[Path]:
    if not given:
        raise InputError("the path is empty; give a file, a pattern or a folder.")
    if "://" in given:
        raise InputError(f"{given} is a URL, which cannot be read yet; copy the files to this machine first.")
    try:
        return _on_disk(given, Path(given).expanduser())
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # too long, or with NUL, or an unknown home
        raise InputError(f"{given[:100]!r} cannot be read: {error.args[-1]}.") from error


def _on_disk(given: str, path: Path) -> list[Path]:
    if path.is_dir():
        for noun in ("codebook", "counts"):
            if (path / f"{noun}.json").exists():
                raise InputError(f"{given} holds {'a ' * (noun == 'codebook')}{noun}, not rows.")
        files = sorted(
            file
            for file in path.rglob("*")
            if file.suffix.lower() in (".parquet", ".pq")
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )
        if not files:
            raise InputError(
                f"the folder {given} holds no Parquet files; give a pattern such as {given}/*.csv."
            )
        return files
    if path.exists():
        if not path.is_file():  # a pipe could be read once only, and a device may have no end
            raise InputError(f"{given} is not a plain file; write the rows to a file first.")
        if not os.access(path, os.R_OK):
            raise InputError(f"{given} cannot be read; check its permissions.")
        return [path]
    if glob.has_magic(given):
        names = glob.glob(os.path.expanduser(given), recursive=True)
        files = sorted(Path(name) for name in names if os.path.isfile(name))
        if not files:
            raise InputError(f"no file matches {given!r}.")
        return files
    raise InputError(f"there is no file {given!r}.")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".") + "."
