"""Laws that every method obeys in `fold` and `fold_table`; what each finds is tested with its own module."""

import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.masses import EXACT, beta_counts, tables
from vocabfold.folding.allocation import Tuning
from vocabfold.folding.by_rate import fold_curves
from vocabfold.folding.curve import order
from vocabfold.folding.methods import BY_VALUE, METHODS, NOT_JOINT
from vocabfold.folding.solve.baselines import hashing

INTERVALS = [method for method in METHODS if method not in BY_VALUE]
FILLING = ["greedy", "stochastic", "threshold", "agglomerative", "divisive"]
JOINT = [method for method in METHODS if method not in NOT_JOINT]
COLUMNS = {"a": ([9, 5, 1, 0, 2], [1, 5, 9, 2, 0]), "b": ([3, 8, 8], [4, 1, 2]), "one": ([5, 10], [1, 2])}


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(tables(max_values=7), st.integers(1, 8))
def test_a_fold_says_what_it_keeps_and_how_far_from_the_best_it_is(method, table, size):
    neg, pos = map(np.array, table)
    fold = vf.fold(neg, pos, size, method=method)
    assert fold.ids.dtype == np.int32
    assert set(fold.ids) == set(range(fold.size))
    assert fold.size <= size
    total = reference.total(neg, pos)
    assert fold.information == pytest.approx(reference.information(neg, pos, fold.ids), abs=1e-15)
    assert fold.loss == pytest.approx(reference.loss(neg, pos, fold.ids), rel=1e-13, abs=1e-16)
    assert fold.total == pytest.approx(total, rel=1e-14)
    best = reference.best_of_all(neg, pos, size)
    assert fold.bound == pytest.approx(max(best, fold.information), abs=EXACT * total)
    assert fold.gap == pytest.approx(fold.bound - fold.information, abs=EXACT * total)
    groups = reference.grouped(neg, pos, fold.ids)
    assert all(a[1] * sum(b) <= b[1] * sum(a) for a, b in zip(groups, groups[1:], strict=False))


@pytest.mark.parametrize("method", INTERVALS)
@settings(max_examples=40)
@given(tables(max_values=9), st.integers(1, 9), st.randoms())
def test_methods_of_intervals_look_at_rates_alone(method, table, size, random):
    neg, pos = map(np.array, table)
    fold = vf.fold(neg, pos, size, method=method)
    n_rates = len(reference.merged(neg, pos))
    if method in FILLING:
        assert fold.size == min(size, n_rates)
    seen = neg + pos > 0
    in_order = np.argsort(pos[seen] / (neg + pos)[seen], kind="stable")
    assert (np.diff(fold.ids[seen][in_order]) >= 0).all()
    shuffled = list(range(neg.size))
    random.shuffle(shuffled)
    again = vf.fold(neg[shuffled], pos[shuffled], size, method=method)
    assert again.ids.tolist() == fold.ids[shuffled].tolist()
    merged = list(zip(*reference.merged(neg, pos), strict=True))
    assert vf.fold(*merged, size, method=method).loss == fold.loss


@pytest.mark.parametrize("allocation", ["joint", "uniform", "information"])
@pytest.mark.parametrize("method", METHODS)
def test_a_table_keeps_to_its_budget_and_to_its_bound(method, allocation):
    if allocation == "joint" and method not in JOINT:
        with pytest.raises(vf.InputError, match=f"method '{method}' has no joint allocation.*'uniform' or"):
            vf.fold_table(COLUMNS, 5, method=method)
        return
    for budget in (3, 4, 6, 9, 20):
        table = vf.fold_table(COLUMNS, budget, method=method, allocation=allocation)
        best = reference.best_split(list(COLUMNS.values()), budget)
        assert table.size == sum(table.sizes.values()) <= budget
        assert table.bound == pytest.approx(best, abs=1e-14)
        assert table.gap == pytest.approx(table.bound - table.information, abs=1e-14)
        for name, (neg, pos) in COLUMNS.items():
            own = reference.information(neg, pos, table[name].ids)
            assert table[name].information == pytest.approx(own, abs=1e-15)
            assert table[name].bound >= own - 1e-15
            if method in FILLING:
                assert table[name].size <= len(reference.merged(neg, pos))
        if method in FILLING:
            assert table.size == min(budget, 9)  # distinct rates
        if method in ("frequency", "selection"):
            assert table.size == min(budget, 10)  # values


@pytest.mark.parametrize("method", ["greedy", "agglomerative"])
def test_a_joint_budget_goes_where_one_more_id_gains_most(method):
    columns = {"a": beta_counts(60, 1), "b": beta_counts(40, 2, a=9, b=20), "c": beta_counts(30, 3, rows=50)}
    table = vf.fold_table(columns, 40, method=method)

    def kept(name, size):
        return vf.fold(*columns[name], size, method=method).information

    one_more = {name: kept(name, size + 1) - kept(name, size) for name, size in table.sizes.items()}
    the_last = {name: kept(name, size) - kept(name, size - 1) for name, size in table.sizes.items() if size > 1}
    assert table.size == 40
    assert max(one_more.values()) <= min(the_last.values()) + 1e-15
    assert [fold.information for fold in table.values()] == [kept(*part) for part in table.sizes.items()]


@pytest.mark.parametrize("method", ["stochastic", "threshold"])
def test_joint_lists_are_cut_where_gains_are_too_small(method):
    strong, weak = beta_counts(200, 1), tuple(np.array([10**6, 10**6]) + [[0, 9], [5, 0]])
    table = vf.fold_table({"strong": strong, "weak": weak}, 12, method=method)
    assert table.sizes == {"strong": 11, "weak": 1}


def test_frequent_values_compete_over_all_columns():
    columns = {"a": ([50, 30, 9, 1], [0, 0, 0, 10]), "b": ([40, 20, 20, 5], [5, 5, 4, 1])}
    table = vf.fold_table(columns, 5, method="frequency")
    assert table.sizes == {"a": 3, "b": 2}  # 50 and 30; 45
    assert table["a"].ids.tolist() == [0, 1, 2, 2]
    again = vf.fold_table(columns, 5, method="frequency", allocation="uniform")
    assert again.sizes == {"a": 3, "b": 2}


def test_selection_takes_values_that_tell_most_by_themselves():
    neg, pos = np.array([500, 40, 0, 7]), np.array([500, 40, 20, 5])
    fold = vf.fold(neg, pos, 2, method="selection")
    assert fold.ids.tolist() == [0, 0, 1, 0]
    alone = [
        vf.fold([n, neg.sum() - n], [p, pos.sum() - p], 2).information for n, p in zip(neg, pos, strict=True)
    ]
    assert np.argmax(alone) == 2
    assert fold.information == pytest.approx(alone[2], rel=1e-14)


@pytest.mark.parametrize("method", ["frequency", "selection"])
def test_of_equal_values_the_first_is_chosen_and_values_without_rows_never_are(method):
    assert vf.fold([3, 3, 3, 0, 9], [1, 1, 1, 0, 0], 3, method=method).ids.tolist() == [2, 1, 1, 1, 0]
    assert vf.fold([0, 3, 0], [0, 1, 0], 3, method=method).size == 1


def test_buckets_and_intervals_are_as_many_as_asked_whatever_there_is_to_put_in_them():
    neg, pos = [5, 6, 7], [7, 7, 7]
    assert vf.fold(neg, pos, 3, method="hashing").size == 2
    assert vf.fold(neg, pos, 1000, method="hashing").size == 3
    assert vf.fold(neg, pos, 3, method="bucketing").size == 1
    assert vf.fold(neg, pos, 1000, method="bucketing").size == 3
    table = vf.fold_table({"a": (neg, pos), "b": (neg, pos)}, 2000, method="hashing", allocation="uniform")
    assert table.sizes == {"a": 3, "b": 3}
    for method in METHODS:  # any number of ids is a number
        if method != "dynamic":
            assert vf.fold(neg, pos, 10**30, method=method).size == 3
            assert vf.fold_table({"a": (neg, pos)}, 10**20, method=method, allocation="uniform").size == 3
            if method in JOINT:
                assert vf.fold_table({"a": (neg, pos)}, 10**20, method=method).size == 3


@pytest.mark.parametrize("method", ["frequency", "selection"])
def test_ids_go_to_a_column_that_tells_nothing_only_if_no_other_can_use_them(method):
    columns = {"flat": (list(range(1, 101)), list(range(2, 202, 2))), "two": ([1, 9], [9, 1])}
    for budget, sizes in ((3, {"flat": 1, "two": 2}), (50, {"flat": 48, "two": 2})):
        assert vf.fold_table(columns, budget, method=method, allocation="information").sizes == sizes
    alone = vf.fold_table({"flat": columns["flat"]}, 50, method=method, allocation="information")
    assert alone.sizes == {"flat": 50}


def test_hashing_looks_at_positions_alone_and_is_the_same_everywhere():
    assert hashing(np.array([0], np.uint64), 2**62).tolist() == [
        0xE220A8397B1DCDAF % 2**62
    ]  # splitmix64's first
    fold = vf.fold(np.arange(1, 101), np.arange(100, 0, -1), 7, method="hashing")
    buckets = hashing(np.arange(100, dtype=np.uint64), 7)
    assert len(set(zip(fold.ids.tolist(), buckets.tolist(), strict=True))) == fold.size == 7


def test_sampling_depends_on_the_seed_alone():
    counts = beta_counts(300)
    first, again, other = (vf.fold(*counts, 20, method="stochastic", seed=seed) for seed in (1, 1, 2))
    assert first.ids.tolist() == again.ids.tolist()
    assert first.ids.tolist() != other.ids.tolist()


def test_a_smaller_epsilon_comes_nearer_to_greedy():
    counts = beta_counts(500)
    greedy = vf.fold(*counts, 30, method="greedy")
    epsilons = Fraction(1, 1000), 0.5
    fine, coarse = (vf.fold(*counts, 30, method="threshold", epsilon=epsilon) for epsilon in epsilons)
    assert fine.loss == pytest.approx(greedy.loss, rel=0.02)
    assert coarse.loss > 1.05 * greedy.loss
    every = vf.fold(*counts, 10, method="stochastic", epsilon=1e-9)  # samples of all that is left
    assert every.ids.tolist() == vf.fold(*counts, 10, method="greedy").ids.tolist()


def test_shards_are_bounded_by_the_ids_and_a_lost_guarantee_warns():
    counts = beta_counts(100)
    with pytest.raises(vf.InputError, match=r"shards must be at most the size, 5 ids, got 6\.$"):
        vf.fold(*counts, 5, method="threshold", shards=6)
    with pytest.raises(vf.InputError, match=r"shards must be at most the size, 5 ids, got 6\.$"):
        vf.fold([1, 2], [2, 1], 5, method="threshold", shards=6)  # whatever there is to cut
    with pytest.raises(
        vf.InputError, match="shards must be fewer: 3 per column make 8 .* at least one of the 7 ids"
    ):
        vf.fold_table({"a": counts, "b": counts, "c": ([1, 2], [2, 1])}, 7, method="threshold", shards=3)
    with pytest.warns(
        UserWarning, match=r"loses its guarantee .*: 5 shards are more than epsilon x ids = 0\.1 x 20\."
    ):
        sharded = vf.fold(*counts, 20, method="threshold", shards=5)
    assert sharded.size == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vf.fold(*counts, 20, method="threshold", shards=2)
        vf.fold(*counts, 2, method="threshold")
        vf.fold(*counts, 5, method="greedy", shards=6)  # is not asked for
        vf.fold([1, 2, 3], [3, 2, 1], 3, method="threshold", shards=3)  # nothing is lost
        vf.fold_table({"a": ([1, 2, 3], [3, 2, 1])}, 10, method="threshold", shards=20)
    with pytest.warns(UserWarning, match="epsilon x ids = 0.01 x 60"):
        vf.fold(*counts, 60, method="threshold", epsilon=Fraction(1, 100), shards=10)
    with pytest.warns(UserWarning, match=r"3 shards are more than epsilon x ids = 0\.1 x 6\.") as caught:
        vf.fold_table({"a": counts, "b": counts}, 12, method="threshold", allocation="uniform", shards=3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="shards are more than"):  # a column of few ids has fewer shards
        sharded = vf.fold_table(
            {"a": counts, "b": ([500, 510], [500, 490]), "c": beta_counts(50, 1, a=50, b=50)},
            30,
            method="threshold",
            allocation="information",
            shards=6,
        )
    assert sharded.sizes["c"] < 6


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"epsilon": Fraction(3, 2)},
            "epsilon must be a number, at least 1e-09 and below 1, got Fraction(3, 2).",
        ),
        ({"epsilon": 0}, "epsilon must be a number, at least 1e-09 and below 1, got 0."),
        ({"epsilon": 1.0}, "epsilon must be a number, at least 1e-09 and below 1, got 1.0."),
        ({"epsilon": "small"}, "epsilon must be a number, at least 1e-09 and below 1, got 'small'."),
        ({"epsilon": float("nan")}, "epsilon must be a number, at least 1e-09 and below 1, got nan."),
        ({"shards": 0}, "shards must be at least 1, got 0."),
        ({"shards": 1.5}, "shards must be a whole number, got 1.5."),
        ({"seed": -1}, "seed must be at least 0, got -1."),
        ({"method": "magic"}, "method must be one of 'exact', 'dynamic', 'greedy', "),
    ],
)
def test_parameters_are_checked_whatever_the_method(option, message):
    for call in (lambda: vf.fold([1], [2], 1, **option), lambda: vf.fold_table({"a": ([1], [2])}, 1, **option)):
        with pytest.raises(vf.InputError, match=re.escape(message)):
            call()


@pytest.mark.parametrize("method", ["greedy", "stochastic", "threshold"])
def test_unmerged_values_are_folded_with_the_same_bound(method):
    rng = np.random.default_rng(2)
    neg, pos = rng.integers(0, 6, (2, 300))
    apart, merged = order(neg, pos, merge=False), order(neg, pos)
    (fold,), gap = fold_curves([apart], 12, method, "joint", Tuning())
    best = vf.fold(neg, pos, 12)
    assert fold.bound == pytest.approx(best.bound, rel=1e-12)
    assert gap == pytest.approx(fold.loss - best.loss, abs=1e-14)
    assert fold.loss == pytest.approx(reference.loss(neg, pos, fold.ids), rel=1e-12)
    assert apart.n_rates > 2 * merged.n_rates
