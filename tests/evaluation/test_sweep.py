"""Other budgets: each is what `fit` and `evaluate` say of it."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from vocabfold.evaluation.held_out import count_new
from vocabfold.evaluation.sweep import MOST_STEPS, spaced, sweep

ROUNDING = 1e-12  # nats: sums in another order
UNSAID = {"positive": None, "weight": None, "drop_null_labels": False, "preset": None, "memory_limit": None}


def rows_of(seed, n_rows=600, n_values=(60, 8)):
    rng = np.random.default_rng(seed)
    values = [rng.zipf(1.4, n_rows) % n for n in n_values]
    label = rng.random(n_rows) < (0.2 + 0.5 * ((values[0] % 3 == 0) | (values[1] == 2)))
    names = {f"c{i}": [f"v{v}" if v else None for v in column] for i, column in enumerate(values)}
    return pa.table(names | {"label": label.astype(int), "weight": rng.integers(1, 4, n_rows) / 2})


OPTIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "aim": st.just("model"),
            "min_count": st.sampled_from([1, 3, 20]),
            "dedicated_min": st.sampled_from([2, 10, 30]),
            "shared_ids": st.sampled_from([1, 3, 8]),
            "smoothing": st.sampled_from(["auto", 0, 5]),
            "unseen": st.sampled_from(["other", "own", "error"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "aim": st.just("information"),
            "min_count": st.sampled_from([1, 3]),
            "smoothing": st.sampled_from(["auto", 0]),
            "unseen": st.sampled_from(["other", "own"]),
            "method": st.sampled_from(
                ["exact", "greedy", "bucketing", "divisive", "agglomerative", "stochastic", "threshold"]
            ),
            "allocation": st.just("uniform"),
        }
    ),
    st.fixed_dictionaries(
        {
            "aim": st.just("information"),
            "method": st.sampled_from(["frequency", "selection", "hashing"]),
            "allocation": st.just("uniform"),
        }
    ),
)


@cache
def counted(folds, weight):
    return vf.count(rows_of(0), "label", ["c0", "c1"], folds=folds, weight=weight)


@pytest.mark.filterwarnings("ignore:budget=")
@settings(max_examples=15)
@given(
    options=OPTIONS,
    budget=st.integers(4, 40),
    folds=st.sampled_from([0, 3]),
    weighted=st.booleans(),
    data=st.data(),
)
def test_every_budget_is_what_fitting_and_judging_say(options, budget, folds, weighted, data):
    weight = "weight" if weighted else None
    counts = counted(folds, weight)
    book = vf.fit(counts, budget, **options)
    new = rows_of(1, n_values=(70, 9))
    new_rows, _ = count_new(book, new, "label", **UNSAID | {"weight": weight})
    steps = sweep(book, counts, new_rows, steps=data.draw(st.sampled_from([4, 12])))
    assert budget in [step.budget for step in steps]
    step = data.draw(st.sampled_from(steps))
    fitted = vf.fit(counts, step.budget, **options)
    judged = fitted.evaluate(new, "label", weight=weight)
    for name, column in fitted.columns.items():
        found = step.columns[name]
        assert (found.size, found.n_dedicated, found.other) == (column.size, column.n_dedicated, column.other)
        assert found.information == pytest.approx(column.information, abs=ROUNDING)
        assert (found.gain is None) == (folds == 0)
        has_joined = not column.shared and column.n_dedicated < column.n_values  # that is not exact
        if not has_joined or options["aim"] == "information":
            assert step.held_out[name] == pytest.approx(judged[name].gain, abs=ROUNDING)
            assert found.gain == (pytest.approx(column.gain, abs=ROUNDING) if folds else None)


@given(
    least=st.integers(1, 500), chosen=st.floats(1, 1e4), most=st.floats(1, 1e4), n=st.integers(3, MOST_STEPS)
)
def test_budgets_are_evenly_spaced_and_few(least, chosen, most, n):
    chosen = round(least * chosen)
    most = round(chosen * most)
    budgets = spaced(least, chosen, most, n)
    assert len(budgets) <= n
    assert budgets == sorted(set(budgets))
    assert chosen in budgets
    assert least <= budgets[0]
    assert budgets[-1] <= most
    if n == MOST_STEPS and most > 2 * chosen:
        assert round(2 * chosen) in budgets


def test_there_are_200_budgets_at_most_from_one_id_per_column_on():
    counts = vf.count(rows_of(0), "label", ["c0", "c1"])
    steps = sweep(vf.fit(counts, 10, aim="information"), counts)
    budgets = [step.budget for step in steps]
    assert budgets[:16] == list(range(2, 18))
    assert len(budgets) <= MOST_STEPS
    assert steps[-1].columns["c0"].loss == pytest.approx(0, abs=ROUNDING)
    assert steps[0].held_out is None


def test_an_automatic_budget_is_among_them():
    counts = vf.count(rows_of(0), "label", ["c0", "c1"], folds=3)
    book = vf.fit(counts, "auto", dedicated_min=10)
    steps = sweep(book, counts)
    chosen = next(step for step in steps if step.budget == book.size)
    assert {name: column.size for name, column in chosen.columns.items()} == book.sizes
    assert chosen.columns["c0"].gain == pytest.approx(book.columns["c0"].gain, abs=ROUNDING)


def test_budgets_that_have_fewer_ids_than_shards_are_left_out():
    counts = vf.count(rows_of(0), "label", ["c0", "c1"])
    with pytest.warns(UserWarning, match="shards"):
        book = vf.fit(counts, 12, aim="information", method="threshold", shards=3)
    steps = sweep(book, counts)
    assert min(step.budget for step in steps) == 6


@pytest.mark.parametrize("change", ["rows", "column", "label"])
def test_other_counts_are_refused(change):
    rows = rows_of(0)
    book = vf.fit(vf.count(rows, "label", ["c0", "c1"]), 10, aim="information")
    names = ["c0"] if change == "column" else ["c0", "c1"]
    other = {"rows": rows_of(2), "column": rows, "label": rows.slice(1)}[change]
    counts = vf.count(other, "label", names)
    if change == "rows":  # as many rows of each class, with other values
        counts = replace(counts, neg=book.neg, pos=book.pos)
    with pytest.raises(vf.InputError, match="not the counts that the codebook was fitted on"):
        sweep(book, counts)


def test_what_is_told_is_finite_whatever_the_counts():
    rows = pa.table({"site": ["a", "a", "b", "c"], "label": [0, 1, 1, 1]})
    counts = vf.count(rows, "label", folds=2)
    book = vf.fit(counts, 2, aim="information")
    new_rows, _ = count_new(book, pa.table({"site": ["a", "b", "z"], "label": [1, 0, 0]}), None, **UNSAID)
    for step in sweep(book, counts, new_rows):
        assert math.isfinite(step.columns["site"].gain)
        assert math.isfinite(step.held_out["site"])
