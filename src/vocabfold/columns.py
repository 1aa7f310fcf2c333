"""One column of a codebook: what is known of it, where its values are, and their hash."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from vocabfold.engines.duckdb import Engine
from vocabfold.kinds import KINDS
from vocabfold.lookup import Index

_ALL = 2**62  # values that no id has: SQL makes infinity of far larger numbers, and takes that for none


@dataclass(frozen=True)
class BookColumn:
    """One column of a codebook: its ids and what they keep, in nats per row.

    Attributes
    ----------
    kind : str
        What its values are: text, integer, unsigned, float, boolean, date or timestamp.
    size : int
        Ids, 0 to size - 1, numbered by rate, rising; in a column of numbers, dates or booleans all of whose
        values are private, by value.
    n_values, n_pooled, n_private : int
        Values that are in the codebook, values that were too rare for it, and those in it that have an id of
        their own.
    n_rates : int
        Distinct rates of the values in the codebook and of the pool: more ids would keep no more.
    other : int
        The id of every value that is not in the codebook.
    tail : tuple of int
        The ids that stand for intervals of the rate, rising: all but those of private values, and of a pool
        that is kept apart.
    borders : tuple of float
        The rates between neighbouring ids of the tail; a rate on a border belongs to the higher id.
    rates : tuple of float
        The rate of each id, with chance taken into account.
    mean, strength : float
        The prior of the column: a value with p of n rows positive has the rate
        (p + mean * strength) / (n + strength). An infinite strength says that all have the same rate.
    information, total, loss : float
        What the ids keep, what the values told, and the difference.
    gap : float or None
        How much more any fold could keep, if that was the aim.
    gain : float or None
        The gain on rows of other folds, if folds were counted: by how much the rates of the ids beat the
        overall rate. It may be negative.
    """

    kind: str
    size: int
    n_values: int
    n_pooled: int
    n_private: int
    n_rates: int
    other: int
    tail: tuple[int, ...] = field(repr=False)
    borders: tuple[float, ...] = field(repr=False)
    rates: tuple[float, ...] = field(repr=False)
    mean: float
    strength: float
    information: float
    total: float
    loss: float
    gap: float | None = None
    gain: float | None = None


class Sums:
    """What the columns of a codebook come to together."""

    columns: Mapping[str, BookColumn]

    @property
    def n_values(self) -> int:
        """Values in all."""
        return sum(column.n_values for column in self.columns.values())

    @property
    def n_pooled(self) -> int:
        """Values that were too rare, in all."""
        return sum(column.n_pooled for column in self.columns.values())

    @property
    def n_private(self) -> int:
        """Values that have an id of their own, in all."""
        return sum(column.n_private for column in self.columns.values())

    @property
    def n_rates(self) -> int:
        """Distinct rates, summed over the columns: more ids would keep no more."""
        return sum(column.n_rates for column in self.columns.values())

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
    def gain(self) -> float | None:
        """What the ids tell about rows of other folds."""
        gains = [column.gain for column in self.columns.values() if column.gain is not None]
        return math.fsum(gains) if gains else None


class Store(Protocol):
    """Where the values of a codebook are."""

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id, neg, pos of a column, in any order."""

    def load(self, names: Iterable[str]) -> dict[str, Index]:
        """Return the values of columns and their ids in memory, ready to be searched."""


def sorted_by_value(sql: str, columns: str = "value, id, neg, pos") -> str:
    """Return the query for a column of a codebook in the order of the values, missing first."""
    return f"SELECT {columns} FROM ({sql}) ORDER BY value NULLS FIRST"


def groups_of(sql: str, n_examples: int) -> str:
    """Return the query for the ids of a column: their values, rows, and so many values with most rows."""
    rank = "row_number() OVER (PARTITION BY id ORDER BY neg + pos DESC, value NULLS FIRST)"
    return (
        "SELECT id, count(*) AS n_values, sum(neg)::BIGINT AS neg, sum(pos)::BIGINT AS pos, "
        f"coalesce(list(value ORDER BY rank) FILTER (rank <= {min(n_examples, _ALL)}), []) AS examples "
        f"FROM (SELECT *, {rank} AS rank FROM ({sql})) GROUP BY id ORDER BY id"
    )


def members_of(sql: str, id: int, limit: int | None) -> str:
    """Return the query for the values of an id, those with most rows first."""
    end = "" if limit is None else f" LIMIT {min(limit, _ALL)}"
    return f"SELECT value FROM ({sql}) WHERE id = {id} ORDER BY neg + pos DESC, value NULLS FIRST{end}"


def most_frequent_of(sql: str) -> str:
    """Return the query for the value with most rows of each id; of equally many, missing or the lowest."""
    return (
        f"WITH v AS ({sql}) SELECT id, bool_or(value IS NULL) AS is_missing, min(value) AS value FROM v JOIN "
        "(SELECT id, max(neg + pos) AS n FROM v GROUP BY id) USING (id) WHERE neg + pos = n GROUP BY id"
    )


def facts_of(column: BookColumn) -> dict[str, Any]:
    """Return what is known of a column for a header, in which numbers are finite."""
    return asdict(column) | {"strength": None if math.isinf(column.strength) else column.strength}


def schema_of(kind: str) -> pa.Schema:
    """Return the columns of a file of a codebook."""
    whole = [("id", pa.int32()), ("neg", pa.int64()), ("pos", pa.int64())]
    return pa.schema([("value", KINDS[kind].arrow), *whole])


def hash_of_rows(engine: Engine, kind: str, sql: str) -> str:
    """Return the sum modulo 2**256 of the sha256 of each value of a kind with its id and counts."""
    text = f"concat('{kind}', '|', id, '|', neg, '|', pos, '|', {KINDS[kind].digest.format('value')})"
    missing = "concat('missing|', id, '|', neg, '|', pos, '|')"
    hashed = f"sha256(CASE WHEN value IS NULL THEN {missing} ELSE {text} END)"
    return _sum_of_hashes(engine.stream(f"SELECT {hashed} AS hash FROM ({sql})"))


def digest_of(head: str, columns: Mapping[str, BookColumn], hashes: Mapping[str, str]) -> str:
    """Return the sha256 of a line, and of one for each column: docs/format.md spells them out."""
    lines = [head]
    for name, column in columns.items():
        prior = _packed("d", column.mean, column.strength)
        intervals = f"{_packed('i', *column.tail)} {_packed('d', *column.borders)} {prior}"
        about = f"{column.kind} {column.size} {column.other} {intervals} {hashes[name]}"
        lines.append(f"{about} {len(name.encode())} {name}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _packed(kind: str, *numbers: float) -> str:
    return struct.pack(f">{len(numbers)}{kind}", *numbers).hex() or "-"


def _sum_of_hashes(batches: Iterable[pa.RecordBatch]) -> str:
    """Return the sum of hexadecimal numbers of 64 digits: eight columns of 32 bits, summed apart."""
    sums = [0] * 8
    for batch in batches:
        digits = np.frombuffer(batch["hash"].buffers()[2], np.uint8)[: 64 * batch.num_rows]
        words = np.frombuffer(bytes.fromhex(digits.tobytes().decode()), ">u4").reshape(-1, 8)
        sums = [total + int(more) for total, more in zip(sums, words.sum(axis=0, dtype=np.uint64), strict=True)]
    return sum_of_words(sums)


def sum_of_words(sums: Sequence[int]) -> str:
    """Return a sum of hashes from those of each 32 bits of them, the highest first."""
    return f"{sum(total << 32 * (7 - i) for i, total in enumerate(sums)) % 2**256:064x}"
