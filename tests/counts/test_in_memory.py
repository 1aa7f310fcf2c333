"""Columns that are counted in memory, against queries for them."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.columns import queries, tables
from vocabfold.counts import in_memory, local
from vocabfold.io.engines.duckdb import Engine


def in_both_ways(function, *args, **options):
    with queries():
        expected = function(*args, **options)
    return function(*args, **options), expected


@settings(max_examples=100)
@given(tables())
def test_frames_are_counted_as_queries_count_them(drawn):
    table, options = drawn
    found, expected = in_both_ways(vf.count, table, "y", **options)
    assert (found.kinds, found.of_all, found.folds) == (expected.kinds, expected.of_all, expected.folds)
    for name in found.features:
        assert found[name].equals(expected[name])
        is_sorted = [in_memory.is_sorted(counts.parts[0].tables[name]) for counts in (found, expected)]
        assert is_sorted == ["date64" not in str(table[name].type), False]


_FITS = st.sampled_from(
    [
        {"aim": "information"},
        {"aim": "information", "min_count": 3},
        {"aim": "information", "method": "frequency"},
        {"aim": "information", "method": "hashing", "allocation": "uniform", "min_count": 2},
        {"smoothing": 2, "dedicated_min": 3},
        {"smoothing": 2, "dedicated_min": 4, "min_count": 2, "unseen": "own"},
        {"smoothing": 0, "dedicated_min": 5, "shared_ids": 2},
    ]
)


def fitted(tables, options, fit):
    counts = sum(vf.count(table, "y", **options) for table in tables)
    return counts, vf.fit(counts, 12, **fit)


@pytest.mark.filterwarnings("ignore::vocabfold.VocabfoldWarning")
@settings(max_examples=60)
@given(tables(), _FITS, st.integers(1, 3))
def test_codebooks_are_those_of_queries(drawn, fit, n_parts):
    table, options = drawn
    parts = [table.slice(i) for i in range(n_parts)]
    (counts, book), (_, expected) = in_both_ways(fitted, parts, options, fit)
    assert book.digest == expected.digest
    for name in book.features:
        assert book[name].equals(expected[name])
        assert book.columns[name].training_rows == expected.columns[name].training_rows
        assert book.columns[name].gain == pytest.approx(expected.columns[name].gain)
        values = book[name]["value"].combine_chunks()
        with queries():
            ids = expected.ids(name, values)
        assert book.ids(name, values).tolist() == ids.tolist() == book[name]["id"].to_pylist()
        assert counts.n_values[name] == len(counts[name]["value"].unique())


def frame(n=300):
    rng = np.random.default_rng(0)
    values = [None if code == 3 else f"v{code}" for code in rng.integers(0, 90, n)]
    return pa.table({"x": values, "y": rng.integers(0, 2, n)})


def test_what_is_in_memory_is_fitted_and_encoded_without_queries(monkeypatch):
    table, fit = frame(), {"smoothing": 5, "dedicated_min": 6, "unseen": "own"}
    expected, ids = vf.fit_transform(table, "y", 12, **fit)
    digest = expected.digest
    counts = vf.count(table, "y", folds=5)
    for name in ("run", "stream", "write"):
        monkeypatch.setattr(Engine, name, lambda *_: pytest.fail("a query"))
    book = vf.fit(counts, 12, **fit)
    assert book.transform(table, counts=counts).equals(ids)
    assert book.ids("x", ["v1", None]).tolist() == expected.ids("x", ["v1", None]).tolist()
    assert counts.n_values == {"x": 89}
    monkeypatch.undo()
    assert book.digest == digest


@pytest.mark.parametrize(
    ("values", "memory_limit", "is_here"),
    [
        (["a"] * 9, 2**30, True),
        (["a" * 2**10] * 9, 2**16, False),  # more than an eighth of the memory
        (["a" * 2**25] * 9, 2**40, False),  # long values
        ([1] * 2**20, 2**25, False),
    ],
)
def test_one_rule_says_what_is_counted_in_memory(values, memory_limit, is_here):
    assert in_memory.is_small([pa.chunked_array([values])], memory_limit) == is_here


def test_counts_that_are_not_in_order_are_read_here_if_they_are_few(monkeypatch):
    one = vf.count(frame(), "y")
    tables = [counts.parts[0].tables["x"] for counts in (one, one)]
    for most, in_order, both in ((200, True, True), (100, True, False)):
        monkeypatch.setattr(in_memory, "_MOST_UNSORTED", most)
        assert in_memory.are_small(tables[:1], 2**30) == in_order
        assert in_memory.are_small(tables, 2**30) == both
        assert (one + one)["x"].num_rows == 89


def test_counts_keep_few_columns_in_memory(monkeypatch):
    table = frame()
    counts = vf.count(table.append_column("z", table["x"]), "y", ["x", "z"])
    room = counts.table.in_memory("x").nbytes * 1.5 / counts.table._limit
    expected = vf.fit(counts, 12, aim="information")
    for share, kept in ((room, ["x"]), (0, [])):
        monkeypatch.setattr(local, "_KEPT_SHARE", share)
        again = replace(counts)  # without what is kept
        book = vf.fit(again, 12, aim="information")
        assert list(again.table._held) == kept
        assert book.ids("z", ["v1", "v2"]).tolist() == expected.ids("z", ["v1", "v2"]).tolist()
        assert book.digest == expected.digest


def test_a_pickle_holds_the_counts_once():
    counts = vf.count(frame(), "y")
    before = pickle.dumps(counts)
    vf.fit(counts, 12, aim="information")
    assert len(pickle.dumps(counts)) <= len(before)
    assert pickle.loads(before)["x"].equals(counts["x"])
