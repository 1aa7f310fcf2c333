import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.reference import shrunk
from vocabfold.folding.prior import Prior, fixed


def test_rates_without_rows_without_strength_and_with_nothing_else():
    neg, pos = np.array([0.0, 2.0, 3.0, 1.0]), np.array([0.0, 2.0, 1.0, 0.0])
    assert Prior(0.3, 0.0).rates(neg, pos).tolist() == [0.3, 0.5, 0.25, 0.0]
    assert Prior(0.3, 4.0).rates(neg, pos).tolist() == pytest.approx([0.3, 0.4, 0.275, 0.24])
    assert Prior(0.3, math.inf).rates(neg, pos).tolist() == [0.3, 0.3, 0.3, 0.3]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=9),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.5, 20.0, math.inf]),
)
def test_rates_are_pulled_to_the_mean(pairs, mean, strength):
    neg, pos = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    expected = [shrunk(n, p, mean, strength) for n, p in pairs]
    assert Prior(mean, strength).rates(neg, pos).tolist() == pytest.approx(expected, abs=1e-15)


def test_a_given_strength_has_the_overall_rate_as_its_mean():
    assert fixed(np.array([3.0, 0.0]), np.array([1.0, 2.0]), np.array([2, 1]), 7) == Prior(0.4, 7.0)


@pytest.mark.parametrize(
    ("mean", "strength", "rows"),
    [
        (0.5, 50, 50),
        (0.5, 0, 16),
        (0.25, 10, 32),
        (0.75, 10, 32),  # whichever label is rarer
        (0.01, 10, 800),
        (0.3, math.inf, math.inf),
        (0.0, 1, math.inf),
        (1.0, 1, math.inf),
    ],
)
def test_the_rows_that_the_order_by_rate_takes(mean, strength, rows):
    assert Prior(mean, strength).rows_to_order == rows
