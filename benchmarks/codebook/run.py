"""From rows to a codebook and back, against the bare GROUP BY that any such tool needs: one run, side by side.

    python -m benchmarks.codebook.run                       5 million rows, a few minutes
    python -m benchmarks.codebook.run --rows 37000000       the size of the Criteo challenge, twenty minutes
    python -m benchmarks.codebook.run --small               the same in seconds, only printed

The rows are those of `benchmarks.criteo_rows`, in one Parquet file. Every measurement is a process of its own,
so that its peak memory is its own; rival and we take turns, and the least of the repeats counts. The rival runs
one GROUP BY per column with the same memory limit, in its two natural forms, and fetches the result as Arrow.
Each process works on a table of two rows before the clock starts, so that imports and compiled code, which
`benchmarks.speed` measures, are loaded on both sides.
"""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.criteo_shaped import CARDINALITIES
from benchmarks.in_turns import in_turns
from tools.measure import peak

Row = dict[str, Any]
TRAINING = "fit_transform: count by fold, fit for a model, write the rows out of fold"
PACKAGES = ["vocabfold", "duckdb", "pyarrow", "numpy", "numba"]
GROUP_BY = {
    "GROUP BY, count and sum": "count(*) AS n, sum(label) AS pos",
    "GROUP BY, two filtered counts": "count(*) FILTER (label = 0) AS neg, count(*) FILTER (label = 1) AS pos",
}


def group_by(method: str, file: str, memory: str) -> list[Row]:
    """Run the bare queries."""
    import duckdb
    import pyarrow.compute as pc

    connection = duckdb.connect(config={"memory_limit": memory})
    connection.execute("SET preserve_insertion_order = false")
    connection.sql("SELECT x, count(*) FROM (VALUES (1), (2)) AS t(x) GROUP BY x").to_arrow_table()
    seconds, n_values = 0.0, 0
    for name in CARDINALITIES:
        query = f"SELECT {name}, {GROUP_BY[method]} FROM read_parquet($file) GROUP BY ALL"
        start = time.perf_counter()
        table = connection.sql(query, params={"file": file}).to_arrow_table()
        seconds += time.perf_counter() - start
        n_values += table.num_rows
        positives = int(pc.sum(table["pos"]).as_py())
    return [{"step": method, "seconds": seconds, "n_values": n_values, "positives": positives}]


def codebook(_: str, file: str, memory: str) -> list[Row]:
    """Count, fit and save."""
    import pyarrow as pa

    import vocabfold as vf

    for aim in ("model", "information"):
        vf.fit(vf.count(pa.table({"x": ["a", "b"] * 50, "y": [0, 1, 1, 1] * 25}), "y"), 2, aim=aim)
    steps: list[Row] = []

    def step(name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        steps.append({"step": name, "seconds": time.perf_counter() - start, "peak_mb": peak()})
        return result

    counts = step("count", lambda: vf.count(file, "label", memory_limit=memory))
    book = step("fit", lambda: vf.fit(counts, 10_000, aim="information"))
    step("fit for a model", lambda: vf.fit(counts, 10_000))
    step("save", lambda: book.save(Path(file).with_suffix(".book")))
    answer = {"n_values": book.n_values, "positives": counts.positive_rows, "size": book.size}
    return [row | answer | {"total": book.total, "loss": book.loss, "gap": book.gap} for row in steps]


def training(_: str, file: str, memory: str) -> list[Row]:
    """Fit a codebook for a model, and write the rows for its training, out of fold."""
    import pyarrow as pa

    import vocabfold as vf

    out = Path(file).with_suffix(".train.parquet")
    vf.fit_transform(pa.table({"x": ["a", "b"] * 50, "y": [0, 1, 1, 1] * 25}), "y", 2, out=out)
    start = time.perf_counter()
    book, written = vf.fit_transform(file, "label", 10_000, out=out, memory_limit=memory)
    seconds = time.perf_counter() - start
    out.unlink()
    answer = {"n_values": book.n_values, "size": book.size, "gain": book.gain, "rows_written": written.rows}
    return [{"step": TRAINING, "seconds": seconds, "peak_mb": peak(), **answer}]


def serving(_: str, file: str, memory: str) -> list[Row]:
    """Load the codebook as a server would, and look rows up one by one."""
    import pyarrow.parquet as pq

    import vocabfold as vf

    rows = next(pq.ParquetFile(file).iter_batches(5_000)).to_pylist()
    before = peak()
    start = time.perf_counter()
    book = vf.load(Path(file).with_suffix(".book"), memory_limit=memory)
    loaded = time.perf_counter()
    book.row(rows[0])  # which reads all columns
    ready = time.perf_counter()
    times = []
    for row in rows:
        begin = time.perf_counter()
        book.row(row)
        times.append(time.perf_counter() - begin)
    shared = {"n_values": book.n_values, "extra_mb": peak() - before}
    return [
        {"step": "load, every byte checked", "seconds": loaded - start, **shared},
        {"step": "first row, which reads all columns", "seconds": ready - loaded, **shared},
        {"step": "book.row, median of 5,000", "seconds": median(times), **shared},
        {"step": "book.row, slowest of a hundred", "seconds": sorted(times)[len(times) * 99 // 100], **shared},
    ]


TASKS = {**dict.fromkeys(GROUP_BY, group_by), "codebook": codebook, "training": training, "serving": serving}

if __name__ == "__main__":
    in_turns("codebook", __doc__, TASKS, PACKAGES, memory="2GB", repeats=3)
