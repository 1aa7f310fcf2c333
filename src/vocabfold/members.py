"""Codebook -> the values of its ids: all of them, or one that stands for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabfold.codebook import Codebook


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
        return f"Members({', '.join(f'{name}: {size:,} ids' for name, size in self._book.sizes.items())})"


def representatives(book: Codebook, name: str) -> NDArray[Any]:
    """Return the value with most rows of each id of a column; of numbers, if all of them are."""
    column = book.columns[name]
    groups = book.groups(name, examples=1)
    values = np.full(column.size, None, object)
    values[groups["id"].to_numpy()] = [examples[0] for examples in groups["examples"].to_pylist()]
    numbers = {"integer": np.int64, "unsigned": np.uint64, "float": np.float64, "boolean": np.bool_}
    if column.kind == "float" or (column.kind in numbers and not any(value is None for value in values)):
        return values.astype(numbers[column.kind])
    return values
