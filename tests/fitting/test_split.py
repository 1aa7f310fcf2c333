import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.reference import dedicated_from
from vocabfold.counts.evidence import Evidence
from vocabfold.fitting.pairs import Pairs
from vocabfold.fitting.split import split
from vocabfold.folding.prior import Prior


def pairs_of(rows, min_count):
    """Return the pairs of a column whose values have so many rows, all with a negative label."""
    units, n_values = np.unique(np.array(rows), return_counts=True)
    zeros = np.zeros(units.size, np.int64)
    sums, evidence = {"neg": units, "pos": zeros}, Evidence(("neg", "pos"), 1, (1, 1))
    return Pairs(sums, n_values, units < min_count, 1, sum(rows), Prior(0.5, 1.0), evidence)


ROWS = st.lists(st.integers(1, 12), min_size=1, max_size=8)


@settings(max_examples=300)
@given(
    st.lists(ROWS, min_size=1, max_size=4),
    st.integers(0, 30),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
)
def test_values_have_dedicated_ids_by_their_rows_if_they_fit(
    columns, extra, min_count, dedicated_min, shared_ids, own
):
    pairs = {str(i): pairs_of(rows, min_count) for i, rows in enumerate(columns)}
    kept = [[n for n in rows if n >= min_count] for rows in columns]
    of_rare = [own or len(k) < len(rows) for k, rows in zip(kept, columns, strict=True)]
    n_sharing = sum(map(bool, kept))
    budget = len(columns) * (1 + own) + extra
    found = split(pairs, budget, dedicated_min, shared_ids, own)
    assert found.is_apart == (own or sum(of_rare) + n_sharing <= budget)
    if found.is_apart:
        expected = dedicated_from(kept, sum(of_rare), budget, dedicated_min, shared_ids)
        assert found.least == expected
    # Whatever the case, ids fit, and every column has one.
    n_dedicated = sum(n >= found.least for rows in kept for n in rows)
    has_infrequent = [
        any(n < found.least for n in rows) or (rare and not found.is_apart)
        for rows, rare in zip(kept, of_rare, strict=True)
    ]
    assert found.n_shared >= sum(has_infrequent)
    assert n_dedicated + found.n_shared + found.is_apart * sum(of_rare) <= budget
    for (name, of_column), rows in zip(pairs.items(), kept, strict=True):
        assert of_column.n_values[found.shared(of_column)].sum() == sum(n < found.least for n in rows), name


def test_without_a_limit_all_values_with_enough_rows_have_dedicated_ids():
    found = split({"a": pairs_of([1, 5, 30, 31], 1)}, None, 30, 8, own=False)
    assert (found.least, found.n_shared, found.is_apart) == (30, None, True)
