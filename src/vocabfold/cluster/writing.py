"""A table on a cluster -> files of a folder, several per column, which the workers write.

The folder must be the same for the driver and the workers: on one machine, or on a file system that they share.
The driver reads the files once, for their sha256, as whoever loads them does, and never holds them. Where texts
compress so well that readers would take the files for bombs, it writes them again as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from vocabfold import headers, storage
from vocabfold.cluster.tables import n_rows, sorted_by_value, typed
from vocabfold.engines.spark import SPELLINGS, Cluster, Frame, write_parquet
from vocabfold.errors import InputError
from vocabfold.progress import track
from vocabfold.unpacking import PAGE

_FILE_ROWS = 2**24  # at most, so that a file is read in one go
_NOT_IN_SPARK = "unsigned"  # such columns, which are rare, are written by the driver
_FEATURE = re.compile(r"feature=(\d+)")


def write(
    saver: storage.Saver,
    session: Any,
    frame: Frame,
    kinds: Mapping[str, str],
    schemas: Mapping[str, pa.Schema],
) -> dict[str, list[headers.Json]]:
    """Write the columns of a frame, sorted by value, and return the entries of their files.

    The frame has a feature, its value as text, and what else the schemas say; columns of one kind are written
    together.
    """
    entries: dict[str, list[headers.Json]] = {}
    names = list(kinds)
    written: dict[str, list[Path]] = {name: [] for name in names}
    expected = n_rows(session, frame, names)
    with saver.aside() as folder, Cluster(session) as cluster:
        table = cluster.table(frame)
        for kind in track(sorted(set(kinds.values()) - {_NOT_IN_SPARK}), "saving"):
            chosen = [i for i, name in enumerate(names) if kinds[name] == kind]
            fields = schemas[names[chosen[0]]].names
            values = [
                SPELLINGS[kind].parse.format("value") + " AS value" if f == "value" else f for f in fields
            ]
            order = ["feature", "value ASC NULLS FIRST", *(["fold"] if "fold" in fields else [])]
            sorted_frame = cluster.frame(
                f"SELECT * FROM (SELECT feature, {', '.join(values)} FROM {table} "
                f"WHERE feature IN ({', '.join(map(str, chosen))})) ORDER BY {', '.join(order)}"
            )
            write_parquet(sorted_frame, folder / kind, "feature", _FILE_ROWS, PAGE)
            for path in sorted((folder / kind).glob("feature=*/part-*.parquet")):
                found = _FEATURE.fullmatch(path.parent.name)
                assert found
                written[names[int(found[1])]].append(path)
        for i, name in enumerate(names):
            if kinds[name] == _NOT_IN_SPARK:
                found = cluster.run(f"SELECT {', '.join(schemas[name].names)} FROM {table} WHERE feature = {i}")
                in_order = sorted_by_value(typed(found, kinds[name])).cast(schemas[name])
                entries[name] = [saver.add(schemas[name], in_order.to_batches())]
            else:
                entries[name] = saver.take(written[name]) or [saver.add(schemas[name], [])]
            n_found = sum(entry["rows"] for entry in entries[name])
            if n_found != expected[name]:
                raise InputError(
                    f"{saver.folder} has {n_found:,} of the {expected[name]:,} rows that the workers wrote of "
                    f"{name!r}; give a folder on a file system that the driver and all workers share."
                )
    return entries
