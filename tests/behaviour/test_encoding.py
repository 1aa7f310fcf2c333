"""Codebook + rows -> ids: the same on both engines, for rows of training as for new ones."""

import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import vocabfold as vf
from support.frames import FEATURES, assert_same_ids
from support.reference import out_of_fold

slow = pytest.mark.slow
# Most tests look up the very rows that they fitted.
may_be_same_rows = pytest.mark.filterwarnings("ignore:.*looks like the training data")


@may_be_same_rows
def test_rows_get_the_ids_of_their_values(tried, expected, table):
    book = tried.book()
    encoded = tried.encoded(book, offset_ids=True)
    assert_same_ids(encoded, expected.encoded(expected.book(), offset_ids=True))
    known = {row["value"]: row["id"] for row in expected.book()["number"].to_pylist()}
    start, other = book.offsets["number"], book.columns["number"].other
    by_hand = [start + known.get(value, other) for value in table["number"].to_pylist()]
    assert encoded["number"].to_pylist() == by_hand
    assert encoded.drop(FEATURES).equals(table.drop(FEATURES))


@pytest.mark.parametrize(
    "settings",
    [
        {"aim": "information", "min_count": 4, "unseen": "own"},
        pytest.param({"min_count": 9, "unseen": "other"}, marks=slow),
        pytest.param({"aim": "information", "method": "hashing", "allocation": "uniform"}, marks=slow),
    ],
    ids=str,
)
def test_new_rows_and_unseen_values_get_ids(tried, expected, settings):
    found, same = (work.encoded(work.book(**settings), work.new_rows) for work in (tried, expected))
    assert_same_ids(found, same)


def test_an_unseen_value_is_an_error_if_it_is_to_be(tried, expected):
    book = vf.fit(vf.count(expected.rows, "click", "number"), 10, aim="information", unseen="error")
    rows = tried.engine.rows(pa.table({"row": [0, 1], "number": [1, 99]}))
    with pytest.raises(Exception, match="column 'number': the value 99 is not in the codebook"):
        tried.encoded(book, rows)


def test_numbers_are_found_by_value(tried):
    book = vf.fit(vf.count(tried.rows, "click", ["number", "share"]), 60, aim="information")
    values = {
        "number": pa.array([27, 27.5, None, 1e300, float("nan")]),
        "share": pa.array([0, 1, -1, 2**53 + 1, None]),
    }
    found = tried.encoded(book, tried.engine.rows(pa.table({"row": range(5)} | values)))
    for name, of_name in values.items():
        assert found[name].to_pylist() == book.ids(name, of_name).tolist(), name


@pytest.mark.parametrize(
    ("features", "options"),
    [
        (FEATURES[:3], {}),
        (FEATURES[:3], {"unseen": "own", "dedicated_min": 15}),
        pytest.param(FEATURES, {}, marks=slow),
    ],
    ids=str,
)
def test_training_rows_are_encoded_out_of_fold(tried, expected, features, options):
    (book, encoded), (same, rows) = (
        vf.fit_transform(work.rows, "click", 50, features=features, fold_column="fold", **options)
        for work in (tried, expected)
    )
    assert [column.training_rows for column in book.columns.values()] == [
        column.training_rows for column in same.columns.values()
    ]
    assert ("unseen" in options) == any(column.is_other_trained for column in book.columns.values())
    assert book.digest == same.digest
    assert book.gain == pytest.approx(same.gain, abs=1e-12)
    assert_same_ids(tried.engine.table(encoded).sort_by("row"), rows.sort_by("row"), features)
    with pytest.warns(UserWarning, match=f"{tried.engine.subject} looks like the training data"):
        book.transform(tried.rows)


@pytest.mark.filterwarnings("ignore:.*was not counted in their fold")
def test_folds_are_those_that_were_counted(tried, table):
    """A row that is in no fold, or in none that was counted, has the id of its value."""
    rows = table.slice(0, 300).select(["row", "number", "fold", "click"])
    counts = vf.count(tried.engine.rows(rows), "click", "number", fold_column="fold")
    book = vf.fit(counts, 9, min_count=1, smoothing=2)

    def with_folds(folds):
        return tried.engine.rows(rows.set_column(2, "fold", folds))

    numbers, folds = rows["number"].to_pylist(), rows["fold"].to_pylist()
    column, ids = book.columns["number"], {row["value"]: row["id"] for row in book["number"].to_pylist()}
    in_folds = out_of_fold(
        list(zip(numbers, rows["click"].to_pylist(), folds, strict=True)),
        ids,
        column.shared,
        column.borders,
        (column.mean, column.strength),
        column.other,
    )
    moved = pa.array([-1 if i % 3 == 0 else fold if i % 3 == 1 else None for i, fold in enumerate(folds)])
    by_hand = [in_folds[i] if i % 3 == 1 else ids[number] for i, number in enumerate(numbers)]
    assert by_hand != in_folds
    assert tried.encoded(book, with_folds(moved), counts=counts)["number"].to_pylist() == by_hand
    with pytest.raises(Exception, match="must hold whole numbers from 0 to 3,.* got"):
        tried.encoded(book, with_folds(pc.add(pa.array(folds), 9)), counts=counts)
    with pytest.raises(vf.InputError, match="fold_column 'fold' must hold whole numbers, got"):
        book.transform(with_folds(pa.array(["a"] * 300)), counts=counts)


def test_a_codebook_whose_folder_is_gone_says_so(tried, expected, tmp_path):
    expected.book().save(tmp_path / "book")
    book = vf.load(tmp_path / "book")
    shutil.rmtree(tmp_path / "book")
    with pytest.raises(vf.CodebookError, match="has been removed or replaced since it was loaded"):
        book.transform(tried.rows)
