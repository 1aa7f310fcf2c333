"""The estimator together with the rest of scikit-learn."""

import copy
import inspect
import pickle
import re
import subprocess
import sys

import joblib
import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import vocabfold as vf
from support.learning import NEW, X, Y
from vocabfold.counts import local
from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor

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


@pytest.mark.filterwarnings("ignore:budget=")
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
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


def learnt(method, on_disk, monkeypatch):
    if on_disk:
        monkeypatch.setattr(local, "_MANY_ROWS", 10)
    compressor = VocabularyCompressor(60)
    getattr(compressor, method)(X[:3000], Y[:3000])
    assert any(isinstance(table, list) for table in compressor.counts_.parts[0].tables.values()) == on_disk
    return compressor


METHODS = ["fit", "fit_transform", "partial_fit"]


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_pickle_holds_all_that_was_learnt(on_disk, method, fitted, monkeypatch):
    compressor = learnt(method, on_disk, monkeypatch)
    expected, digest = compressor.transform(NEW), compressor.codebook_.digest
    others = [copy.deepcopy(compressor), pickle.loads(pickle.dumps(compressor))]
    del compressor
    of_all = fitted.codebook_.digest
    for again in others:
        np.testing.assert_array_equal(again.transform(NEW), expected)
        assert again.codebook_.digest == digest
        again.partial_fit(X[3000:], Y[3000:])
        assert again.codebook_.digest == of_all


def test_another_process_reads_a_pickle(tmp_path, monkeypatch):
    cases = [(method, on_disk) for on_disk in (False, True) for method in METHODS]
    compressors = [learnt(*case, monkeypatch) for case in cases]
    digests = [compressor.codebook_.digest for compressor in compressors]
    joblib.dump(compressors, tmp_path / "estimators.pkl")
    del compressors
    loaded = f"joblib.load({str(tmp_path / 'estimators.pkl')!r})"
    code = f"import joblib; print(*(one.codebook_.digest for one in {loaded}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == digests


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
        "dedicated_min": "30",
        "shared_ids": "8",
        "unseen": "'other'",
        "epsilon": "0.1",
        "shards": "1",
        "seed": "0",
        "cv": "5",
        "positive": "None",
        "offset_ids": "False",
        "random_state": "0",
    }
