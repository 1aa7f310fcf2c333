"""On Spark: the same counts, the same codebook, the same ids as on one machine, and where they stay."""

import gc
import logging
import pickle
import shutil
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.frames import FEATURES, TEXT, assert_same_ids, generated, in_order, read
from vocabfold.counts import spark_files
from vocabfold.encoding import spark as encoding_spark
from vocabfold.io.engines import spark as engine
from vocabfold.io.engines.spark import Kept, is_frame
from vocabfold.io.folders import parquet_guard

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table():
    return generated(3000)


@pytest.fixture(scope="module")
def frame(spark, table, tmp_path_factory):
    from pyspark.sql.functions import lit

    rows = read(spark, table, tmp_path_factory.mktemp("rows"))
    return rows.withColumn("nothing", lit(None))  # Parquet has no such type


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"weight": "weight"}, marks=pytest.mark.slow),
        {"fold_column": "fold", "weight": "weight"},
    ],
    ids=str,
)
def test_the_codebook_has_the_digest_of_the_one_made_here(table, frame, options):
    here, there = (vf.count(rows, "click", FEATURES, **options) for rows in (table, frame))
    assert (there.neg, there.pos, there.units_per_row) == (here.neg, here.pos, here.units_per_row)
    assert there.kinds == here.kinds
    assert there.n_values == here.n_values
    for settings in (
        {"aim": "model"},
        {"aim": "information", "min_count": 4, "unseen": "own"},
        {"aim": "information", "method": "hashing", "allocation": "uniform"},
        {"aim": "information", "method": "frequency"},
    ):
        book, expected = vf.fit(there, 60, **settings), vf.fit(here, 60, **settings)
        assert book.columns == expected.columns, settings
        assert book.digest == expected.digest, settings
    for name in FEATURES:
        assert there[name].equals(here[name])
        assert book[name].equals(expected[name])


def test_counts_are_those_of_a_loop(table, frame):
    rows = table.to_pylist()
    negative = Counter(row["number"] for row in rows if not row["click"])
    positive = Counter(row["number"] for row in rows if row["click"])
    found = vf.count(frame, "click", "number")["number"].to_pylist()
    assert {row["value"]: (row["neg"], row["pos"]) for row in found} == {
        value: (negative[value], positive[value]) for value in negative | positive
    }


def test_methods_are_compared_as_here(table, frame):
    here, there = (vf.compare(vf.count(rows, "click", FEATURES), 20) for rows in (table, frame))
    assert [trial.loss for trial in there] == [trial.loss for trial in here]


def test_partitions_and_their_order_change_nothing(frame):
    digests = {
        vf.fit(vf.count(rows, "click", FEATURES[:3]), 30).digest
        for rows in (frame, frame.coalesce(1), frame.repartition(5).orderBy("share"))
    }
    assert len(digests) == 1


def test_days_are_added_wherever_they_are(spark, table, frame, tmp_path):
    expected = vf.fit(vf.count(table, "click", FEATURES), 60).digest
    days = [vf.count(frame.where(f"row % 3 = {day}"), "click", FEATURES) for day in (0, 1)]
    days[1].save(tmp_path / "tuesday")
    here = vf.count(table.take(np.arange(2, 3000, 3)), "click", FEATURES[::-1])
    monday, tuesday = days[0], vf.load_counts(tmp_path / "tuesday", spark=spark)
    assert tuesday.engine == "spark"
    assert vf.fit(monday + tuesday + here, 60).digest == expected
    assert vf.fit(sum([tuesday, monday, here]), 60).digest == expected
    monday.save(tmp_path / "monday")
    on_one_machine = vf.load_counts(tmp_path / "monday") + vf.load_counts(tmp_path / "tuesday") + here
    assert vf.fit(on_one_machine, 60).digest == expected


def test_the_workers_write_several_files_per_column(frame, table, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_files, "_FILE_ROWS", 20)
    book = vf.fit(vf.count(frame, "click", FEATURES), 60, min_count=1)
    book.save(tmp_path / "book")
    assert len(list((tmp_path / "book").glob("*.parquet"))) > 2 * len(FEATURES)
    loaded = vf.load(tmp_path / "book")
    assert loaded.digest == book.digest
    for name in FEATURES:
        assert loaded[name].equals(book[name])
    expected = vf.fit(vf.count(table, "click", FEATURES), 60, min_count=1)
    new = generated(500, seed=1)
    assert loaded.transform(new).equals(expected.transform(new))
    book.save(tmp_path / "book")  # over itself
    assert vf.load(tmp_path / "book").digest == book.digest
    assert not list((tmp_path / "book").glob("unfinished-*"))


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
def test_threshold_cuts_as_one_process_does(table, frame, settings, caplog):
    features = FEATURES[:2]
    here, there = (vf.count(rows, "click", features, weight="weight") for rows in (table, frame))
    with caplog.at_level(logging.INFO, "vocabfold"):
        book = vf.fit(there, 30, method="threshold", **settings)
    expected = vf.fit(here, 30, method="threshold", **settings)
    assert book.columns == expected.columns
    assert book.digest == expected.digest
    assert "pairs in one of them" in caplog.text


@pytest.mark.parametrize(
    ("sent", "features", "settings"),
    [
        pytest.param(2**20, FEATURES[:4], {}, marks=pytest.mark.slow),
        (5, FEATURES[:3], {"aim": "information", "min_count": 3}),
        pytest.param(5, FEATURES, {}, marks=pytest.mark.slow),
        pytest.param(2**20, FEATURES, {"aim": "information", "min_count": 3}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_frames_are_encoded_as_here(table, frame, sent, features, settings, monkeypatch, tmp_path):
    monkeypatch.setattr(encoding_spark, "_SENT", sent)
    monkeypatch.setattr(encoding_spark, "_HEAVY", 1 / 8)
    older, rows = table.slice(0, 1500), frame.where("row < 1500")
    here = vf.count(older, "click", features, fold_column="fold")
    there = vf.count(rows, "click", features, fold_column="fold")
    expected, book = vf.fit(here, 50, **settings), vf.fit(there, 50, **settings)
    assert_same_ids(
        book.transform(frame, offset_ids=True), expected.transform(table, offset_ids=True), features
    )
    expected.save(tmp_path / "book")
    loaded = vf.load(tmp_path / "book")
    only = loaded.transform(frame.drop("click"), only_ids=True)
    assert only.columns == features
    in_folds = expected.transform(older, counts=here)
    assert_same_ids(book.transform(rows, counts=there), in_folds, features)
    assert_same_ids(loaded.transform(rows, counts=here), in_folds, features)


def test_training_rows_are_encoded_out_of_fold(table, frame):
    book, encoded = vf.fit_transform(frame, "click", 50, features=FEATURES, fold_column="fold")
    expected, rows = vf.fit_transform(table, "click", 50, features=FEATURES, fold_column="fold")
    assert book.digest == expected.digest
    assert book.gain == pytest.approx(expected.gain, abs=1e-12)
    assert_same_ids(encoded, rows)
    assert encoded.schema["number"].metadata == {"vocabfold.digest": book.digest}
    with pytest.raises(vf.InputError, match="column .* of the Spark frame holds ids already"):
        book.transform(encoded)
    with pytest.warns(UserWarning, match="the Spark frame looks like the training data"):
        book.transform(frame)


def test_folds_are_those_that_were_counted(spark, table, frame):
    rows, older = frame.where("row < 300"), table.slice(0, 300)
    counts = vf.count(rows, "click", "number", fold_column="fold")
    book = vf.fit(counts, 9, min_count=1)
    moved = rows.selectExpr(
        "* EXCEPT (fold)", "CASE WHEN row % 3 = 0 THEN -1 WHEN row % 3 = 1 THEN fold END AS fold"
    )
    folds = [
        -1 if i % 3 == 0 else fold if i % 3 == 1 else None for i, fold in enumerate(older["fold"].to_pylist())
    ]
    here = vf.count(older, "click", "number", fold_column="fold")
    with pytest.warns(UserWarning, match="was not counted in their fold"):
        expected = vf.fit(here, 9, min_count=1).transform(
            older.set_column(older.schema.get_field_index("fold"), "fold", pa.array(folds)), counts=here
        )
    found = in_order(book.transform(moved, counts=counts))
    assert found["number"].to_pylist() == expected["number"].to_pylist()
    beyond = rows.selectExpr("* EXCEPT (fold)", "fold + 9 AS fold")
    with pytest.raises(Exception, match="must hold whole numbers from 0 to 3, got"):
        book.transform(beyond, counts=counts).collect()
    with pytest.raises(vf.InputError, match="fold_column 'fold' must hold whole numbers, got string"):
        book.transform(rows.selectExpr("* EXCEPT (fold)", "'a' AS fold"), counts=counts)


def test_other_columns_may_have_any_name(spark, table, frame):
    book = vf.fit(vf.count(table, "click", "number"), 9)
    twice = frame.select("number", "row", "row", "fold").toDF("number", "k0", "k0", "value")
    found = book.transform(twice)
    assert found.columns == ["number", "k0", "k0", "value"]
    renamed = found.toDF("feature", "a", "b", "c")
    assert renamed.where("a = b").count() == 3000


def test_numbers_are_found_by_value(spark, frame):
    book = vf.fit(vf.count(frame, "click", ["number", "share"]), 60, aim="information")
    rows = spark.sql(
        "SELECT * FROM VALUES (CAST(27 AS DOUBLE), 0), (27.5D, 1), (NULL, -1), (1e300D, 9007199254740993), "
        "(CAST('NaN' AS DOUBLE), NULL) AS t(number, share)"
    )
    found = book.transform(rows).toArrow()
    for name, values in (("number", [27, 27.5, None, 1e300, None]), ("share", [0, 1, -1, 2**53 + 1, None])):
        assert found[name].to_pylist() == book.ids(name, pa.array(values)).tolist()


def test_an_unseen_value_is_an_error_if_it_is_to_be(spark, frame):
    book = vf.fit(vf.count(frame, "click", "day"), 10, aim="information", unseen="error")
    rows = spark.sql("SELECT DATE'2024-02-29' AS day")
    with pytest.raises(Exception, match="column 'day': the value 2024-02-29 is not in the codebook"):
        book.transform(rows).collect()


def test_rows_that_are_new_are_judged_as_here(table, frame):
    book = vf.fit(vf.count(table.slice(0, 1000), "click", FEATURES), 40)
    assert book.evaluate(frame.where("row >= 1000")) == book.evaluate(table.slice(1000))


def test_a_report_says_the_same_as_here(table, frame, tmp_path):
    found = {}
    for where, rows in (("here", table), ("there", frame)):
        counts = vf.count(rows, "click", [TEXT, "number"], fold_column="fold")
        book = vf.fit(counts, 12, min_count=3, dedicated_min=9)
        found[where] = book.report(
            tmp_path / f"{where}.html", counts=counts, heldout=generated(500, seed=1), steps=4
        )
        del found[where]["about"]["sources"]
    assert found["there"] == found["here"]


def test_the_number_of_jobs_does_not_depend_on_the_columns(spark, frame):
    def n_jobs(features):
        group = f"{len(features)} columns"
        spark.sparkContext.setJobGroup(group, group)
        vf.fit(vf.count(frame, "click", features), 40)
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    assert n_jobs(FEATURES) == n_jobs(FEATURES[:2])


def test_what_was_kept_is_released(spark, frame):
    def n_kept():
        gc.collect()
        Kept.release()
        return spark.sparkContext._jsc.getPersistentRDDs().size()

    before = n_kept()
    counts = vf.count(frame, "click", ["number", "share"], fold_column="fold")
    again = vf.count(frame, "click", ["number", "share"], fold_column="fold")  # the same query, kept once
    book = vf.fit(counts, 20)
    del again
    assert n_kept() > before
    assert book.transform(frame, counts=counts).count() == 3000
    del counts, book
    assert n_kept() == before


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


def test_numbers_at_the_edge_of_their_kind_are_not_mixed_up(spark, tmp_path):
    large = pa.table(
        {"i": [2**63 - 1, 5] * 9, "f": [2.0**63, 5.0] * 9, "u": pa.array([2**64 - 1, 5] * 9, pa.uint64())}
    )
    large = large.append_column("y", pa.array([0, 1, 1] * 6))
    counts = vf.count(large, "y", ["i", "f", "u"])
    expected = vf.fit(counts, 9, aim="information", unseen="own")
    counts.save(tmp_path / "counts")
    there = vf.load_counts(tmp_path / "counts", spark=spark)
    book = vf.fit(there, 9, aim="information", unseen="own")
    assert book.digest == expected.digest
    book.save(tmp_path / "book")
    assert vf.load(tmp_path / "book")["u"].equals(expected["u"])
    there.save(tmp_path / "again")
    assert vf.load_counts(tmp_path / "again")["u"].equals(counts["u"])
    rows = spark.sql(
        "SELECT 9223372036854775808D AS i, 9223372036854775807 AS f, 5D AS u UNION ALL SELECT 5D, 5, 6D"
    )
    found = book.transform(rows).toArrow()
    for name in ("i", "f", "u"):
        values = {"i": [2.0**63, 5.0], "f": [2**63 - 1, 5], "u": [5.0, 6.0]}[name]
        assert found[name].to_pylist() == expected.ids(name, values).tolist(), name


def test_workers_read_files_that_are_large(spark, table, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_files, "_SENT_BYTES", 0)
    monkeypatch.setattr(engine, "_SENT_ROWS", -1)
    book = vf.fit(vf.count(table, "click", ["number", "instant"]), 30, min_count=1)
    book.save(tmp_path / "a [book] {}")
    loaded = vf.load(tmp_path / "a [book] {}")
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", False)
    try:
        new = generated(500, seed=1)
        got = loaded.transform(read(spark, new, tmp_path).withColumn("instant", frame_of(spark, new)))
    finally:
        spark.conf.unset("spark.sql.parquet.inferTimestampNTZ.enabled")
    assert_same_ids(got, book.transform(new), ["number", "instant"])


def frame_of(spark, _):
    from pyspark.sql.functions import expr

    return expr("to_timestamp_ntz(to_utc_timestamp(instant, current_timezone()))")


def test_frames_of_two_sessions_do_not_meet(spark, frame, tmp_path):
    other = spark.newSession()
    rows = other.sql("SELECT CAST(id % 7 AS INT) AS number, id % 3 = 0 AS click FROM range(50)")
    here, there = vf.count(frame, "click", "number"), vf.count(rows, "click", "number")
    with pytest.raises(vf.InputError, match="the data are on two Spark sessions; save those of one session"):
        vf.fit(here + there, 9)


def test_a_codebook_whose_folder_is_gone_says_so(table, frame, tmp_path):
    vf.fit(vf.count(table, "click", "number"), 9).save(tmp_path / "book")
    book = vf.load(tmp_path / "book")
    shutil.rmtree(tmp_path / "book")
    with pytest.raises(vf.CodebookError, match="has been removed or replaced since it was loaded"):
        book.transform(frame.limit(1))


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


@pytest.mark.slow
def test_wide_frames_are_encoded(spark):
    n_columns = 150
    columns = ", ".join(f"CAST(id * {i + 3} % 11 AS STRING) AS v{i}" for i in range(n_columns))
    rows = spark.sql(f"SELECT id AS row, id % 2 AS y, {columns} FROM range(40)")
    book = vf.fit(vf.count(rows, "y"), 300)
    assert len(book.transform(rows.limit(20)).collect()) == 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: vf.count(rows, "clack"), "column 'clack' .* is not in the Spark frame"),
        (lambda rows: vf.count(rows, "number"), "label 'number' is missing in"),
        (lambda rows: vf.count(rows, "click", folds=5), "give a column with the fold of each row"),
        (lambda rows: vf.count(rows, "click", weight=TEXT), "must hold numbers, got text"),
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
def test_errors_come_before_long_work(frame, call, message):
    rows = frame.selectExpr("*", "current_timestamp() AS zone", "array(1) AS list")
    with pytest.raises(vf.InputError, match=message):
        call(rows)


def test_an_older_spark_is_refused(frame, monkeypatch):
    monkeypatch.setattr(type(frame.sparkSession), "version", property(lambda _: "3.5.1"))
    with pytest.raises(vf.InputError, match=r"the session runs Spark 3\.5\.1 .* needs Spark 4 or newer"):
        vf.count(frame, "click")


def test_what_is_on_a_cluster_is_not_pickled(frame):
    counts = vf.count(frame, "click", "number")
    for thing in (counts, vf.fit(counts, 9)):
        with pytest.raises(vf.InputError, match="cannot be pickled; save them to a folder"):
            pickle.dumps(thing)


def test_frames_that_the_caller_keeps_stay_kept(frame):
    rows = frame.where("row < 100").persist()
    vf.fit(vf.count(rows, "click", "number"), 9).transform(rows.where("row > 50"))
    assert rows.storageLevel.useMemory
    rows.unpersist()


def test_collations_do_not_merge_values(spark):
    rows = spark.sql(
        "SELECT collate(v, 'UTF8_LCASE') AS v, y FROM VALUES ('a', 0), ('A', 1), ('a', 1) AS t(v, y)"
    )
    assert vf.count(rows, "y", "v")["v"].to_pylist() == [
        {"value": "A", "neg": 0, "pos": 1},
        {"value": "a", "neg": 1, "pos": 1},
    ]


def test_a_frame_is_known_without_spark():
    assert not is_frame([1])
    assert not is_frame(pa.table({"a": [1]}))


def test_without_pyspark_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "vocabfold.spark", raising=False)
    with pytest.raises(vf.MissingDependency, match=r"pip install 'vocabfold\[spark\]'"):
        import vocabfold.spark  # noqa: F401
