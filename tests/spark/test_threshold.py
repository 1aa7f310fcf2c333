"""The paper's distributed algorithm, in shards on the workers."""

import logging
from functools import partial

import pytest

import vocabfold as vf
from support.frames import FEATURES
from vocabfold.fitting import spark as step

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "settings",
    [
        {"aim": "information", "shards": 5, "min_count": 4},
        pytest.param({"aim": "information"}, marks=pytest.mark.slow),
        pytest.param({"shards": 3, "smoothing": 2, "allocation": "uniform"}, marks=pytest.mark.slow),
        pytest.param(
            {"shards": 2, "min_count": 2, "smoothing": 0.5, "aim": "information"}, marks=pytest.mark.slow
        ),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*shards are more than epsilon")
def test_shards_are_cut_as_in_one_process(table, frame, settings, caplog):
    features = FEATURES[:2]
    here, there = (vf.count(rows, "click", features, weight="weight") for rows in (table, frame))
    with caplog.at_level(logging.INFO, "vocabfold"):
        book = vf.fit(there, 30, method="threshold", **settings)
    expected = vf.fit(here, 30, method="threshold", **settings)
    assert book.columns == expected.columns
    assert book.digest == expected.digest
    assert "pairs in one of them" in caplog.text


@pytest.mark.parametrize("function", [step._assign, step._largest, step._sweep])
def test_workers_are_sent_the_names_of_kernels(function):
    """A kernel that is sent as it is would be compiled by every worker, for seconds."""
    from pyspark import cloudpickle

    assert len(cloudpickle.dumps(partial(function, {}))) < 200
