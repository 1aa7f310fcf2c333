"""Frames and files of every kind against a loop over their rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts
from support.encoded import NEW, by_hand
from vocabfold.encoding import encoder

# Most tests look up the very rows that they fitted; test_crossfit.py is about what that warns of.
pytestmark = pytest.mark.filterwarnings("ignore:.*looks like the training data")


def test_an_arrow_table_comes_back_with_ids(book):
    table = arrow(NEW)
    out = book.transform(table)
    assert {name: out[name].to_pylist() for name in book} == by_hand(book, NEW)
    assert out.schema.names == table.schema.names
    assert all(out.schema.field(name).type == pa.int32() for name in book)
    assert out["click"].equals(table["click"])
    batch = book.transform(table.combine_chunks().to_batches()[0])
    assert isinstance(batch, pa.RecordBatch)
    assert pa.Table.from_batches([batch]).equals(out)


def test_offsets_and_only_ids(book):
    out = book.transform(arrow(NEW), offset_ids=True, only_ids=True)
    assert out.to_pydict() == by_hand(book, NEW, offsets=True)
    ids = np.concatenate([out[name].to_numpy() for name in out.schema.names])
    assert ids.min() >= 0
    assert ids.max() < book.size


def test_a_pandas_frame_comes_back_with_its_index_and_other_columns(book):
    frame = arrow(NEW).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    frame.index = pd.Index(np.arange(len(frame)) * 3, name="key")
    frame["site"] = frame["site"].astype("category")
    frame["extra"] = [object() for _ in range(len(frame))]
    before = frame.copy()
    out = book.transform(frame)
    assert {name: out[name].tolist() for name in book} == by_hand(book, NEW)
    assert all(out[name].dtype == np.int32 for name in book)
    assert list(out.columns) == list(frame.columns)
    assert out.index.equals(frame.index)
    assert out["extra"].equals(frame["extra"])
    pd.testing.assert_frame_equal(frame, before)
    assert list(book.transform(frame, only_ids=True).columns) == FEATURES


def test_a_polars_frame_comes_back_lazy_or_not(book):
    frame = pl.from_arrow(arrow(NEW)).with_columns(pl.col("site").cast(pl.Categorical), extra=pl.lit([1, 2]))
    out = book.transform(frame)
    assert isinstance(out, pl.DataFrame)
    assert {name: out[name].to_list() for name in book} == by_hand(book, NEW)
    assert all(out[name].dtype == pl.Int32 for name in book)
    assert out["extra"].equals(frame["extra"])
    lazy = book.transform(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(out)


def test_an_empty_frame_comes_back_empty(book):
    for frame in (arrow([]), arrow([]).to_pandas(), pl.from_arrow(arrow([]))):
        assert book.transform(frame, only_ids=True).shape == (0, 5)


def test_numbers_are_found_by_value_whatever_their_width():
    book = fold_counts(vf.count(pa.table({"x": [1, 2, 3] * 5, "y": [0, 1, 1] * 5}), "y", "x"), 3, unseen="own")
    for values in ([1, 2, 9], np.array([1, 2, 9], np.int8), np.array([1.0, 2.0, 2.5], np.float32)):
        assert book.transform(pa.table({"x": pa.array(values)}))["x"].to_pylist() == [0, 1, 2]
    assert book.transform(pl.DataFrame({"x": [1, 2, 2**63]}, {"x": pl.UInt64}))["x"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("n_chunks", [1, 7])
def test_many_rows_keep_their_order(n_chunks, monkeypatch):
    monkeypatch.setattr(encoder, "_PIECE", 1000)
    rng = np.random.default_rng(1)
    values = rng.integers(0, 3000, 50_000)
    rows = pa.table({"x": [f"v{v}" for v in values], "y": rng.integers(0, 2, 50_000)})
    book = fold_counts(vf.count(rows, "y"), 300)
    size = 50_000 // n_chunks + 1
    chunked = pa.concat_tables([rows.slice(start, size) for start in range(0, 50_000, size)])
    known = {row["value"]: row["id"] for row in book["x"].to_pylist()}
    assert book.transform(chunked)["x"].to_pylist() == [known[value] for value in rows["x"].to_pylist()]
