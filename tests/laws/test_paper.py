"""The paper's statements, each named by its label; those without one are named in docs/paper.md. Then ours.

Tested on F from the definition (`reference`) and on our functions, so that both the statement and the code are.
"""

import math
from itertools import combinations
from math import asin, gcd, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.masses import EXACT, beta_counts, tables
from vocabfold.folding.information import gain

KEPT = 1 - 1 / math.e  # of the optimum, by greedy


def f(table, cuts):
    """F(S) in nats, from the definition."""
    neg, pos = zip(*reference.segments(table, sorted(cuts)), strict=True)
    return reference.total(neg, pos)


@st.composite
def curves_with_cuts(draw):
    """A sorted table, two nested sets of cuts, and a cut in neither."""
    table = reference.merged(*draw(tables(max_values=9, min_values=2)))
    assume(len(table) > 1)
    places = range(1, len(table))
    cut = draw(st.sampled_from(places))
    others = [place for place in places if place != cut]
    outer = draw(st.sets(st.sampled_from(others))) if others else set()
    inner = draw(st.sets(st.sampled_from(sorted(outer)))) if outer else set()
    return table, inner, outer, cut


@given(curves_with_cuts())
def test_lem_delta_f_the_gain_depends_on_the_two_neighbours_only(case):
    table, _, cuts, cut = case
    rows = sum(map(sum, table))
    before = max([0, *(c for c in cuts if c < cut)])
    after = min([len(table), *(c for c in cuts if c > cut)])
    left, right = reference.segments(table[before:after], [cut - before])
    expected = f(table, cuts | {cut}) - f(table, cuts)
    assert gain(*left, *right) / rows == pytest.approx(expected, abs=1e-14)


CONVEX = {
    "t ln t": lambda t: t * log(t) if t else 0.0,
    "eq:f": lambda t: (t * log(t / 0.3) if t else 0) + ((1 - t) * log((1 - t) / 0.7) if t < 1 else 0),
    "square": lambda t: t * t,
    "corner": lambda t: abs(t - 0.4),
    "line": lambda t: 2 * t - 1,
}
convex = pytest.mark.parametrize("f", CONVEX.values(), ids=CONVEX)
rates = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)
masses = st.floats(1e-3, 1)


def jensen(f, p, a, q, b):
    """The expression of eq:delta1."""
    mean = min(max((p * a + q * b) / (p + q), min(a, b)), max(a, b))
    return p * f(a) + q * f(b) - (p + q) * f(mean)


@convex
@given(rates, st.floats(0, 1))
def test_lm_first_property_a_rate_further_away_gains_more(f, rates, p):
    a, b, c = rates
    assert jensen(f, p, a, 1 - p, b) <= jensen(f, p, a, 1 - p, c) + 1e-12


@convex
@given(rates, masses, masses)
def test_cr_first_property_1_the_same_for_any_masses(f, rates, p, q):
    a, b, c = rates
    assert jensen(f, p, a, q, b) <= jensen(f, p, a, q, c) + 1e-12


@convex
@given(rates, masses, masses)
def test_cr_first_property_2_the_same_on_the_other_side(f, rates, p, q):
    c, a, b = rates
    assert jensen(f, p, a, q, b) <= jensen(f, p, c, q, b) + 1e-12


@convex
@given(st.floats(0, 1), st.floats(0, 1), masses, st.tuples(masses, masses).map(sorted))
def test_lm_second_property_a_larger_mass_gains_more(f, a, b, p, q):
    assert jensen(f, p, a, q[0], b) <= jensen(f, p, a, q[1], b) + 1e-12


def test_the_first_cut_may_be_the_best_so_the_maximum_is_over_1_to_n_minus_1():
    # Shares of label 0, by which the paper sorts: 0, .14, .17, .2. Nothing but a cut after the first one tells.
    neg, pos = [0, 1, 1, 1], [9, 6, 5, 4]
    table = reference.merged(neg, pos)[::-1]
    assert max(range(1, 4), key=lambda cut: f(table, [cut])) == 1
    assert vf.fold(neg, pos, 2).ids.tolist() == [1, 0, 0, 0]


@given(curves_with_cuts())
def test_f_is_monotone_a_cut_never_lowers_the_information(case):
    table, _, cuts, cut = case
    assert f(table, cuts | {cut}) >= f(table, cuts) - 1e-15


@given(curves_with_cuts())
def test_thm_submodular_gains_shrink_as_the_set_of_cuts_grows(case):
    table, inner, outer, cut = case
    early = f(table, inner | {cut}) - f(table, inner)
    late = f(table, outer | {cut}) - f(table, outer)
    assert early >= late - 1e-15


@settings(max_examples=40)
@given(tables(max_values=9, min_values=2), st.integers(2, 6))
def test_thm_single_greedy_keeps_1_minus_1_over_e_of_the_optimum(table, size):
    assert vf.fold(*table, size, method="greedy").information >= KEPT * best(table, size) - 1e-15


@settings(max_examples=20)
@given(tables(max_values=12, min_values=4), st.integers(2, 6), st.sampled_from([0.05, 0.2, 0.5]))
def test_thm_single_stochastic_keeps_epsilon_less_on_average_over_seeds(table, size, epsilon):
    kept = [
        vf.fold(*table, size, method="stochastic", epsilon=epsilon, seed=seed).information for seed in range(20)
    ]
    assert np.mean(kept) >= (KEPT - epsilon) * best(table, size) - 1e-15


def best(table, size):
    """The optimum, as the exact solver proves it."""
    return vf.fold(*table, size).information


@settings(max_examples=40)
@given(curves_with_cuts(), st.data())
def test_thm_distributed_forcing_epsilon_k_minus_1_cuts_costs_at_most_epsilon(case, data):
    table, forced, _, _ = case
    n_cuts = data.draw(st.integers(len(forced) + 1, len(table)))
    epsilon = (len(forced) + 1) / n_cuts
    places = range(1, len(table))
    free = max(f(table, cuts) for cuts in combinations(places, min(n_cuts, len(places))))
    rest = [place for place in places if place not in forced]
    with_forced = max(
        f(table, [*forced, *cuts]) for cuts in combinations(rest, min(n_cuts - len(forced), len(rest)))
    )
    assert with_forced >= (1 - epsilon) * free - 1e-15


@pytest.mark.parametrize(
    ("shards", "epsilon", "size"), [(1, 0.1, 3), (2, 0.2, 10), (3, 0.1, 30), (5, 0.25, 20)]
)
def test_thm_distributed_threshold_keeps_2_epsilon_less(shards, epsilon, size):
    assert shards <= epsilon * size or shards == 1
    for seed in range(5):
        table = beta_counts(200, seed, rows=10 ** (2 + seed))
        fold = vf.fold(*table, size, method="threshold", epsilon=epsilon, shards=shards)
        assert fold.information >= (KEPT - 2 * epsilon) * best(table, size)


@settings(max_examples=40)
@given(tables(max_values=9, min_values=2), st.integers(1, 8))
def test_thm_bucketing_loses_no_more_than_f_changes_within_an_interval(table, size):
    neg, pos = table
    base = sum(pos) / (sum(neg) + sum(pos))
    assume(0 < base < 1)

    def divergence(t):
        return (t * log(t / base) if t else 0) + ((1 - t) * log((1 - t) / (1 - base)) if t < 1 else 0)

    def change(low, high):
        ends = divergence(low), divergence(high)
        return max(ends) - (0 if low <= base <= high else min(ends))

    bound = max(change(j / size, (j + 1) / size) for j in range(size))
    assert vf.fold(neg, pos, size, method="bucketing").loss <= bound + 1e-15


def test_prop_bucketing_may_keep_nothing_of_something():
    n_buckets, j = 5, 2
    rows = 3 * n_buckets
    pos = np.repeat([3 * j + 1, 3 * j + 2], 4)  # rates (j + 1/3)/k and (j + 2/3)/k
    fold = vf.fold(rows - pos, pos, n_buckets, method="bucketing")
    assert fold.information == 0
    assert fold.total > 0.002
    assert vf.fold(rows - pos, pos, 2).information == fold.total
    # The strengthened form: a tiny mass in every interval, and a tiny part of the information is kept.
    tiny = 2 * np.arange(n_buckets) + 1  # rates (i + 1/2)/k
    many = np.concatenate([pos * 10**6, tiny])
    rest = np.concatenate([(rows - pos) * 10**6, 2 * n_buckets - tiny])
    fold = vf.fold(rest, many, n_buckets, method="bucketing")
    assert fold.size == n_buckets
    assert 0 < fold.information < 1e-4 * fold.total
    assert vf.fold(rest, many, n_buckets).information > 0.999 * fold.total


def test_prop_frequency_may_keep_nothing_of_a_third_of_a_bit():
    n = 7  # of each sort: frequent ones of rate 1/2, four times rarer ones of rate 1, and of rate 0
    neg, pos = np.repeat([2, 0, 1], n), np.repeat([2, 1, 0], n)
    fold = vf.fold(neg, pos, n + 1, method="frequency")
    assert fold.size == n + 1
    assert fold.information == 0
    assert fold.total == pytest.approx(log(2) / 3, rel=1e-14)  # 1/3 in the paper's bits
    assert vf.fold(neg, pos, 3).information == fold.total


@given(tables(max_values=7), st.integers(1, 7))
def test_kurkoski2014_lemma_3_some_best_partition_is_consecutive(table, size):
    best = reference.best_of_all(*table, size)
    assert reference.best_consecutive(*table, size) == pytest.approx(
        best, abs=EXACT * reference.total(*table) + 1e-18
    )


@st.composite
def four_places(draw):
    table = reference.merged(*draw(tables(max_values=9, min_values=3)))
    assume(len(table) > 2)
    a, b, c, d = sorted(draw(st.lists(st.integers(0, len(table)), min_size=4, max_size=4)))
    assume(b < c)
    return table, a, b, c, d


@given(four_places())
def test_quadrangle_inequality_crossing_segments_lose_no_more_than_nested_ones(case):
    table, a, b, c, d = case

    def loss(start, end):
        neg, pos = zip(*table[start:end], strict=True)
        return reference.total(neg, pos) * (sum(neg) + sum(pos))

    assert loss(a, c) + loss(b, d) <= loss(a, d) + loss(b, c) + 1e-12


def test_few_rates_n_rows_have_at_most_2_to_the_third_n_to_the_two_thirds():
    n_rates = rows = 0
    for denominator in range(1, 60):
        for numerator in range(denominator + 1):
            if gcd(numerator, denominator) == 1:
                n_rates += 1
                rows += denominator
                assert n_rates**3 <= 2 * rows**2
    assert n_rates > 1000


def test_few_pairs_n_rows_have_no_more_pairs_of_counts_either():
    n_pairs = rows = 0
    for of_a_pair in range(1, 60):
        for _ in range(of_a_pair + 1):
            n_pairs += 1
            rows += of_a_pair
            assert n_pairs**3 <= 2 * rows**2


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_arcsine_two_rates_lose_at_most_half_of_their_squared_distance(a, b, share):
    apart = asin(sqrt(b)) - asin(sqrt(a))
    lost = jensen(CONVEX["eq:f"], share, a, 1 - share, b) if 0 < share < 1 else 0.0
    assert lost <= apart**2 / 2 + 1e-12


@settings(max_examples=50)
@given(tables(max_values=9, max_count=10**6), st.integers(1, 9))
def test_arcsine_the_best_fold_loses_at_most_pi_squared_over_8_m_squared(table, size):
    assert vf.fold(*table, size).loss <= pi**2 / (8 * size**2) + 1e-15


def test_arcsine_the_bound_is_met_up_to_a_factor_of_three():
    # Rates spread evenly in the arcsine: each of m groups loses a third of what its ends alone would.
    rows = 10**7
    pos = np.rint(rows * np.sin(np.linspace(0, pi / 2, 4001)) ** 2).astype(int)
    for size in (4, 16):
        loss = vf.fold(rows - pos, pos, size).loss
        assert 0.3 < loss / (pi**2 / (8 * size**2)) < 0.35


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).filter(any), min_size=3, max_size=3))
def test_merging_neighbours_loses_no_more_than_merging_across_them(groups):
    a, b, c = sorted(groups, key=lambda group: group[1] / sum(group))
    assert min(gain(*a, *b), gain(*b, *c)) <= gain(*a, *c) + 1e-13
