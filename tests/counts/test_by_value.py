"""Columns that are counted in memory, against queries for them."""

from hypothesis import given, settings

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
