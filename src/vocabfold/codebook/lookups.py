"""Looking things up in a codebook: the ids of values, and the values of ids."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.index import Index, is_plain, of_kind
from vocabfold.codebook.queries import groups_of, members_of, sorted_by_value
from vocabfold.codebook.stores import Store
from vocabfold.counts.units import to_rows
from vocabfold.errors import InputError, argument
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support import checks


class Lookups:
    """How a codebook is read, column by column."""

    columns: Mapping[str, BookColumn]
    settings: Mapping[str, Any]
    store: Store
    indexes: dict[str, Index]
    units_per_row: int
    memory_limit: int | None

    def __getitem__(self, name: str) -> pa.Table:
        self.column(name)
        with Engine(self.memory_limit) as engine:
            return to_rows(engine.run(sorted_by_value(self.store.sql(engine, name))), self.units_per_row)

    def column(self, name: str) -> BookColumn:
        """Return what is known of a column."""
        checks.known("column", [name], tuple(self.columns), "the codebook")
        return self.columns[name]

    def ids(self, name: str, values: Any) -> NDArray[np.int32]:
        """Return the id of each value of a column, in O(log n); the first call for a column loads it.

        Parameters
        ----------
        name : str
            The column.
        values : list, array, series or Arrow array
            Values of the column's kind; None and NaN are missing. Whole floats are found in a column of
            integers, and integers in a column of floats.

        Returns
        -------
        int32 array

        Raises
        ------
        InputError
            The column is not in the codebook, the values are of another kind, or, with unseen="error", one of
            them is not in the codebook.
        """
        column = self.column(name)
        array, is_foreign = of_kind(name, column.kind, values)
        index = self.index(name)
        index.prepare(len(array))
        ids = index.find(array)
        ids[is_foreign] = -1
        return self.resolved(name, ids, array)

    def resolved(self, name: str, ids: NDArray[np.int32], values: pa.Array) -> NDArray[np.int32]:
        """Return the ids of values with `other` in the place of -1, which stands for one that is not there."""
        is_unseen = ids < 0
        if is_unseen.any():
            if self.settings["unseen"] == "error":
                raise _unseen(name, values[int(np.argmax(is_unseen))].as_py())
            ids[is_unseen] = self.columns[name].other
        return ids

    def row(self, row: Mapping[str, Any]) -> dict[str, int]:
        """Return the ids of one row, which maps at least every column of the codebook to its value.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import vocabfold as vf
        >>> rows = pa.table({"site": ["a", "b", "a", "c"], "click": [1, 0, 1, 1]})
        >>> book = vf.fit(vf.count(rows, "click"), budget=2, aim="information")
        >>> book.row({"site": "b"})
        {'site': 0}
        """
        if not isinstance(row, Mapping):
            raise InputError(f"row must map columns to values, such as a dict, got {type(row).__name__}.")
        ids = {}
        for name, column in self.columns.items():
            try:
                value = row[name]
            except KeyError:
                raise InputError(
                    f"the row lacks the column {name!r}; give None where a value is missing."
                ) from None
            if not is_plain(column.kind, value):
                ids[name] = int(self.ids(name, [value])[0])
                continue
            id = self.index(name).find_one(value)
            if id < 0:
                if self.settings["unseen"] == "error":
                    raise _unseen(name, value)
                id = column.other
            ids[name] = id
        return ids

    def index(self, name: str) -> Index:
        """Return the values of a column and their ids, in memory from then on."""
        if name not in self.indexes:
            self.indexes.update(self.store.load([name]))
        return self.indexes[name]

    def groups(self, name: str, examples: int = 3) -> pa.Table:
        """Return the ids of a column that values have, as an Arrow table: id, n_values, neg, pos, examples.

        The examples are the values with most rows, so many of each id. Rare values are in no group, even
        if they share an id with others.
        """
        self.column(name)
        first = checks.at_least("examples", examples, 0)
        with Engine(self.memory_limit) as engine:
            return to_rows(engine.run(groups_of(self.store.sql(engine, name), first)), self.units_per_row)

    def members(self, name: str, id: int, limit: int | None = None) -> list[Any]:
        """Return the values that have an id, those with most rows first; at most `limit` of them.

        The id `other` also stands for all values that are not in the codebook.
        """
        size, id = self.column(name).size, checks.at_least("id", id, 0)
        if id >= size:
            raise InputError(f"column {name!r} has the ids 0 to {size - 1:,}, got {id:,}.")
        most = None if limit is None else checks.at_least("limit", limit, 0)
        with Engine(self.memory_limit) as engine:
            found = engine.run(members_of(self.store.sql(engine, name), id, most))
            return list(found["value"].to_pylist())


def _unseen(name: str, value: Any) -> InputError:
    return InputError(
        f"column {name!r}: the value {short(value)} is not in the codebook, which was fitted with "
        f"{argument('unseen', 'error')}."
    )
