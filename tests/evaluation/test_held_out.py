"""Figures on new rows, against the definitions."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import clicks, fold_counts
from support.masses import EXACT, information
from vocabfold.evaluation import held_out
from vocabfold.evaluation.sweep import sweep

FEATURES = ["site", "device"]


@pytest.mark.parametrize(
    "options", [{}, {"min_count": 1}, {"aim": "information"}, {"aim": "information", "smoothing": 3}], ids=str
)
@pytest.mark.parametrize("folds", [0, 5])
def test_all_figures_by_their_definitions(options, folds):
    old, new = clicks(3000), clicks(2000, seed=9, n_sites=600)
    book = vf.fit(vf.count(old, "click", FEATURES, folds=folds), 40, **options)
    found = book.evaluate(new)
    base = np.mean(old["click"])
    click = np.asarray(new["click"])
    assert (found.rows, found.rate, found.rate_at_fit) == (
        2000,
        pytest.approx(click.mean()),
        pytest.approx(base),
    )
    for name, column in book.columns.items():
        judged = found[name]
        entries = {row["value"]: row for row in book[name].to_pylist()}
        ids = np.array([entries[v]["id"] if v in entries else column.other for v in new[name].to_pylist()])
        groups = np.zeros((column.size, 2), int)
        np.add.at(groups, (ids, click), 1)
        assert judged.information == pytest.approx(information(groups.tolist()), abs=EXACT)
        rates = np.array(column.rates)
        at_fit = np.zeros(column.size)
        for value in old[name].to_pylist():
            at_fit[entries[value]["id"] if value in entries else column.other] += 1
        if column.strength == 0:
            rates = (rates * at_fit + base) / (at_fit + 1)
        gains = np.where(click == 1, np.log(rates[ids] / base), np.log((1 - rates[ids]) / (1 - base)))
        assert judged.gain == pytest.approx(gains.mean(), abs=1e-6)  # the mean of a prior has six digits
        assert judged.error == pytest.approx(gains.std(ddof=1) / math.sqrt(2000), abs=1e-6)
        values = new[name].to_pylist()
        assert judged.unseen == pytest.approx(np.mean([v not in entries for v in values]))
        assert judged.missing == pytest.approx(np.mean([v is None for v in values]))
        infrequent = [v in entries and entries[v]["neg"] + entries[v]["pos"] < 30 for v in values]
        assert judged.infrequent == pytest.approx(np.mean(infrequent))
        assert (judged.kept, judged.out_of_fold) == (column.information, column.gain)
        table = found.calibration(name)
        assert table["rows_at_fit"].to_pylist() == at_fit.tolist()
        assert table["rows"].to_pylist() == groups.sum(axis=1).tolist()
        for row in table.to_pylist():
            neg, pos = groups[row["id"]].tolist()
            assert row["rate"] == (pytest.approx(pos / (neg + pos)) if neg + pos else None)
            assert row["low"] <= (row["rate"] if row["rate"] is not None else 0.5) <= row["high"]
        off = [abs(row["rate"] - row["rate_at_fit"]) for row in table.to_pylist() if row["rate"] is not None]
        weights = [row["rows"] for row in table.to_pylist() if row["rate"] is not None]
        assert judged.miscalibration == pytest.approx(np.average(off, weights=weights))
    for what in ("kept", "information", "gain"):
        assert getattr(found, what) == pytest.approx(sum(getattr(judged, what) for judged in found.values()))
    assert (found.out_of_fold is None) == (not folds)


def test_rows_like_those_at_fit_have_not_drifted_and_are_calibrated():
    rng = np.random.default_rng(0)
    table = clicks(40_000, n_sites=10**6)
    order = rng.permutation(table.num_rows)
    old, new = table.take(order[:30_000]), table.take(order[30_000:])
    book, _ = vf.fit_transform(old, "click", 60, features=FEATURES)
    found = book.evaluate(new)
    assert found.warnings == ()
    site = found["site"]
    assert site.unseen == pytest.approx(site.expected_unseen, abs=0.02)
    assert site.expected_unseen > 0.02
    assert site.drift < 0.05
    assert site.n_miscalibrated <= 0.2 * book.sizes["site"]
    assert site.gain == pytest.approx(site.out_of_fold, abs=4 * site.error)


def test_what_is_wrong_is_said_in_words():
    rng = np.random.default_rng(0)
    n = 4000
    click = rng.integers(0, 2, n)
    table = pa.table(
        {
            "user": [f"u{i}" for i in range(n)],
            "outcome": [["lost", "won"][c] if rng.random() < 0.99 else "?" for c in click],
            "noise": [f"n{v}" for v in rng.integers(0, 1500, n)],
            "hour": rng.integers(0, 24, n),
            "city": [f"c{v}" for v in rng.integers(0, 5, n)],
            "click": click,
        }
    )
    features = ["user", "outcome", "noise", "hour", "city"]
    book = fold_counts(vf.count(table, "click", features), 60)
    other = table.take(rng.permutation(n)).set_column(5, "click", pa.array(rng.integers(0, 2, n)))
    other = other.set_column(0, "user", pa.array([f"v{i}" for i in range(n)]))
    other = other.set_column(4, "city", pa.array([f"c{5 + v}" if v else "c1" for v in rng.integers(0, 5, n)]))
    right = [["lost", "won"][c] for c in other["click"].to_pylist()]
    found = book.evaluate(other.set_column(1, "outcome", pa.array(right)))
    texts = [
        "column 'user' is nearly unique (4,000 values in 4,000 rows), so it can only memorise the training",
        "column 'user' did not generalise: train MI 0.69 nats/row at fit, gain -",
        "column 'outcome' leaks the label: its ids explain 100 % of the label's entropy. Drop it unless",
        "column 'noise' did not generalise: train MI 0.",
        "column 'hour' did not generalise: train MI 0.",
        "column 'hour' has only 24 values. If their order means something, give it to the model as it is.",
        "column 'city' did not generalise: train MI 0.",
        "column 'city' has unseen values in 79 % of the rows; 0 % were expected. Refit on recent rows.",
    ]
    assert len(found.warnings) == len(texts)
    for warning, text in zip(found.warnings, texts, strict=True):
        assert warning.startswith(text)
    assert "warning: column 'hour'" in repr(found)
    assert repr(found).startswith("Evaluation(5 columns, 4,000 rows: train MI ")


def test_a_column_that_did_not_generalise_is_judged_by_its_cross_validated_gain():
    old, new = clicks(3000), clicks(3000, seed=4)
    counts = vf.count(old, "click", "site", folds=5)
    assert vf.fit(counts, 30).evaluate(new).warnings == ()
    new = new.set_column(2, "click", pa.array(np.random.default_rng(0).integers(0, 2, 3000)))
    (warning,) = vf.fit(counts, 30).evaluate(new).warnings
    assert warning.startswith("column 'site' did not generalise: cross-validated gain 0.")
    assert " nats/row at fit, -0." in warning
    assert warning.endswith(" on this data. Refit on recent rows or drop it.")


def test_rows_of_all_kinds(tmp_path):
    old, new = clicks(3000), clicks(800, seed=3)
    old, new = (
        t.append_column("zip", pa.array([f"{10_000 + len(s or '') * 7}" for s in t["site"].to_pylist()]))
        for t in (old, new)
    )
    features = [*FEATURES, "zip"]
    book = vf.fit(vf.count(old, "click", features), 40)
    expected = book.evaluate(new)
    pq.write_table(new, tmp_path / "new.parquet")
    pa.csv.write_csv(new, tmp_path / "new.csv")  # where the digits of zip are text, as the codebook says
    for data in (new.to_pandas(), tmp_path / "new.parquet", tmp_path / "new.csv"):
        found = book.evaluate(data, "click")
        assert found.gain == pytest.approx(expected.gain, abs=1e-12)
        assert found["zip"].unseen == 0
    words = new.set_column(2, "click", pa.array(["yes" if c else "no" for c in new["click"].to_pylist()]))
    assert book.evaluate(words, positive="yes").gain == pytest.approx(expected.gain, abs=1e-12)
    named = words.rename_columns(["site", "device", "bought", "part", "zip"])
    assert book.evaluate(named, "bought", positive="yes").gain == pytest.approx(expected.gain, abs=1e-12)
    weighted = pa.concat_tables([new.slice(0, 400)] * 3 + [new.slice(400)])
    twin = new.append_column("w", pa.array([3] * 400 + [1] * 400))
    assert book.evaluate(twin, weight="w").gain == pytest.approx(book.evaluate(weighted).gain, abs=1e-12)
    gaps = new.set_column(2, "click", pa.array([None, *new["click"].to_pylist()[1:]]))
    assert book.evaluate(gaps, drop_null_labels=True).rows == 799
    negative = new.filter(pa.compute.equal(new["click"], 0))
    assert book.evaluate(negative).information == 0


def test_in_a_text_file_the_codebook_says_what_is_text(tmp_path):
    rng = np.random.default_rng(0)
    pairs = zip(["1.5", "2e3", "x"] * 50, ["true", "maybe"] * 75, strict=True)
    lines = [f"{v},{b},{rng.integers(0, 2)}" for v, b in pairs]
    (tmp_path / "old.csv").write_text("\n".join(["v,b,click", *lines]))
    (tmp_path / "new.csv").write_text("v,b,click\n1.5,true,1\n2e3,true,0\n")
    book = vf.fit(vf.count(tmp_path / "old.csv", "click", ["v", "b"]), 20)
    found = book.evaluate(tmp_path / "new.csv")
    assert (found["v"].unseen, found["b"].unseen) == (0, 0)


@pytest.mark.parametrize(
    ("old", "new", "unseen"),
    [
        (["1", "2"], ["1.0", "2"], 0),  # numbers are compared by value, however they are written
        (["1.5", "2.0"], ["1.5", "2"], 0),
        (["1.5", "2.0"], ["2", "2e0"], 0),
        (["1", "1.0"], ["1", "1"], 0),  # texts are not: two values
        (["1", "1.0"], ["1.0", "1e0"], 0.5),
        (["1.5", "2"], ["1.5", "2.0"], 0.5),
    ],
)
def test_the_codebook_says_how_the_numbers_of_a_text_file_are_read(tmp_path, old, new, unseen):
    for name, fields in (("old", old * 4), ("new", new)):
        lines = [f"{field},{i // 2 % 2}" for i, field in enumerate(fields)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["v,click", *lines]) + "\n")
    book = fold_counts(vf.count(tmp_path / "old.csv", "click", "v"), 3, unseen="own")
    assert book["v"].num_rows == 2
    assert book.evaluate(tmp_path / "new.csv")["v"].unseen == unseen
    told = book.transform(tmp_path / "new.csv", out=tmp_path / "ids.csv")
    assert told.unseen["v"] == 2 * unseen


def test_rows_of_rare_values_are_expected_to_be_unseen_and_no_others():
    old, new = clicks(3000, n_sites=10**6), clicks(3000, seed=1, n_sites=10**6)
    book = fold_counts(vf.count(old, "click", "site"), 2, min_count=5)
    column = book.evaluate(new)["site"]
    assert column.expected_unseen == pytest.approx(column.unseen, abs=0.03)


def test_numbers_are_compared_by_value():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": rng.integers(0, 9, 500), "click": rng.integers(0, 2, 500)})
    book = vf.fit(vf.count(frame, "click", "zip"), 20)
    assert book.evaluate(frame.astype({"zip": float}).iloc[1:])["zip"].unseen == 0


def test_large_numbers_meet_the_value_that_they_equal_and_no_other(monkeypatch):
    ids = 2**62 + np.arange(300)
    click = np.random.default_rng(0).integers(0, 2, 1000)
    rows = pa.table({"id": np.resize(ids, 1000), "click": click})
    floats = rows.set_column(0, "id", pa.array(np.resize(ids, 1000).astype(float)))
    counts = vf.count(rows, "click", "id")
    book = vf.fit(counts, 20, min_count=1, dedicated_min=3)
    expected = book.transform(floats)["id"].to_numpy()
    found = book.evaluate(floats)
    assert found.calibration("id")["rows"].to_pylist() == np.bincount(expected, minlength=book.size).tolist()
    assert found["id"].unseen == 0  # 2**62, which all of them are as floats
    steps = sweep(book, counts, vf.count(floats, "click", "id"), steps=3)
    (step,) = (step for step in steps if step.budget == book.budget)
    assert step.held_out["id"] == pytest.approx(found["id"].gain, abs=1e-12)
    # As a float, none of the numbers is 2**62 + 1: what no double is, is unseen.
    book = vf.fit(vf.count(floats, "click", "id"), 20, min_count=1)
    assert book.evaluate(rows)["id"].unseen == pytest.approx(np.mean(np.resize(ids, 1000) != 2**62))
    parts = pa.table({"id": [0.0, 1.5, None, math.inf], "click": [0, 1, 0, 1]})
    evens = vf.fit(
        vf.count(pa.table({"id": [0, 2] * 9, "click": [0, 1, 1] * 6}), "click", "id"), 9, min_count=1
    )
    assert (evens.evaluate(parts)["id"].unseen, evens.evaluate(parts)["id"].missing) == (0.75, 0.25)
    monkeypatch.setattr(held_out, "converted", lambda value, *_: (value, "true"))
    with pytest.raises(
        vf.InputError, match=r"column 'id': .* rows met the codebook, but 1,000 rows were counted"
    ):
        vf.fit(counts, 20, min_count=1).evaluate(floats)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns("site"), r"^column 'site' is not in the Arrow Table\."),
        (lambda t: t.drop_columns("click"), r"^column 'click' is not in the Arrow Table\."),
        (
            lambda t: t.set_column(0, "site", pa.array(range(t.num_rows))),
            r"^column 'site' holds integer in the Arrow Table, but text in the codebook; values of different",
        ),
        (
            lambda t: t.set_column(2, "click", pa.array(range(t.num_rows))),
            r"^label 'click' has 300 distinct values",
        ),
    ],
)
def test_rows_that_cannot_be_evaluated(change, message):
    table = clicks(300)
    book = vf.fit(vf.count(table, "click", FEATURES), 20)
    with pytest.raises(vf.InputError, match=message):
        book.evaluate(change(clicks(300, seed=2)))
