import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.masses import EXACT, beta_counts, tables

METHODS = ["exact", "dynamic"]
methods = pytest.mark.parametrize("method", METHODS)


@methods
@given(tables(max_values=7), st.integers(1, 7))
def test_no_partition_of_any_kind_keeps_more(method, table, size):
    fold = vf.fold(*table, size, method=method)
    total = reference.total(*table)
    assert fold.information == pytest.approx(reference.best_of_all(*table, size), abs=EXACT * total)
    assert fold.size == min(size, len(reference.merged(*table)))
    assert fold.information == pytest.approx(reference.information(*table, fold.ids), abs=1e-15)
    assert fold.total == pytest.approx(total, rel=1e-14)
    assert fold.loss == pytest.approx(reference.loss(*table, fold.ids), rel=1e-13, abs=1e-50)
    assert fold.gap <= 1e-12
    assert fold.bound >= fold.information
    assert fold.bound == pytest.approx(reference.best_of_all(*table, size), abs=EXACT * total)


@pytest.mark.slow
def test_no_partition_of_nine_values_keeps_more():
    rng = np.random.default_rng(9)
    for size in (2, 3, 4):
        neg, pos = rng.integers(0, 30, (2, 9))
        fold = vf.fold(neg, pos, size)
        assert fold.information == pytest.approx(reference.best_of_all(neg, pos, size), abs=EXACT * fold.total)


@given(tables(max_values=10), st.integers(1, 10))
def test_ids_rise_with_the_rate_and_equal_rates_share_one(table, size):
    neg, pos = map(np.array, table)
    fold = vf.fold(neg, pos, size)
    assert fold.ids.dtype == np.int32
    assert set(fold.ids) == set(range(fold.size))
    seen = neg + pos > 0
    rate = pos[seen] / (neg + pos)[seen]
    in_order = np.argsort(rate, kind="stable")
    assert (np.diff(fold.ids[seen][in_order]) >= 0).all()
    groups = [(neg[fold.ids == i].sum(), pos[fold.ids == i].sum()) for i in range(fold.size)]
    assert all(a[1] * sum(b) < b[1] * sum(a) for a, b in zip(groups, groups[1:], strict=False))


@methods
@given(tables(max_values=9), st.integers(1, 9), st.randoms())
def test_permuting_swapping_multiplying_and_merging_change_nothing(method, table, size, random):
    neg, pos = map(np.array, table)
    fold = vf.fold(neg, pos, size, method=method)
    close = {"rel": 1e-12, "abs": 1e-16}

    shuffled = list(range(neg.size))
    random.shuffle(shuffled)
    again = vf.fold(neg[shuffled], pos[shuffled], size, method=method)
    assert again.ids.tolist() == fold.ids[shuffled].tolist()
    assert again.loss == fold.loss

    swapped = vf.fold(pos, neg, size, method=method)
    assert swapped.loss == pytest.approx(fold.loss, **close)

    multiplied = vf.fold(neg * 1000, pos * 1000, size, method=method)
    assert multiplied.loss == pytest.approx(fold.loss, **close)

    merged = reference.merged(neg, pos)
    assert vf.fold(*zip(*merged, strict=True), size, method=method).loss == fold.loss
    # A value split into two of the same rate is the same column.
    assert vf.fold([*neg, *neg], [*pos, *pos], size, method=method).loss == pytest.approx(fold.loss, **close)


def test_a_value_without_rows_has_the_id_of_the_overall_rate():
    neg, pos = [90, 0, 50, 10, 0], [10, 0, 50, 90, 0]
    assert vf.fold(neg, pos, 3).ids.tolist() == [0, 1, 1, 2, 1]
    # The overall rate 1/12 is nearer to the rates of id 0.
    assert vf.fold([100, 0, 10], [0, 0, 10], 2).ids.tolist() == [0, 0, 1]
    # On the border between two ids it belongs to the higher one.
    assert vf.fold([3, 0, 1], [1, 0, 3], 2).ids.tolist() == [0, 1, 1]
    # Rates are compared exactly: here the overall rate is that of value 1, and all share a double.
    big = 2**26
    assert vf.fold([big - 1, 2 * big - 1, big, 0], [big, 2 * big + 1, big + 1, 0], 3).ids.tolist() == [
        2,
        1,
        0,
        1,
    ]


@pytest.mark.parametrize(("neg", "pos"), [([3, 4, 0], [0, 0, 0]), ([0, 0], [5, 1]), ([7], [2])])
def test_one_class_or_one_value_tells_nothing_and_warns_of_nothing(neg, pos):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in METHODS:
            fold = vf.fold(neg, pos, 3, method=method)
            assert (fold.size, fold.total, fold.information, fold.loss, fold.bound, fold.gap) == (
                1,
                0,
                0,
                0,
                0,
                0,
            )
            assert set(fold.ids) == {0}
        sizes, informations = vf.curve(neg, pos, 3)
        assert informations.tolist() == [0, 0, 0]
        table = vf.fold_table({"a": (neg, pos), "b": ([1, 2, 3], [3, 2, 1])}, 3)
        assert table.sizes == {"a": 1, "b": 2}


def test_enough_ids_for_every_rate_lose_nothing():
    neg, pos = beta_counts(500)
    fold = vf.fold(neg, pos, 10_000)
    assert fold.loss == fold.gap == 0
    assert fold.information == fold.total == fold.bound
    assert fold.size == len(reference.merged(neg, pos))


@given(tables(max_values=9), st.none() | st.integers(1, 12))
def test_curve_is_the_optimum_of_every_size(table, max_size):
    sizes, informations = vf.curve(*table, max_size)
    n_rates = len(reference.merged(*table))
    assert sizes.tolist() == list(range(1, (max_size or n_rates) + 1))
    for size, information in zip(sizes, informations, strict=True):
        assert information == pytest.approx(vf.fold(*table, int(size)).information, abs=1e-15)
    assert informations[0] == 0


@pytest.mark.jit
def test_the_exact_curve_is_rising_and_concave():
    sizes, informations = vf.curve(*beta_counts(3000))
    assert sizes.size == 3000
    gains = np.diff(informations)
    assert (gains >= 0).all()
    assert (np.diff(gains) <= 1e-15).all()


@pytest.mark.jit
def test_the_curve_stops_at_4096_unless_told_otherwise():
    neg, pos = beta_counts(6000, rows=10**8)
    sizes, _ = vf.curve(neg, pos)
    assert sizes[-1] == 4096


columns_of = st.dictionaries(st.text(max_size=3), tables(max_values=6), min_size=1, max_size=4)


@methods
@given(columns_of, st.integers(0, 15))
def test_joint_beats_the_other_allocations_and_the_bound_holds_for_all(method, columns, spare):
    budget = len(columns) + spare
    joint, uniform, information = (
        vf.fold_table(columns, budget, method=method, allocation=allocation)
        for allocation in ("joint", "uniform", "information")
    )
    slack = EXACT * joint.total
    n_rates = sum(len(reference.merged(*table)) for table in columns.values())
    for table in (joint, uniform, information):
        assert sum(table.sizes.values()) == table.size == min(budget, n_rates)
        assert table.information <= joint.information + slack
        assert table.bound >= joint.information - slack
        assert table.gap == pytest.approx(joint.information - table.information, abs=2 * slack)
        assert table.information == pytest.approx(sum(fold.information for fold in table.values()))
        assert table.loss == pytest.approx(sum(fold.loss for fold in table.values()))
        for name, fold in table.items():
            assert fold.information == pytest.approx(vf.fold(*columns[name], fold.size).information, abs=slack)


def test_columns_with_different_totals_count_per_row_of_their_own():
    small = ([9, 5, 1], [1, 5, 9])
    large = ([6000, 5000, 4000], [4000, 5000, 6000])
    # The small column tells far more per row, though the large one has far more rows.
    assert vf.fold_table({"small": small, "large": large}, 4).sizes == {"small": 3, "large": 1}
    again = vf.fold_table({"small": tuple(np.multiply(small, 10**9)), "large": large}, 4)
    assert again.sizes == {"small": 3, "large": 1}
    best = reference.best_split([small, large], 4)
    assert again.information == pytest.approx(best, abs=1e-14)


def test_a_thousand_columns_under_one_budget():
    columns = {f"c{i}": ([9, 5, 1 + i % 7], [1, 5, 9]) for i in range(1000)}
    for budget in (1000, 1001, 1777, 2999, 3000):
        table = vf.fold_table(columns, budget)
        assert table.size == budget
        assert table.gap <= 1e-14 * table.total
        assert table.loss == pytest.approx(
            sum(map(Fraction, (fold.loss for fold in table.values()))), rel=1e-15
        )


def test_a_table_is_a_mapping_that_prints_itself():
    table = vf.fold_table({"site": ([90, 45, 10], [10, 5, 30]), "<b>": ([1, 2], [2, 1])}, 3)
    assert list(table) == ["site", "<b>"]
    assert len(table) == 2
    assert "site" in table
    assert table["site"].size == 2
    assert dict(table).keys() == table.sizes.keys()
    lines = repr(table).splitlines()
    assert lines[0].startswith("FoldTable(2 columns, budget 3: 5 values -> 3 ids: ")
    assert lines[1].startswith("  site  3 values -> 2 ids: 100 % of ")
    assert lines[2].startswith("  <b>   2 values -> 1 id: 0 % of ")
    html = table._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<td><b></td>" not in html
    assert html.count("<tr>") == 4


def test_names_may_be_anything_and_many():
    counts = ([90, 45, 10], [10, 5, 30])
    table = vf.fold_table({1: counts, ("a", 2): counts, None: counts}, 6)
    assert table[1].size == 2
    assert "('a', 2)  3 values" in repr(table)
    many = repr(vf.fold_table({f"c{i}": counts for i in range(50)}, 100)).splitlines()
    assert len(many) == 42
    assert many[-1] == "  ... and 10 more columns"


def test_a_fold_prints_how_much_it_keeps_and_never_hides_a_loss():
    fold = vf.fold([90, 45, 10, 70, 20], [10, 5, 30, 30, 80], 3)
    assert repr(fold) == "Fold(5 values -> 3 ids: 99.74 % of 0.2043 nats kept, loss 0.00053, gap 0)"
    nearly = vf.fold([10**6, 10**6, 1], [10**3, 10**3 + 1, 10**6], 2)
    assert 0 < nearly.loss < 1e-9
    assert "99.999" in repr(nearly)
    assert "100 %" in repr(vf.fold([1, 2], [2, 1], 2))
    assert "<td>5</td><td>3</td><td>99.74 %</td>" in fold._repr_html_()
    # A loss of 1e-19 of the total would need 19 digits.
    barely = vf.fold([10**14, 10**14, 1], [10**13, 10**13 + 1, 10**14], 2)
    assert 0 < barely.loss < 1e-15 * barely.total
    assert "nearly 100 %" in repr(barely)


def test_results_cannot_be_changed_by_accident():
    fold = vf.fold([1, 2], [2, 1], 2)
    with pytest.raises(AttributeError):
        fold.size = 3
