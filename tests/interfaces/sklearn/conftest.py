"""An estimator that has learnt."""

import pytest

from support.learning import X, Y
from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor


@pytest.fixture(scope="module")
def fitted():
    return VocabularyCompressor(60).fit(X, Y)
