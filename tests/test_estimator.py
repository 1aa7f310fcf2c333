"""The scikit-learn door: its own checks, what they leave out, and the steps behind it."""

import copy
import datetime
import functools
import inspect
import os
import pickle
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks as of_sklearn

import vocabfold as vf
from vocabfold.counts import local
from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor

SAME_ROWS = "X seems to be the rows that were fitted"
may_be_same_rows = pytest.mark.filterwarnings(f"ignore:{SAME_ROWS}")
may_weigh_much = pytest.mark.filterwarnings("ignore:rows weigh up to")


def rows(n_rows=4000, seed=0):
    """Columns with a tail, a frame and the label; rates differ between values."""
    rng = np.random.default_rng(seed)
    site = np.minimum(rng.pareto(0.8, n_rows) * 5, 900).astype(int)
    hour = rng.integers(0, 24, n_rows)
    device = rng.choice(["phone", "tablet", None], n_rows, p=[0.6, 0.3, 0.1])
    rate = 0.1 + 0.6 * ((site * 7919) % 10) / 10 + 0.2 * (device == "phone")
    frame = pd.DataFrame({"site": [f"s{i}" for i in site], "hour": hour, "device": device})
    return frame, (rng.random(n_rows) < rate).astype(int)


X, Y = rows()
NEW, _ = rows(500, seed=1)
EVEN, ODD = np.arange(0, 4000, 2), np.arange(1, 4000, 2)


@pytest.fixture(scope="module")
def fitted():
    return VocabularyCompressor(60).fit(X, Y)


# scikit-learn's own checks, none of which may fail. For the tag non_deterministic, which says that
# fit_transform differs from fit().transform(), some stop half way and two are not run; for preserves_dtype=[],
# as ids are int32, one is not run. The tests that follow check what these would have checked. One check needs a
# setting of SciPy's, which has to be made before SciPy is imported.
FAULTY = {}
if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7):
    # It makes two classes of three by the first row, and has shuffled one side before: so both sides differ.
    FAULTY["check_sample_weight_equivalence_on_dense_data"] = "a fault of the check, mended in 1.7"


@may_be_same_rows
@may_weigh_much
@of_sklearn.parametrize_with_checks([VocabularyCompressor()], expected_failed_checks=lambda _: FAULTY)
def test_the_checks_of_scikit_learn(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        assert str(reason) in (  # noqa: PT017
            "VocabularyCompressor is non deterministic",
            "SCIPY_ARRAY_API is not set: not checking array_api input",
        )


def test_the_check_with_the_array_api():
    code = (
        "import warnings; warnings.simplefilter('ignore'); import vocabfold as vf\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "for estimator, check in estimator_checks_generator(vf.VocabularyCompressor()):\n"
        "    if 'array_api' in str(check): check(estimator)"  # before 1.9 there is none
    )
    variables = os.environ | {"SCIPY_ARRAY_API": "1"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables)
    assert not result.returncode, result.stderr


@may_be_same_rows
@pytest.mark.parametrize(
    "check",
    [of_sklearn.check_methods_sample_order_invariance, of_sklearn.check_methods_subset_invariance],
    ids=lambda check: check.__name__,
)
def test_the_checks_that_the_tags_leave_out(check):
    check("VocabularyCompressor", VocabularyCompressor())


@may_be_same_rows
def test_a_pipeline_of_one_step_is_that_step():
    class Steady(VocabularyCompressor):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.non_deterministic = False
            return tags

    of_sklearn.check_pipeline_consistency("Steady", Steady())
    same = make_pipeline(VocabularyCompressor(60)).fit_transform(X, Y)
    np.testing.assert_array_equal(VocabularyCompressor(60).fit_transform(X, Y), same)


def test_fit_transform_is_repeatable_and_random_state_deals_the_rows():
    ids = VocabularyCompressor(60).fit_transform(X, Y)
    assert ids.dtype == np.int32
    assert ids.shape == X.shape
    np.testing.assert_array_equal(ids, VocabularyCompressor(60).fit_transform(X, Y))
    others = VocabularyCompressor(60, random_state=1).fit_transform(X, Y)
    assert 0 < (others != ids).mean() < 0.2
    state = np.random.RandomState(0)
    np.testing.assert_array_equal(ids, VocabularyCompressor(60, random_state=state).fit_transform(X, Y))
    assert (VocabularyCompressor(60, random_state=state).fit_transform(X, Y) != ids).any()


def test_lists_arrays_and_memmaps_are_the_same(tmp_path):
    numbers = X[["hour"]].assign(more=X["hour"] % 5 / 2).to_numpy()
    mapped = np.memmap(tmp_path / "rows", numbers.dtype, "w+", shape=numbers.shape)
    mapped[:] = numbers
    mapped.flush()
    read_only = np.memmap(tmp_path / "rows", numbers.dtype, "r", shape=numbers.shape)
    expected = VocabularyCompressor(20).fit_transform(numbers, Y)
    for given_x, given_y in [
        (numbers.tolist(), Y.tolist()),
        (numbers.astype(object), Y.astype(object)),
        (np.asfortranarray(numbers), Y),
        (numbers[::-1][::-1], Y[::-1][::-1]),
        (mapped, Y),
        (read_only, Y),
        (of_sklearn._NotAnArray(numbers), of_sklearn._NotAnArray(Y)),
    ]:
        found = VocabularyCompressor(20).fit_transform(given_x, given_y)
        np.testing.assert_array_equal(found, expected)


# The steps behind it.


@pytest.mark.parametrize(
    "options", [{}, {"aim": "information"}, {"unseen": "own", "tail": 3}, {"min_count": 5}]
)
def test_the_codebook_is_that_of_the_steps(options):
    counts = vf.count(X.assign(y=Y), "y", features=list(X))
    book = vf.fit(counts, 60, **{"min_count": 1} | options)
    fitted = VocabularyCompressor(60, **options).fit(X, Y)
    assert fitted.codebook_.digest == book.digest
    assert fitted.codebook_.label == "y"
    assert fitted.codebook_.sources == ("the pandas DataFrame",)
    assert fitted.sizes_ == book.sizes
    assert fitted.information_ == book.information
    np.testing.assert_array_equal(fitted.transform(NEW), book.transform(NEW).to_numpy())
    cross_fitted = VocabularyCompressor(60, **options)
    cross_fitted.fit_transform(X, Y)
    assert cross_fitted.codebook_.digest == book.digest
    assert cross_fitted.codebook_.gain is not None


@pytest.mark.parametrize("options", [{}, {"aim": "information"}, {"unseen": "own"}, {"min_count": 5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_rows_are_encoded_out_of_fold(options, weighted):
    folds = np.random.default_rng(5).integers(0, 4, len(X))
    weights = np.random.default_rng(6).integers(0, 4, len(X)) if weighted else np.ones(len(X), int)
    frame = X.assign(y=Y, fold=folds, weight=weights)
    _, expected = vf.fit_transform(
        frame, "y", 60, features=list(X), fold_column="fold", weight="weight", only_ids=True, **options
    )
    compressor = VocabularyCompressor(60, cv=PredefinedSplit(folds), **options)
    found = compressor.fit_transform(X, Y, sample_weight=weights if weighted else None)
    np.testing.assert_array_equal(found, expected.to_numpy())


def test_no_id_knows_the_label_of_its_row():
    """Values that were seen once: in sample, their ids are their labels; out of fold, they tell nothing."""
    rng = np.random.default_rng(0)
    ids, labels = np.arange(3000)[:, None], rng.integers(0, 2, 3000)
    compressor = VocabularyCompressor(8, smoothing=1)
    out_of_fold = compressor.fit_transform(ids, labels)[:, 0]
    assert len(set(out_of_fold)) == 1
    with pytest.warns(UserWarning, match=SAME_ROWS):
        in_sample = compressor.transform(ids)[:, 0]
    assert abs(np.corrcoef(in_sample, labels)[0, 1]) > 0.99


@may_weigh_much
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_weight_of_three_is_three_rows(data):
    n_rows = data.draw(st.integers(4, 40))
    values = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n_rows, max_size=n_rows))
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    weights[:2] = 1
    labels = np.array(
        [0, 1] + data.draw(st.lists(st.booleans(), min_size=n_rows - 2, max_size=n_rows - 2)), int
    )
    column = np.array(values, object)[:, None]
    options = {"private_min": 5, "tail": 2, "smoothing": 3}
    weighted = VocabularyCompressor(9, **options).fit(column, labels, sample_weight=weights)
    repeated = VocabularyCompressor(9, **options).fit(np.repeat(column, weights, 0), np.repeat(labels, weights))
    assert weighted.codebook_.digest == repeated.codebook_.digest


def test_weights_that_are_not_whole():
    weights = np.where(Y, 1.0, 2.5)
    book = vf.fit(vf.count(X.assign(y=Y, w=weights), "y", list(X), weight="w"), 60, min_count=1)
    assert VocabularyCompressor(60).fit(X, Y, sample_weight=list(weights)).codebook_.digest == book.digest


@pytest.mark.parametrize("begin", ["fit", "fit_transform", "partial_fit"])
def test_partial_fit_adds_counts(begin):
    compressor = VocabularyCompressor(60)
    getattr(compressor, begin)(X[:1000], Y[:1000])
    if begin != "partial_fit":
        assert compressor.sizes_ != VocabularyCompressor(60).fit(X, Y).sizes_
    for start in range(1000, 4000, 750):
        y = pd.Series(Y[start : start + 750] == 1, name=f"label {start}")  # the name of the first one stays
        assert compressor.partial_fit(X[start : start + 750], y) is compressor
    whole = VocabularyCompressor(60).fit(X, Y)
    assert compressor.codebook_.digest == whole.codebook_.digest
    np.testing.assert_array_equal(compressor.transform(NEW), whole.transform(NEW))
    assert compressor.counts_.rows == 4000
    with pytest.warns(UserWarning, match=SAME_ROWS):
        compressor.transform(X[1000:1750])


def test_partial_fit_of_batches_without_a_class_a_kind_or_values():
    frame = pd.DataFrame({"a": ["u", "v", None, "u"], "n": [1, 2, 3, 1]})
    batches = [
        (frame[:2].assign(a=np.nan), ["no", "no"]),  # all missing: of any kind
        (frame[2:].assign(n=[np.nan, 1.0]), ["yes", "yes"]),  # integers, of which pandas makes floats
        (frame, ["yes", "no", "yes", "no"]),
    ]
    compressor = VocabularyCompressor(10, private_min=1)
    with pytest.raises(vf.InputError, match=r"^y has one class only \('no'\); rows of both classes"):
        compressor.partial_fit(*batches[0])
    for batch in batches:
        compressor.partial_fit(*batch, classes=["yes", "no"])
        assert compressor.classes_.tolist() == ["no", "yes"]
    assert dict(compressor.counts_.kinds) == {"a": "text", "n": "integer"}
    everything = pd.concat([batch for batch, _ in batches]).astype({"n": "Int64"})
    whole = VocabularyCompressor(10, private_min=1).fit(everything, sum((labels for _, labels in batches), []))
    assert compressor.codebook_.digest == whole.codebook_.digest
    with pytest.raises(vf.InputError, match="^y has the value 'maybe', and the classes are 'no' and 'yes'"):
        compressor.partial_fit(frame, ["yes", "no", "yes", "maybe"])
    with pytest.raises(vf.InputError, match="^feature 'n' is integer on one side and float on the other"):
        compressor.partial_fit(frame.assign(n=1.5), ["yes", "no", "yes", "no"])
    with pytest.raises(vf.InputError, match="^feature 'a' is text on one side and integer on the other"):
        compressor.partial_fit(frame.assign(a=1), ["yes", "no", "yes", "no"])
    assert compressor.codebook_.digest == whole.codebook_.digest


def test_one_class_so_far():
    compressor = VocabularyCompressor(10).partial_fit([["a"], ["b"]], [1, 1], classes=[0, 1])
    with pytest.raises(NotFittedError, match=r"^there is no codebook yet: no row has a negative label \('y', "):
        compressor.transform([["a"]])
    assert not hasattr(compressor, "codebook_")
    assert "VocabularyCompressor" in compressor._repr_html_()
    compressor.partial_fit([["a"], ["b"]], [0, 0])
    assert compressor.transform([["a"]]).shape == (1, 1)


def test_fit_forgets_what_was_learnt_before():
    compressor = VocabularyCompressor(60).fit(X, Y)
    with pytest.raises(vf.InputError, match="one class only"):
        compressor.fit(X[["site"]], np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        compressor.transform(NEW)
    assert not hasattr(compressor, "codebook_")
    assert VocabularyCompressor(60).fit(NEW, Y[:500]).fit(X, Y).counts_.rows == 4000


def test_many_batches_are_added_up():
    compressor = VocabularyCompressor(20)
    for start in range(0, 600, 20):
        compressor.partial_fit(X[start : start + 20], Y[start : start + 20], classes=[0, 1])
    assert len(compressor.counts_.parts) <= 17
    assert not any(part.folder for part in compressor.counts_.parts)
    assert compressor.codebook_.digest == VocabularyCompressor(20).fit(X[:600], Y[:600]).codebook_.digest


def test_partial_fit_keeps_the_options_that_it_had():
    compressor = VocabularyCompressor(60).partial_fit(X, Y).set_params(budget=5)
    assert sum(compressor.sizes_.values()) > 5
    with pytest.raises(vf.InputError, match="^budget must be at least 1, got 0"):
        compressor.set_params(budget=0).partial_fit(X, Y)
    with pytest.raises(vf.InputError, match=r"^classes were \[0, 1\] at first, got \[1, 2\]"):
        compressor.set_params(budget=60).partial_fit(X, Y, classes=[1, 2])


@pytest.mark.parametrize("nothing", [[None] * 40, [np.nan] * 40, [pd.NaT] * 40], ids=["None", "NaN", "NaT"])
def test_a_column_that_was_all_missing_has_values_later(nothing):
    """As in a part of a cross-validation: what was not seen gets the id of all that was not seen."""
    frame, y = pd.DataFrame({"a": ["u", "v"] * 20, "n": nothing}), [0, 1] * 20
    compressor = VocabularyCompressor(10).fit(frame, y)
    batched = VocabularyCompressor(10).partial_fit(frame, y)
    assert compressor.codebook_.digest == batched.codebook_.digest
    for values in (["x", None], [1, None], [1.5, np.nan], [True, None], [datetime.date(2024, 1, 1), None]):
        new = pd.DataFrame({"a": ["u", "v"], "n": values})
        assert compressor.transform(new)[0, 1] == compressor.codebook_.columns["n"].other
        with_values = copy.deepcopy(batched).partial_fit(new, [0, 1])
        assert with_values.counts_.kinds["n"] != "missing"
        if nothing[0] is np.nan:  # which polars does not take for missing
            assert with_values.partial_fit(pl.from_pandas(frame, nan_to_null=False), y).counts_.rows == 82


def test_what_is_masked_is_missing():
    masked = np.ma.masked_array([[1], [2], [99]] * 10, [[0], [0], [1]] * 10)
    compressor = VocabularyCompressor(10, private_min=1).fit(masked, [0, 1, 1] * 10)
    assert sorted(map(str, sum(compressor.members_["x0"], []))) == ["1", "2", "None"]
    for values in (np.array([[1.5], [2]] * 10), np.array([["2024-01-01"], ["2025-01-01"]] * 10, "M8[ns]")):
        kinds = [
            VocabularyCompressor(10).fit(column, [0, 1, 1, 0] * 5).counts_.kinds["x0"]
            for column in (values, np.ma.masked_array(values, [[0], [0], [0], [1]] * 5))
        ]
        assert kinds[0] == kinds[1]
    with pytest.raises(vf.InputError, match="^weight 'sample_weight' is negative, missing or not a finite"):
        VocabularyCompressor(10).fit(X, Y, sample_weight=np.ma.masked_array(np.ones(4000), Y == 1))


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
    return VocabularyCompressor(10, private_min=1).fit_transform(column, labels)


@pytest.mark.parametrize(
    ("kind", "name", "container"),
    [(kind, *given) for kind, values in VALUES.items() for given in as_given(kind, values * 6)],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_every_container_gives_the_same_ids(kind, name, container):
    compressor = VocabularyCompressor(10, private_min=1)
    ids = compressor.fit_transform(container, ([1, 0, 0, 1, 0, 1] * 6)[: len(container)])
    np.testing.assert_array_equal(ids, ids_of_objects(kind))
    assert next(iter(compressor.codebook_.columns.values())).kind == kind
    with pytest.warns(UserWarning, match=SAME_ROWS):
        np.testing.assert_array_equal(compressor.transform(container), ids)  # all values are private
    column = [None if pd.isna(value) else value for value in compressor.inverse_transform(ids)[:, 0]]
    assert column == VALUES[kind] * 6


@pytest.mark.parametrize("missing", [None, np.nan, float("nan"), pd.NA, pd.NaT], ids=repr)
def test_missing_is_missing_whatever_it_is_called(missing):
    labels = [1, 0, 1] * 8
    compressor = VocabularyCompressor(10, private_min=1)
    compressor.fit(pd.DataFrame({"v": ["a", "b", None] * 8}), labels)
    known = compressor.transform(pd.DataFrame({"v": ["a", None]}))
    column = pd.Series(["a", missing], dtype=object)
    np.testing.assert_array_equal(compressor.transform(pd.DataFrame({"v": column})), known)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(compressor.transform(column.to_numpy()[:, None]), known)
    alone = pd.DataFrame({"v": [missing]})  # of which pandas makes a column of floats, say
    np.testing.assert_array_equal(compressor.transform(alone), known[1:])


def test_numbers_are_compared_by_value():
    compressor = VocabularyCompressor(10, private_min=1).fit(np.array([[1], [2], [3]] * 8), [0, 1, 1] * 8)
    whole = compressor.transform(np.array([[3], [1]], np.int8))
    np.testing.assert_array_equal(compressor.transform(np.array([[3.0], [1.0]])), whole)
    with pytest.raises(vf.InputError, match="^column 'x0' holds text in X, and integer in the codebook"):
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
        ([[0, 0]], r"^X has 2 columns of ids, and 3 were fitted\.$"),
    ],
)
def test_what_is_no_id(ids, message, fitted):
    with pytest.raises(vf.InputError, match=message):
        fitted.inverse_transform(ids)


# Errors and warnings.


def refused(message, given_x=X, given_y=Y, weights=None, **options):
    for method in ("fit", "fit_transform"):
        with pytest.raises(vf.InputError, match=message):
            getattr(VocabularyCompressor(60, **options), method)(given_x, given_y, sample_weight=weights)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            np.zeros(4000, int),
            r"^y has one class only \(0\); rows of both classes are needed to fit, or, to begin partial_fit",
        ),
        (
            np.arange(4000) % 3,
            r"^y has 3 distinct values \(0 in 1,334 rows, 1 in 1,333 rows, 2 in 1,333 rows\), ",
        ),
        (
            np.linspace(0, 1, 4000),
            r"^y has 4,000 distinct values \(0\.0 in 1 row, .*, \.\.\.\), and exactly two",
        ),
        (np.where(Y, 1, np.nan), r"^y is missing in [\d,]+ rows; leave these rows out, or fill them in\.$"),
        ([None] * 4000, r"^y is missing in 4,000 rows"),
        (pd.Series([0, 1, 1, pd.NA] * 1000, dtype="Int64"), r"^y is missing in 1,000 rows"),
        (Y[:-1], r"^X has 4,000 rows and y has 3,999; give a label for each row\.$"),
        ([0, "1"] * 2000, r"^column 'y' mixes int and str"),
        (np.arange(4000).astype("M8[ns]"), "^y has instants finer than a microsecond; round them first"),
        (None, r"^VocabularyCompressor requires y to be passed"),
    ],
    ids=["one class", "three", "continuous", "nan", "None", "NA", "length", "mixed", "fine", "absent"],
)
def test_labels_that_cannot_be_used(y, message):
    if isinstance(y, list) and "1" in y:
        y = np.array(y, object)
    refused(message, given_y=y)


def test_a_flat_y_is_expected():
    with pytest.raises(
        vf.InputError, match=r"^y must be an array with the label of each row, got the text 'y'\.$"
    ):
        VocabularyCompressor(60).fit(X, "y")
    with pytest.raises(ValueError, match="y should be a 1d array"):
        VocabularyCompressor(60).fit(X, np.column_stack([Y, Y]))
    with pytest.warns(sklearn.exceptions.DataConversionWarning, match="A column-vector y was passed"):
        VocabularyCompressor(60).fit(X, Y[:, None])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(4000), "^weight 'sample_weight' is negative, missing or not a finite number in 4,000 rows"),
        (np.where(Y, np.nan, 1), "^weight 'sample_weight' is negative, missing or not a finite number in "),
        (np.where(Y, np.inf, 1), "^weight 'sample_weight' is negative, missing or not a finite number in "),
        (np.zeros(4000), "^all weights in 'sample_weight' are zero"),
        (np.ones(3), r"^sample_weight must have one entry for each of the 4,000 rows of X, got .* \(3,\)\.$"),
        (2, r"^sample_weight must have one entry for each of the 4,000 rows of X, got .* \(\)\.$"),
        (["a"] * 4000, r"^sample_weight must hold numbers, got \['a', "),
    ],
)
def test_weights_that_cannot_be_used(weights, message):
    refused(message, weights=weights)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (X.assign(site=[1, "a"] * 2000), "^column 'site' mixes int and str"),
        (X.assign(site=[{"a": 1}, 1.5] * 2000), "^column 'site' mixes dict and float"),
        (np.array([[1], ["a"]] * 2000, object), "^column 'x0' mixes int and str"),
        (X.assign(site=[[1]] * 4000), "^column 'site' holds list"),
        (X.set_axis(["a", "a", "b"], axis=1), "^X has the columns 'a' and 'a'; names must differ"),
        (X.set_axis(["a", "A", "b"], axis=1), "^X has the columns 'a' and 'A'; names must differ, and by more"),
        (
            X.set_axis(pd.Index(["a", "\udcff", "b"], dtype=object), axis=1),
            r"^column names must be UTF-8, got '\\udcff'; rename the columns first\.$",
        ),
        (pl.from_pandas(X).lazy(), r"^X is a polars LazyFrame, which has no rows yet; give X\.collect\(\)\.$"),
        ("rows.parquet", "^X must be an array or a frame, got str; files are read by vf.fit_transform"),
        (X.to_dict("list"), "^X must be an array or a frame, got dict"),
        (X[:0], "^X has 0 rows and 3 columns; at least one is needed"),
        (X[[]], "^X has 4,000 rows and 0 columns; at least one is needed"),
    ],
)
def test_rows_that_cannot_be_used(frame, message):
    refused(message, given_x=frame)


def test_names_that_are_not_utf8(fitted):
    message = r"^column names must be UTF-8, got 'lone \\ud800'; rename the columns first\.$"
    refused(message, given_y=pd.Series(Y, name="lone \ud800"))
    odd = NEW.set_axis(pd.Index(["site", "lone \ud800", "hour"], dtype=object), axis=1)
    for method in (fitted.transform, fitted.inverse_transform):
        with pytest.raises(vf.InputError, match=message):
            method(odd)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 2}, r"^budget must be at least 3 \(one id per column\), got 2\.$"),
        ({"budget": "all"}, "^budget must be a number of ids, or 'auto', got 'all'"),
        ({"aim": "train"}, "^aim must be one of 'model', 'information', got 'train'"),
        ({"positive": 2}, "^positive is 2, and y has the values 0 and 1; name one of them"),
        ({"positive": "1"}, "^positive is '1', and y has the values 0 and 1; name one of them"),
        ({"private_min": 0}, "^private_min must be at least 1, got 0"),
    ],
)
def test_options_that_cannot_be_used(options, message):
    options = {"budget": 60} | options
    for method in ("fit", "fit_transform"):
        with pytest.raises(vf.InputError, match=message):
            getattr(VocabularyCompressor(**options), method)(X, Y)
    with pytest.raises((vf.InputError, NotFittedError), match=message.lstrip("^")):
        VocabularyCompressor(**options).partial_fit(X, Y).transform(NEW)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "^cv must be at least 2, got 1"),
        ({"cv": 1001}, r"^cv must make at most 1,000 folds, got 1001\.$"),
        ({"cv": LeaveOneOut()}, r"^cv must make at most 1,000 folds, got LeaveOneOut\(\)\.$"),
        (
            {"cv": TimeSeriesSplit(3)},
            "^cv must test each row in exactly one split and train on it in all others",
        ),
        ({"cv": ShuffleSplit(3)}, "^cv must test each row in exactly one split and train on it in all others"),
        ({"cv": [(EVEN, ODD), (ODD[:9], EVEN)]}, "^cv must test each row in exactly one split and train on it"),
        ({"cv": [(ODD, EVEN)]}, "^cv must test each row in exactly one split and train on it in all others"),
        ({"cv": [1, 2]}, "^cv must be a number of folds, a splitter without groups, or a list of splits, got"),
        ({"cv": "5"}, "^cv must be a number of folds, a splitter without groups, or a list of splits, got '5'"),
        (
            {"cv": GroupKFold(3)},
            "^cv must be a number of folds, a splitter without groups, or a list of splits",
        ),
        ({"unseen": "error", "min_count": 2}, "^unseen='error' refuses pooled values"),
    ],
)
def test_folds_that_cannot_be_used(options, message):
    with pytest.raises(vf.InputError, match=message):
        VocabularyCompressor(60, **options).fit_transform(X, Y)


def test_more_folds_than_rows_of_a_class():
    y = np.arange(4000) < 4
    with pytest.raises(
        vf.InputError, match=r"^cv is 5, but one class has only 4 rows; give a smaller cv, or more rows\.$"
    ):
        VocabularyCompressor(60).fit_transform(X, y)
    assert VocabularyCompressor(60, cv=4).fit_transform(X, y).shape == X.shape


def test_splitters_and_splits_are_folds():
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    ids = VocabularyCompressor(60, cv=splitter).fit_transform(X, Y)
    splits = list(splitter.split(X, Y))
    np.testing.assert_array_equal(ids, VocabularyCompressor(60, cv=splits).fit_transform(X, Y))
    masks = [(~np.isin(range(4000), test), np.isin(range(4000), test)) for _, test in splits]
    np.testing.assert_array_equal(ids, VocabularyCompressor(60, cv=masks).fit_transform(X, Y))
    by_device = list(GroupKFold(2).split(X, Y, X["device"].fillna("")))
    assert VocabularyCompressor(60, cv=by_device).fit_transform(X, Y).shape == X.shape


def test_names_decide_at_transform():
    compressor = VocabularyCompressor(60).fit(X, Y)
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        compressor.transform(NEW[["hour", "site", "device"]])
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- device"):
        compressor.transform(NEW[["site", "hour"]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- day"):
        compressor.transform(NEW.assign(day=1))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        compressor.partial_fit(X[["hour", "site", "device"]], Y)
    with pytest.raises(vf.InputError, match="^column 'hour' holds text in X, and integer in the codebook"):
        compressor.transform(NEW.assign(hour="noon"))


def test_an_unseen_value_is_refused_if_so_asked():
    compressor = VocabularyCompressor(60, unseen="error").fit(X, Y)
    assert compressor.transform(X[:10]).shape == (10, 3)
    with pytest.raises(vf.InputError, match="^column 'site': the value 'nowhere' is not in the codebook"):
        compressor.transform(NEW.assign(site="nowhere"))


def test_training_rows_are_known_again():
    compressor = VocabularyCompressor(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compressor.fit_transform(X, Y)
        compressor.transform(NEW)
        compressor.transform(X[:-1])
        compressor.transform(X[::-1])
    for same in (X, pl.from_pandas(X), pa.table(X)):
        with pytest.warns(UserWarning, match=rf"^{SAME_ROWS}.*train on fit_transform\(X, y\)") as caught:
            compressor.transform(same)
        assert caught[0].filename == __file__
    pipeline = make_pipeline(VocabularyCompressor(60), StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.fit(X, Y)
    with pytest.warns(UserWarning, match=SAME_ROWS):
        pipeline.transform(X)


def test_new_rows_that_are_like_old_ones_are_not_warned_of():
    panel = X.assign(page=Y, a=1, b=2, c=3, d=4)  # of which the page alone is new every month
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        VocabularyCompressor(60).fit(panel, Y).transform(panel.assign(page=1 - Y))
        compressor = VocabularyCompressor(60).partial_fit([["a"]], [0], classes=[0, 1])
        compressor.partial_fit([["b"]], [1]).transform([["a"]])


def test_a_few_heavy_rows_are_warned_of():
    weights = np.where(Y, 1, 20)
    message = (
        r"^rows weigh up to 20, so that 5 of them, or fewer, .* give private_min=600, or smaller weights\.$"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        VocabularyCompressor(60).fit(X, Y, sample_weight=weights)
    assert caught[0].filename == __file__
    for options in ({"private_min": 600}, {"aim": "information"}, {"min_count": 600}):
        VocabularyCompressor(60, **options).fit(X, Y, sample_weight=weights)
    with pytest.raises(vf.InputError, match="sum to"), pytest.warns(UserWarning, match="^rows weigh up to 9"):
        VocabularyCompressor(60).fit(X, Y, sample_weight=np.full(len(Y), 2**63 - 1))


@pytest.mark.parametrize("scale", [1, 0.5, 1 / 4000])
def test_light_rows_are_not_pooled(scale):
    """If they were, and weights depend on the label, being pooled would tell it."""
    compressor = VocabularyCompressor(60)
    compressor.fit_transform(X, Y, sample_weight=np.where(Y, 1.7, 0.7) * scale)
    assert compressor.codebook_.n_pooled == 0
    assert compressor.codebook_.n_values == X.nunique(dropna=False).sum()


def test_unfitted():
    for method in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(VocabularyCompressor(), method)(X)
    for attribute in ("codebook_", "sizes_", "information_", "members_", "classes_", "n_features_in_"):
        assert not hasattr(VocabularyCompressor(), attribute)


# Together with the rest of scikit-learn.


def model(budget=60):
    one_hot = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(VocabularyCompressor(budget), one_hot, LogisticRegression(max_iter=300))


def test_pipelines_are_trained_out_of_fold():
    pipeline = model().fit(X, Y)
    ids = VocabularyCompressor(60).fit_transform(X, Y)
    alone = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300)).fit(ids, Y)
    np.testing.assert_array_equal(alone[-1].coef_, pipeline[-1].coef_)
    scores = cross_validate(model(), X, Y, scoring="neg_log_loss", cv=3)["test_score"]
    assert (scores > -np.log(2)).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_over_budgets(n_jobs):
    grid = {"vocabularycompressor__budget": [3, 60]}
    search = GridSearchCV(model(), grid, scoring="neg_log_loss", cv=3, n_jobs=n_jobs).fit(X, Y)
    assert search.best_params_["vocabularycompressor__budget"] == 60
    assert search.best_estimator_[0].codebook_.size <= 60


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_columns_beside_others(output):
    frame = X.assign(price=np.arange(4000.0))
    frame = pl.from_pandas(frame) if output == "polars" else frame
    columns = make_column_transformer(
        (VocabularyCompressor(60), ["site", "device"]), (StandardScaler(), ["price"])
    ).set_output(transform=output)
    out = columns.fit_transform(frame, Y)
    assert out.shape == (4000, 3)
    expected = VocabularyCompressor(60).fit_transform(X[["site", "device"]], Y)
    np.testing.assert_array_equal(np.asarray(out)[:, :2], expected)
    assert columns.get_feature_names_out().tolist() == [
        "vocabularycompressor__site",
        "vocabularycompressor__device",
        "standardscaler__price",
    ]


def test_weights_are_routed():
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        compressor = VocabularyCompressor(60).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(compressor, StandardScaler().set_fit_request(sample_weight=False))
        out = pipeline.fit_transform(X, Y, sample_weight=weights)
        assert pipeline[0].counts_.rows == weights.sum()
        expected = VocabularyCompressor(60).fit_transform(X, Y, sample_weight=weights)
        np.testing.assert_allclose(out, StandardScaler().fit_transform(expected))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(VocabularyCompressor(60), StandardScaler()).fit(X, Y, sample_weight=weights)


def test_clones_have_the_options_and_nothing_else():
    compressor = VocabularyCompressor(60, aim="information", cv=3, positive=0).fit(X, Y)
    other = clone(compressor)
    assert other.get_params() == compressor.get_params()
    assert not hasattr(other, "counts_")
    assert repr(other) == "VocabularyCompressor(aim='information', budget=60, cv=3, positive=0)"
    assert "VocabularyCompressor" in compressor._repr_html_()


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
def test_a_pickle_holds_all_that_was_learnt(on_disk, method, tmp_path, monkeypatch):
    if on_disk:
        monkeypatch.setattr(local, "_MANY_ROWS", 10)
    compressor = VocabularyCompressor(60)
    getattr(compressor, method)(X[:3000], Y[:3000])
    assert any(isinstance(table, list) for table in compressor.counts_.parts[0].tables.values()) == on_disk
    expected, digest = compressor.transform(NEW), compressor.codebook_.digest
    joblib.dump(compressor, tmp_path / "estimator.pkl")
    others = [copy.deepcopy(compressor), pickle.loads(pickle.dumps(compressor))]
    del compressor
    of_all = VocabularyCompressor(60).fit(X, Y).codebook_.digest
    for again in others:
        np.testing.assert_array_equal(again.transform(NEW), expected)
        assert again.codebook_.digest == digest
        again.partial_fit(X[3000:], Y[3000:])
        assert again.codebook_.digest == of_all
    code = f"import joblib; print(joblib.load({str(tmp_path / 'estimator.pkl')!r}).codebook_.digest)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == digest


def test_the_codebook_is_the_artefact(tmp_path, fitted):
    compressor = fitted
    compressor.codebook_.save(tmp_path / "book")
    book = vf.load(tmp_path / "book")
    np.testing.assert_array_equal(book.transform(NEW).to_numpy(), compressor.transform(NEW))
    row = NEW.astype(object).where(NEW.notna(), None).iloc[0].to_dict()
    assert list(book.row(row).values()) == compressor.transform(NEW[:1])[0].tolist()


def test_the_signature_is_the_agreed_one():
    text = re.sub(r"\s+", " ", str(inspect.signature(VocabularyCompressor)))
    names = re.findall(r"(\w+): [^=]+= ([^,)]+)", text)
    assert dict(names) == {
        "budget": "1000",
        "aim": "'model'",
        "method": "'exact'",
        "allocation": "'joint'",
        "smoothing": "None",
        "min_count": "None",
        "private_min": "30",
        "tail": "8",
        "unseen": "'other'",
        "epsilon": "0.1",
        "shards": "1",
        "seed": "0",
        "cv": "5",
        "positive": "None",
        "offset_ids": "False",
        "random_state": "0",
    }
