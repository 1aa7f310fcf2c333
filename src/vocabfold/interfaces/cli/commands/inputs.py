"""Rows or folders of counts, as several verbs take them -> Counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vocabfold as vf
from vocabfold.errors import InputError, flag

if TYPE_CHECKING:
    from vocabfold.counts.counts import Counts


def first_given(values: dict[str, Any]) -> str | None:
    """Return the first option that was given."""
    return next((flag(name) for name, value in values.items() if value), None)


def are_counts(data: list[str]) -> list[bool]:
    """Tell of each path whether it is a folder of counts."""
    from vocabfold.io.folders.headers import COUNTS

    return [os.path.exists(os.path.join(path, COUNTS.header)) for path in data]  # a name may be too long


def check_there(data: list[str]) -> None:
    """Refuse paths that are not there, before anything heavy is loaded: names are easily mistyped."""
    from vocabfold.io.rows import files

    for path in () if any(are_counts(data)) else data:
        if not os.path.exists(path):  # it may be a pattern
            files.find(path)


def counted(data: list[str], label: str | None, of_rows: dict[str, Any], memory: str | None) -> Counts:
    """Return the counts of rows; or those of folders that hold counts."""
    is_counted = are_counts(data)
    if not any(is_counted):
        options_of_rows = {name: value for name, value in of_rows.items() if value is not None}
        return vf.count(data, label, **options_of_rows, memory_limit=memory)
    if not all(is_counted):
        odd = data[is_counted.index(False)]
        if not os.path.exists(odd):
            raise InputError(
                f"there is no {odd}; {data[is_counted.index(True)]} holds counts: give folders of counts."
            )
        raise InputError(f"{odd} holds no counts, but other folders do; count it first, or give all as rows.")
    if given := first_given(of_rows):
        raise InputError(f"{given} applies to rows, but {data[0]} holds counts: use it with 'vocabfold count'.")
    counts = load_counts(data, memory)
    if label not in (None, counts.label):
        raise InputError(
            f"{data[0]} was counted with the label {counts.label!r}, not {label!r}; leave --label out, or "
            "count again."
        )
    return counts


def load_counts(paths: list[str], memory: str | None) -> Counts:
    """Return the sum of saved counts, each given once."""
    seen: set[Path] = set()
    for path in paths:
        if Path(path).resolve() in seen:
            raise InputError(f"{path} is given twice; its rows would count twice.")
        seen.add(Path(path).resolve())
    first, *others = (vf.load_counts(path, memory_limit=memory) for path in paths)
    return sum(others, first)
