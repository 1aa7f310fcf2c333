"""Rows -> counts: what a loop over the rows counts, however they lie, and whatever they are added to."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import vocabfold as vf
from support.builders import tabulated
from support.frames import FEATURES, TEXT
from support.reference import count_rows


def test_counts_are_those_of_a_loop(tried, table):
    rows = table.to_pylist()
    counts = tried.counts()
    for name in FEATURES:
        assert tabulated(counts[name]) == count_rows(rows, name, "click", positive=True), name


def test_columns_may_be_added_to_the_text_columns(tried, table):
    counts = vf.count(tried.rows, "click", also=["share"], exclude=["weight"])
    chosen = (TEXT, "share", "nothing")  # a column of missing values might hold texts
    assert counts.features == chosen
    assert counts.left_out == tuple(n for n in table.column_names if n not in (*chosen, "click", "weight"))


def test_counts_by_fold_and_by_weight_are_those_of_a_loop(tried, table):
    rows = table.to_pylist()
    found = tried.counts(fold_column="fold", weight="weight")["number"]
    for fold in range(4):
        of_fold = [row for row in rows if row["fold"] == fold]
        expected = count_rows(of_fold, "number", "click", positive=True, weight="weight")
        assert tabulated(found.filter(pc.equal(found["fold"], fold))) == expected


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"weight": "weight"}, marks=pytest.mark.slow),
        pytest.param({"fold_column": "fold", "weight": "weight"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_counts_say_the_same_on_both_engines(tried, expected, options):
    found, same = tried.counts(**options), expected.counts(**options)
    assert found.engine == tried.engine.name
    for what in ("neg", "pos", "neg_rows", "pos_rows", "units_per_row", "folds", "kinds", "n_values"):
        assert getattr(found, what) == getattr(same, what), what
    for name in FEATURES:
        assert found[name].equals(same[name]), name


@pytest.mark.parametrize("features", [[TEXT, "share"], pytest.param(FEATURES, marks=pytest.mark.slow)], ids=len)
def test_days_are_added_wherever_they_are(tried, expected, table, features, tmp_path):
    days = [table.take(np.arange(day, 3000, 3)) for day in range(3)]
    monday, tuesday = (vf.count(tried.engine.rows(day), "click", features) for day in days[:2])
    here = vf.count(days[2], "click", features[::-1])
    tuesday.save(tmp_path / "tuesday")
    loaded = tried.engine.load_counts(tmp_path / "tuesday")
    assert loaded.engine == tried.engine.name
    digest = vf.fit(vf.count(expected.rows, "click", features), 60).digest
    assert vf.fit(monday + loaded + here, 60).digest == digest
    on_one_machine = vf.count(days[0], "click", features) + vf.load_counts(tmp_path / "tuesday") + here
    assert vf.fit(on_one_machine, 60).digest == digest


@pytest.mark.slow
def test_days_are_added_in_any_order(tried, expected, table, tmp_path):
    days = [table.take(np.arange(day, 3000, 3)) for day in range(3)]
    monday, tuesday = (vf.count(tried.engine.rows(day), "click", FEATURES) for day in days[:2])
    here = vf.count(days[2], "click", FEATURES[::-1])
    assert vf.fit(sum([tuesday, monday, here]), 60).digest == expected.book().digest
    for name, day in (("monday", monday), ("tuesday", tuesday)):
        day.save(tmp_path / name)
    on_one_machine = vf.load_counts(tmp_path / "monday") + vf.load_counts(tmp_path / "tuesday") + here
    assert vf.fit(on_one_machine, 60).digest == expected.book().digest


@pytest.mark.slow
def test_numbers_at_the_edge_of_their_kind_are_not_mixed_up(engine, tmp_path):
    edges = {"i": [2**63 - 1, 5] * 9, "f": [2.0**63, 5.0] * 9, "u": pa.array([2**64 - 1, 5] * 9, pa.uint64())}
    counts = vf.count(pa.table(edges | {"y": [0, 1, 1] * 6}), "y", list(edges))
    settings = {"budget": 9, "aim": "information", "unseen": "own"}
    expected = vf.fit(counts, **settings)
    counts.save(tmp_path / "counts")
    loaded = engine.load_counts(tmp_path / "counts")
    book = vf.fit(loaded, **settings)
    assert book.digest == expected.digest
    book.save(tmp_path / "book")
    assert vf.load(tmp_path / "book")["u"].equals(expected["u"])
    loaded.save(tmp_path / "again")
    assert vf.load_counts(tmp_path / "again")["u"].equals(counts["u"])
    values = {"row": [0, 1], "i": [2.0**63, 5.0], "f": [2**63 - 1, 5], "u": [5.0, 6.0]}
    found = engine.table(book.transform(engine.rows(pa.table(values)))).sort_by("row")
    for name in edges:
        assert found[name].to_pylist() == expected.ids(name, values[name]).tolist(), name


@pytest.mark.parametrize(
    ("label", "options", "message"),
    [
        ("clack", {}, r"column 'clack' \(did you mean 'click'\?\) is not in {}"),
        ("number", {}, "label 'number' is missing in"),
        ("click", {"weight": TEXT}, "must hold numbers, got text"),
        ("click", {"features": "row", "fold_column": "share"}, "must hold whole numbers, got"),
    ],
)
def test_rows_that_cannot_be_counted_are_refused(tried, label, options, message):
    with pytest.raises(vf.InputError, match=message.format(tried.engine.subject)):
        vf.count(tried.rows, label, **options)
