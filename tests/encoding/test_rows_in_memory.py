"""Training rows that are encoded in memory, against queries for them."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.columns import queries, tables

_FITS = st.sampled_from(
    [
        {"smoothing": 2, "dedicated_min": 3},
        {"smoothing": 2, "dedicated_min": 4, "min_count": 2, "unseen": "own"},
        {"smoothing": 0, "dedicated_min": 5, "shared_ids": 2},
        {"smoothing": 1, "dedicated_min": 5, "min_count": 4},
        {"aim": "information", "min_count": 2},
    ]
)


def encoded(table, options, fit):
    counts = vf.count(table, "y", **options)
    book = vf.fit(counts, 14, **fit)
    turned = pa.concat_tables([table.slice(1), table.slice(0, 1)])
    # The order of rows is looked at, as these may be others than those that were counted.
    found = [outcome(book.transform, rows, counts=counts, only_ids=True) for rows in (table, turned)]
    return [*found, outcome(fitted_and_encoded, table, options | fit)]


def fitted_and_encoded(table, options):
    return vf.fit_transform(table, "y", 14, **options, only_ids=True)[1]


def outcome(function, *args, **options):
    try:
        return function(*args, **options).to_pydict()
    except vf.InputError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::vocabfold.VocabfoldWarning")
@settings(max_examples=60)
@given(tables(), _FITS)
def test_training_rows_have_the_ids_of_queries(drawn, fit):
    table, options = drawn
    options = {"folds": 3, **options}
    with queries():
        expected = encoded(table, options, fit)
    assert encoded(table, options, fit) == expected
