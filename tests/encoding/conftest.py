"""A codebook of five kinds of values."""

import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample


@pytest.fixture(scope="module")
def book():
    return fold_counts(vf.count(arrow(sample()), "click", FEATURES), 14, min_count=2)
