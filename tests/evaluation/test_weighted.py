"""Weights change figures on new rows, but not what they prove: a heavy row is one observation."""

import math

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from support.builders import clicks
from vocabfold.evaluation.chance import ByLabel
from vocabfold.evaluation.held_out import count_new
from vocabfold.evaluation.sweep import sweep
from vocabfold.report.summary import _calibration

OPTIONS = {"positive": None, "weight": "w", "drop_null_labels": False, "preset": None, "memory_limit": None}
FIGURES = (
    "gain",
    "error",
    "information",
    "miscalibration",
    "n_miscalibrated",
    "drift",
    "drift_error",
    "unseen",
)


def weighted(rows, neg, pos):
    """Return rows with a weight for each label."""
    return rows.append_column("w", pa.array(np.where(rows["click"].to_numpy() == 1, float(pos), float(neg))))


def book_of(rows, **options):
    return vf.fit(vf.count(rows, "click", ["site", "device"], weight="w"), 30, min_count=2, **options)


@pytest.mark.parametrize("options", [{}, {"aim": "information"}], ids=str)
@pytest.mark.parametrize("weights", [(1, 1), (20, 1), (0.5, 3)])
def test_weights_in_another_unit_change_no_figure(weights, options):
    book, new = book_of(weighted(clicks(), 2, 1), **options), clicks(300, seed=5)
    found = book.evaluate(weighted(new, *weights), weight="w")
    heavy = book.evaluate(weighted(new, *(20 * weight for weight in weights)), weight="w")
    for name in book:
        for figure in FIGURES:
            assert getattr(heavy[name], figure) == pytest.approx(
                getattr(found[name], figure), rel=1e-6, abs=1e-9
            )
        for ends in ("rate", "low", "high", "rate_at_fit"):
            mine, theirs = (one.calibration(name)[ends].to_numpy() for one in (found, heavy))
            np.testing.assert_allclose(theirs, mine, rtol=1e-6)
    assert [text.split(":")[0] for text in heavy.warnings] == [text.split(":")[0] for text in found.warnings]


def test_heavy_rows_at_fit_prove_no_more_than_light_ones():
    rows, new = clicks(), weighted(clicks(300, seed=5), 1, 1)
    light, heavy = (book_of(weighted(rows, n, n), aim="information") for n in (1, 20))
    for name, column in light.evaluate(new).items():
        found = heavy.evaluate(new)[name]
        assert (found.gain, found.error) == pytest.approx((column.gain, column.error), rel=1e-6)
        assert found.n_miscalibrated == column.n_miscalibrated


def test_the_error_of_a_gain_is_what_a_bootstrap_says():
    rng = np.random.default_rng(0)
    book, new = book_of(weighted(clicks(), 20, 1)), weighted(clicks(200, seed=9), 20, 1)
    found = book.evaluate(new, weight="w")
    gains = [
        [column.gain for column in book.evaluate(new.take(rng.integers(0, 200, 200)), weight="w").values()]
        for _ in range(150)
    ]
    errors = [column.error for column in found.values()]
    assert errors == pytest.approx(np.std(gains, axis=0), rel=0.25)


@pytest.mark.parametrize("weights", [(1, 1), (20, 1), (0.25, 1)])
@pytest.mark.parametrize("rate", [0.03, 0.4])
def test_intervals_hold_the_rate_of_weight_19_times_of_20(weights, rate):
    rng = np.random.default_rng(0)
    pos = rng.binomial(100, rate, 20_000)
    rows = np.array([100 - pos, pos], float)
    low, high = ByLabel(rows * np.array([weights]).T, rows).interval
    expected = rate * weights[1] / (rate * weights[1] + (1 - rate) * weights[0])
    assert np.mean((low <= expected) & (expected <= high)) == pytest.approx(0.95, abs=0.03)
    of_weight = rows * np.array([weights]).T
    assert (
        (low <= of_weight[1] / of_weight.sum(axis=0)) & (of_weight[1] / of_weight.sum(axis=0) <= high)
    ).all()


def test_the_error_of_a_rate_is_that_of_rows_with_this_rate():
    rng = np.random.default_rng(0)
    pos = rng.binomial(400, 0.3, 20_000)
    rows = np.array([400 - pos, pos], float)
    of_weight = rows * np.array([[20], [1]])
    rates = of_weight[1] / of_weight.sum(axis=0)
    error = np.sqrt(ByLabel(of_weight, rows).variance(np.full(20_000, 0.3 / (0.3 + 0.7 * 20))))
    assert error == pytest.approx(np.std(rates), rel=0.05)


def test_honest_ids_are_as_seldom_miscalibrated_with_weights_as_without():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 400, 80_000)
    rates = rng.uniform(0.2, 0.8, 400)
    rows = pa.table({"x": [f"v{v}" for v in x], "click": (rng.random(x.size) < rates[x]).astype(int)})
    options = {"aim": "information", "smoothing": 0, "min_count": 1}
    for weights in ((1, 1), (20, 1), (1, 20)):
        halves = [weighted(half, *weights) for half in (rows.slice(0, 40_000), rows.slice(40_000))]
        book = vf.fit(vf.count(halves[0], "click", "x", weight="w"), 400, **options)
        column = book.evaluate(halves[1], weight="w")["x"]
        assert column.n_miscalibrated / book.size == pytest.approx(0.05, abs=0.04)


def test_a_label_that_no_new_row_has_weighs_what_the_others_do():
    book = book_of(weighted(clicks(), 1, 1))
    new = clicks(300, seed=5)
    new = new.filter(pa.compute.equal(new["click"], 0))
    light, heavy = (book.evaluate(weighted(new, n, n), weight="w") for n in (1, 20))
    for name in book:
        assert heavy[name].error == pytest.approx(light[name].error)
        mine, theirs = (one.calibration(name)["high"].to_numpy() for one in (light, heavy))
        np.testing.assert_allclose(theirs, mine)


def test_other_budgets_are_judged_alike():
    rows, new = weighted(clicks(), 20, 1), weighted(clicks(300, seed=5), 20, 1)
    counts = vf.count(rows, "click", ["site", "device"], weight="w")
    for options in ({}, {"aim": "information"}):
        book = vf.fit(counts, 30, min_count=2, **options)
        new_rows, _ = count_new(book, new, "click", **OPTIONS)
        steps = sweep(book, counts, new_rows, steps=4)
        (step,) = (step for step in steps if step.budget == book.budget)
        for name, column in book.evaluate(new, weight="w").items():
            assert step.held_out[name] == pytest.approx(column.gain, abs=1e-12)


def test_the_page_counts_a_row_once_in_the_intervals_of_rates():
    book, new = book_of(weighted(clicks(), 20, 1)), clicks(300, seed=5)
    one, twenty = (
        _calibration(list(book.evaluate(weighted(new, 20 * n, n), weight="w").values())) for n in (1, 20)
    )
    for ends in ("rate", "low", "high"):
        assert twenty[ends] == pytest.approx(one[ends], rel=1e-6)
    assert math.fsum(twenty["rows"]) == pytest.approx(20 * math.fsum(one["rows"]))


def test_weights_that_were_forgotten_are_missed():
    rows, new = weighted(clicks(), 20, 1), weighted(clicks(300, seed=5), 20, 1)
    book, said = book_of(rows), "the codebook was fitted with weights, but these rows have none, "
    assert book.evaluate(new).warnings[0].startswith(said)
    assert not any(text.startswith(said) for text in book.evaluate(new, weight="w").warnings)
