"""Rows of all kinds for both engines, and frames of Spark that hold them."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TEXT = "it's a `col`.{x}"
FEATURES = [TEXT, "number", "share", "flag", "day", "instant", "nothing"]


def generated(n_rows, seed=0):
    """Rows of all kinds, with values and names that are hard to quote, and missing ones."""
    rng = np.random.default_rng(seed)

    def few(n):
        return np.minimum(rng.zipf(1.4, n_rows), n).tolist()

    begin = datetime.datetime(1969, 12, 31, 23, 59)
    columns = {
        "row": pa.array(range(n_rows)),
        TEXT: pa.array([None if i == 2 else f"\\'{i}`é{{}} --" for i in few(99)], pa.string()),
        "number": pa.array([None if i == 5 else 40 - 13 * i for i in few(60)], pa.int32()),
        "share": pa.array([None if i == 3 else float("nan") if i == 4 else (i - 2) / 3 for i in few(50)]),
        "flag": pa.array([None if i == 3 else i % 2 == 0 for i in few(5)]),
        "day": pa.array([begin.date() + datetime.timedelta(20 - i) for i in few(70)]),
        "instant": pa.array([begin + datetime.timedelta(microseconds=77_777_777 * i) for i in few(70)]),
        "nothing": pa.nulls(n_rows),
        "fold": pa.array(rng.integers(0, 4, n_rows)),
        "weight": pa.array(rng.integers(0, 9, n_rows) / 8),
        "click": pa.array(rng.integers(0, 4, n_rows) == 0),
    }
    return pa.table(columns)


def read(spark, table, folder):
    pq.write_table(table, folder / "rows.parquet", row_group_size=500)
    return spark.read.parquet(str(folder / "rows.parquet"))


def in_order(frame):
    return frame.toArrow().sort_by("row")


def assert_same_ids(encoded, expected, features=FEATURES):
    got = in_order(encoded)
    assert got.column_names == expected.column_names
    for name in features:
        assert got[name].type == pa.int32()
        assert got[name].to_pylist() == expected[name].to_pylist(), name
