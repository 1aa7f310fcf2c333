"""From rows to ids, against what people use for it: one run, side by side.

    python -m benchmarks.transform.run                                  5 million rows, some minutes
    python -m benchmarks.transform.run --rows 37000000 --memory 4GB --repeats 1
    python -m benchmarks.transform.run --small                          the same in seconds, only printed

Files: the rows of `benchmarks.criteo_rows` in one Parquet file, 26 columns, and the codebook of 10,000 ids that
was fitted on it. The rival is DuckDB's plain join of the rows with the 26 maps of the codebook, which changes
the order of the rows, with the same memory limit; both write Parquet. Afterwards a positional join of our file
with the rows checks every id of every row: `n_wrong` must be 0.

Frames: 2 million rows of one column with 220,000 values, against scikit-learn's OrdinalEncoder.transform.

Every measurement is a process of its own; rival and we take turns, and the least of the repeats counts. Imports
and compiled code are loaded before the clock starts; loading the codebook is in the time.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.criteo_rows import write_rows
from benchmarks.criteo_shaped import CARDINALITIES
from benchmarks.in_turns import in_a_process, keep, least, parser_of, ran_task
from tools.measure import peak, timed
from tools.record import Row, show

PACKAGES = ["vocabfold", "duckdb", "pyarrow", "numpy", "numba", "pandas", "scikit-learn"]
JOIN, OURS, ENCODER, FRAME = (
    "26 joins, order lost",
    "transform, order kept",
    "OrdinalEncoder",
    "transform, frame",
)
FRAME_ROWS, FRAME_VALUES = 2_000_000, 220_000


def book_of(file: str) -> Path:
    """Return where the codebook is."""
    return Path(file).with_suffix(".book")


def maps(file: str) -> dict[str, str]:
    """Return the file of each column of the codebook."""
    header = json.loads((book_of(file) / "codebook.json").read_text())
    return {column["name"]: str(book_of(file) / column["files"][0]["name"]) for column in header["columns"]}


def fit(_: str, file: str, memory: str) -> list[Row]:
    """Write the codebook."""
    import vocabfold as vf

    vf.fit(vf.count(file, "label", memory_limit=memory), 10_000, aim="information").save(book_of(file))
    return []


def join(_: str, file: str, memory: str) -> list[Row]:
    """Join the rows with all maps; as in the codebook, missing is a value."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(Path(file).parent)})
    connection.execute("SET preserve_insertion_order = false")
    connection.sql("SELECT x, count(*) FROM (VALUES (1), (2)) AS t(x) GROUP BY x").to_arrow_table()
    names = maps(file)
    chosen = ", ".join(f"m_{name}.id AS {name}" for name in names)
    joins = " ".join(
        f"LEFT JOIN read_parquet('{path}') AS m_{name} ON rows.{name} IS NOT DISTINCT FROM m_{name}.value"
        for name, path in names.items()
    )
    out = Path(file).with_suffix(".joined.parquet")
    start = time.perf_counter()
    connection.execute(
        f"COPY (SELECT label, {chosen} FROM read_parquet('{file}') AS rows {joins}) TO '{out}' (FORMAT parquet)"
    )
    return [{"step": JOIN, "seconds": time.perf_counter() - start, **_sum_of_ids(out)}]


def transform(_: str, file: str, memory: str) -> list[Row]:
    """Load the codebook and transform the file."""
    import pyarrow as pa

    import vocabfold as vf

    out = Path(file).with_suffix(".ids.parquet")
    table = pa.table({"x": ["a", "b"] * 100, "y": [0, 1] * 100})
    warnings.simplefilter("ignore")  # the rows are those of the codebook: here only the time counts
    vf.fit(vf.count(table, "y"), 2).transform(table, out=out)
    start = time.perf_counter()
    written = vf.load(book_of(file), memory_limit=memory).transform(file, out=out)
    seconds = time.perf_counter() - start
    return [{"step": OURS, "seconds": seconds, "peak_mb": peak(), "n_rows": written.rows, **_sum_of_ids(out)}]


def check(_: str, file: str, memory: str) -> list[Row]:
    """Count the ids of our file that are not those of the value in the same place of the rows."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(Path(file).parent)})
    out = Path(file).with_suffix(".ids.parquet")
    n_wrong = n_checked = 0
    for name, path in {**maps(file), "label": ""}.items():
        values = f"read_parquet('{path}')" if path else "(VALUES (0, 0), (1, 1)) AS t(value, id)"
        found = connection.sql(
            f"SELECT count(*), count_if(m.id <> a.id) FROM (SELECT r.{name} AS value, i.{name} AS id "
            f"FROM read_parquet('{file}') AS r POSITIONAL JOIN read_parquet('{out}') AS i) AS a "
            f"JOIN (SELECT value, id FROM {values}) AS m ON a.value IS NOT DISTINCT FROM m.value"
        ).fetchall()[0]
        n_checked, n_wrong = n_checked + found[0], n_wrong + found[1]
    return [{"step": "check of every id", "seconds": 0.0, "n_checked": n_checked, "n_wrong": n_wrong}]


def _sum_of_ids(out: Path) -> Row:
    import duckdb

    total = " + ".join(f"sum({name})" for name in CARDINALITIES)
    return {"sum_of_ids": int(duckdb.sql(f"SELECT {total} FROM read_parquet('{out}')").fetchall()[0][0])}


def frames(_: str, file: str, memory: str) -> list[Row]:
    """Transform a frame, against scikit-learn; a tenth of the rows holds values never seen."""
    import pandas as pd
    from sklearn.preprocessing import OrdinalEncoder

    import vocabfold as vf

    rng = np.random.default_rng(0)
    n_rows = FRAME_ROWS // 100 if "small" in file else FRAME_ROWS
    numbers = rng.integers(0, FRAME_VALUES * 11 // 10, n_rows)
    steps = []
    for kind, values in (
        ("text", pd.Series([f"user-{n:08x}" for n in numbers])),
        ("text as objects", pd.Series([f"user-{n:08x}" for n in numbers], dtype=object)),
        ("integers", pd.Series(numbers)),
    ):
        frame = pd.DataFrame({"user": values})
        known = frame[numbers < FRAME_VALUES]
        labels = pd.Series(rng.integers(0, 2, len(known)), index=known.index)
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, dtype=np.int32).fit(
            known
        )
        book = vf.fit(vf.count(known.assign(y=labels), "y", "user"), 1000, aim="information", unseen="own")
        codes, time_of_encoder = timed(3, encoder.transform, frame)
        ids, ours = timed(5, book.transform, frame)
        facts = {"values": kind, "n_rows": n_rows, "n_values": len(encoder.categories_[0])}
        n_unseen = {"n_unseen": int((codes < 0).sum())}
        steps.append({"step": ENCODER, **time_of_encoder, **facts, **n_unseen})
        n_unseen = {"n_unseen": int((ids["user"] == book.sizes["user"] - 1).sum())}
        steps.append({"step": FRAME, **ours, **facts, **n_unseen})
    return steps


def commands(_: str, file: str, memory: str) -> list[Row]:
    """Time commands as a person would: new processes."""
    import pyarrow as pa

    import vocabfold as vf

    table = pa.table({"x": [f"v{i % 1000}" for i in range(9999)], "y": [i * i % 7 % 2 for i in range(9999)]})
    path = str(Path(file).with_suffix(".small.book"))
    vf.fit(vf.count(table, "y"), 20).save(path)
    program = str(Path(sys.executable).with_name("vocabfold"))

    def call(*words: str) -> Any:
        subprocess.run([program, *words], stdout=subprocess.DEVNULL, check=True)

    return [
        {"step": f"vocabfold {words[0]}", **timed(7, call, *words)[1]}
        for words in (("--help",), ("inspect", path))
    ]


FILES = {"join": join, "transform": transform}
TASKS = {"fit": fit, **FILES, "check": check, "frames": frames, "commands": commands}


def main() -> None:
    """Measure all tasks in turns, print and keep the rows."""
    parser = parser_of(__doc__, memory="4GB", repeats=5)
    parser.add_argument("--parts", default="check,frames,commands", help="what is measured beside files")
    options = parser.parse_args()
    if ran_task(options, TASKS):
        return
    n_rows = 50_000 if options.small else options.rows
    with tempfile.TemporaryDirectory() as folder:
        file = options.file or Path(folder) / ("small.parquet" if options.small else "rows.parquet")
        if not file.exists():
            write_rows(file, n_rows)

        def run(task: str) -> list[Row]:
            return in_a_process("benchmarks.transform.run", task, file, options.memory)

        run("fit")
        found: dict[str, list[list[Row]]] = {task: [] for task in FILES}
        for _ in range(1 if options.small else options.repeats):
            for task in FILES:
                found[task].append(run(task))
        rows = [{"part": "files", **row} for repeats in found.values() for row in least(repeats)]
        rows += [{"part": part, **row} for part in options.parts.split(",") for row in run(part)]
    show(rows)
    if not options.small:
        keep("transform", rows, PACKAGES, options)


if __name__ == "__main__":
    main()
