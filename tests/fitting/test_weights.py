"""Weights decide what ids keep; rows, each counted once, decide what is frequent and what chance explains."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.builders import clicks

OPTIONS = {"features": ["site", "device"], "folds": 3}
HEAVY = (20.0, 1.0)  # of a row, by label: negatives of which one in twenty was kept


def weighted(rows, weights):
    """Return rows with a weight for each label."""
    of_rows = np.take(np.array(weights, float), rows["click"].to_numpy())
    return rows.append_column("w", pa.array(of_rows))


def ids_of(book, name="site"):
    return dict(zip(*book[name].select(["value", "id"]).to_pydict().values(), strict=True))


WEIGHTS = st.tuples(*[st.sampled_from([1, 2, 20, 0.5, 0.1, 1.75, 1e-3, 1e6])] * 2)


@settings(max_examples=60)
@given(st.integers(0, 10**6), WEIGHTS, st.sampled_from([1, 3, 20]), st.sampled_from([2, 30]))
def test_weights_by_label_change_neither_priors_nor_who_is_frequent(seed, weights, min_count, dedicated_min):
    rows = clicks(400, seed, 60)
    options = {"min_count": min_count, "dedicated_min": dedicated_min}
    plain = vf.fit(vf.count(rows, "click", **OPTIONS), 24, **options)
    book = vf.fit(vf.count(weighted(rows, weights), "click", weight="w", **OPTIONS), 24, **options)
    assert book.settings == plain.settings
    for name, column in book.columns.items():
        other = plain.columns[name]
        for what in ("mean", "strength", "n_values", "n_rare", "n_dedicated"):
            assert getattr(column, what) == getattr(other, what), what
        assert len(column.shared) == len(other.shared)
        assert list(ids_of(book, name)) == list(ids_of(plain, name))


@pytest.mark.parametrize("weight", [2, 0.5, 0.1])
def test_one_weight_for_all_rows_changes_no_id(weight):
    rows = clicks(600)
    plain = vf.fit(vf.count(rows, "click", **OPTIONS), 24, min_count=1)
    book = vf.fit(vf.count(weighted(rows, (weight, weight)), "click", weight="w", **OPTIONS), 24, min_count=1)
    for name, column in book.columns.items():
        assert ids_of(book, name) == ids_of(plain, name)
        assert column.borders == plain.columns[name].borders
        assert column.rates == pytest.approx(plain.columns[name].rates, abs=1e-6)
        assert column.gain == pytest.approx(plain.columns[name].gain, abs=1e-6)


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=2),
        st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any),
        min_size=2,
        max_size=9,
    ).filter(lambda table: all(sum(pair[side] for pair in table.values()) for side in (0, 1))),
    WEIGHTS,
    st.sampled_from([0.5, 3, 10]),
    st.integers(1, 4),
)
def test_shared_ids_keep_as_much_of_the_weighted_masses_as_any(table, weights, strength, size):
    labels = [(value, label) for value, pair in table.items() for label in (0, 1) for _ in range(pair[label])]
    rows = pa.table(dict(zip(("site", "click"), map(list, zip(*labels, strict=True)), strict=True)))
    counts = vf.count(weighted(rows, weights), "click", "site", weight="w")
    book = vf.fit(counts, 2 * size, shared_ids=size, smoothing=strength, min_count=1, dedicated_min=100)
    # By the definition: rows at the shrunk rate of rows, and then the weight of each label.
    pairs = [np.array(pair, float) for pair in table.values()]
    mean = sum(pair[1] for pair in pairs) / sum(pair.sum() for pair in pairs)
    rates = [reference.shrunk(*pair, mean, strength) for pair in pairs]
    units = [round(2**20 * weight) for weight in weights]
    masses = [
        [
            pair.sum() * (rate if label else 1 - rate) * units[label]
            for pair, rate in zip(pairs, rates, strict=True)
        ]
        for label in (0, 1)
    ]
    sides = [list(map(round, side)) for side in masses]
    ids = ids_of(book)
    found = reference.information(*sides, [ids[value] for value in table])
    assert found == pytest.approx(vf.fold(*sides, size).information, rel=1e-6, abs=1e-7)
    of_id = {ids[value]: side for value, *side in zip(table, *masses, strict=True)}
    for id, (neg, pos) in of_id.items():
        if list(ids.values()).count(id) == 1:
            assert book.columns["site"].rates[id] == pytest.approx(pos / (neg + pos), abs=1e-9)


def test_a_prior_finds_nothing_where_there_is_nothing():
    rng = np.random.default_rng(0)
    rows = {"x": rng.integers(0, 2000, 20_000).astype(str), "click": (rng.random(20_000) < 0.3).astype(int)}
    counts = vf.count(weighted(pa.table(rows), HEAVY), "click", weight="w")
    column = vf.fit(counts, 500).columns["x"]
    assert column.strength == math.inf
    assert column.n_dedicated == 0


def test_a_prior_finds_the_strength_of_the_rows():
    rng = np.random.default_rng(0)
    rates = rng.beta(6, 14, 5000)
    x = rng.integers(0, 5000, 100_000)
    rows = pa.table({"x": x.astype(str), "click": (rng.random(x.size) < rates[x]).astype(int)})
    column = vf.fit(vf.count(weighted(rows, HEAVY), "click", weight="w"), 500).columns["x"]
    assert column.strength == pytest.approx(20, rel=0.1)
    assert column.mean == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("options", [{}, {"budget": "auto"}, {"dedicated_min": 3}, {"min_count": 3}])
def test_heavy_rows_decide_no_more_than_light_ones_who_is_frequent(options):
    rows = clicks(800, seed=1)
    options = {"budget": 40, "min_count": 1} | options
    plain = vf.fit(vf.count(rows, "click", **OPTIONS), **options)
    book = vf.fit(vf.count(weighted(rows, HEAVY), "click", weight="w", **OPTIONS), **options)
    for name in book:
        n_rows = dict(
            zip(*rows.group_by(name).aggregate([([], "count_all")]).to_pydict().values(), strict=True)
        )
        with_own = {value for value, id in ids_of(book, name).items() if id not in book.columns[name].shared}
        assert all(n_rows[value] >= options.get("dedicated_min", 30) for value in with_own)
        assert with_own == {v for v, id in ids_of(plain, name).items() if id not in plain.columns[name].shared}


def test_the_weight_of_a_row_that_changes_its_label_makes_no_value_frequent():
    rows = clicks(500, seed=2)
    label = rows["click"].to_numpy().copy()

    def encoded(labels):
        table = weighted(rows.set_column(rows.schema.get_field_index("click"), "click", [labels]), HEAVY)
        options = {"budget": 30, "features": ["site"], "weight": "w"}
        book, ids = vf.fit_transform(table, "click", fold_column="part", **options)
        return ids["site"].to_numpy(), book.columns["site"]

    before, column = encoded(label)
    assert 0 < column.n_dedicated < column.size
    for row in range(0, 500, 25):
        flipped = label.copy()
        flipped[row] = 1 - flipped[row]
        after, now = encoded(flipped)
        assert now.n_dedicated == column.n_dedicated
        if before[row] in column.shared:
            assert after[row] in now.shared


def test_rows_of_weight_zero_are_no_rows():
    rows = clicks(300)
    zeros = pa.concat_tables([weighted(rows, (2, 1)), weighted(rows, (0, 0))])
    assert (
        vf.fit(vf.count(zeros, "click", ["site"], weight="w"), 20).digest
        == vf.fit(vf.count(weighted(rows, (2, 1)), "click", ["site"], weight="w"), 20).digest
    )


def test_rows_without_weights_add_to_rows_with_weights():
    rows = clicks(300)
    heavy = weighted(rows, (20, 0.5))
    ones = weighted(rows, (1, 1))
    total = vf.count(rows, "click", ["site"]) + vf.count(heavy, "click", ["site"], weight="w")
    whole = vf.count(pa.concat_tables([ones, heavy]), "click", ["site"], weight="w")
    assert total["site"].equals(whole["site"])
    assert (total.neg_rows, total.pos_rows) == (whole.neg_rows, whole.pos_rows)
    assert vf.fit(total, 20).digest == vf.fit(whole, 20).digest


def test_counts_that_do_not_tell_rows_from_weights_are_not_added_to_such_that_do(tmp_path):
    rows = weighted(clicks(300), (20, 0.5))
    counts = vf.count(rows, "click", ["site"], weight="w")
    old = replace(counts, neg_rows=None, pos_rows=None)
    with pytest.raises(vf.InputError, match=r"^counts that do not tell rows from weights, .* count their rows"):
        old + counts
    assert (old + old).rows == 2 * counts.rows
    with pytest.raises(vf.InputError, match=r"^these are not the counts"):
        vf.fit(old, 20, min_count=1).report(tmp_path / "page.html", counts=counts)


def test_rows_are_shown_once_each_and_by_weight(tmp_path):
    rows = weighted(clicks(300), (20, 0.5))
    counts = vf.count(rows, "click", ["site"], weight="w")
    by_weight = f"300 rows ({counts.rows:,} by weight)"
    assert f"(1 column, {by_weight}, " in repr(counts)
    found = vf.fit(counts, 20, min_count=1).evaluate(rows, weight="w")
    assert (found.n_rows, found.rows) == (300, counts.rows)
    assert f"(1 column, {by_weight}: " in repr(found)
    plain = vf.count(rows, "click", ["site"])
    assert "(1 column, 300 rows, " in repr(plain)
    assert "(1 column, 300.0 rows" not in repr(replace(counts, neg_rows=None, pos_rows=None))
