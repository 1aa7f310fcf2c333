"""Saved counts and a saved codebook, and copies of them to damage."""

import shutil

import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample


@pytest.fixture(scope="module")
def counts():
    return vf.count(arrow(sample()), "click", FEATURES)


@pytest.fixture(scope="module")
def original(counts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    counts.save(folder / "counts")
    fold_counts(counts, 12).save(folder / "book")
    return folder


@pytest.fixture(params=["counts", "book"])
def folder(request, original, tmp_path):
    return shutil.copytree(original / request.param, tmp_path / request.param)
