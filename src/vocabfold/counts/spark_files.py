"""A table of all columns on a cluster <-> tables on the driver, and files of a folder, which the workers write.

The folder must be the same for the driver and the workers: on one machine, or on a file system that they share.
The driver reads the files once, for their sha256, as whoever loads them does, and never holds them. Where texts
compress so well that readers would refuse the files as bombs, it writes them again uncompressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vocabfold.errors import InputError
from vocabfold.io.engines.kinds import KINDS
from vocabfold.io.engines.spark import (
    SPELLINGS,
    Cluster,
    Frame,
    from_texts,
    read_parquet,
    spelled,
    to_texts,
    write_parquet,
)
from vocabfold.io.folders import headers
from vocabfold.io.folders.parquet_guard import PAGE, gone, read
from vocabfold.io.folders.parquet_writer import Saver
from vocabfold.support.progress import track

_SENT_BYTES = 2**20  # of files that the driver reads and sends; larger ones are read by the workers
_FILE_ROWS = 2**24  # at most, so that a file is read in one go
_NOT_IN_SPARK = "unsigned"  # such columns, which are rare, are written by the driver
_FEATURE = re.compile(r"feature=(\d+)")


def n_entries(session: Any, frame: Frame, names: Iterable[str]) -> dict[str, int]:
    """Return how many entries each column has in a table of all."""
    with Cluster(session) as cluster:
        found = cluster.run(f"SELECT feature, count(*) AS n FROM {cluster.table(frame)} GROUP BY feature")
    numbers = dict(zip(found["feature"].to_pylist(), found["n"].to_pylist(), strict=True))
    return {name: numbers.get(i, 0) for i, name in enumerate(names)}


def stored(cluster: Cluster, table: pa.Table | list[Path], kind: str, names: Sequence[str]) -> str:
    """Return the query for a table of values of a kind, spelled; `names` are the columns that are wanted."""
    for path in table if isinstance(table, list) else []:
        if not path.exists():
            raise gone(path)
    if isinstance(table, list) and sum(path.stat().st_size for path in table) > _SENT_BYTES:
        types = {"value": SPELLINGS[kind].sql, "fold": "INT", "id": "INT"}
        schema = ", ".join(f"{name} {types.get(name, 'BIGINT')}" for name in names)
        chosen = [spelled(kind, "value") + " AS value" if name == "value" else name for name in names]
        return (
            f"(SELECT {', '.join(chosen)} FROM {cluster.table(read_parquet(cluster.session, table, schema))})"
        )
    held = read(table, names) if isinstance(table, list) else table.select(list(names))
    return cluster.table(held.set_column(0, "value", to_texts(held["value"], kind)))


def typed(table: pa.Table, kind: str) -> pa.Table:
    """Return a table whose values have the type of their kind instead of being texts."""
    values = from_texts(table["value"], kind, KINDS[kind].arrow)
    return table.set_column(table.schema.get_field_index("value"), "value", values)


def sorted_by_value(table: pa.Table) -> pa.Table:
    """Return a table in the order of its values, missing first."""
    import pyarrow.compute as pc

    order = np.asarray(pc.sort_indices(table["value"]))  # missing, which is there at most once, comes last
    return table.take(np.roll(order, table["value"].null_count)).combine_chunks()


def write(
    saver: Saver,
    session: Any,
    frame: Frame,
    kinds: Mapping[str, str],
    schemas: Mapping[str, pa.Schema],
    expected: Mapping[str, int],
) -> dict[str, list[headers.Json]]:
    """Write the columns of a frame, sorted by value, and return the entries of their files.

    The frame has a feature, its value as text, and what else the schemas say; columns of one kind are written
    together. `expected` is how many rows each column has.
    """
    entries: dict[str, list[headers.Json]] = {}
    names = list(kinds)
    written: dict[str, list[Path]] = {name: [] for name in names}
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
                    f"{saver.folder} holds {n_found:,} of the {expected[name]:,} rows of {name!r} that the "
                    "workers wrote; give a folder on a file system that the driver and all workers share."
                )
    return entries
