"""The paper's algorithms and its query structure, step by step against the definition."""

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.masses import beta_counts, giant_and_many, tables
from vocabfold.folding.curve import order
from vocabfold.folding.solve import baselines
from vocabfold.folding.solve.cut_tree import (
    after,
    before,
    gain_between,
    initialise,
    insert,
    leader,
    query,
    replace,
    tournament,
)
from vocabfold.folding.solve.greedy import greedy, stochastic
from vocabfold.folding.solve.threshold import sweep, threshold


@given(st.integers(2, 70), st.data())
def test_alg_query_finds_the_neighbours_of_every_cut(n_rates, data):
    tree, cuts = initialise(n_rates), [0, n_rates]
    for cut in data.draw(st.permutations(range(1, n_rates)))[:10]:
        assert before(tree, cut) == cuts[bisect_left(cuts, cut) - 1]
        assert after(tree, cut) == cuts[bisect_right(cuts, cut)]
        insert(tree, cut)
        cuts = sorted([*cuts, cut])


@settings(max_examples=30)
@given(tables(max_values=9, min_values=2), st.data())
def test_alg_query_answers_with_the_gain(table, data):
    merged = reference.merged(*table)
    curve = order(*map(np.array, table))
    tree, cuts = initialise(curve.n_rates), []
    for cut in data.draw(st.permutations(range(1, curve.n_rates))):
        expected = float(reference.gain(merged, cuts, cut)) * curve.rows
        assert query(curve.cum_neg, curve.cum_pos, tree, cut) == pytest.approx(expected, rel=1e-12, abs=1e-14)
        insert(tree, cut)
        cuts.append(cut)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_a_tournament_is_led_by_the_first_of_the_largest(numbers, data):
    best = tournament(np.array(numbers, float))
    for _ in range(5):
        assert leader(best) == numbers.index(max(numbers))
        place = data.draw(st.integers(0, len(numbers) - 1))
        numbers[place] = data.draw(st.integers(-3, 5))
        replace(best, place, float(numbers[place]))


@settings(max_examples=30)
@given(tables(max_values=8, min_values=2))
def test_greedy_always_makes_the_cut_that_gains_most(table):
    merged, curve = reference.merged(*table), order(*map(np.array, table))
    cuts, gains = greedy(curve, curve.n_rates)
    assert sorted(cuts) == list(range(1, curve.n_rates))
    assert (np.diff(gains) <= 1e-12).all()  # thm:submodular
    for i, gain in enumerate(gains):
        best = max(reference.gain(merged, cuts[:i], cut) for cut in cuts[i:])
        assert gain == pytest.approx(float(best) * curve.rows, rel=1e-12, abs=1e-13)


@pytest.mark.jit
def test_greedy_is_the_entropy_tree_of_scikit_learn():
    from sklearn.tree import DecisionTreeClassifier

    neg, pos = beta_counts(2000, 4)
    curve = order(neg, pos)
    place = np.repeat(curve.position, 2).reshape(-1, 1)
    labels, weights = np.tile([0, 1], neg.size), np.column_stack([neg, pos]).ravel()
    tree = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=40).fit(place, labels, weights)
    leaves = tree.apply(curve.position.reshape(-1, 1))
    ours = vf.fold(neg, pos, 40, method="greedy")
    assert ours.loss == pytest.approx(reference.loss(neg, pos, leaves), rel=1e-9)


def naive_gains(curve, cuts):
    """The gain of every cut that is not made."""
    ends = [0, *sorted(cuts), curve.n_rates]
    return {
        cut: gain_between(curve.cum_neg, curve.cum_pos, left, cut, right)
        for left, right in zip(ends, ends[1:], strict=False)
        for cut in range(left + 1, right)
    }


@pytest.mark.jit
def test_greedy_over_many_blocks_is_greedy_without_them():
    curve = order(*beta_counts(700, 5))
    made = []
    for cut in greedy(curve, 40)[0].tolist():
        gains = naive_gains(curve, made)
        assert cut == max(gains, key=gains.get)
        made.append(cut)


@pytest.mark.jit
def test_threshold_over_many_blocks_is_plain_sweeps():
    curve = order(*beta_counts(2500, 6))
    [(cuts, _)] = threshold([curve], [1.0], 60, 0.1, 1)
    made, least = [], max(naive_gains(curve, []).values())
    while len(made) < 60:
        cut = 0
        while len(made) < 60:
            reached = [c for c, gain in naive_gains(curve, made).items() if c > cut and gain >= least]
            if not reached:
                break
            cut = min(reached)
            made.append(cut)
        least *= 0.9
    assert cuts.tolist() == made


def test_of_equal_gains_in_a_sample_the_first_cut_is_made():
    curve = order(np.array([9, 5, 1]), np.array([1, 5, 9]))  # a mirror image of itself
    for seed in range(5):
        cuts, gains = stochastic(curve, 1, 1e-9, np.random.default_rng(seed))
        assert cuts.tolist() == [1]
        assert gains[0] == query(curve.cum_neg, curve.cum_pos, initialise(3), 2)


def test_nothing_is_cut_where_no_cut_gains():
    same = order(np.array([1, 2, 3, 4]), np.array([2, 4, 6, 8]), merge=False)
    assert threshold([same], [1.0], 3, 0.1, 1)[0][0].size == 0
    assert threshold([same], [1.0], 3, 0.1, 2)[0][0].tolist() == [2]  # the border


def test_samples_of_everything_are_greedy_and_samples_are_spent():
    curve = order(*beta_counts(40))
    everything = stochastic(curve, 15, 1e-9, np.random.default_rng(0))
    assert everything[0].tolist() == greedy(curve, 15)[0].tolist()
    alone = stochastic(curve, 39, 0.9, np.random.default_rng(0))  # samples of one
    assert sorted(alone[0]) == list(range(1, 40))
    assert stochastic(curve, 0, 0.1, np.random.default_rng(0))[0].size == 0


@pytest.mark.parametrize("epsilon", [0.05, 0.4])
def test_threshold_makes_the_cuts_of_plain_sweeps(epsilon):
    for seed in range(3):
        counts = beta_counts(14, seed)
        merged, curve = reference.merged(*counts), order(*counts)
        [(cuts, gains)] = threshold([curve], [curve.rows], 9, epsilon, 1)
        expected = reference.sweeps(merged, epsilon, 9)
        assert cuts.tolist() == expected
        for i, cut in enumerate(expected):
            gain = float(reference.gain(merged, expected[:i], cut)) * curve.rows
            assert gains[i] == pytest.approx(gain, rel=1e-11)


def test_a_shard_is_a_pure_function_of_its_counts():
    curve = order(*beta_counts(3000))
    [(cuts, gains)] = threshold([curve], [1.0], 50, 0.1, 4)
    assert cuts[:3].tolist() == [750, 1500, 2250]
    assert np.isinf(gains[:3]).all()
    single = [
        max(
            query(curve.cum_neg[a : a + 751], curve.cum_pos[a : a + 751], initialise(750), cut)
            for cut in range(1, 750)
        )
        for a in range(0, 3000, 750)
    ]
    for i in (2, 0, 3, 1):  # in any order, from copies
        a = 750 * i
        part = curve.cum_neg[a : a + 751] - curve.cum_neg[a], curve.cum_pos[a : a + 751] - curve.cum_pos[a]
        alone, _ = sweep(*part, max(single), 0.1, 50)
        assert (alone + a).tolist() == cuts[3 + 50 * i : 53 + 50 * i].tolist()


def test_threshold_goes_on_where_the_paper_stops():
    neg, pos = beta_counts(8000, rows=10**8)
    curve = order(neg, pos)
    [(cuts, gains)] = threshold([curve], [1.0], 1000, 0.1, 1)
    # The paper's last threshold is w0/n; about 2 n^(1/3) cuts reach it.
    assert 20 < np.count_nonzero(gains >= gains.max() / 8000) < 100
    assert cuts.size == 1000
    # Each round's gains are larger than those of all later ones.
    rounds = np.ceil(np.log(gains / gains.max()) / np.log(0.9) - 1e-9)
    assert (np.diff(rounds) >= 0).all()


@pytest.mark.parametrize("method", ["greedy", "stochastic", "threshold", "agglomerative", "divisive"])
def test_extreme_counts_are_cut_as_they_should(method):
    neg, pos = giant_and_many(50)
    fold = vf.fold(neg, pos, 3, method=method)
    assert fold.size == 3
    assert fold.ids[[0, -1]].tolist() == [0, 2]


@settings(max_examples=30)
@given(tables(max_values=7, min_values=2))
def test_agglomerative_merges_the_pair_that_loses_least_of_all_pairs(table):
    merged, curve = reference.merged(*table), order(*map(np.array, table))
    cuts, losses = baselines.agglomerative(curve)
    assert (np.diff(losses) <= 1e-12).all()
    for i, loss in enumerate(losses):  # the groups before cut i is removed
        groups = reference.segments(merged, sorted(cuts[: i + 1]))
        pairs = [(a, b) for k, a in enumerate(groups) for b in groups[:k]]
        least = min(float(reference.gain([b, a], [], 1)) * (sum(a) + sum(b)) for a, b in pairs)
        assert loss == pytest.approx(least, rel=1e-11, abs=1e-13)


@settings(max_examples=50)
@given(tables(max_values=9), st.integers(1, 6))
def test_divisive_ends_where_every_rate_is_with_its_nearest_centre(table, size):
    neg, pos = table
    ids = vf.fold(neg, pos, size, method="divisive").ids
    centres = [reference.Fraction(p, n + p) for n, p in reference.grouped(neg, pos, ids)]
    for n, p, own in zip(neg, pos, ids, strict=True):
        if n + p:
            far = [reference.divergence(reference.Fraction(p, n + p), centre) for centre in centres]
            assert far[own] <= min(far) + 1e-12


def test_divisive_begins_with_the_likelier_label_of_each_rate():
    curve = order(np.arange(20, 0, -1), np.arange(1, 21))  # ten rates below 1/2, ten above
    assert baselines._halves(curve, 4).tolist() == [5, 10, 15]
    assert baselines._halves(curve, 5).tolist() == [5, 10, 13, 16]
    low = order(np.arange(20, 10, -1), np.arange(1, 11))
    assert baselines._halves(low, 3).tolist() == [3, 6]
    assert baselines._halves(low, 1).tolist() == []


def test_divisive_leaves_values_of_one_rate_as_they_are_if_they_are_not_merged():
    curve = order(np.full(8, 3), np.full(8, 5), merge=False)
    assert baselines.divisive(curve, 4).tolist() == [2, 4, 6]


def test_divisive_says_when_it_was_stopped(monkeypatch):
    monkeypatch.setattr(baselines, "_MAX_ROUNDS", 2)
    with pytest.warns(UserWarning, match="method 'divisive' stopped after 2 rounds without converging"):
        vf.fold(*beta_counts(500), 10, method="divisive")


def test_divisive_refills_groups_that_were_left_without_a_rate():
    curve = order(*beta_counts(20))
    again = baselines._refilled(curve, np.array([0, 5, 5, 9, 20]), 6)
    assert again.size == 5
    assert {5, 9} < set(again)
    assert baselines._refilled(curve, np.empty(0, np.int64), 20).tolist() == list(range(1, 20))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1).filter(lambda p: any(map(any, p)))
)
def test_bucketing_is_exact_on_borders(pairs):
    neg, pos = map(list, zip(*pairs, strict=True))
    for size in (1, 3, 7, 40):
        ids = vf.fold(neg, pos, size, method="bucketing").ids
        buckets = [min(p * size // (n + p), size - 1) if n + p else None for n, p in pairs]
        used = sorted({bucket for bucket in buckets if bucket is not None})
        for id, bucket in zip(ids, buckets, strict=True):
            assert bucket is None or used[id] == bucket


def test_bucketing_of_counts_whose_products_are_too_large():
    neg = np.array([2**51, 2**51 - 1, 2**51 + 1])
    pos = np.array([2**48, 2**48, 2**48])  # a rate of 1/9, a little more, a little less
    assert vf.fold(neg, pos, 9 * 2**20, method="bucketing").ids.tolist() == [1, 1, 0]
