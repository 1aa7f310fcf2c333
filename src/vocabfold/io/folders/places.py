"""Paths that callers give -> folders to load from and to save to."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vocabfold.errors import CodebookError, InputError, either
from vocabfold.io.folders import headers
from vocabfold.support import checks

PROVENANCE = "provenance.json"
UNFINISHED = re.compile(r"unfinished-[0-9a-f]{16}")


def folder_at(path: str | os.PathLike[str]) -> Path:
    """Return the folder that a path names, whether it exists or not."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise InputError(f"expected the path of a folder, got {path!r}.")
    address = re.match(r"([A-Za-z][\w+.-]*)://", str(path))
    if address and address[1] != "file":
        raise InputError(
            f"{path} is not a folder: {address[1]} and other stores are not supported yet; give a folder (on "
            "Spark, one that the driver and the workers share)."
        )
    checks.spelled(path)
    try:
        folder = Path(str(path)[len("file://") :] if address else path).expanduser()
        folder.exists()
    except (OSError, RuntimeError) as error:  # a name that is too long, or an unknown home
        raise InputError(f"{str(path)[:100]!r} cannot be used: {error.args[-1]}.") from error
    return folder


def check_place(path: str | os.PathLike[str], layout: headers.Layout, *, overwrite: bool) -> None:
    """Refuse a folder that could not be saved to, or that holds anything, before the work is done."""
    folder = folder_at(path)
    checks.folder(folder.parent)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder.")
    if folder.is_dir():
        checks.folder(folder)
        if not overwrite and any(folder.iterdir()):
            raise checks.taken(folder)
        check_replaceable(folder, layout)


def check_replaceable(folder: Path, layout: headers.Layout) -> None:
    """Refuse a folder that holds files which vocabfold did not save."""
    names = {entry.name for entry in folder.iterdir()}
    strange = {name for name in names if not (is_ours(name) or name in (layout.header, PROVENANCE))}
    if strange or (layout.header not in names and PROVENANCE in names):
        raise InputError(
            f"{folder} holds {sorted(strange or names)[0]!r}, so it is not replaced; give a new or empty "
            f"folder, or one with a {layout.noun} that vocabfold saved."
        )


def is_ours(name: str) -> bool:
    """Tell whether a file, finished or not, was made by a save; the header is not among them."""
    return bool(headers.FILE.fullmatch(name) or UNFINISHED.fullmatch(name))


def absent(folder: Path, layout: headers.Layout) -> CodebookError:
    """Return the error for a folder that is missing or holds something else."""
    if not folder.exists():
        return CodebookError(f"there is no folder {str(folder)!r}.")
    if folder.is_file() and folder.name != layout.header:
        return CodebookError(f"{folder} is a file; a {layout.noun} is a folder.")
    if folder.name == layout.header:
        return CodebookError(f"{folder} is the header; give its folder, {str(folder.parent)!r}.")
    for other, remedy in (
        (headers.COUNTS, either("load it with vf.load_counts", "give it to 'vocabfold fit'")),
        (headers.CODEBOOK, either("load it with vf.load", "give it to 'vocabfold transform'")),
    ):
        if other is not layout and (folder / other.header).exists():
            return CodebookError(f"{folder} holds a {other.noun}; {remedy}.")
    return CodebookError(f"{folder} holds no {layout.noun}: there is no {layout.header} in it.")
