"""Codebook -> the values of its ids: all of them, or one that stands for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.queries import most_frequent_of
from vocabfold.errors import InputError
from vocabfold.interfaces.sklearn import arrays
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.rows import frames
from vocabfold.support import checks
from vocabfold.support.progress import track


class Members(Mapping[str, list[list[Any]]]):
    """The values of each id of each column, those with most rows first; read when a column is asked for."""

    def __init__(self, book: Codebook) -> None:
        self._book = book

    def __getitem__(self, name: str) -> list[list[Any]]:
        if name not in self._book.columns:
            raise KeyError(name)
        column = self._book.columns[name]
        groups = self._book.groups(name, examples=column.n_values)
        members: list[list[Any]] = [[] for _ in range(column.size)]
        for id, values in zip(groups["id"].to_pylist(), groups["examples"].to_pylist(), strict=True):
            members[id] = values
        return members

    def __iter__(self) -> Iterator[str]:
        return iter(self._book.columns)

    def __len__(self) -> int:
        return len(self._book.columns)

    def __repr__(self) -> str:
        sizes = [f"{name}: {checks.number(size, 'id')}" for name, size in self._book.sizes.items()]
        return f"Members({', '.join(sizes)})"


def representatives(book: Codebook) -> dict[str, NDArray[Any]]:
    """Return for each column the value with most rows of each id; of equally many, the first one."""
    with Engine(book.memory_limit) as engine:
        return {name: _of_column(engine, book, name) for name in track(book.features, "looking for values")}


def _of_column(engine: Engine, book: Codebook, name: str) -> NDArray[Any]:
    column, found = book.columns[name], engine.run(most_frequent_of(book.store.sql(engine, name)))
    values = np.full(column.size, None, object)
    for id, is_missing, value in zip(*(part.to_pylist() for part in found.columns), strict=True):
        values[id] = None if is_missing else value
    numbers = {"integer": np.int64, "unsigned": np.uint64, "float": np.float64, "boolean": np.bool_}
    if column.kind == "float" or (column.kind in numbers and not any(value is None for value in values)):
        return values.astype(numbers[column.kind])
    return values


def ids_of(book: Codebook, X: Any) -> NDArray[Any]:
    """Return given ids as numbers, with a column for each of the codebook."""
    X = arrays.matrix(X, least_rows=0)
    if frames.is_frame(X) and not set(book.features).isdisjoint(frames.names(X)):
        checks.known("column", book.features, frames.names(X), "X")
        X = frames.to_arrow(X, book.features)
    ids = arrays.numbers("X", X)
    if ids.shape[1] != len(book):
        of_book = f"{checks.number(len(book), 'column')} {'was' if len(book) == 1 else 'were'}"
        raise InputError(f"X has {checks.number(ids.shape[1], 'column')} of ids, but {of_book} fitted.")
    return ids


def decoded(
    book: Codebook, values: Mapping[str, NDArray[Any]], starts: Mapping[str, int], ids: NDArray[Any]
) -> NDArray[Any]:
    """Return the values of ids, a column each, which begin at `starts`."""
    columns = []
    for (name, start), given in zip(starts.items(), ids.T, strict=True):
        size = book.columns[name].size
        is_id = (given >= start) & (given < start + size) & (given % 1 == 0)
        if not is_id.all():
            raise InputError(
                f"column {name!r} has the ids {start:,} to {start + size - 1:,}, got {given[~is_id][0]}."
            )
        columns.append(values[name][(given - start).astype(np.int64)])
    is_one_type = len({column.dtype for column in columns}) == 1  # another type could not hold all of them
    return np.column_stack(columns if is_one_type else [column.astype(object) for column in columns])
