"""Data and `out` -> what will be read and where it will be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vocabfold.errors import InputError, argument
from vocabfold.io.engines import spark
from vocabfold.io.folders import headers
from vocabfold.io.rows import files, frames, writing


def check_out(data: Any, out: str | os.PathLike[str] | None, preset: str | None, *, overwrite: bool) -> None:
    """Refuse an `out` that could not be written, before the work is done."""
    if spark.is_frame(data):
        if out is not None:
            raise InputError(
                "a Spark frame is encoded to a Spark frame; leave out= away, and write the result with Spark."
            )
        if preset is not None:
            raise InputError("is for text files; a Spark frame has its own names and types.", argument="preset")
        return
    if out is None:
        check_frame(data)
        return
    for _, target in jobs(data, out, preset):
        writing.check_place(target, writing.place(out), overwrite=overwrite)


def check_frame(data: Any) -> None:
    """Refuse data that is not a frame when there is no `out` to write to."""
    if not frames.is_frame(data):
        raise InputError(
            f"is required for {type(data).__name__} input, e.g. {argument('out', 'ids.parquet')} (only frames "
            "and Arrow tables are returned in memory).",
            argument="out",
        )


def jobs(data: Any, out: str | os.PathLike[str], preset: str | None) -> list[tuple[Any, Path]]:
    """Return pairs of data and target: all data to one file, or each file to one of the same name."""
    if saved := headers.saved_in(writing.place(out)):
        raise InputError(f"{out} is the folder of a {saved}; give another place for rows.")
    is_files = files.are_paths(data)
    read = files.find(data) if is_files else []
    target = writing.place(out)
    if not (os.fspath(out).endswith(("/", os.sep)) or target.is_dir()):
        found = [(data, target)]
    elif not is_files:
        raise InputError(
            f"{out} is a folder, which can take only files; give a file to write {type(data).__name__} to."
        )
    else:
        paths = [Path(os.path.abspath(file)) for file in read]
        root = os.path.commonpath([path.parent for path in paths])
        names = [_renamed(path.relative_to(root), preset) for path in paths]
        firsts: dict[Path, Path] = {}
        for file, name in zip(read, names, strict=True):
            twin = firsts.setdefault(name, file)
            if twin is not file:
                raise InputError(f"{twin} and {file} would both become {target / name}; rename one of them.")
        found = [(file, target / name) for file, name in zip(read, names, strict=True)]
    inputs = {file.resolve() for file in read}
    for _, path in found:
        writing.format_of(path)
        if path.resolve() in inputs:
            raise InputError(f"{path} is both input and output; write the result to another file.")
    return found


def _renamed(file: Path, preset: str | None) -> Path:
    """Return the name of the output for a file; formats that cannot be written become Parquet."""
    if files.format_of([file], text=preset) in writing.FORMATS:
        return file
    return file.with_name(files.bare_name(file) + ".parquet")
