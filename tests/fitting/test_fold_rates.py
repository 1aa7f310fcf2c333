"""Folds that depend on the label are warned of, whatever the door; folds that do not are not."""

import math
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.model_selection import KFold

import vocabfold as vf
from support.builders import clicks
from vocabfold.fitting.fold_rates import cost_of, p_value

WRONG = r"^label rates differ between folds, from .*%\. .* tell their own labels, inverted\. .* with folds=5"


def sorted_rows(n=3000, n_folds=5):
    """Rows sorted by label, with folds by position, as a careless split makes them."""
    rows = clicks(n).sort_by("click").drop_columns(["part"])
    return rows.append_column("part", pa.array(np.arange(n) * n_folds // n))


def with_fold(rows, folds):
    return rows.set_column(rows.column_names.index("part"), "part", pa.array(folds))


@pytest.mark.parametrize("aim", ["model", "information"])
@pytest.mark.parametrize("n_folds", [2, 5, 10])
def test_folds_of_rows_sorted_by_label_warn(n_folds, aim):
    counts = vf.count(sorted_rows(n_folds=n_folds), "click", fold_column="part")
    with pytest.warns(vf.VocabfoldWarning, match=WRONG) as caught:
        vf.fit(counts, 40, aim=aim)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_training_rows_warn():
    with pytest.warns(vf.VocabfoldWarning, match=WRONG) as caught:
        vf.fit_transform(sorted_rows(), "click", 40, fold_column="part")
    assert caught[0].filename == __file__


def test_rows_sorted_by_label_warn_only_if_folds_go_by_position():
    frame = sorted_rows().to_pandas()
    with pytest.warns(vf.VocabfoldWarning, match=WRONG):
        vf.VocabularyCompressor(40, cv=KFold(5)).fit_transform(frame[["site", "device"]], frame["click"])
    vf.VocabularyCompressor(40, cv=5).fit_transform(frame[["site", "device"]], frame["click"])
    vf.VocabularyCompressor(40, cv=KFold(5, shuffle=True, random_state=0)).fit_transform(
        frame[["site", "device"]], frame["click"]
    )
    vf.fit_transform(sorted_rows(), "click", 40)


@pytest.mark.parametrize("weights", [(20.0, 1.0), (0.1, 1.0), (0.3, 0.3)])
def test_weights_hide_nothing_and_raise_no_alarm(weights):
    rows = sorted_rows()
    w = pa.array(np.take(weights, rows["click"].to_numpy()))
    rows = rows.append_column("w", w)
    with pytest.warns(vf.VocabfoldWarning, match=WRONG):
        vf.fit(vf.count(rows, "click", ["site"], fold_column="part", weight="w"), 40)
    honest = vf.count(rows, "click", ["site"], folds=5, weight="w")
    vf.fit(honest, 40)


def test_few_rows_prove_nothing():
    rows = sorted_rows(20, 2)
    vf.fit(vf.count(rows, "click", ["site"], fold_column="part"), 4, min_count=1)


def test_months_whose_rates_differ_are_fine():
    rng = np.random.default_rng(0)
    month = np.arange(100_000) * 12 // 100_000
    rates = 0.25 + 0.03 * np.sin(month)  # by 20 standard errors
    rows = clicks(100_000).set_column(2, "click", [(rng.random(month.size) < rates).astype(int)])
    counts = vf.count(with_fold(rows, month), "click", ["site", "device"], fold_column="part")
    tables = np.array(
        [counts["site"].group_by("fold").aggregate([(s, "sum")])[f"{s}_sum"] for s in ("neg", "pos")]
    )
    assert p_value(*tables.astype(float)) < 1e-6
    vf.fit(counts, 60)
    vf.fit(counts, 60, aim="information")


def test_folds_that_go_with_the_label_of_each_value_warn():
    """All folds have the same rate, but the rates of a value in the other folds are the opposite of its own."""
    rng = np.random.default_rng(0)
    site, click = rng.integers(0, 40, 8000), rng.integers(0, 2, 8000)
    rows = pa.table({"site": site.astype(str), "click": click, "part": (site + click) % 2})
    counts = vf.count(rows, "click", fold_column="part")
    said = r"^the rates of the values of column 'site' are wrong in other folds: its CV gain is -[0-9.]+ nats"
    with pytest.warns(vf.VocabfoldWarning, match=said):
        vf.fit(counts, 40, smoothing=1)


def test_ids_without_a_prior_may_do_harm_in_honest_folds():
    rng = np.random.default_rng(0)
    site, click = rng.integers(0, 300, 2000), rng.integers(0, 2, 2000)
    rows = pa.table({"site": site.astype(str), "click": click, "part": rng.integers(0, 2, 2000)})
    book = vf.fit(vf.count(rows, "click", fold_column="part"), 250, aim="information")
    assert book.gain < -0.01


def test_an_id_is_to_blame_for_nothing_but_the_folds():
    """In many rows, the rates of two halves differ a little, and the only id costs what they do."""
    rng = np.random.default_rng(0)
    part = np.arange(400_000) % 2
    click = (rng.random(part.size) < 0.5 + 0.01 * part).astype(int)
    rows = pa.table({"site": ["a"] * part.size, "click": click, "part": part})
    book = vf.fit(vf.count(rows, "click", fold_column="part"), 2, aim="information", smoothing=1)
    assert book.gain < -1e-4


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(20, 300), st.integers(20, 300)), min_size=2, max_size=8))
def test_chance_is_that_of_the_usual_test_where_folds_are_large(table):
    neg, pos = np.array(table, float).T
    expected = stats.chi2_contingency(np.array(table), correction=False).pvalue
    assert p_value(neg, pos) == pytest.approx(expected, abs=1e-12)


def test_a_trillion_rows_take_no_room():
    assert p_value(np.full(5, 9e11), np.full(5, 1e11)) == 1
    assert p_value(np.full(2, 9e11), np.array([1e11, 1.01e11])) == 0


@pytest.mark.parametrize(("n_folds", "n_rows"), [(2, 40), (5, 100), (300, 3000), (1000, 3000), (1000, 900)])
def test_chance_does_not_cry_wolf_where_folds_are_small(n_folds, n_rows):
    rng = np.random.default_rng(0)
    for rate in (0.5, 0.1, 0.01):
        for _ in range(100):
            fold = rng.integers(0, n_folds, n_rows)
            label = rng.random(n_rows) < rate
            label[0], label[1] = True, False
            tables = [np.bincount(fold[label == side], minlength=n_folds).astype(float) for side in (0, 1)]
            assert p_value(*tables) > 1e-6


def test_cost_is_that_of_the_rate_of_the_other_folds():
    rows = sorted_rows(300, 3)
    counts = vf.count(rows, "click", ["site"], fold_column="part")
    fold, label = rows["part"].to_numpy(), rows["click"].to_numpy()
    sums = {
        "neg": np.bincount(fold[label == 0], minlength=3),
        "pos": np.bincount(fold[label == 1], minlength=3),
    }
    base, lost = label.mean(), 0.0
    for here, one in zip(fold, label, strict=True):
        rest = label[fold != here]
        rate = (rest.sum() + base) / (rest.size + 1)  # and a row at the overall rate
        lost += math.log(base / rate) if one else math.log((1 - base) / (1 - rate))
    assert cost_of(sums, counts) == pytest.approx(lost / 300)


def test_other_budgets_of_a_report_say_it_no_more(tmp_path):
    counts = vf.count(sorted_rows(1000), "click", ["site"], fold_column="part")
    with pytest.warns(vf.VocabfoldWarning, match=WRONG):
        book = vf.fit(counts, 20, aim="information", method="bucketing", allocation="uniform")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        book.report(tmp_path / "page.html", counts=counts)


@pytest.mark.parametrize("weight", [None, "w"])
def test_folds_that_share_out_the_labels_of_each_value_evenly_warn(weight):
    """Then the rates of the other folds tell the label of a row as its own would."""
    rng = np.random.default_rng(1)
    rates = 1 / (1 + np.exp(1 - 0.6 * rng.normal(size=150)))

    def made():
        values = rng.integers(0, 150, 3000)
        labels = (rng.random(3000) < rates[values]).astype(int)
        return pd.DataFrame({"a": np.char.add("v", values.astype(str)), "y": labels, "w": 3 - 2 * labels})

    rows, new = made(), made()
    in_turns = rows.sort_values(["a", "y"]).assign(fold=np.arange(3000) % 5)
    said = r"^the folds share out the labels of each value of column .a. more evenly than by chance.*own labels"
    with pytest.warns(vf.VocabfoldWarning, match=said):
        book, _ = vf.fit_transform(in_turns, "y", 60, features=["a"], fold_column="fold", weight=weight)
    assert book.gain > 1.5 * book.evaluate(new, weight=weight).gain
    for seed in range(5):
        vf.fit_transform(in_turns, "y", 60, features=["a"], fold_seed=seed, weight=weight)
