"""Rows of all kinds for both engines, and frames of Spark that hold them."""

import datetime
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

TEXT = "it's a `col`.{x}"
FEATURES = [TEXT, "number", "share", "flag", "day", "instant", "nothing"]


def generated(n_rows, seed=0):
    """Rows of all kinds, with values and names that are hard to quote, and missing ones.

    Tests know digests of codebooks of them, so they must be the same for ever, as Python's random numbers are.
    """
    random = Random(seed)

    def few(n):
        """Small numbers are frequent, large ones rare."""
        return [min(int(1 / (1 - random.random()) ** 2), n) for _ in range(n_rows)]

    def below(n):
        return [int(n * random.random()) for _ in range(n_rows)]

    begin = datetime.datetime(1969, 12, 31, 23, 59)
    texts = few(99)
    columns = {
        "row": pa.array(range(n_rows)),
        TEXT: pa.array([None if i == 2 else f"\\'{i}`é{{}} --" for i in texts], pa.string()),
        "number": pa.array([None if i == 5 else 40 - 13 * i for i in few(60)], pa.int32()),
        "share": pa.array([None if i == 3 else float("nan") if i == 4 else (i - 2) / 3 for i in few(50)]),
        "flag": pa.array([None if i == 3 else i % 2 == 0 for i in few(5)]),
        "day": pa.array([begin.date() + datetime.timedelta(20 - i) for i in few(70)]),
        "instant": pa.array([begin + datetime.timedelta(microseconds=77_777_777 * i) for i in few(70)]),
        "nothing": pa.nulls(n_rows),
        "fold": pa.array(below(4)),
        "weight": pa.array([i / 8 for i in below(9)]),
        "click": pa.array([i < 1 + i_text % 3 for i, i_text in zip(below(6), texts, strict=True)]),
    }
    return pa.table(columns)


def read(spark, table, path):
    """Return a table as a frame of Spark that is read from a file, by several tasks."""
    from pyspark.sql.functions import lit

    pq.write_table(table, path, row_group_size=500)
    nothing = [field.name for field in table.schema if pa.types.is_null(field.type)]  # no type of Parquet
    return spark.read.parquet(str(path)).withColumns({name: lit(None) for name in nothing})


def in_order(frame):
    return frame.toArrow().sort_by("row")


def assert_same_ids(got, expected, features=FEATURES):
    assert got.column_names == expected.column_names
    for name in features:
        assert got[name].type == pa.int32()
        assert got[name].to_pylist() == expected[name].to_pylist(), name
