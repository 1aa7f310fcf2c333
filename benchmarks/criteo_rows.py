"""Rows with the shape of the Criteo challenge, as Parquet: label, C1..C26 as 8-hex strings.

Every value occurs exactly as often as in `criteo_shaped`, and clicks are assigned to its rows as there (up to
the few that make the number of clicks equal in all columns). `python -m benchmarks.criteo_rows FILE --rows N`.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.criteo_shaped import CLICK_RATE, ROWS, Counts, columns

ROW_GROUP = 1_000_000
HAS_MISSING = {f"C{i}" for i in (3, 4, 12, 16, 19, 20, 21, 22, 24, 25, 26)}  # as in train.txt


def write_rows(path: Path, rows: int, seed: int = 0) -> None:
    """Write the file, one row group at a time; all columns together need 4 bytes per cell of memory."""
    rng = np.random.default_rng(seed)
    label = rng.random(rows) < CLICK_RATE
    cells = {name: _deal(counts, label, rng) for name, counts in columns(rows / ROWS, seed).items()}
    schema = pa.schema([("label", pa.int32()), *((name, pa.string()) for name in cells)])
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for start in range(0, rows, ROW_GROUP):
            part = slice(start, start + ROW_GROUP)
            table = {name: _hexadecimal(name, column[part]) for name, column in cells.items()}
            writer.write_table(pa.table({"label": label[part].astype(np.int32), **table}, schema))


def _deal(counts: Counts, label: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.uint32]:
    """Assign the values to the rows: those of clicks to clicks, the others to the others."""
    neg, pos = (np.repeat(np.arange(side.size, dtype=np.uint32), side) for side in counts)
    cells = np.empty(label.size, np.uint32)
    rest, places = [], []
    for values, rows in ((neg, np.flatnonzero(~label)), (pos, np.flatnonzero(label))):
        rng.shuffle(values)
        n = min(values.size, rows.size)
        cells[rows[:n]] = values[:n]
        rest.append(values[n:])
        places.append(rows[n:])
    spare = np.concatenate(places)
    cells[spare] = np.concatenate(rest)[: spare.size]
    return cells


def _hexadecimal(name: str, ids: NDArray[np.uint32]) -> pa.Array:
    """Write ids as eight hexadecimal digits; an odd factor keeps them distinct and hides their order."""
    mixed = ids * np.uint32(2654435761) + np.uint32(int(name[1:]))
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    nibbles = (mixed[:, None] >> np.arange(28, -4, -4, dtype=np.uint32)) & np.uint32(15)
    text = pa.py_buffer(digits[nibbles].tobytes())
    offsets = pa.py_buffer(np.arange(0, 8 * ids.size + 1, 8, dtype=np.int32).tobytes())
    array = pa.StringArray.from_buffers(ids.size, offsets, text)
    return pc.if_else(pa.array(ids == 0), pa.scalar(None, pa.string()), array) if name in HAS_MISSING else array


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    write_rows(options.file, options.rows)
