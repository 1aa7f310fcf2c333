import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabfold.budget import best, share


def uniform(n_rates, budget):
    return share(n_rates, [0.0] * len(n_rates), budget, "uniform")


def by_information(n_rates, informations, budget):
    return share(n_rates, informations, budget, "information")


limits = st.lists(st.integers(1, 50), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("n_rates", "budget", "sizes"),
    [
        ([100, 100, 100], 9, [3, 3, 3]),
        ([100, 100, 100], 11, [4, 4, 3]),
        ([2, 100, 100], 12, [2, 5, 5]),
        ([1, 1, 100], 12, [1, 1, 10]),
        ([4, 5], 100, [4, 5]),
        ([4, 5], 2, [1, 1]),
    ],
)
def test_uniform_gives_what_one_cannot_use_to_the_others(n_rates, budget, sizes):
    assert uniform(n_rates, budget) == sizes


@pytest.mark.parametrize(
    ("n_rates", "informations", "budget", "sizes"),
    [
        ([100, 100], [0.3, 0.1], 8, [6, 2]),
        ([100, 100], [0.3, 0.0001], 8, [7, 1]),
        ([3, 100, 100], [0.9, 0.1, 0.1], 11, [3, 4, 4]),
        ([1, 1], [0.0, 0.0], 5, [1, 1]),
        ([50, 1], [1e-30, 0.0], 5, [4, 1]),
    ],
)
def test_by_information_is_proportional_within_what_columns_can_use(n_rates, informations, budget, sizes):
    assert by_information(n_rates, informations, budget) == sizes


@given(limits, st.data())
def test_the_budget_is_spent_exactly_or_every_rate_has_an_id(n_rates, data):
    budget = data.draw(st.integers(len(n_rates), 500))
    informations = [data.draw(st.floats(1e-9, 1)) if rates > 1 else 0.0 for rates in n_rates]
    for sizes in (uniform(n_rates, budget), by_information(n_rates, informations, budget)):
        assert sum(sizes) == min(budget, sum(n_rates))
        assert all(1 <= size <= rates for size, rates in zip(sizes, n_rates, strict=True))


items = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6)


@given(st.lists(items, min_size=1, max_size=3), st.integers(0, 25))
def test_the_copies_with_the_highest_scores_are_taken_and_of_equal_ones_the_first(columns, n):
    scores = [np.array([float(score) for score, _ in column]) for column in columns]
    copies = [np.array([number for _, number in column]) for column in columns]
    taken = best(scores, n, copies)
    every = [
        (-score, i, j)
        for i, column in enumerate(columns)
        for j, (score, number) in enumerate(column)
        for _ in range(number)
    ]
    expected = [[0] * len(column) for column in columns]
    for _, i, j in sorted(every)[:n]:
        expected[i][j] += 1
    assert [mine.tolist() for mine in taken] == expected
