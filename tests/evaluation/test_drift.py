"""Drift: what chance gives is no drift, however many ids there are, and a warning says what changed."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabfold as vf
from vocabfold.evaluation.drift import drift


def sample(rng, n, shares):
    return rng.multinomial(n, shares / shares.sum()).astype(float)


@pytest.mark.parametrize("n_ids", [2, 8, 294, 3000])
@pytest.mark.parametrize("zipf", [0, 1.2])
@pytest.mark.parametrize(("n_old", "n_new"), [(20_000, 20_000), (1000, 200)])
def test_chance_is_no_drift(n_ids, zipf, n_old, n_new):
    rng, shares = np.random.default_rng(0), 1 / np.arange(1, n_ids + 1) ** zipf
    found = [drift(sample(rng, n_old, shares), sample(rng, n_new, shares), n_old, n_new) for _ in range(40)]
    assert np.mean([one.index for one in found]) < 0.06
    assert all(one.index < 0.25 + 3 * one.error for one in found)


def test_the_same_shift_is_the_same_drift_with_few_and_with_many_ids():
    rng = np.random.default_rng(0)
    for n_ids in (8, 80, 294):
        old, new = np.ones(n_ids), np.ones(n_ids)
        new[: n_ids // 2] *= 3
        found = drift(sample(rng, 40_000, old), sample(rng, 40_000, new), 40_000, 40_000)
        # Shares of 1/2 and 1/2 became 3/4 and 1/4, however they are divided among the ids of each half.
        expected = (0.75 - 0.5) * math.log(0.75 / 0.5) + (0.25 - 0.5) * math.log(0.25 / 0.5)
        assert found.index == pytest.approx(expected, abs=0.02)


def test_ids_without_rows_add_nothing():
    rng, shares = np.random.default_rng(0), np.append(np.ones(8), np.zeros(286))
    found = drift(sample(rng, 20_000, shares), sample(rng, 300, shares), 20_000, 300)
    assert found.index < 0.05


def test_an_id_that_had_no_rows_may_drift():
    found = drift(np.array([900.0, 100, 0]), np.array([500.0, 100, 400]), 1000, 1000)
    assert found.index > 1
    assert found.moved[0] == {"id": 2, "share": 0.4, "expected": 0.0}


def test_heavy_rows_are_no_more_certain():
    rng, shares = np.random.default_rng(0), np.ones(8)
    old, new = sample(rng, 500, shares), sample(rng, 80, shares)
    assert drift(1000 * old, 7 * new, 500, 80).index == pytest.approx(drift(old, new, 500, 80).index)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=9))
def test_drift_is_finite_never_negative_and_alike_from_either_side(pairs):
    old, new = np.array(pairs, float).T
    if old.sum() and new.sum():
        found, back = drift(old, new, old.sum(), new.sum()), drift(new, old, new.sum(), old.sum())
        assert 0 <= found.index < math.inf
        assert found.index == pytest.approx(back.index)
        assert drift(old, old, old.sum(), old.sum()).index == 0


def test_a_warning_says_what_changed():
    def rows(n_a, n_b):
        sites = ["a"] * n_a + ["b"] * n_b + ["c"] * 400
        return pa.table({"site": sites, "click": [i % 3 == 0 for i in range(len(sites))]})

    book = vf.fit(vf.count(rows(900, 300), "click"), 10)
    found = book.evaluate(rows(100, 1100))
    a, b = book.ids("site", ["a", "b"])
    assert found.warnings == (
        "column 'site' has drifted: population stability index 1.74: "
        f"id {a} ('a') has 6.2 % of the rows (56.2 % expected), "
        f"id {b} ('b') has 68.8 % of the rows (18.8 % expected). Refit on recent rows.",
    )
    assert [one["id"] for one in found["site"].moved] == [a, b, book.ids("site", ["c"])[0]]
