"""What Spark is asked to do, what it keeps, and for how long; sessions and frames that cannot be used."""

import gc
import pickle

import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.frames import FEATURES
from vocabfold.io.engines.spark import Kept

pytestmark = pytest.mark.spark


def test_the_number_of_jobs_does_not_depend_on_the_columns(spark, frame):
    def n_jobs(features):
        group = f"{len(features)} columns"
        spark.sparkContext.setJobGroup(group, group)
        book = vf.fit(vf.count(frame, "click", features), 40)
        assert len(book.digest) == 64
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    assert n_jobs(FEATURES) == n_jobs(FEATURES[:2])


def test_what_was_kept_is_released(spark, frame):
    def n_kept():
        gc.collect()
        Kept.release()
        return spark.sparkContext._jsc.getPersistentRDDs().size()

    before = n_kept()
    counts = vf.count(frame, "click", "number", fold_column="fold")
    again = vf.count(frame, "click", "number", fold_column="fold")  # the same query, kept once
    book = vf.fit(counts, 20)
    del again
    assert n_kept() > before
    assert book.transform(frame, counts=counts).count() == 3000
    del counts, book
    assert n_kept() == before


def test_frames_that_the_caller_keeps_stay_kept(frame):
    rows = frame.where("row < 100").persist()
    vf.fit(vf.count(rows, "click", "number"), 9).transform(rows.where("row > 50"))
    assert rows.storageLevel.useMemory
    rows.unpersist()


def test_rows_that_change_are_noticed(spark, table, tmp_path):
    pq.write_table(table, tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path))
    counts = vf.count(rows, "click", "number")
    book = vf.fit(counts, 9, min_count=1)
    rows.limit(700).write.mode("append").parquet(str(tmp_path))
    with pytest.raises(vf.InputError, match="the rows that were counted have changed since the codebook was"):
        book.transform(rows.limit(9))
    with pytest.raises(vf.InputError, match="the rows that were counted have changed since the codebook was"):
        book.save(tmp_path / "book")
    with pytest.raises(vf.InputError, match="returned different rows when read again"):
        vf.fit(counts, 9)


def test_frames_of_two_sessions_do_not_meet(spark, frame):
    other = spark.newSession()
    rows = other.sql("SELECT CAST(id % 7 AS INT) AS number, id % 3 = 0 AS click FROM range(50)")
    here, there = vf.count(frame, "click", "number"), vf.count(rows, "click", "number")
    with pytest.raises(vf.InputError, match="the data are on two Spark sessions; save those of one session"):
        vf.fit(here + there, 9)


def test_an_older_spark_is_refused(frame, monkeypatch):
    monkeypatch.setattr(type(frame.sparkSession), "version", property(lambda _: "3.5.1"))
    with pytest.raises(vf.InputError, match=r"the session runs Spark 3\.5\.1 .* needs Spark 4 or newer"):
        vf.count(frame, "click")


def test_what_is_on_a_cluster_is_not_pickled(frame):
    counts = vf.count(frame, "click", "number")
    for thing in (counts, vf.fit(counts, 9)):
        with pytest.raises(vf.InputError, match="cannot be pickled; save them to a folder"):
            pickle.dumps(thing)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: vf.count(rows, "click", folds=5), "give a column with the fold of each row"),
        (lambda rows: vf.count(rows, "click", preset="criteo"), "preset is for text files"),
        (lambda rows: vf.count(rows, "click", ["zone"]), "column 'zone' holds timestamp \\(with a time zone"),
        (lambda rows: vf.count(rows, "click", ["list"]), "column 'list' holds array<int>"),
        (lambda rows: vf.fit_transform(rows, "click", 9), "give a column with the fold of each row"),
        (
            lambda rows: vf.fit_transform(rows, "click", 9, fold_column="fold", out="x.parquet"),
            "leave out= away",
        ),
        (lambda rows: vf.load_counts("nowhere", spark="local"), "spark must be a SparkSession, got str"),
    ],
)
def test_what_frames_cannot_do_is_said_before_long_work(frame, call, message):
    rows = frame.selectExpr("*", "current_timestamp() AS zone", "array(1) AS list")
    with pytest.raises(vf.InputError, match=message):
        call(rows)
