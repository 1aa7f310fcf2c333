import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import reference
from support.masses import EXACT, beta_counts, tables
from vocabfold.errors import InputError
from vocabfold.folding.curve import order
from vocabfold.folding.information import information
from vocabfold.folding.solve import dynamic


@given(tables(max_values=12, max_count=40), st.integers(1, 12))
def test_it_equals_the_programme_as_defined(table, size):
    curve = order(*(np.array(side, np.int64) for side in table))
    size = min(size, curve.n_rates)
    cuts = dynamic.solve(curve, size)
    assert cuts.size == size - 1
    kept = information(curve.cum_neg, curve.cum_pos, cuts)
    expected = reference.best_by_programme(*table, size)[-1]
    assert kept == pytest.approx(expected, abs=EXACT * reference.total(*table) + 1e-300)


def test_a_table_too_large_for_memory_is_refused_with_the_remedy():
    curve = order(*beta_counts(40_000, rows=10**9))
    with pytest.raises(InputError, match=r"needs a table of 39,000 sizes x .* Use method 'exact'"):
        dynamic.solve(curve, 39_000)
