"""The estimator: errors and warnings."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vocabfold as vf
from support.learning import EVEN, NEW, ODD, SAME_ROWS, X, Y
from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor

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
            r"^y has one class only \(0\); give rows of both classes, or, to start partial_fit with these rows",
        ),
        (
            np.arange(4000) % 3,
            r"^y has 3 distinct values \(0 in 1,334 rows, 1 in 1,333 rows, 2 in 1,333 rows\), ",
        ),
        (
            np.linspace(0, 1, 4000),
            r"^y has 4,000 distinct values \(0\.0 in 1 row, .*, \.\.\.\), but exactly two",
        ),
        (np.where(Y, 1, np.nan), r"^y is missing in [\d,]+ rows; leave these rows out, or fill them in\.$"),
        ([None] * 4000, r"^y is missing in 4,000 rows"),
        (pd.Series([0, 1, 1, pd.NA] * 1000, dtype="Int64"), r"^y is missing in 1,000 rows"),
        (Y[:-1], r"^X has 4,000 rows and y has 3,999; give a label for each row\.$"),
        ([0, "1"] * 2000, r"^column 'y' mixes int and str"),
        (np.arange(4000).astype("M8[ns]"), "^y has timestamps finer than a microsecond; round them first"),
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
        (
            X.set_axis(["a", "A", "b"], axis=1),
            "^X has the columns 'a' and 'A'; names must differ by more than case",
        ),
        (
            X.set_axis(pd.Index(["a", "\udcff", "b"], dtype=object), axis=1),
            r"^column names must be UTF-8, got '\\udcff'; rename the columns first\.$",
        ),
        (pl.from_pandas(X).lazy(), r"^X is a polars LazyFrame, which has no rows yet; give X\.collect\(\)\.$"),
        ("rows.parquet", "^X must be an array or a frame, got str; use vf.fit_transform for files"),
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
        ({"positive": 2}, "^positive is 2, but y has the values 0 and 1; name one of them"),
        ({"positive": "1"}, "^positive is '1', but y has the values 0 and 1; name one of them"),
        ({"dedicated_min": 0}, "^dedicated_min must be at least 1, got 0"),
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
        ({"unseen": "error", "min_count": 2}, "^unseen='error' refuses rare values"),
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
    with pytest.warns(vf.VocabfoldWarning, match="^label rates differ between folds"):  # as devices do
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
    with pytest.raises(vf.InputError, match="^column 'hour' holds text in X, but integer in the codebook"):
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
        warnings.simplefilter("ignore", vf.AdviceWarning)
        compressor.fit_transform(X, Y)
        compressor.transform(NEW)
        compressor.transform(X[:-1])
        compressor.transform(X[::-1])
    for same in (X, pl.from_pandas(X), pa.table(X)):
        with pytest.warns(UserWarning, match=rf"^{SAME_ROWS}.*Use fit_transform\(X, y\)") as caught:
            compressor.transform(same)
        assert caught[0].filename == __file__
    pipeline = make_pipeline(VocabularyCompressor(60), StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", vf.AdviceWarning)
        pipeline.fit(X, Y)
    with pytest.warns(UserWarning, match=SAME_ROWS):
        pipeline.transform(X)


def test_new_rows_that_are_like_old_ones_are_not_warned_of():
    panel = X.assign(page=Y, a=1, b=2, c=3, d=4)  # of which the page alone is new every month
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", vf.AdviceWarning)
        VocabularyCompressor(60).fit(panel, Y).transform(panel.assign(page=1 - Y))
        compressor = VocabularyCompressor(60).partial_fit([["a"]], [0], classes=[0, 1])
        compressor.partial_fit([["b"]], [1]).transform([["a"]])


def test_a_few_heavy_rows_are_few_rows():
    weights = np.where(Y, 1, 20)
    plain = VocabularyCompressor(60).fit(X, Y).codebook_
    weighted = VocabularyCompressor(60).fit(X, Y, sample_weight=weights).codebook_
    for name, column in weighted.columns.items():
        assert column.n_dedicated == plain.columns[name].n_dedicated
    assert weighted.settings["dedicated_from"] == plain.settings["dedicated_from"]


@pytest.mark.parametrize("scale", [1, 0.5, 1 / 4000])
def test_light_rows_make_no_value_rare(scale):
    """If they were, and weights depend on the label, being rare would tell it."""
    compressor = VocabularyCompressor(60)
    compressor.fit_transform(X, Y, sample_weight=np.where(Y, 1.7, 0.7) * scale)
    assert compressor.codebook_.n_rare == 0
    assert compressor.codebook_.n_values == X.nunique(dropna=False).sum()


def test_unfitted():
    for method in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(VocabularyCompressor(), method)(X)
    for attribute in ("codebook_", "sizes_", "information_", "members_", "classes_", "n_features_in_"):
        assert not hasattr(VocabularyCompressor(), attribute)
