"""Whatever a caller gives as data -> the engine that reads it, and its Source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vocabfold.errors import InputError
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.spark import Cluster, is_frame
from vocabfold.io.rows import spark
from vocabfold.io.rows.source import Source, source


@contextmanager
def opened(
    data: Any, preset: str | None, memory_limit: int | None
) -> Iterator[tuple[Engine, Source] | tuple[Cluster, Source]]:
    """Yield an engine and the rows that it reads: a Spark frame is read by its cluster, all else by DuckDB."""
    if is_frame(data):
        with Cluster(data) as cluster:
            if preset is not None:
                raise InputError(
                    "is for text files; a Spark frame has its own names and types.", argument="preset"
                )
            yield cluster, spark.source(cluster, data)
    else:
        with Engine(memory_limit) as engine:
            yield engine, source(engine, data, preset)
