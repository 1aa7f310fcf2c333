import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import reference
from support.masses import EXACT, beta_counts, giant_and_many, tables
from vocabfold.folding.curve import order
from vocabfold.folding.information import information, loss
from vocabfold.folding.solve import dynamic, exact


def curve_of(table):
    return order(*(np.array(side, np.int64) for side in table))


def total(curve):
    return information(curve.cum_neg, curve.cum_pos, np.arange(1, curve.n_rates))


@given(tables(max_values=12, max_count=40), st.integers(1, 12))
def test_it_equals_the_programme_at_exactly_the_size(table, size):
    curve = curve_of(table)
    best = exact.solve([curve], size)
    size = min(size, curve.n_rates)
    assert best.sizes == [size]
    assert (np.diff(best.cuts[0], prepend=0, append=curve.n_rates) > 0).all()
    expected = reference.best_by_programme(*table, size)[-1]
    kept = information(curve.cum_neg, curve.cum_pos, best.cuts[0])
    assert kept == pytest.approx(expected, abs=EXACT * total(curve))
    lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
    assert best.floors[0] == pytest.approx(lost, abs=EXACT * total(curve))


wide = (
    st.integers(0, 3)
    | st.integers(10**6, 10**6 + 50)
    | st.integers(10**12 - 20, 10**12)
    | st.integers(2**48 - 9, 2**48)  # 18 of them are below 2**53
)


@given(
    st.lists(st.tuples(wide, wide), min_size=2, max_size=9).filter(lambda p: any(map(any, p))),
    st.integers(1, 9),
)
def test_counts_up_to_the_limit(pairs, size):
    table = tuple(zip(*pairs, strict=True))
    curve = curve_of(table)
    best = exact.solve([curve], size)
    size = best.sizes[0]
    kept = information(curve.cum_neg, curve.cum_pos, best.cuts[0])
    assert kept == pytest.approx(reference.best_by_programme(*table, size)[-1], abs=EXACT * total(curve))


@given(st.lists(tables(max_values=5), min_size=1, max_size=3), st.integers(0, 12))
def test_one_price_splits_a_budget_as_trying_all_splits_does(columns, spare):
    curves = [curve_of(table) for table in columns]
    budget = len(curves) + spare
    best = exact.solve(curves, budget)
    assert sum(best.sizes) == min(budget, sum(curve.n_rates for curve in curves))
    assert all(1 <= size <= curve.n_rates for size, curve in zip(best.sizes, curves, strict=True))
    kept = sum(information(c.cum_neg, c.cum_pos, cuts) for c, cuts in zip(curves, best.cuts, strict=True))
    in_all = sum(map(total, curves))
    assert kept == pytest.approx(reference.best_split(columns, budget), abs=EXACT * in_all)
    lost = sum(loss(c.cum_neg, c.cum_pos, cuts) for c, cuts in zip(curves, best.cuts, strict=True))
    assert sum(best.floors) == pytest.approx(lost, abs=EXACT * in_all)


@given(tables(max_values=12, max_count=40), st.integers(1, 14))
def test_least_losses_are_those_of_every_size(table, max_size):
    curve = curve_of(table)
    losses = exact.least_losses(curve, max_size)
    expected = total(curve) - np.array(reference.best_by_programme(*table, max_size))
    np.testing.assert_allclose(losses, expected, rtol=0, atol=EXACT * total(curve) + 1e-300)


@pytest.mark.jit
@pytest.mark.parametrize("rows", [50, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("size", [2, 3, 17, 100, 300, 1000, 1900])
def test_it_equals_the_programme_on_thousands_of_rates(rows, size):
    curve = order(*beta_counts(2000, seed=size, rows=rows))
    size = min(size, curve.n_rates - 1)
    best = exact.solve([curve], size)
    assert best.sizes == [size]
    lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
    slow = loss(curve.cum_neg, curve.cum_pos, dynamic.solve(curve, size))
    assert lost == pytest.approx(slow, rel=1e-6, abs=1e-17 * total(curve))  # far below EXACT of I(X;C)
    assert best.floors[0] == pytest.approx(lost, rel=1e-6, abs=1e-15 * total(curve))


@pytest.mark.jit
def test_a_few_giant_values_among_many_small_ones_do_not_spoil_the_proof():
    curve = order(*giant_and_many(100_000))
    losses = exact.least_losses(curve, 4)
    for size in (1, 2, 3, 4):
        best = exact.solve([curve], size)
        lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
        assert best.floors[0] == pytest.approx(lost, abs=2e-15 * total(curve))
        assert losses[size - 1] == pytest.approx(lost, abs=2e-15 * total(curve))


@pytest.mark.jit
def test_a_narrow_pass_that_is_wrong_cannot_fake_a_proof(monkeypatch):
    narrow = exact.narrow_pass

    def liar(*arguments):
        cost, previous = narrow(*arguments)
        return 1.001 * cost, previous

    monkeypatch.setattr(exact, "narrow_pass", liar)
    curve = order(*beta_counts(5000, rows=10**8))
    for size in (100, 700, 2000):
        best = exact.solve([curve], size)
        lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
        assert best.floors[0] <= lost * (1 + 1e-6)


@pytest.mark.parametrize("n", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_weak_information_is_folded_as_accurately_as_strong(n):
    # Rates within 1e-7 of each other: I(X;C) is about 1e-14 nats, and plain entropies would cancel.
    rng = np.random.default_rng(0)
    neg = np.full(n, 10**10) + rng.integers(0, 1000, n)
    pos = np.full(n, 10**10) + rng.integers(0, 1000, n)
    curve = order(neg, pos)
    assert total(curve) < 1e-14
    expected = reference.best_by_programme(neg, pos, 40)
    for size in (2, 5, 40):
        best = exact.solve([curve], size)
        kept = information(curve.cum_neg, curve.cum_pos, best.cuts[0])
        assert kept == pytest.approx(expected[size - 1], abs=EXACT * total(curve))


def test_a_wide_edge_of_the_hull_is_spliced_to_the_size_asked():
    # Pairs of equal twins: every merge of a twin costs the same, so all sizes from 8 to 16 lie on one edge.
    rates = np.repeat(np.arange(1, 9) * 1000, 2) + np.tile([0, 1], 8)
    curve = order(10_000 - rates, rates)
    losses = exact.least_losses(curve, 16)
    for size in range(1, 17):
        best = exact.solve([curve], size)
        assert best.sizes == [size]
        lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
        assert lost == pytest.approx(losses[size - 1], abs=1e-15 * total(curve))


@pytest.mark.jit
def test_thinned_and_full_searches_meet_in_the_same_optimum():
    curve = order(*beta_counts(50_000, rows=10**7))
    for size in (2, 40, 900, 12_000, 30_000, curve.n_rates - 3):
        best = exact.solve([curve], size)
        assert best.sizes == [size]
        lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
        assert lost - best.floors[0] <= 1e-15 * total(curve)


@pytest.mark.slow
def test_every_size_of_many_random_curves_equals_the_programme():
    rng = np.random.default_rng(2)
    for seed in range(200):
        n_values, scale = int(rng.integers(2, 150)), int(10 ** rng.uniform(0.5, 10)) + 1
        curve = order(*beta_counts(n_values, seed, rows=scale, a=rng.uniform(0.1, 3), b=rng.uniform(0.1, 9)))
        for size in range(1, curve.n_rates + 1):
            best = exact.solve([curve], size)
            assert best.sizes == [size]
            lost = loss(curve.cum_neg, curve.cum_pos, best.cuts[0])
            slow = loss(curve.cum_neg, curve.cum_pos, dynamic.solve(curve, size))
            assert lost == pytest.approx(slow, rel=1e-9, abs=1e-15 * total(curve))
            assert lost == pytest.approx(best.floors[0], rel=1e-9, abs=1e-15 * total(curve))


@pytest.mark.slow
def test_it_equals_the_programme_on_a_hundred_thousand_rates():
    curve = order(*beta_counts(100_000, rows=10**9))
    for size in (2, 7, 64, 500):
        lost = loss(curve.cum_neg, curve.cum_pos, exact.solve([curve], size).cuts[0])
        slow = loss(curve.cum_neg, curve.cum_pos, dynamic.solve(curve, size))
        assert lost == pytest.approx(slow, rel=1e-9)
