"""The estimator: values, labels and names in every container, and the way back from ids."""

import copy
import datetime
import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vocabfold as vf
from support.learning import NEW, SAME_ROWS, X, Y, rows
from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor

# Input of every kind.

VALUES = {
    "text": ["x", "y", None, "x"],
    "integer": [3, 1, None, 3],
    "float": [0.5, 1.5, None, 0.5],
    "boolean": [True, False, None, True],
    "date": [datetime.date(2024, 2, 29), datetime.date(2025, 1, 1), None, datetime.date(2024, 2, 29)],
    "timestamp": [datetime.datetime(2024, 2, 29, 12), datetime.datetime(2025, 1, 1), None] * 2,
}


TYPES = {"text": "str", "integer": "Int64", "boolean": "boolean", "timestamp": "datetime64[us]"}


def as_given(kind, values):
    """One column in all the containers that may hold it."""
    yield "objects", np.array(values, object)[:, None]
    yield "list", [[value] for value in values]
    yield "pandas", pd.DataFrame({"v": pd.Series(values, dtype=TYPES.get(kind, object))})
    yield "pandas objects", pd.DataFrame({"v": pd.Series(values, dtype=object)})
    yield "categories", pd.DataFrame({"v": pd.Categorical(values)})
    yield "polars", pl.DataFrame({"v": values})
    table = pa.table({"v": values})
    yield "arrow", table
    yield "arrow pieces", pa.concat_tables([table.slice(0, 1), table.slice(1)])
    yield "arrow batch", table.to_batches()[0]
    yield "arrow dictionary", pa.table({"v": table["v"].dictionary_encode()})
    yield "pandas on arrow", table.to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "text":
        yield "pandas string", pd.DataFrame({"v": pd.array(values, "string")})
        yield "polars categories", pl.DataFrame({"v": pl.Series(values, dtype=pl.Categorical)})
        yield "polars enum", pl.DataFrame({"v": pl.Series(values, dtype=pl.Enum(["z", "y", "x"]))})
    if kind == "timestamp":
        yield "numpy", np.array(values, "M8[us]")[:, None]
    if kind == "float":
        yield "numpy", np.array(values, float)[:, None]
        yield "polars nan", pl.DataFrame({"v": np.array(values, float)})
        yield "half", np.array(values, np.float16)[:, None]


@functools.cache
def ids_of_objects(kind):
    column = np.array(VALUES[kind] * 6, object)[:, None]
    labels = ([1, 0, 0, 1, 0, 1] * 6)[: len(column)]
    return VocabularyCompressor(10, dedicated_min=1).fit_transform(column, labels)


@pytest.mark.parametrize(
    ("kind", "name", "container"),
    [(kind, *given) for kind, values in VALUES.items() for given in as_given(kind, values * 6)],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_every_container_gives_the_same_ids(kind, name, container):
    compressor = VocabularyCompressor(10, dedicated_min=1)
    ids = compressor.fit_transform(container, ([1, 0, 0, 1, 0, 1] * 6)[: len(container)])
    np.testing.assert_array_equal(ids, ids_of_objects(kind))
    assert next(iter(compressor.codebook_.columns.values())).kind == kind
    with pytest.warns(UserWarning, match=SAME_ROWS):
        np.testing.assert_array_equal(compressor.transform(container), ids)  # all values have dedicated ids
    column = [None if pd.isna(value) else value for value in compressor.inverse_transform(ids)[:, 0]]
    assert column == VALUES[kind] * 6


@pytest.mark.parametrize("missing", [None, np.nan, float("nan"), pd.NA, pd.NaT], ids=repr)
def test_missing_is_missing_whatever_it_is_called(missing):
    labels = [1, 0, 1] * 8
    compressor = VocabularyCompressor(10, dedicated_min=1)
    compressor.fit(pd.DataFrame({"v": ["a", "b", None] * 8}), labels)
    known = compressor.transform(pd.DataFrame({"v": ["a", None]}))
    column = pd.Series(["a", missing], dtype=object)
    np.testing.assert_array_equal(compressor.transform(pd.DataFrame({"v": column})), known)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(compressor.transform(column.to_numpy()[:, None]), known)
    alone = pd.DataFrame({"v": [missing]})  # of which pandas makes a column of floats, say
    np.testing.assert_array_equal(compressor.transform(alone), known[1:])


def test_numbers_are_compared_by_value():
    compressor = VocabularyCompressor(10, dedicated_min=1).fit(np.array([[1], [2], [3]] * 8), [0, 1, 1] * 8)
    whole = compressor.transform(np.array([[3], [1]], np.int8))
    np.testing.assert_array_equal(compressor.transform(np.array([[3.0], [1.0]])), whole)
    with pytest.raises(vf.InputError, match="^column 'x0' holds text in X, but integer in the codebook"):
        compressor.transform([["3"]])


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        *((0, 1), (False, True), (0.0, 1.0), (-0.0, 1.0), (-1, 1), ("no", "yes"), (7, 9)),
        (np.datetime64("2024-01-01", "ns"), np.datetime64("2025-01-01", "ns")),
    ],
)
def test_any_two_labels(negative, positive, fitted):
    y = np.where(Y, positive, negative)
    compressor = VocabularyCompressor(60).fit(X, y)
    assert (compressor.classes_ == np.array([negative, positive])).all()
    assert compressor.sizes_ == fitted.sizes_
    np.testing.assert_array_equal(compressor.transform(NEW), fitted.transform(NEW))
    other = VocabularyCompressor(60, positive=negative).fit(X, y)
    assert other.counts_.positive_rows == len(Y) - Y.sum()


@pytest.mark.parametrize(
    "container",
    [list, pd.Series, pl.Series, pa.array, pd.Categorical, lambda y: np.array(y, object)],
    ids=["list", "pandas", "polars", "arrow", "categories", "objects"],
)
@pytest.mark.parametrize("values", [["no", "yes"], [0, 1]], ids=str)
def test_labels_in_any_container(container, values):
    column = np.array([["a"], ["b"], ["a"]] * 10)
    compressor = VocabularyCompressor(4).fit(column, container([values[0], values[1], values[1]] * 10))
    assert compressor.classes_.tolist() == values
    assert compressor.counts_.positive_rows == 20


def test_the_codebook_knows_the_label():
    y = pd.Series(np.where(Y, "yes", "no"), name="clicked")
    book = VocabularyCompressor(60).fit(X, y).codebook_
    assert (book.label, book.positive) == ("clicked", "yes")
    labels = np.where(rows(500, seed=1)[1], "yes", "no")
    assert book.evaluate(NEW.assign(clicked=labels)).rows == 500
    taken = X.rename(columns={"site": "clicked", "hour": "fold", "device": "sample_weight"})
    ids = VocabularyCompressor(60).fit_transform(taken, y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ids, VocabularyCompressor(60).fit_transform(X, Y))


def test_names_that_are_no_text_are_not_used():
    numbered = X.set_axis(range(3), axis=1)
    compressor = VocabularyCompressor(60).fit(numbered, Y)
    assert not hasattr(compressor, "feature_names_in_")
    assert compressor.n_features_in_ == 3
    assert list(compressor.sizes_) == ["x0", "x1", "x2"]
    assert compressor.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    hostile = X.set_axis(['"; DROP TABLE x', "", "y"], axis=1)
    assert list(VocabularyCompressor(60).fit(hostile, Y).sizes_) == list(hostile)


# Out again.


@pytest.mark.parametrize("n_threads", [1, 6])
def test_columns_keep_their_order_whoever_is_asked_first(n_threads):
    compressor = VocabularyCompressor(60).fit(X, Y)
    book, expected = copy.deepcopy(compressor.codebook_), compressor.transform(NEW)
    compressor = copy.deepcopy(compressor)
    with ThreadPoolExecutor(n_threads) as pool:
        asked = pool.submit(compressor.codebook_.ids, "hour", [1])
        assert n_threads > 1 or asked.result().size
        for found in pool.map(compressor.transform, [NEW] * 2 * n_threads):
            np.testing.assert_array_equal(found, expected)
    book.ids("device", ["phone"])
    assert list(book.transform(NEW, only_ids=True)) == list(X)


def test_frames_out():
    compressor = VocabularyCompressor(60).set_output(transform="pandas")
    framed = compressor.fit_transform(X.set_axis(X.index * 2 + 1), Y)
    assert isinstance(framed, pd.DataFrame)
    assert framed.index.equals(X.index * 2 + 1)
    assert list(framed) == list(X)
    assert set(framed.dtypes) == {np.dtype("int32")}
    assert compressor.feature_names_in_.tolist() == list(X)
    np.testing.assert_array_equal(framed, VocabularyCompressor(60).fit_transform(X, Y))
    compressor.set_output(transform="polars")
    new = pl.from_pandas(NEW)
    assert compressor.transform(new).schema == dict.fromkeys(X, pl.Int32)
    assert compressor.transform(new[:0]).shape == (0, 3)
    compressor.set_output(transform="default")
    np.testing.assert_array_equal(compressor.transform(new), compressor.transform(NEW))
    assert compressor.transform(pa.table(NEW)).shape == (500, 3)


def test_ids_over_all_columns(fitted):
    ids = VocabularyCompressor(60, offset_ids=True).fit(X, Y).transform(NEW)
    np.testing.assert_array_equal(ids, fitted.transform(NEW) + np.cumsum([0, *fitted.sizes_.values()])[:-1])
    shared = VocabularyCompressor(60, offset_ids=True)
    trained = shared.fit_transform(X, Y)
    assert trained.max() < sum(shared.sizes_.values())
    assert shared.inverse_transform(trained).shape == X.shape


def test_members_and_back(fitted):
    compressor = fitted
    assert list(compressor.members_) == list(X)
    assert len(compressor.members_) == 3
    members = compressor.members_["site"]
    assert [len(members), sum(map(len, members))] == [compressor.sizes_["site"], X["site"].nunique()]
    rows_of = X["site"].value_counts()
    assert members[0] == compressor.codebook_.members("site", 0)
    for values in members:
        assert rows_of[values[0]] == rows_of[values].max()
    ids = compressor.transform(NEW)
    back = compressor.inverse_transform(ids)
    assert back[:, 0].tolist() == [members[id][0] for id in ids[:, 0]]
    framed = pd.DataFrame(back, columns=list(X)).astype({"hour": "int64"})
    np.testing.assert_array_equal(compressor.transform(framed), ids)
    with pytest.raises(KeyError):
        compressor.members_["sitte"]
    assert repr(compressor.members_).startswith("Members(site: ")


def test_values_of_numbers_come_back_as_numbers():
    numbers = np.array([[1, 2.5], [2, np.nan]] * 30, float)
    compressor = VocabularyCompressor(10).fit(numbers, [0, 1] * 30)
    ids = compressor.transform([[1, 2.5], [2, np.nan]])
    np.testing.assert_array_equal(compressor.inverse_transform(ids), numbers[:2])
    whole = VocabularyCompressor(10).fit(numbers[:, :1].astype(int), [0, 1] * 30)
    assert whole.inverse_transform([[0.0], [1]]).tolist() == [[1], [2]]
    assert whole.inverse_transform([[0]]).dtype == np.int64


def test_values_of_several_types_come_back_as_they_were():
    table = pa.table(
        {
            "large": pa.array([2**60 + 1, 2**60 + 3] * 30),
            "unsigned": pa.array([2**63 + 1, 2**64 - 1] * 30, pa.uint64()),
            "float": [0.5, 1.5] * 30,
            "boolean": [True, False] * 30,
        }
    )
    compressor = VocabularyCompressor(10).fit(table, [0, 1] * 30)
    ids, rows = compressor.transform(table.slice(0, 2)), table.slice(0, 2).to_pylist()
    assert compressor.inverse_transform(ids).tolist() == [list(row.values()) for row in rows]
    framed = pd.DataFrame(ids, columns=table.column_names)[table.column_names[::-1]]
    assert compressor.inverse_transform(framed).tolist() == compressor.inverse_transform(ids).tolist()
    with pytest.raises(vf.InputError, match="^column 'large' is not in X"):
        compressor.inverse_transform(framed.rename(columns={"large": "other"}))
    assert (
        compressor.inverse_transform(pd.DataFrame(ids)).tolist() == compressor.inverse_transform(ids).tolist()
    )


def test_an_id_of_unseen_values_comes_back_as_missing():
    compressor = VocabularyCompressor(10, unseen="own").fit([["a"], ["b"]] * 30, [0, 1] * 30)
    ids = compressor.transform([["a"], ["new"]])
    assert compressor.inverse_transform(ids).tolist() == [["a"], [None]]
    assert compressor.members_["x0"][ids[1, 0]] == []


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[99, 0, 0]], r"^column 'site' has the ids 0 to \d+, got 99\.$"),
        ([[0, -1, 0]], r"^column 'hour' has the ids 0 to \d+, got -1\.$"),
        ([[0, 0.5, 0]], r"^column 'hour' has the ids 0 to \d+, got 0\.5\.$"),
        ([[0, np.nan, 0]], r"^column 'hour' has the ids 0 to \d+, got nan\.$"),
        ([["a", "b", "c"]], r"^X must hold numbers, got array\(\["),
        ([[0, 0]], r"^X has 2 columns of ids, but 3 columns were fitted\.$"),
    ],
)
def test_what_is_no_id(ids, message, fitted):
    with pytest.raises(vf.InputError, match=message):
        fitted.inverse_transform(ids)
