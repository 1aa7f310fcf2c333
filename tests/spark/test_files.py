"""Files that the workers write and read."""

import pytest

import vocabfold as vf
from support.frames import FEATURES, assert_same_ids, generated, in_order, read
from vocabfold.counts import spark_files
from vocabfold.io.engines import spark as engine
from vocabfold.io.folders import parquet_guard

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("features", [FEATURES[:2], pytest.param(FEATURES, marks=pytest.mark.slow)], ids=len)
def test_the_workers_write_several_files_per_column(frame, table, features, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_files, "_FILE_ROWS", 20)
    book = vf.fit(vf.count(frame, "click", features), 60, min_count=1)
    book.save(tmp_path / "book")
    assert len(list((tmp_path / "book").glob("*.parquet"))) > 2 * len(features)
    loaded = vf.load(tmp_path / "book")
    assert loaded.digest == book.digest
    for name in features:
        assert loaded[name].equals(book[name])
    expected = vf.fit(vf.count(table, "click", features), 60, min_count=1)
    new = generated(500, seed=1)
    assert_same_ids(loaded.transform(new), expected.transform(new), features)
    book.save(tmp_path / "book")  # over itself
    assert vf.load(tmp_path / "book").digest == book.digest
    assert not list((tmp_path / "book").glob("unfinished-*"))


def test_workers_read_files_that_are_large(spark, table, tmp_path, monkeypatch):
    from pyspark.sql.functions import expr

    monkeypatch.setattr(spark_files, "_SENT_BYTES", 0)
    monkeypatch.setattr(engine, "_SENT_ROWS", -1)
    book = vf.fit(vf.count(table, "click", ["number", "instant"]), 30, min_count=1)
    book.save(tmp_path / "a [book] {}")
    loaded = vf.load(tmp_path / "a [book] {}")
    new = generated(500, seed=1)
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", False)
    try:
        instant = expr("to_timestamp_ntz(to_utc_timestamp(instant, current_timezone()))")
        got = loaded.transform(read(spark, new, tmp_path / "new.parquet").withColumn("instant", instant))
    finally:
        spark.conf.unset("spark.sql.parquet.inferTimestampNTZ.enabled")
    assert_same_ids(in_order(got), book.transform(new), ["number", "instant"])


@pytest.mark.slow
def test_values_that_compress_too_well_are_saved_and_read(spark, tmp_path, monkeypatch):
    # The files of a column share the room: each of them alone would have enough of it.
    monkeypatch.setattr(parquet_guard, "_ROOM", 2**20)
    monkeypatch.setattr(spark_files, "_FILE_ROWS", 100)
    rows = spark.sql("SELECT repeat('x', 9000) || lpad(id, 6, '0') AS x, id % 2 AS y FROM range(800)")
    counts = vf.count(rows, "y")
    counts.save(tmp_path / "counts")
    book = vf.fit(counts, 2, aim="information")
    book.save(tmp_path / "book")
    assert vf.fit(vf.load_counts(tmp_path / "counts"), 2, aim="information").digest == book.digest
    loaded = vf.load(tmp_path / "book")
    loaded.verify()
    assert loaded.ids("x", ["x" * 9000 + f"{i:06}" for i in range(3)]).tolist() == [0, 1, 0]
