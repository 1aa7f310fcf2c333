import dataclasses
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import reference
from support.masses import ROUNDING, tables
from vocabfold.folding import curve as module
from vocabfold.folding.curve import order

large = st.integers(0, 600) | st.integers(10**12, 10**12 + 3) | st.integers(2**50 - 2, 2**50)
# With so many values, pairs of numbers below 4 are small: some of them, some beyond, and some on the border.
BORDER = [
    (0, 0),
    (3, 3),
    (1, 2),
    (2, 4),
    (4, 0),
    (0, 4),
    (4, 4),
    (5, 5),
    (1, 0),
    (0, 1),
    (0, 3),
    (3, 0),
    (6, 3),
]
BORDER += [(0, 0), (7, 1), (1, 7), (2, 1), (3, 3), (2**50, 2**50 + 1), (2**50 - 1, 2**50)]


def ordered(neg, pos):
    return order(np.array(neg, np.int64), np.array(pos, np.int64))


def check(neg, pos):
    """Compare a curve with the rates as fractions."""
    curve = ordered(neg, pos)
    assert list(zip(np.diff(curve.cum_neg), np.diff(curve.cum_pos), strict=True)) == reference.merged(neg, pos)
    rates = sorted({Fraction(p, n + p) for n, p in zip(neg, pos, strict=True) if n + p})
    expected = [rates.index(Fraction(p, n + p)) if n + p else -1 for n, p in zip(neg, pos, strict=True)]
    assert curve.position.tolist() == expected
    assert curve.n_rates == len(rates)
    assert curve.rows == sum(neg) + sum(pos)


def test_small_and_large_counts_of_equal_rates_meet():
    check(*zip(*BORDER, strict=True))
    check(*zip(*BORDER[::-1], strict=True))


def test_what_a_curve_tells():
    curve = ordered([9, 1, 5], [1, 9, 5])
    assert curve.total == pytest.approx(reference.total([9, 1, 5], [1, 9, 5]), rel=ROUNDING)
    assert len({curve, ordered([9, 1, 5], [1, 9, 5])}) == 2  # each is itself, whatever it holds
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.position = curve.position


def test_unmerged_values_can_be_cut_apart_for_the_figure():
    neg, pos = [2, 1, 0, 4, 0, 3], [1, 2, 0, 2, 0, 1]
    curve = order(np.array(neg), np.array(pos), merge=False)
    assert curve.n_rates == 4  # values with rows
    assert curve.position.tolist() == [1, 3, -1, 2, -1, 0]
    assert np.diff(curve.cum_neg).tolist() == [3, 2, 4, 1]
    assert curve.total == pytest.approx(ordered(neg, pos).total, rel=1e-15)


@pytest.mark.parametrize(
    ("n_values", "side"),
    [(1, 1), (3, 1), (4, 2), (15, 2), (16, 4), (63, 4), (64, 8), (2**18 - 1, 256), (2**18, 512), (2**22, 512)],
)
def test_the_table_of_small_pairs_has_no_more_cells_than_there_are_values(n_values, side, monkeypatch):
    class Tabulated(Exception):
        pass

    def tabulate(neg, pos, side):
        raise Tabulated(side)

    monkeypatch.setattr(module, "_tabulate", tabulate)
    values = np.zeros(n_values, np.int64)
    with pytest.raises(Tabulated, match=f"^{side}$"):
        order(values, values)


@given(
    tables(max_values=20)
    | st.lists(st.tuples(large, large), min_size=1, max_size=6).map(lambda p: tuple(zip(*p, strict=True)))
)
def test_curve_is_the_distinct_rates_in_order(table):
    if any(map(any, table)):
        check(*table)


def test_rates_that_share_a_double_stay_apart_and_in_order():
    big = 2**50
    pairs = [(big - 1, big), (big, big + 1), (big - 2, big - 1)]
    assert len({p / (n + p) for n, p in pairs}) == 1
    for values in permutations([*pairs, (1, 0), (1, 1)]):
        check(*zip(*values, strict=True))


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
    check(*zip(*pairs, strict=True))
