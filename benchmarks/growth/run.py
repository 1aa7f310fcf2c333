"""How the time of each step grows with the values of a column, from a thousand to a hundred million.

    python -m benchmarks.growth.run            all sizes, raw rows kept in benchmarks/runs/
    python -m benchmarks.growth.run --small    up to 10,000 values in seconds, only printed

Steps on rows, up to 10 million values: `count` (vf.count of a Parquet file with a label and one column of
texts of eight characters, four rows per value in random order), `fit` (vf.fit of these counts, 256 ids,
aim="information"), `transform` (book.transform from that file to another) and `ids` (book.ids of all rows of
the file as an Arrow array in memory). They use all cores that they are given.

Steps on bare counts, up to 100 million values, on one core: `order` (vf.fold with one id, so that there is
nothing to solve) and `order and solve` (vf.fold with 4,096 ids). On three shapes: `power law` (few distinct
rates, as in large vocabularies), `distinct rates` (large random counts, nearly every value a rate of its own)
and `fewest rows` (the n distinct rates that need the fewest rows: no column with as many rows has more).

Times are the least of five repeats, of three if one takes longer than a second, of two beyond ten, and a single
one beyond a minute. Compilation and imports come before; loading a codebook falls into the first `transform`.
Memory is what a step adds at its peak to what the process holds before it.
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import vocabfold as vf
from benchmarks.growth.counts import POWER_LAW, SHAPES, distinct, power_law
from tools import journal
from tools.measure import extra_memory, timed
from tools.record import Row

PACKAGES = ["vocabfold", "duckdb", "pyarrow", "numpy", "numba"]
ROW_GROUP = 1_000_000
IDS_OF_BOOK, IDS_OF_FOLD = 256, 4096
MOST_WITH_ROWS = 10**7  # values; beyond, counts alone
MOST = 10**8


def on_rows(n_values: int, folder: Path) -> Iterator[Row]:
    """Time the steps from a file of rows to ids."""
    neg, pos = power_law(n_values)
    n_rates, n_pairs = distinct(neg, pos)
    row = {"shape": POWER_LAW, "n_values": n_values, "rows": int(neg.sum() + pos.sum())}
    row |= {"n_rates": n_rates, "n_pairs": n_pairs}
    file = folder / f"rows-{n_values}.parquet"
    if not file.exists():
        write_rows(file, neg, pos)
    counts, found = measured(vf.count, file, "label")
    yield row | {"step": "count"} | found | {"positives": counts.positive_rows}
    book, found = measured(vf.fit, counts, IDS_OF_BOOK, aim="information")
    yield row | {"step": "fit"} | found | answer(book)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that these rows were fitted; no model is trained on their ids
        done, found = measured(book.transform, file, out=folder / f"ids-{n_values}.parquet")
    yield row | {"step": "transform"} | found | {"n_unseen": done.unseen["value"]}
    values = pq.read_table(file, columns=["value"])["value"].combine_chunks()
    book.ids("value", values[:1])
    ids, found = measured(book.ids, "value", values)
    yield row | {"step": "ids"} | found | {"size": np.unique(ids).size}


def write_rows(file: Path, neg: np.ndarray, pos: np.ndarray) -> None:
    """Write a file with one row for each that was counted, in random order."""
    rng = np.random.default_rng(1)
    texts = pc.utf8_lpad(pa.array(rng.permutation(neg.size)).cast(pa.string()), 8, "0")
    places = 2 * np.arange(neg.size, dtype=np.uint32)  # of a value with the label 0; the next is with 1
    rows = np.concatenate([np.repeat(places, neg), np.repeat(places + 1, pos)])
    rng.shuffle(rows)
    beside = file.with_suffix(".part")  # a run that is stopped here must not leave half a file behind
    with pq.ParquetWriter(beside, pa.schema([("label", pa.int32()), ("value", pa.string())])) as writer:
        for start in range(0, rows.size, ROW_GROUP):
            part = rows[start : start + ROW_GROUP]
            label = (part % 2).astype(np.int32)
            writer.write_table(pa.table({"label": label, "value": texts.take(pa.array(part // 2))}))
    beside.rename(file)


def on_counts(shape: str, n_values: int) -> Iterator[Row]:
    """Time the fold of bare counts into one id, and into many."""
    neg, pos = SHAPES[shape](n_values)
    n_rates, n_pairs = distinct(neg, pos)
    row = {"shape": shape, "n_values": n_values, "rows": int(neg.sum() + pos.sum())}
    row |= {"n_rates": n_rates, "n_pairs": n_pairs}
    for step, size in (("order", 1), ("order and solve", IDS_OF_FOLD)):
        fold, found = measured(vf.fold, neg, pos, size)
        yield row | {"step": step} | found | answer(fold)


def answer(result: Any) -> Row:
    """Return what stands beside a time: the ids, and what they keep."""
    return {"size": result.size, "total": result.total, "loss": result.loss, "gap": result.gap}


def measured(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Row]:
    """Return the result of a call, its times, and the memory that it takes; the shorter, the more repeats."""
    results: list[Any] = []

    def first() -> None:
        results.extend(timed(1, call, *args, **options))

    row: Row = {"extra_mb": extra_memory(first)}
    result, times = results
    more = next((n for n, limit in ((4, 1), (2, 10), (1, 60)) if times["seconds"] < limit), 0)
    if more:
        _, others = timed(more, call, *args, **options)
        times = {
            "seconds": min(times["seconds"], others["seconds"]),
            "slowest": max(times["slowest"], others["slowest"]),
            "repeats": 1 + more,
        }
    return result, times | row


def tasks(most: int, folder: Path) -> dict[str, journal.Task]:
    """Return the tasks for all sizes up to `most`: one on rows, and one on counts of each shape."""
    sizes = [10**power for power in range(3, 9) if 10**power <= most]
    on_files: dict[str, journal.Task] = {
        f"rows, {n:,} values": partial(on_rows, n, folder) for n in sizes if n <= MOST_WITH_ROWS
    }
    return on_files | {
        f"{shape}, {n:,} values": partial(on_counts, shape, n) for shape in SHAPES for n in sizes
    }


def warm_up() -> None:
    """Compile and import what the steps need, before the clock starts."""
    with tempfile.TemporaryDirectory() as folder:
        list(on_rows(2_000, Path(folder)))
    for shape in SHAPES:
        list(on_counts(shape, 10_000))


def main() -> None:
    """Run the tasks and keep the raw rows, from which `report` makes tables and a plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="up to 10,000 values; only prints")
    parser.add_argument("--most", type=float, default=MOST, help="values at most (default: 1e8)")
    parser.add_argument("--folder", type=Path, help="where the files of rows are, or are to be kept")
    options = parser.parse_args()
    most = 10**4 if options.small else int(options.most)
    warm_up()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        command = "python -m benchmarks.growth.run" + (f" --most {options.most:g}" if most < MOST else "")
        journal.run("growth", tasks(most, folder), PACKAGES, command, small=options.small)


if __name__ == "__main__":
    main()
