"""Rows, files of them, and what a loop over them counts."""

import datetime
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

import vocabfold as vf
from support.reference import count_rows

fold_counts = partial(vf.fit, aim="information")  # every value, however few its rows


def clicks(n=3000, seed=0, n_sites=400):
    """Rows of a column with many rare values that tell something, and of one with a few."""
    rng = np.random.default_rng(seed)
    site = np.minimum(rng.zipf(1.5, n), n_sites)
    click = rng.random(n) < 0.1 + 0.6 * (site * 7919 % 97 / 97)
    device = [None if d == 3 else f"d{d}" for d in rng.integers(0, 6, n)]
    fold = rng.integers(0, 3, n)
    columns = {"site": [f"s{s}" for s in site], "device": device, "click": click.astype(int), "part": fold}
    return pa.table(columns)


SITES = ["a", "b", None, "", "nan", "NULL", " ", "None", "ä;\"'\n\t,", "\x00x", "💥", "a"]
FEATURES = ["site", "number", "real", "flag", "day"]


def sample(n=60, seed=0):
    """Rows with five kinds of values, all of them sometimes missing."""
    rng = np.random.default_rng(seed)

    def often(values):
        return [None if rng.random() < 0.1 else values[i] for i in rng.integers(0, len(values), n)]

    return [
        dict(zip(["site", "number", "real", "flag", "day", "click"], cells, strict=True))
        for cells in zip(
            [SITES[i] for i in rng.integers(0, len(SITES), n)],
            often([-3, 0, 1, 7, 2**40]),
            often([0.5, -0.0, 0.0, 1.0, 1e300, -2.25]),
            often([True, False]),
            often([datetime.date(1900 + i, 1, 2) for i in range(5)]),
            rng.integers(0, 2, n).tolist(),
            strict=True,
        )
    ]


SCHEMA = pa.schema(
    [
        ("site", pa.string()),
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("click", pa.int64()),
    ]
)


def arrow(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def tabulated(table):
    """Return {(type, value): [neg, pos]} of a column of counts, as `count_rows` does."""
    return {(type(row["value"]).__name__, row["value"]): [row["neg"], row["pos"]] for row in table.to_pylist()}


def assert_equals_loop(counts, rows, label="click", features=FEATURES, **options):
    for feature in features:
        assert tabulated(counts[feature]) == count_rows(rows, feature, label, **options)


def write_csv(table, path):
    # As text, -0.0 and 0.0 are two values.
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(i, field, pa.compute.add(table.column(i), 0.0))
    # DuckDB's own writer quotes an empty text, so that it differs from a missing one.
    connection = duckdb.connect()
    connection.register("t", table)
    connection.execute(f"COPY t TO '{path}' (HEADER, DELIMITER '{',' if '.csv' in path.name else chr(9)}')")
