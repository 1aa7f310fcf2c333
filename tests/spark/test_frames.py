"""Frames of Spark as rows: however they are partitioned, joined and named, the same ids as on one machine."""

import pytest

import vocabfold as vf
from support.frames import FEATURES, assert_same_ids, in_order
from vocabfold.encoding import spark as encoding_spark

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "partitioned",
    [
        lambda rows: rows.repartition(5).orderBy("share"),
        pytest.param(lambda rows: rows.coalesce(1), marks=pytest.mark.slow),
    ],
)
def test_partitions_and_their_order_change_nothing(table, frame, partitioned):
    found, expected = (vf.count(rows, "click", FEATURES[:3]) for rows in (partitioned(frame), table))
    assert vf.fit(found, 30).digest == vf.fit(expected, 30).digest


@pytest.fixture
def few_are_sent(monkeypatch):
    """Send all values of small columns to all workers, and of others those that an eighth of the rows have."""

    def send(values):
        monkeypatch.setattr(encoding_spark, "_SENT", values)
        monkeypatch.setattr(encoding_spark, "_HEAVY", 1 / 8)

    return send


def test_rows_meet_the_values_that_are_not_sent_to_all_workers(table, frame, few_are_sent):
    few_are_sent(5)
    book = vf.fit(vf.count(table, "click", FEATURES[:2]), 50)
    with pytest.warns(UserWarning, match="looks like the training data"):
        expected = book.transform(table, offset_ids=True)
    assert_same_ids(in_order(book.transform(frame, offset_ids=True)), expected, FEATURES[:2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "features", "settings"),
    [
        (5, FEATURES[:3], {"aim": "information", "min_count": 3}),
        (2**20, FEATURES[:4], {}),
        (5, FEATURES, {}),
        (2**20, FEATURES, {"aim": "information", "min_count": 3}),
    ],
    ids=str,
)
def test_rows_meet_their_values_wherever_they_are(
    table, frame, sent, features, settings, few_are_sent, tmp_path
):
    few_are_sent(sent)
    older, rows = table.slice(0, 1500), frame.where("row < 1500")
    here = vf.count(older, "click", features, fold_column="fold")
    there = vf.count(rows, "click", features, fold_column="fold")
    expected, book = vf.fit(here, 50, **settings), vf.fit(there, 50, **settings)
    found = in_order(book.transform(frame, offset_ids=True))
    assert_same_ids(found, expected.transform(table, offset_ids=True), features)
    expected.save(tmp_path / "book")
    loaded = vf.load(tmp_path / "book")
    only = loaded.transform(frame.drop("click"), only_ids=True)
    assert only.columns == features
    in_folds = expected.transform(older, counts=here)
    assert_same_ids(in_order(book.transform(rows, counts=there)), in_folds, features)
    assert_same_ids(in_order(loaded.transform(rows, counts=here)), in_folds, features)


def test_ids_are_marked_and_not_encoded_again(table, frame):
    book = vf.fit(vf.count(table, "click", "number"), 9)
    encoded = book.transform(frame)
    assert encoded.schema["number"].metadata == {"vocabfold.digest": book.digest}
    with pytest.raises(vf.InputError, match="column 'number' of the Spark frame holds ids already"):
        book.transform(encoded)


def test_other_columns_may_have_any_name(table, frame):
    book = vf.fit(vf.count(table, "click", "number"), 9)
    twice = frame.select("number", "row", "row", "fold").toDF("number", "k0", "k0", "value")
    found = book.transform(twice)
    assert found.columns == ["number", "k0", "k0", "value"]
    renamed = found.toDF("feature", "a", "b", "c")
    assert renamed.where("a = b").count() == 3000


@pytest.mark.slow
def test_wide_frames_are_encoded(spark):
    n_columns = 150
    columns = ", ".join(f"CAST(id * {i + 3} % 11 AS STRING) AS v{i}" for i in range(n_columns))
    rows = spark.sql(f"SELECT id AS row, id % 2 AS y, {columns} FROM range(40)")
    book = vf.fit(vf.count(rows, "y"), 300)
    assert len(book.transform(rows.limit(20)).collect()) == 20


def test_collations_do_not_merge_values(spark):
    rows = spark.sql(
        "SELECT collate(v, 'UTF8_LCASE') AS v, y FROM VALUES ('a', 0), ('A', 1), ('a', 1) AS t(v, y)"
    )
    assert vf.count(rows, "y", "v")["v"].to_pylist() == [
        {"value": "A", "neg": 0, "pos": 1},
        {"value": "a", "neg": 1, "pos": 1},
    ]
