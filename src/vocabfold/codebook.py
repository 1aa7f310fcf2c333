"""Codebook: the id of every value of every column, what the ids keep, and where that comes from.

A codebook that was just fitted is a query: the counts joined with the small table (neg, pos) -> id, since
values with equal counts share an id. Saved, it is a folder (`docs/format.md`). Either way its values stay where
they are until a column is asked for.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from reprlib import repr as short
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold import checks, storage
from vocabfold.columns import BookColumn, Store, digest_of, hash_of_rows, schema_of, sorted_by_value
from vocabfold.counts import in_rows, to_rows
from vocabfold.engines.duckdb import Engine
from vocabfold.errors import InputError
from vocabfold.folds import html_table, summaries
from vocabfold.lookup import Index, is_plain, of_kind
from vocabfold.progress import track

UNSEEN = ("other", "own", "error")


@dataclass(frozen=True, eq=False, repr=False)
class Codebook:
    """The id of every value of every column.

    `book["site"]` is an Arrow table with the columns value, id, neg, pos, sorted by value; missing comes first.

    Attributes
    ----------
    columns : dict
        A `BookColumn` for each feature, in the order of the counts.
    sizes : dict
        Ids of each column.
    offsets : dict
        Where each column begins if all ids share one range: offset + id is unique over all columns.
    size, budget : int
        Ids in all, and ids allowed.
    information, total, loss, gap, bound : float
        Sums over the columns, in nats per row; no codebook of at most `budget` ids keeps more than `bound`.
    digest : str
        Equal for equal content, whoever wrote it.
    settings : dict
        How it was fitted.
    label, positive : str
        The column of the label, and its positive value as text.
    rows : int or float
        Rows it was fitted on, by weight.
    """

    columns: Mapping[str, BookColumn]
    gap: float
    settings: Mapping[str, Any]
    label: str
    positive: str
    units_per_row: int
    neg: int  # units
    pos: int
    store: Store
    sources: tuple[str, ...] = ()
    memory_limit: int | None = None
    hashes: dict[str, str] = field(default_factory=dict)  # of the rows of each column, once computed
    indexes: dict[str, Index] = field(default_factory=dict)  # of the columns that are in memory

    @property
    def features(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.columns)

    @property
    def sizes(self) -> dict[str, int]:
        """Ids of each column."""
        return {name: column.size for name, column in self.columns.items()}

    @property
    def size(self) -> int:
        """Ids in all."""
        return sum(self.sizes.values())

    @property
    def budget(self) -> int:
        """Ids allowed."""
        return int(self.settings["budget"])

    @property
    def offsets(self) -> dict[str, int]:
        """Where each column begins if all ids share one range."""
        ends = np.cumsum([0, *self.sizes.values()])
        return {name: int(end) for name, end in zip(self.columns, ends, strict=False)}

    @property
    def n_values(self) -> int:
        """Values in all."""
        return sum(column.n_values for column in self.columns.values())

    @property
    def n_pooled(self) -> int:
        """Values that were too rare, in all."""
        return sum(column.n_pooled for column in self.columns.values())

    @property
    def n_rates(self) -> int:
        """Distinct rates, summed over the columns: more ids would keep no more."""
        return sum(column.n_rates for column in self.columns.values())

    @property
    def rows(self) -> int | float:
        """Rows it was fitted on, by weight."""
        return in_rows(self.neg + self.pos, self.units_per_row)

    @property
    def information(self) -> float:
        """What the ids tell about the label, summed over the columns."""
        return math.fsum(column.information for column in self.columns.values())

    @property
    def total(self) -> float:
        """What the values told."""
        return math.fsum(column.total for column in self.columns.values())

    @property
    def loss(self) -> float:
        """What the ids do not tell."""
        return math.fsum(column.loss for column in self.columns.values())

    @property
    def bound(self) -> float:
        """What no codebook of the budget exceeds."""
        return self.information + self.gap

    @cached_property
    def digest(self) -> str:
        """A sha256 of the content: equal for equal content, whatever its order, engine or age."""
        if len(self.hashes) < len(self.columns):  # those of a codebook that was loaded are known
            with Engine(self.memory_limit) as engine:
                for name in track(self.features, "digesting", engine.progress):
                    self._row_hash(engine, name)
        return self._digest_of_hashes()

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> pa.Table:
        self.column(name)
        with Engine(self.memory_limit) as engine:
            return to_rows(engine.run(sorted_by_value(self.store.sql(engine, name))), self.units_per_row)

    def ids(self, name: str, values: Any) -> NDArray[np.int32]:
        """Return the id of each value of a column.

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

        Notes
        -----
        The first call for a column loads it. Then every value takes O(log n).
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
        >>> book = vf.fit(vf.count(rows, "click"), budget=2)
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

    def transform(
        self,
        data: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        offset_ids: bool = False,
        only_ids: bool = False,
        expect: str | None = None,
        preset: str | None = None,
        overwrite: bool = True,
        memory_limit: int | str | None = None,
    ) -> Any:
        """Replace the values of the codebook's columns by their ids; rows keep their order.

        Parameters
        ----------
        data : frame, or anything that `count` takes
            Columns are found by their names; there may be others, which stay as they are.
        out : path, optional
            Where to write the result: a file that ends in .parquet, .csv or .tsv (the last two also with .gz or
            .zst), or, with a / at its end, a folder for one file per input file, of the same name. Without it,
            data must be a frame.
        offset_ids : bool
            Number the ids over all columns, as `offsets` says, for one embedding table.
        only_ids : bool
            Leave all other columns out.
        expect : str, optional
            The digest that the codebook must have: that of the model's training.
        preset : {"criteo"}, optional
            As for `count`.
        overwrite : bool
            Replace files that exist, instead of refusing.
        memory_limit : int or str, optional
            As for `count`; by default that of the codebook.

        Returns
        -------
        frame or Transformed
            Without `out`, a frame of the same kind, with int32 ids. Otherwise what was written: its `paths`,
            `rows`, and per column the number of `unseen` rows. The metadata of a Parquet file hold the digest
            of the codebook, under "vocabfold.digest".

        Raises
        ------
        InputError
            A column is missing or of another type, the output cannot be written, or, with unseen="error", a
            value is not in the codebook. No unfinished file is left behind.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import vocabfold as vf
        >>> rows = pa.table({"site": ["a", "b", "a", "c"], "click": [1, 0, 1, 1]})
        >>> book = vf.fit(vf.count(rows, "click"), budget=2)
        >>> book.transform(rows).to_pydict()
        {'site': [1, 0, 1, 1], 'click': [1, 0, 1, 1]}
        """
        from vocabfold.transform import transform

        return transform(
            self,
            data,
            out,
            offset_ids=offset_ids,
            only_ids=only_ids,
            expect=expect,
            preset=preset,
            overwrite=overwrite,
            memory_limit=memory_limit,
        )

    def groups(self, name: str, examples: int = 3) -> pa.Table:
        """Return the ids of a column that values have, as an Arrow table: id, n_values, neg, pos, examples.

        The examples are the values with most rows, so many of each id. Pooled values are in no group, even
        if they share an id with others.
        """
        self.column(name)
        rank = "row_number() OVER (PARTITION BY id ORDER BY neg + pos DESC, value NULLS FIRST)"
        first = checks.at_least("examples", examples, 0)
        with Engine(self.memory_limit) as engine:
            table = engine.run(
                "SELECT id, count(*) AS n_values, sum(neg)::BIGINT AS neg, sum(pos)::BIGINT AS pos, "
                f"coalesce(list(value ORDER BY rank) FILTER (rank <= {first}), []) AS examples "
                f"FROM (SELECT *, {rank} AS rank FROM ({self.store.sql(engine, name)})) GROUP BY id ORDER BY id"
            )
        return to_rows(table, self.units_per_row)

    def members(self, name: str, id: int, limit: int | None = None) -> list[Any]:
        """Return the values that have an id, those with most rows first; at most `limit` of them.

        The id `other` also stands for all values that are not in the codebook.
        """
        column = self.column(name)
        id = checks.at_least("id", id, 0)
        if id >= column.size:
            raise InputError(f"column {name!r} has the ids 0 to {column.size - 1:,}, got {id:,}.")
        end = f" LIMIT {checks.at_least('limit', limit, 0)}" if limit is not None else ""
        with Engine(self.memory_limit) as engine:
            of_id = f"SELECT value FROM ({self.store.sql(engine, name)}) WHERE id = {id}"
            found = engine.run(f"{of_id} ORDER BY neg + pos DESC, value NULLS FIRST{end}")
            return list(found["value"].to_pylist())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codebook to a folder, replacing a codebook that is there; `vf.load` reads it back.

        Whatever happens meanwhile, the folder holds the old codebook or the new one.
        """

        def fill(saver: storage.Saver) -> storage.Json:
            columns = []
            with Engine(self.memory_limit) as engine:
                for name in track(self.features, "saving", engine.progress):
                    batches = engine.stream(sorted_by_value(self.store.sql(engine, name)))
                    entry = saver.add(schema_of(self.columns[name].kind), batches)
                    hashed = {"rows_sha256": self._row_hash(engine, name), "files": [entry]}
                    columns.append({"name": name} | asdict(self.columns[name]) | hashed)
            return {
                "digest": self._digest_of_hashes(),
                "label": self.label,
                "positive": self.positive,
                "units_per_row": self.units_per_row,
                "neg": self.neg,
                "pos": self.pos,
                "gap": self.gap,
                "settings": dict(self.settings),
                "columns": columns,
            }

        storage.save(path, storage.CODEBOOK, fill, {"sources": self.sources})

    def __repr__(self) -> str:
        return summaries("Codebook", self.columns, self)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self)

    def column(self, name: str) -> BookColumn:
        """Return what is known of a column."""
        checks.known("column", [name], self.features, "the codebook")
        return self.columns[name]

    def index(self, name: str) -> Index:
        """Return the values of a column and their ids, in memory from then on."""
        if name not in self.indexes:
            self.indexes[name] = self.store.index(name)
        return self.indexes[name]

    def _digest_of_hashes(self) -> str:
        head = f"vocabfold 1 {self.units_per_row} {self.settings['unseen']}"
        return digest_of(head, self.columns, self.hashes)

    def _row_hash(self, engine: Engine, name: str) -> str:
        """Return the sum of the hashes of the values of a column, computed once."""
        if name not in self.hashes:
            self.hashes[name] = hash_of_rows(engine, self.columns[name].kind, self.store.sql(engine, name))
        return self.hashes[name]


def _unseen(name: str, value: Any) -> InputError:
    problem = f"the value {short(value)} is not in the codebook, fitted with unseen='error'"
    return InputError(f"column {name!r}: {problem}.")
