"""`aim="model"`: every rule of it, against loops over values."""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.masses import EXACT, information


def rows_of(sites, device=None):
    """Return rows from {value: (neg, pos)} of one column, and of a second one."""
    columns = {"site": [], "click": []}
    for value, (neg, pos) in sites.items():
        columns["site"] += [value] * (neg + pos)
        columns["click"] += [0] * neg + [1] * pos
    return pa.table(columns)


TABLES = st.dictionaries(
    st.text("abcdefghij", min_size=1, max_size=2),
    st.tuples(st.integers(0, 25), st.integers(0, 25)).filter(any),
    min_size=1,
    max_size=14,
).filter(lambda table: all(sum(pair[side] for pair in table.values()) for side in (0, 1)))


@pytest.mark.filterwarnings("ignore:budget=")
@settings(max_examples=150)
@given(
    TABLES,
    st.integers(2, 20),
    st.sampled_from([1, 3, 20]),
    st.integers(1, 30),
    st.integers(1, 5),
    st.sampled_from(["other", "own", "error"]),
    st.sampled_from(["auto", 0, 0.5, 10]),
)
def test_every_rule(table, budget, min_count, dedicated_min, shared_ids, unseen, smoothing):
    options = {
        "min_count": min_count,
        "dedicated_min": dedicated_min,
        "shared_ids": shared_ids,
        "unseen": unseen,
    }
    book = vf.fit(vf.count(rows_of(table), "click"), budget, smoothing=smoothing, **options)
    column = book.columns["site"]
    ids = {row["value"]: row["id"] for row in book["site"].to_pylist()}
    rates = {value: reference.shrunk(*pair, column.mean, column.strength) for value, pair in table.items()}
    kept = [value for value, pair in table.items() if sum(pair) >= min_count]
    rare = [value for value in table if value not in kept]
    assert sorted(ids) == sorted(kept)
    has_rare_id = unseen == "own" or (bool(rare) and bool(kept) + 1 <= budget)

    # Dedicated ids: all values with enough rows, as many as fit.
    least = max(dedicated_min, min_count)
    enough = reference.dedicated_from(
        [[sum(table[v]) for v in kept]], int(has_rare_id), budget, least, shared_ids
    )
    dedicated = [value for value in kept if sum(table[value]) >= enough]
    assert column.n_dedicated == len(dedicated)
    assert book.settings["dedicated_from"] == (None if math.isinf(enough) else enough)
    folded = [value for value in kept if value not in dedicated]
    assert len({ids[value] for value in dedicated}) == len(dedicated)
    assert not {ids[value] for value in dedicated} & {ids[value] for value in folded}
    assert column.size == len(dedicated) + len(column.shared) + has_rare_id <= budget
    assert set(column.shared) >= {ids[value] for value in folded}

    # Shared ids: intervals of the rate, which keep as much of the masses as any do.
    for value in folded:
        assert ids[value] == column.shared[sum(border <= rates[value] for border in column.borders)]
    if folded:
        size = max(1, min(shared_ids, budget // 2, budget - has_rare_id))
        entries = {v: sum(table[v]) for v in folded}
        masses = [[round(2**20 * n * (1 - rates[v])) for v, n in entries.items()]]
        masses.append([round(2**20 * n * rates[v]) for v, n in entries.items()])
        best = vf.fold(*masses, size)
        assert len(column.shared) == (1 if math.isinf(column.strength) else best.size)
        groups = [ids[v] for v in folded]
        assert reference.information(*masses, groups) == pytest.approx(best.information, abs=1e-9)

    # By rate, then by value; dedicated ids of few rows by value, where the mean would be.
    rarer = min(column.mean, 1 - column.mean)
    to_order = max(column.strength, 8 / rarer)
    few = {v for v in dedicated if sum(table[v]) < to_order}
    few_rare = {column.other} if has_rare_id and sum(sum(table[v]) for v in rare) < to_order else set()
    own = column.size - 1 if unseen == "own" else None
    value_of = {ids[value]: value for value in dedicated}
    places = [
        (column.mean, 1, value_of.get(id, "")) if value_of.get(id) in few or id in few_rare else (rate, 0, "")
        for id, rate in enumerate(column.rates)
        if id != own
    ]
    assert places == sorted(places)
    for value in dedicated:
        assert column.rates[ids[value]] == pytest.approx(rates[value], abs=1e-12)
    alike = sorted(set(dedicated) - few, key=lambda v: (rates[v], v))
    assert [ids[v] for v in alike] == sorted(ids[v] for v in alike)

    # What is not in the codebook.
    if has_rare_id:
        assert column.other not in column.shared
        assert column.other not in ids.values()
        if unseen == "own":
            assert column.other == column.size - 1
    elif not rare and folded:
        assert column.other == column.shared[sum(border <= column.mean for border in column.borders)]
    elif not rare:
        assert abs(column.rates[column.other] - column.mean) == min(abs(r - column.mean) for r in column.rates)

    # The figures are those of the rows.
    groups = np.zeros((column.size, 2), int)
    for value, pair in table.items():
        groups[ids.get(value, column.other)] += pair
    assert column.information == pytest.approx(information(groups.tolist()), abs=EXACT)
    assert column.loss == pytest.approx(column.total - column.information, abs=EXACT)
    assert (book.gap, book.bound, column.gap) == (None, None, None)


def test_the_order_of_values_survives_where_all_have_dedicated_ids():
    hours = list(range(24)) * 60
    click = [int(h * 7 % 24 > i % 29) for i, h in enumerate(hours)]
    days = [datetime.date(2020, 1, 1 + h % 9) for h in hours]
    table = pa.table({"hour": hours, "day": days, "flag": [h % 2 == 0 for h in hours], "click": click})
    book = vf.fit(vf.count(table, "click", ["hour", "day", "flag"]), 100)
    for name in book:
        assert book[name]["id"].to_pylist() == list(range(len(book[name])))
        assert book.columns[name].shared == ()
    text = table.set_column(0, "hour", pa.array([f"{h:02}" for h in hours]))
    by_rate = vf.fit(vf.count(text, "click", "hour"), 100)
    rates = [by_rate.columns["hour"].rates[id] for id in range(24)]
    assert rates == sorted(rates)
    assert by_rate["hour"]["id"].to_pylist() != list(range(24))
    # With an id of rare values, that one comes last; with shared ids, they go by rate.
    more = pa.concat_tables([table, table.slice(0, 1).set_column(0, "hour", pa.array([99]))])
    rare = vf.fit(vf.count(more, "click", "hour"), 100).columns["hour"]
    assert (rare.size, rare.other, rare.n_rare) == (25, 24, 1)
    folded = vf.fit(vf.count(more, "click", "hour"), 100, min_count=1).columns["hour"]
    assert list(folded.rates) == sorted(folded.rates)
    assert len(folded.shared) == 1


def dedicated_ids(values, labels, **options):
    """Return the ids of values that all have dedicated ones, their rows, and the column."""
    counts = vf.count(pa.table({"site": values, "click": labels}), "click")
    book = vf.fit(counts, "auto", min_count=1, dedicated_min=1, **options)
    found = book["site"].to_pylist()
    rows = {one["value"]: one["neg"] + one["pos"] for one in found}
    return {one["value"]: one["id"] for one in found}, rows, book.columns["site"]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.6]), st.sampled_from([0.05, 0.3]))
def test_a_label_does_not_move_the_id_of_a_value_with_few_rows(seed, spread, base):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 300, 40)
    odds = np.log(base / (1 - base)) + rng.normal(0, spread, 40)
    values = np.repeat([f"v{i:02}" for i in range(40)], sizes)
    labels = (rng.random(values.size) < np.repeat(1 / (1 + np.exp(-odds)), sizes)).astype(int)
    flipped = rng.integers(labels.size)
    orders = []
    for _ in range(2):
        ids, rows, column = dedicated_ids(values, labels)
        few = {v for v in rows if rows[v] < max(column.strength, 8 / min(column.mean, 1 - column.mean))}
        in_order = sorted(ids, key=ids.get)
        orders.append([value for value in in_order if value in few])
        rates = [column.rates[ids[value]] for value in in_order if value not in few]
        assert rates == sorted(rates)
        # Those with few rows are side by side: past another id, they only move together.
        assert "".join("f" if value in few else "." for value in in_order).strip(".") == "f" * len(few)
        labels[flipped] ^= 1
    before, after = orders
    assert [v for v in before if v in after] == [v for v in after if v in before]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_values_with_few_rows_does_not_depend_on_labels(seed):
    rng = np.random.default_rng(seed)
    values = [f"v{i % 50:02}" for i in range(5000)]
    labels = rng.permutation(np.arange(5000) % 4 == 0)
    ids, _, column = dedicated_ids(values, labels, smoothing=101)
    assert list(ids.values()) == list(range(50))  # by value: 100 rows are fewer than the prior has
    assert list(column.rates) != sorted(column.rates)
    ids, _, column = dedicated_ids(values, labels, smoothing=100)
    assert list(column.rates) == sorted(column.rates)
    # As many rows, but too few of them positive.
    few = rng.permutation(np.arange(5000) % 13 == 0)
    ids, _, column = dedicated_ids(values, few, smoothing=100)
    assert list(ids.values()) == list(range(50))


def test_values_with_few_rows_are_where_the_mean_is():
    sites = {"low": (900, 100), "high": (100, 900), **{f"v{i}": (20 * i, 80 - 20 * i) for i in range(5)}}
    rows = rows_of(sites)
    ids, _, column = dedicated_ids(rows["site"], rows["click"], smoothing=200)
    assert ids == {"low": 0, **{f"v{i}": i + 1 for i in range(5)}, "high": 6}
    assert column.rates[ids["v0"]] > column.rates[ids["v4"]]  # each keeps its rate


def test_infrequent_values_of_noise_share_one_id():
    rng = np.random.default_rng(0)
    n = 20_000
    table = pa.table(
        {
            "noise": [f"n{v}" for v in rng.integers(0, 5000, n)],
            "site": [f"s{v}" for v in rng.integers(0, 5000, n)],
            "user": [f"u{v}" for v in range(n)],
        }
    )
    rates = 0.1 + 0.8 * (np.array([int(s[1:]) * 7919 % 97 for s in table["site"].to_pylist()]) / 97)
    table = table.append_column("click", pa.array((rng.random(n) < rates).astype(int)))
    book = vf.fit(vf.count(table, "click", folds=5), 100)
    assert book.sizes == {"noise": 1, "site": 22, "user": 1}
    assert [column.gain for column in book.columns.values()] == [0.0, pytest.approx(0.06, abs=0.02), 0.0]


def test_each_id_of_an_automatic_budget_pays_for_itself():
    rng = np.random.default_rng(1)
    n = 30_000
    site = rng.zipf(1.4, n) % 5000
    click = rng.random(n) < 0.1 + 0.8 * (site * 7919 % 97 / 97)
    table = pa.table({"site": site, "click": click})
    counts = vf.count(table, "click", "site")
    book = vf.fit(counts, "auto", min_count=1)
    frequent = sum(n >= 30 for n in np.bincount(site))
    assert book.n_dedicated == frequent
    assert book.settings["budget"] == "auto"
    assert book.budget == book.size == frequent + len(book.columns["site"].shared)
    # With one shared id more or less, loss + price x ids is not less.
    price = math.log(n) / (2 * n)
    column = book.columns["site"]
    entries = [row for row in book["site"].to_pylist() if row["neg"] + row["pos"] < 30]
    rates = [reference.shrunk(row["neg"], row["pos"], column.mean, column.strength) for row in entries]
    rows = [row["neg"] + row["pos"] for row in entries]
    masses = [
        [round(2**20 * m * r) for m, r in zip(rows, side, strict=True)]
        for side in ([1 - r for r in rates], rates)
    ]
    costs = {
        size: vf.fold(*masses, size).loss * sum(rows) / n + price * size
        for size in range(1, len(column.shared) + 3)
    }
    assert min(costs, key=costs.get) == len(column.shared)


@pytest.mark.filterwarnings("ignore:budget=")
def test_a_budget_of_one_id_per_column_is_enough():
    rng = np.random.default_rng(0)
    table = pa.table({name: [f"{v}" for v in rng.integers(0, 99, 900)] for name in "abc"})
    table = table.append_column("click", pa.array(rng.integers(0, 2, 900)))
    counts = vf.count(table, "click")
    for budget in range(3, 12):
        for min_count in (1, 9, 1000):
            book = vf.fit(counts, budget, min_count=min_count)
            assert 3 <= book.size <= budget
    with pytest.raises(vf.InputError, match=r"^budget must be at least 3 \(one id per column\), got 2\.$"):
        vf.fit(counts, 2)


def test_defaults_are_those_of_the_aim():
    counts = vf.count(rows_of({"a": (30, 30), "b": (3, 0), "c": (10, 9)}), "click")
    book = vf.fit(counts, 9)
    about = {
        key: book.settings[key] for key in ("aim", "smoothing", "min_count", "dedicated_min", "shared_ids")
    }
    assert about == {"aim": "model", "smoothing": "auto", "min_count": 20, "dedicated_min": 30, "shared_ids": 8}
    assert book.columns["site"].n_rare == 2
    book = vf.fit(counts, 9, aim="information")
    assert (book.settings["smoothing"], book.settings["min_count"]) == (0, 1)
    assert book.gap == 0
    book, _ = vf.fit_transform(rows_of({"a": (30, 30), "b": (3, 0)}), "click", 9)
    assert book.settings["min_count"] == 1


def test_smoothing_folds_shrunk_masses_and_bounds_them():
    counts = vf.count(rows_of({"a": (1, 0), "b": (0, 1), "c": (40, 10), "d": (20, 30), "e": (3, 5)}), "click")
    book = vf.fit(counts, 2, aim="information", smoothing=4)
    column = book.columns["site"]
    assert column.mean == 46 / 110
    rates = [(p + 4 * column.mean) / (n + p + 4) for n, p in ((1, 0), (0, 1), (40, 10), (20, 30), (3, 5))]
    rows = [1, 1, 50, 50, 8]
    masses = [[round(2**20 * n * (1 - r)) for n, r in zip(rows, rates, strict=True)]]
    masses.append([round(2**20 * n * r) for n, r in zip(rows, rates, strict=True)])
    best = vf.fold(*masses, 2)
    assert book.bound == pytest.approx(best.bound, abs=1e-9)
    assert book.gap == pytest.approx(0, abs=1e-12)
    assert book["site"]["id"].to_pylist() == best.ids.tolist()


@pytest.mark.parametrize("smoothing", [np.float32(3), np.int64(3), 3])
def test_numbers_of_any_type_are_saved(tmp_path, smoothing):
    book = vf.fit(vf.count(rows_of({"a": (30, 30), "b": (31, 5)}), "click"), 9, smoothing=smoothing)
    book.save(tmp_path / "book")
    assert vf.load(tmp_path / "book").settings == dict(book.settings)


def test_a_tiny_strength_gives_finite_figures():
    rows = rows_of({"a": (30, 0), "b": (0, 25), "c": (5, 5)})
    book = vf.fit(vf.count(rows, "click", folds=3), 9, smoothing=1e-20)
    assert math.isfinite(book.gain)
    assert math.isfinite(book.evaluate(rows_of({"a": (1, 3), "b": (2, 2)})).gain)


def test_one_frequent_value_beside_rare_ones():
    book = vf.fit(vf.count(rows_of({"big": (1000, 0), "a": (0, 1), "b": (0, 1)}), "click"), 5, min_count=1)
    assert book["site"].num_rows == 3
