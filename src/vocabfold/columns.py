"""One column of a codebook: what is known of it, where its values are, and their hash."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from vocabfold.engines.duckdb import Engine
from vocabfold.kinds import KINDS
from vocabfold.lookup import Index


@dataclass(frozen=True)
class BookColumn:
    """One column of a codebook: its ids and what they keep, in nats per row.

    Attributes
    ----------
    kind : str
        What its values are: text, integer, unsigned, float, boolean, date or timestamp.
    size : int
        Ids, 0 to size - 1, numbered by rate, rising.
    n_values, n_pooled : int
        Values that are in the codebook, and values that were too rare for it.
    n_rates : int
        Distinct rates of the values in the codebook and of the pool: more ids would keep no more.
    other : int
        The id of every value that is not in the codebook.
    borders : tuple of float
        The rates between neighbouring ids; a rate on a border belongs to the higher id.
    information, total, loss, gap : float
        What the ids keep, what the values told, the difference, and how much more any fold could keep.
    """

    kind: str
    size: int
    n_values: int
    n_pooled: int
    n_rates: int
    other: int
    borders: tuple[float, ...] = field(repr=False)
    information: float
    total: float
    loss: float
    gap: float


class Store(Protocol):
    """Where the values of a codebook are."""

    def sql(self, engine: Engine, name: str) -> str:
        """Return the query for value, id, neg, pos of a column, in any order."""

    def index(self, name: str) -> Index:
        """Return the values of a column and their ids in memory, ready to be searched."""


def sorted_by_value(sql: str, columns: str = "value, id, neg, pos") -> str:
    """Return the query for a column of a codebook in the order of the values, missing first."""
    return f"SELECT {columns} FROM ({sql}) ORDER BY value NULLS FIRST"


def schema_of(kind: str) -> pa.Schema:
    """Return the columns of a file of a codebook."""
    whole = [("id", pa.int32()), ("neg", pa.int64()), ("pos", pa.int64())]
    return pa.schema([("value", KINDS[kind].arrow), *whole])


def hash_of_rows(engine: Engine, kind: str, sql: str) -> str:
    """Return the sum modulo 2**256 of the sha256 of each value of a kind with its id and counts."""
    text = f"concat('{kind}', '|', id, '|', neg, '|', pos, '|', {KINDS[kind].digest.format('value')})"
    missing = "concat('missing|', id, '|', neg, '|', pos, '|')"
    hashed = f"sha256(CASE WHEN value IS NULL THEN {missing} ELSE {text} END)"
    return f"{_sum_of_hashes(engine.stream(f'SELECT {hashed} AS hash FROM ({sql})')) % 2**256:064x}"


def digest_of(head: str, columns: Mapping[str, BookColumn], hashes: Mapping[str, str]) -> str:
    """Return the sha256 of a line, and of one for each column: docs/format.md spells them out."""
    lines = [head]
    for name, column in columns.items():
        borders = struct.pack(f">{len(column.borders)}d", *column.borders).hex()
        about = f"{column.kind} {column.size} {column.other} {borders or '-'} {hashes[name]}"
        lines.append(f"{about} {len(name.encode())} {name}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _sum_of_hashes(batches: Iterable[pa.RecordBatch]) -> int:
    """Return the sum of hexadecimal numbers of 64 digits: eight columns of 32 bits, summed apart."""
    sums = [0] * 8
    for batch in batches:
        digits = np.frombuffer(batch["hash"].buffers()[2], np.uint8)[: 64 * batch.num_rows]
        words = np.frombuffer(bytes.fromhex(digits.tobytes().decode()), ">u4").reshape(-1, 8)
        sums = [total + int(more) for total, more in zip(sums, words.sum(axis=0, dtype=np.uint64), strict=True)]
    return sum(total << 32 * (7 - i) for i, total in enumerate(sums))
