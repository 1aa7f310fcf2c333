"""A Spark frame -> Source: its rows stay where they are, and its columns are numbered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vocabfold.errors import InputError, argument
from vocabfold.io.engines.spark import (
    NAME,
    SPELLINGS,
    Cluster,
    Frame,
    explained,
    fingerprint,
    kind_of,
    numbered,
)
from vocabfold.io.rows.source import Column, Rows, Source
from vocabfold.support import checks


def source(cluster: Cluster, frame: Frame) -> Source:
    """Return the rows of a frame."""
    with explained():
        names, types = zip(*frame.dtypes, strict=True) if frame.columns else ((), ())

    def open(wanted: Sequence[str], numbered_rows: bool, kinds: Mapping[str, str]) -> Rows:
        if numbered_rows:
            raise InputError(
                "rows of a Spark frame have no numbers by which to assign them to folds; give a column with "
                f"the fold of each row as {argument('fold_column', ...)}."
            )
        return Rows(cluster.table(numbered(frame)), columns(names, types, wanted), "")

    def stream(*_: Any) -> Any:
        raise AssertionError("Spark frames are joined where they are")

    if not names:
        raise InputError(f"{NAME} has no columns.")
    checks.distinct(names, NAME)
    return Source(NAME, names, open, stream, lambda _: (fingerprint(frame),))


def columns(names: Sequence[str], types: Sequence[str], wanted: Iterable[str]) -> dict[str, Column]:
    """Return the wanted columns of a frame, with their kinds."""
    found = {}
    for name in wanted:
        i = list(names).index(name)
        kind = kind_of(types[i])
        sql = SPELLINGS[kind].read.format(f"c{i}") if kind else "NULL"
        found[name] = Column(kind, sql, kind or _described(types[i]))
    return found


def _described(type: str) -> str:
    return "timestamp (with a time zone; timestamp_ntz has none)" if type == "timestamp" else type
