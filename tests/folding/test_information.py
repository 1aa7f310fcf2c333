import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import reference
from support.masses import ROUNDING, giant_and_many, tables
from vocabfold.folding import information as info

count = st.one_of(st.integers(0, 5), st.integers(0, 10**6), st.integers(10**11, 10**12))


def cumulated(neg, pos):
    return np.concatenate([[0], np.cumsum(neg)]), np.concatenate([[0], np.cumsum(pos)])


near_zero = st.floats(1e-20, 1e-3)


@given(
    st.floats(1e-3, 10)
    | st.floats(-1, -1e-3)
    | near_zero
    | near_zero.map(lambda u: -u)
    | st.sampled_from([0.0, -0.25, 0.25])
)
def test_excess_is_accurate(u):
    with localcontext() as context:
        context.prec = 80
        x = 1 + Decimal(u)
        expected = float((x * x.ln() if x > 0 else Decimal(0)) - Decimal(u))
    # Above 0.25, 1 + u is rounded, which weighs most there: 6.1e-15 was the largest of 48,000 random trials.
    assert info.excess(u) == pytest.approx(expected, rel=7e-15, abs=0)


huge = count | st.integers(2**53 - 1000, 2**53)


@given(huge, huge, huge, huge)
def test_cross_product_is_accurate_to_the_last_place(neg, pos, base_neg, base_pos):
    exact = neg * base_pos - pos * base_neg
    result = info.cross_product(float(neg), float(pos), float(base_neg), float(base_pos))
    assert abs(int(result) - exact) <= abs(exact) * 2**-52


@given(st.lists(st.tuples(count, count), min_size=1, max_size=6).filter(lambda p: any(map(any, p))), st.data())
def test_information_and_loss_follow_the_definition(pairs, data):
    pairs = [pair for pair in pairs if any(pair)]
    neg, pos = zip(*pairs, strict=True)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(pairs) - 1)), max_size=len(pairs) - 1)))
    ids = np.searchsorted(cuts, np.arange(len(pairs)), side="right")
    cum_neg, cum_pos = cumulated(neg, pos)
    cuts = np.array(cuts, np.int64)
    assert info.information(cum_neg, cum_pos, cuts) == pytest.approx(
        reference.information(neg, pos, ids), rel=ROUNDING, abs=1e-60
    )
    assert info.loss(cum_neg, cum_pos, cuts) == pytest.approx(
        reference.loss(neg, pos, ids), rel=ROUNDING, abs=1e-50
    )


def test_loss_of_nearly_equal_rates_keeps_all_its_digits():
    neg, pos = [10**12, 10**12], [10**11, 10**11 + 1]
    cum_neg, cum_pos = cumulated(neg, pos)
    expected = reference.loss(neg, pos, [0, 0])
    assert expected < 1e-23
    nothing = np.empty(0, np.int64)
    assert info.loss(cum_neg, cum_pos, nothing) == pytest.approx(expected, rel=ROUNDING)


@given(tables(min_values=2))
def test_phi_gives_the_same_information_up_to_cancellation(table):
    neg, pos = (np.array(side)[np.sum(table, axis=0) > 0] for side in table)
    by_phi = sum(map(info.phi, neg, pos)) - info.phi(neg.sum(), pos.sum())
    by_divergence = sum(info.divergence(n, p, neg.sum(), pos.sum()) for n, p in zip(neg, pos, strict=True))
    assert by_phi == pytest.approx(by_divergence, abs=1e-12 * (neg.sum() + pos.sum()))


def test_divergence_is_f_of_the_paper_times_the_rows():
    # eq:f with Pr[C=0] = 0.6 at t = 0.3, for 10 of 100 rows.
    expected = 10 * (0.3 * math.log(0.3 / 0.6) + 0.7 * math.log(0.7 / 0.4))
    assert info.divergence(3, 7, 60, 40) == pytest.approx(expected, rel=ROUNDING)


def test_values_of_one_class_only_tell_nothing():
    assert info.divergence(3, 0, 10, 0) == 0
    assert info.divergence(0, 3, 0, 10) == 0


def test_a_sum_over_many_values_of_very_different_size_stays_accurate():
    neg, pos = giant_and_many(20_000)
    cum_neg, cum_pos = cumulated(neg, pos)
    base = float(neg.sum()), float(pos.sum())
    exact_sum = math.fsum(info.divergence(float(n), float(p), *base) for n, p in zip(neg, pos, strict=True))
    cuts = np.arange(1, neg.size)
    assert info.information(cum_neg, cum_pos, cuts) == pytest.approx(exact_sum / sum(base), rel=3e-16)
