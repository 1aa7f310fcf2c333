"""Spark where it is not installed, or not needed."""

import sys

import pyarrow as pa
import pytest

import vocabfold as vf
from vocabfold.io.engines.spark import is_frame


def test_a_frame_is_known_without_spark():
    assert not is_frame([1])
    assert not is_frame(pa.table({"a": [1]}))


def test_without_pyspark_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "vocabfold.spark", raising=False)
    with pytest.raises(vf.MissingDependency, match=r"pip install 'pyspark\[connect\]'"):
        import vocabfold.spark  # noqa: F401
