"""Columns -> the digest of a codebook: equal for equal content, whatever its order, engine or age."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from vocabfold.codebook.column import BookColumn
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.kinds import KINDS


def hash_of_rows(engine: Engine, kind: str, sums: Sequence[str], sql: str) -> str:
    """Return the sum modulo 2**256 of the sha256 of each value of a kind with its id and sums."""
    numbers = ", '|', ".join(["id", *sums])
    text = f"concat('{kind}', '|', {numbers}, '|', {KINDS[kind].digest.format('value')})"
    missing = f"concat('missing|', {numbers}, '|')"
    hashed = f"sha256(CASE WHEN value IS NULL THEN {missing} ELSE {text} END)"
    return _sum_of_hashes(engine.stream(f"SELECT {hashed} AS hash FROM ({sql})"))


def digest_of(head: str, columns: Mapping[str, BookColumn], hashes: Mapping[str, str]) -> str:
    """Return the sha256 of a line, and of one for each column: docs/format.md spells them out."""
    lines = [head]
    for name, column in columns.items():
        prior = _packed("d", column.mean, column.strength)
        intervals = f"{_packed('i', *column.shared)} {_packed('d', *column.borders)} {prior}"
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
