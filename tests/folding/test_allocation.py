import dataclasses
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabfold as vf
from vocabfold.folding.allocation import Tuning, all_but_one, best, cuts_of_size, joint_cuts, share
from vocabfold.folding.curve import order
from vocabfold.folding.methods import BY_GAIN, METHODS, NOT_JOINT, check_method
from vocabfold.folding.solve.greedy import greedy, stochastic
from vocabfold.folding.solve.threshold import threshold

CURVE = order(np.array([9, 5, 1, 0, 2, 7, 30]), np.array([1, 5, 9, 2, 0, 4, 33]))
TEN_TIMES = order(np.array([90, 50, 10]), np.array([10, 51, 90]))


def uniform(n_rates, budget):
    return share(n_rates, [0.0] * len(n_rates), budget, "uniform")


def by_information(n_rates, informations, budget):
    return share(n_rates, informations, budget, "information")


@pytest.mark.parametrize("epsilon", [True, "0.1", None, 0, 9e-10, 1, 1.0, float("nan")])
def test_epsilon_is_a_number_between_its_limits(epsilon):
    said = f"epsilon must be a number, at least 1e-09 and below 1, got {epsilon!r}."
    with pytest.raises(vf.InputError, match=f"^{re.escape(said)}$"):
        Tuning(epsilon=epsilon)


def test_what_tuning_is_taken():
    for epsilon in (1e-9, Fraction(1, 2), np.float32(0.5), 0.999):
        assert Tuning(epsilon=epsilon).epsilon == epsilon
    assert Tuning() == Tuning(0.1, 1, 0, threshold)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Tuning().seed = 1
    with pytest.raises(vf.InputError, match=r"^shards must be at least 1, got 0\.$"):
        Tuning(shards=0)
    with pytest.raises(vf.InputError, match=r"^seed must be at least 0, got -1\.$"):
        Tuning(seed=-1)


LOST = "^method 'threshold' loses its guarantee .*: {} shards are more than epsilon x ids = {}. Give fewer"


def test_shards_of_all_columns_have_an_id_each_and_few_of_the_ids():
    with pytest.raises(
        vf.InputError, match="^shards must be fewer: 2 per column make 3 .* at least one of the 2 ids"
    ):
        Tuning(shards=2).check_shards([5, 1], 2)
    with pytest.warns(UserWarning, match=LOST.format(3, "0.1 x 3")):
        Tuning(shards=2).check_shards([5, 1], 3)
    with pytest.warns(UserWarning, match=LOST.format(4, "0.5 x 7")):
        Tuning(epsilon=0.5, shards=2).check_shards([5, 5], 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tuning(epsilon=0.5, shards=2).check_shards([5, 5], 8)
        Tuning(epsilon=0.5, shards=2).check_shards([5, 5], 10)
        Tuning(shards=1).check_shards([5, 5], 2)  # nothing is cut by shards
        Tuning(shards=3).check_shards([3, 2], 5)  # every rate has an id


def test_shards_of_each_column_are_few_of_its_ids():
    tuning = Tuning(epsilon=0.5, shards=4)
    with pytest.warns(UserWarning, match=LOST.format(4, "0.5 x 5")) as caught:  # the worst of them
        tuning.check_shards_of_each([10, 10, 10], [16, 7, 5])
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=LOST.format(2, "0.5 x 2")):  # no more shards than ids
        tuning.check_shards_of_each([3], [2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuning.check_shards_of_each([10, 9], [8, 9])
        tuning.check_shards_of_each([10, 4, 3], [1, 4, 3])  # one group, or one for every rate
        Tuning(epsilon=0.1, shards=1).check_shards_of_each([10, 10], [2, 3])


def test_methods_and_allocations_that_go_together():
    for method in METHODS:
        for allocation in ("joint", "uniform", "information"):
            if allocation == "joint" and method in NOT_JOINT:
                with pytest.raises(vf.InputError, match=f"^method '{method}' has no joint allocation"):
                    check_method(method, allocation)
            else:
                check_method(method, allocation)
    assert set(NOT_JOINT) == {"divisive", "bucketing", "hashing"}
    with pytest.raises(vf.InputError, match="^allocation must be one of 'joint', 'uniform', 'information'"):
        check_method("exact", "even")


@pytest.mark.parametrize("method", BY_GAIN)
def test_joint_cuts_are_those_that_gain_most_per_row(method):
    curves = [CURVE, TEN_TIMES]
    for budget in range(2, 12):
        cuts = joint_cuts(curves, [curve.rows for curve in curves], budget, method, Tuning())
        assert sum(map(len, cuts)) == min(budget, CURVE.n_rates + 3) - 2
        assert all(np.all(np.diff(of_one) > 0) for of_one in cuts)
    # Ten times the rows have ten times the gains, but as much per row; given fewer rows, they come first.
    (first, second) = joint_cuts([TEN_TIMES, CURVE], [1e9, 1], 7, method, Tuning())
    assert (len(first), len(second)) == (0, 5)
    alone = cuts_of_size(CURVE, 4, method, Tuning(shards=9))
    assert len(alone) == 3
    if method in ("greedy", "threshold"):
        assert alone.tolist() == cuts_of_size(CURVE, 4, method, Tuning(shards=4)).tolist()


def test_parameters_reach_sampling_and_shards():
    rows, tuning = [CURVE.rows], Tuning(epsilon=Fraction(1, 4), shards=2, seed=7)
    sampled = stochastic(CURVE, 3, 0.25, np.random.default_rng(7))[0]
    assert joint_cuts([CURVE], rows, 4, "stochastic", tuning)[0].tolist() == sorted(sampled)
    calls = []

    def cut_shards(*arguments):
        calls.append(arguments)
        return threshold(*arguments)

    joint_cuts([CURVE], rows, 4, "threshold", dataclasses.replace(tuning, cut_shards=cut_shards))
    assert calls == [([CURVE], rows, 3, 0.25, 2)]
    assert isinstance(calls[0][3], float)
    assert joint_cuts([CURVE], rows, 4, "greedy", tuning)[0].tolist() == sorted(greedy(CURVE, 3)[0])


def test_one_copy_of_the_lowest_score_is_left_out_and_of_equal_ones_the_last():
    copies = np.array([0, 2, 1, 3, 0])
    assert all_but_one(np.array([0.0, 1, 2, 1, 0]), copies).tolist() == [0, 2, 1, 2, 0]
    assert all_but_one(np.array([0.0, 1, 0.5, 1, 0]), copies).tolist() == [0, 2, 0, 3, 0]
    assert copies.tolist() == [0, 2, 1, 3, 0]


def test_buckets_may_be_more_than_values_but_not_without_end():
    for method in ("bucketing", "hashing"):
        assert share([2, 3], [0.5, 0.5], 100, "uniform", method) == [50, 50]
        assert share([2], [0.5], 10**30, "information", method) == [2**40]
    assert share([2, 3], [0.5, 0.5], 100, "uniform", "greedy") == [2, 3]


def test_a_column_that_tells_nothing_gets_what_the_others_cannot_use():
    assert by_information([100, 3, 100], [0.0, 0.5, 0.0], 9) == [3, 3, 3]
    assert by_information([100, 100], [0.0, 1e-30], 50) == [1, 49]


def test_of_no_scores_none_is_taken():
    assert [taken.tolist() for taken in best([np.array([3.0, 1.0]), np.array([2.0])], 0)] == [[0, 0], [0]]
    assert [taken.tolist() for taken in best([np.array([3.0, 1.0]), np.array([2.0])], 2)] == [[1, 0], [1]]


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
        ([9, 9, 9], [0.3, 1.0, 1.0], 4, [1, 2, 1]),  # what is left goes to the largest fraction
        ([100] * 5, [0.6, 0.3, 1e-4, 1e-4, 1e-4], 12, [6, 3, 1, 1, 1]),
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
