"""Rows to encode, and their ids by hand."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import FEATURES, sample


def by_hand(book, rows, *, offsets=False):
    """Look every value up in a dict, one after the other."""
    ids = {}
    for name in book:
        known = {row["value"]: row["id"] for row in book[name].to_pylist()}
        start = book.offsets[name] if offsets else 0
        ids[name] = [start + known.get(row[name], book.columns[name].other) for row in rows]
    return ids


NEW = [*sample(200, seed=3), dict.fromkeys(FEATURES) | {"site": "never seen", "number": 12, "click": 1}]


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    return pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(newlines_in_values=True))


# What goes wrong


def refused(book, data, match, **options):
    with pytest.raises(vf.InputError, match=match):
        book.transform(data, **options)
