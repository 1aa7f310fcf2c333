from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from conftest import tables
from vocabfold.order import order

large = st.integers(0, 600) | st.integers(10**12, 10**12 + 3) | st.integers(2**50 - 2, 2**50)


def ordered(neg, pos):
    return order(np.array(neg, np.int64), np.array(pos, np.int64))


@given(
    tables(max_values=20)
    | st.lists(st.tuples(large, large), min_size=1, max_size=6).map(lambda p: tuple(zip(*p, strict=True)))
)
def test_curve_is_the_distinct_rates_in_order(table):
    neg, pos = table
    if not any(neg) and not any(pos):
        return
    curve = ordered(neg, pos)
    assert list(zip(np.diff(curve.cum_neg), np.diff(curve.cum_pos), strict=True)) == reference.merged(neg, pos)
    rates = sorted({Fraction(p, n + p) for n, p in zip(neg, pos, strict=True) if n + p})
    expected = [rates.index(Fraction(p, n + p)) if n + p else -1 for n, p in zip(neg, pos, strict=True)]
    assert curve.position.tolist() == expected
    assert curve.n_rates == len(rates)
    assert curve.rows == sum(neg) + sum(pos)


def test_rates_that_share_a_double_stay_apart_and_in_order():
    big = 2**50
    neg, pos = [big - 1, big, big - 2], [big, big + 1, big - 1]
    assert len({p / (n + p) for n, p in zip(neg, pos, strict=True)}) == 1
    curve = ordered(neg, pos)
    assert curve.n_rates == 3
    expected = sorted(range(3), key=lambda i: Fraction(pos[i], neg[i] + pos[i]))
    assert np.argsort(curve.position).tolist() == expected


@pytest.mark.parametrize("factor", [1, 7, 10**9])
def test_equal_rates_of_any_size_merge(factor):
    curve = ordered([1, 2 * factor, 511 * factor, 512], [2, 4 * factor, 1022 * factor, 1024])
    assert curve.n_rates == 1


@given(
    st.lists(st.tuples(st.integers(0, 700), st.integers(0, 700)), min_size=1, max_size=30).filter(
        lambda p: any(map(any, p))
    )
)
def test_small_and_large_counts_meet_at_the_border_of_the_table(pairs):
    neg, pos = zip(*pairs, strict=True)
    curve = ordered(neg, pos)
    assert list(zip(np.diff(curve.cum_neg), np.diff(curve.cum_pos), strict=True)) == reference.merged(neg, pos)
