"""Columns that are counted in memory, against queries for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.columns import queries, tables
from vocabfold.counts import by_value


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
        is_sorted = [by_value.is_sorted(counts.parts[0].tables[name]) for counts in (found, expected)]
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
@settings(max_examples=150)
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
