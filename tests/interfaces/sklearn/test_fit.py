"""The scikit-learn door: its own checks, what they leave out, and the steps behind it."""

import copy
import datetime
import os
import subprocess
import sys
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    PredefinedSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as of_sklearn

import vocabfold as vf
from support.learning import NEW, SAME_ROWS, X, Y, may_be_same_rows
from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor

# scikit-learn's own checks, of which one fails, as weights are not rows for what is frequent. For the tag
# non_deterministic, which says that fit_transform differs from fit().transform(), some stop half way and two
# are not run; for preserves_dtype=[], as ids are int32, one is not run. The tests that follow check what these
# would have checked. One check needs a setting of SciPy's, which has to be made before SciPy is imported.
FAULTY = {"check_sample_weight_equivalence_on_dense_data": "a heavy row is one observation"}


@may_be_same_rows
@of_sklearn.parametrize_with_checks([VocabularyCompressor()], expected_failed_checks=lambda _: FAULTY)
def test_the_checks_of_scikit_learn(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        assert str(reason) in (  # noqa: PT017
            "VocabularyCompressor is non deterministic",
            "SCIPY_ARRAY_API is not set: not checking array_api input",
        )


@pytest.mark.slow
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
    "options", [{}, {"aim": "information"}, {"unseen": "own", "shared_ids": 3}, {"min_count": 5}]
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
    if options.get("unseen") != "own":  # of folds, that looks at how many training rows each id has
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


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_weight_of_three_keeps_as_much_as_three_rows(data):
    n_rows = data.draw(st.integers(4, 40))
    values = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n_rows, max_size=n_rows))
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    weights[:2] = 1
    labels = np.array(
        [0, 1] + data.draw(st.lists(st.booleans(), min_size=n_rows - 2, max_size=n_rows - 2)), int
    )
    column = np.array(values, object)[:, None]
    compressor = VocabularyCompressor(3, aim="information")
    weighted = clone(compressor).fit(column, labels, sample_weight=weights).codebook_
    repeated = clone(compressor).fit(np.repeat(column, weights, 0), np.repeat(labels, weights)).codebook_
    assert weighted["x0"].select(["value", "id", "neg", "pos"]).equals(repeated["x0"])
    assert weighted.information == repeated.information


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
    compressor = VocabularyCompressor(10, dedicated_min=1)
    with pytest.raises(vf.InputError, match=r"^y has one class only \('no'\); give rows of both classes"):
        compressor.partial_fit(*batches[0])
    for batch in batches:
        compressor.partial_fit(*batch, classes=["yes", "no"])
        assert compressor.classes_.tolist() == ["no", "yes"]
    assert dict(compressor.counts_.kinds) == {"a": "text", "n": "integer"}
    everything = pd.concat([batch for batch, _ in batches]).astype({"n": "Int64"})
    whole = VocabularyCompressor(10, dedicated_min=1).fit(
        everything, sum((labels for _, labels in batches), [])
    )
    assert compressor.codebook_.digest == whole.codebook_.digest
    with pytest.raises(vf.InputError, match="^y has the value 'maybe', but the classes are 'no' and 'yes'"):
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
    compressor = VocabularyCompressor(10, dedicated_min=1).fit(masked, [0, 1, 1] * 10)
    assert sorted(map(str, sum(compressor.members_["x0"], []))) == ["1", "2", "None"]
    for values in (np.array([[1.5], [2]] * 10), np.array([["2024-01-01"], ["2025-01-01"]] * 10, "M8[ns]")):
        kinds = [
            VocabularyCompressor(10).fit(column, [0, 1, 1, 0] * 5).counts_.kinds["x0"]
            for column in (values, np.ma.masked_array(values, [[0], [0], [0], [1]] * 5))
        ]
        assert kinds[0] == kinds[1]
    with pytest.raises(vf.InputError, match="^weight 'sample_weight' is negative, missing or not a finite"):
        VocabularyCompressor(10).fit(X, Y, sample_weight=np.ma.masked_array(np.ones(4000), Y == 1))
