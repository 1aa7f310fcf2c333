"""Warnings point to the line that called vocabfold, however deep inside the package they arise."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import vocabfold as vf

ROWS = pd.DataFrame({"site": ["a", "b", "a", "c"] * 9, "click": [1, 0, 1, 1] * 9})
OLD = Path(__file__).parents[1] / "data" / "format-1" / "counts-weighted"


def transform(tmp_path):
    book = vf.fit(vf.count(ROWS, "click"), budget=9)
    return lambda: book.transform(ROWS)


def transform_files(tmp_path):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    book = vf.fit(vf.count(tmp_path / "rows.parquet", "click"), budget=9)
    return lambda: book.transform(tmp_path / "rows.parquet", out=tmp_path / "ids.parquet")


def transform_in_pipeline(tmp_path):
    pipeline = make_pipeline(vf.VocabularyCompressor(budget=9)).fit(ROWS[["site"]], ROWS["click"])
    return lambda: pipeline.transform(ROWS[["site"]])


def train_by_selection(tmp_path):
    return lambda: vf.fit_transform(
        ROWS, "click", budget=3, aim="information", method="selection", allocation="uniform", smoothing=0
    )


def fold_in_shards(tmp_path):
    counts = np.arange(1, 60)
    return lambda: vf.fold(counts, counts[::-1], 10, method="threshold", shards=8)


def load_old_counts(tmp_path):
    return lambda: vf.load_counts(OLD)


@pytest.mark.parametrize(
    "make",
    [
        transform,
        transform_files,
        transform_in_pipeline,
        train_by_selection,
        fold_in_shards,
        load_old_counts,
    ],
)
def test_a_warning_points_to_the_line_that_called_the_package(make, tmp_path):
    call = make(tmp_path)
    with pytest.warns(vf.VocabfoldWarning) as found:
        call()
    assert {(warning.filename, warning.lineno) for warning in found} <= {
        (__file__, line) for line in range(call.__code__.co_firstlineno, call.__code__.co_firstlineno + 3)
    }
