"""All methods from rows to codebooks: those that look at values choose them by score, or hash them."""

import hashlib
import warnings

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from support import reference
from support.builders import fold_counts
from vocabfold.folding.methods import BY_VALUE, METHODS, NOT_JOINT


@pytest.fixture(scope="module")
def rows():
    """Two columns of rows: text with missing values and many ties, and whole numbers."""
    rng = np.random.default_rng(11)
    site = rng.zipf(1.4, 3000) % 150
    texts = [None if value == 7 else f"s{value}" for value in site]
    hour = rng.integers(0, 24, 3000)
    click = rng.random(3000) < np.where(site % 3 == 0, 0.6, 0.1) + 0.01 * hour
    return pa.table({"site": texts, "hour": hour, "click": click})


@pytest.fixture(scope="module")
def counts(rows):
    return vf.count(rows, "click", ["site", "hour"])


def allocation_of(method):
    return "uniform" if method in NOT_JOINT else "joint"


def arrays(counts):
    return {name: tuple(counts[name][side].to_numpy() for side in ("neg", "pos")) for name in counts.features}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_makes_a_codebook_that_is_saved_loaded_and_applied(method, rows, counts, tmp_path):
    book = fold_counts(counts, 30, method=method, allocation=allocation_of(method), shards=2, epsilon=0.3)
    assert book.size <= 30
    for name in counts.features:
        table = book[name]
        neg, pos, ids = (table[field].to_numpy() for field in ("neg", "pos", "id"))
        assert table.num_rows == counts[name].num_rows
        assert set(ids) == set(range(book.sizes[name]))
        column = book.columns[name]
        assert column.information == pytest.approx(reference.information(neg, pos, ids), abs=1e-14)
        assert column.loss == pytest.approx(reference.loss(neg, pos, ids), rel=1e-10, abs=1e-15)
        groups = reference.grouped(neg, pos, ids)
        assert all(a[1] * sum(b) <= b[1] * sum(a) for a, b in zip(groups, groups[1:], strict=False))
    assert book.gap == pytest.approx(book.bound - book.information, abs=1e-14)
    assert book.bound == pytest.approx(fold_counts(counts, 30).bound, abs=1e-13)
    if method != "hashing":
        options = {"method": method, "allocation": allocation_of(method), "shards": 2, "epsilon": 0.3}
        alike = vf.fold_table(arrays(counts), 30, **options)
        assert book.sizes == alike.sizes
        assert book.loss == pytest.approx(alike.loss, rel=1e-10)
        assert book.gap == pytest.approx(alike.gap, rel=1e-9, abs=1e-15)
    book.save(tmp_path / "book")
    again = vf.load(tmp_path / "book")
    assert again.digest == book.digest
    assert again.settings == book.settings
    assert again.settings["shards"] == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these rows were fitted
        encoded = again.transform(rows)
    assert encoded["site"].to_pylist() == book.ids("site", rows["site"]).tolist()


@pytest.mark.parametrize("method", ["frequency", "selection"])
@pytest.mark.parametrize(
    ("allocation", "budget"), [("joint", 12), ("joint", 500), ("information", 12), ("information", 150)]
)
def test_values_are_chosen_as_on_bare_counts(method, allocation, budget, counts):
    book = fold_counts(counts, budget, method=method, allocation=allocation)
    table = vf.fold_table(arrays(counts), budget, method=method, allocation=allocation)
    assert book.sizes == table.sizes
    for name, column in book.columns.items():
        assert column.gap == pytest.approx(table[name].gap, rel=1e-9, abs=1e-15)
        assert column.loss == pytest.approx(table[name].loss, rel=1e-9, abs=1e-15)


def test_a_column_of_missing_values_alone_is_hashed_and_takes_text_later():
    rows = pa.table({"x": pa.nulls(8), "s": list("aabbccdd"), "y": [0, 1, 1, 0, 0, 1, 1, 0]})
    book = fold_counts(vf.count(rows, "y", ["x", "s"]), 100, method="hashing", allocation="uniform")
    assert book.columns["x"].kind == "text"
    assert book.ids("x", [None, "new"]).tolist() == [0, 0]


@pytest.mark.parametrize("budget", [10**6, 10**20])
def test_buckets_that_are_not_used_cost_nothing(budget, counts):
    book = fold_counts(counts, budget, method="hashing", allocation="uniform")
    assert book.loss < 0.05 * book.total
    assert book.sizes["hour"] == 24


@pytest.mark.parametrize("method", ["frequency", "selection", "hashing", "greedy"])
def test_training_rows_of_every_method_are_encoded_in_ids_of_the_codebook(method, rows):
    options = {"aim": "information", "method": method, "allocation": allocation_of(method)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        book, encoded = vf.fit_transform(rows, "click", 20, features="site", **options)
        book.transform(rows)
    told = [str(warning.message) for warning in caught]
    assert any("'selection' chooses values by the labels" in text for text in told) == (method == "selection")
    assert any("looks like the training data" in text for text in told) == (
        method in ("selection", "greedy")  # by the others, no label decides who shares an id
    )
    ids = book.ids("site", rows["site"])
    dedicated = ~np.isin(ids, book.columns["site"].shared)
    assert (encoded["site"].to_numpy()[dedicated] == ids[dedicated]).all()
    assert dedicated.any() == (method != "greedy")
    assert dedicated.all() == (method == "hashing")


def test_frequent_values_have_ids_of_their_own_and_all_others_one(counts):
    book = fold_counts(counts, 12, method="frequency", allocation="uniform")
    assert book.sizes == {"site": 6, "hour": 6}
    table = book["site"].to_pylist()
    by_rows = sorted(
        table, key=lambda row: (-row["neg"] - row["pos"], row["value"] is not None, row["value"] or "")
    )
    own = [row["id"] for row in by_rows[:5]]
    assert len({*own, book.columns["site"].other}) == 6
    assert {row["id"] for row in by_rows[5:]} == {book.columns["site"].other}
    assert book.columns["site"].n_dedicated == 5
    assert book.ids("site", ["never seen"]).tolist() == [book.columns["site"].other]


def test_of_values_with_equal_scores_the_first_by_value_are_chosen():
    rows = pa.table({"site": ["b", "b", "a", "a", "c", "c", None, None, "d"], "y": [0, 1, 0, 0, 1, 1, 0, 1, 1]})
    book = fold_counts(vf.count(rows, "y"), 3, method="frequency")
    others = book.columns["site"].other
    assert [value for value in (None, "a", "b", "c", "d") if book.ids("site", [value])[0] != others] == [
        None,
        "a",
    ]
    assert book["site"].num_rows == 5


@pytest.mark.parametrize("method", ["frequency", "selection", "hashing"])
@pytest.mark.parametrize("unseen", ["other", "own", "error"])
def test_rare_and_unseen_values_go_where_they_are_told(method, unseen, counts):
    options = {"method": method, "allocation": allocation_of(method), "min_count": 15, "unseen": unseen}
    book = fold_counts(counts, 24, **options)
    column, table = book.columns["site"], book["site"]
    rare = sum(row["neg"] + row["pos"] < 15 for row in counts["site"].to_pylist())
    assert rare == column.n_rare > 0
    assert table.num_rows == column.n_values == counts["site"].num_rows - rare
    assert book.size <= 24
    neg, pos, ids = ([*table[field].to_pylist()] for field in ("neg", "pos", "id"))
    for row in counts["site"].to_pylist():
        if row["neg"] + row["pos"] < 15:
            neg, pos, ids = [*neg, row["neg"]], [*pos, row["pos"]], [*ids, column.other]
    assert column.information == pytest.approx(reference.information(neg, pos, ids), abs=1e-14)
    assert column.loss == pytest.approx(reference.loss(neg, pos, ids), rel=1e-10)
    exact = fold_counts(counts, 24, min_count=15, unseen=unseen)
    assert book.bound == pytest.approx(exact.bound, abs=1e-13)
    if unseen == "own":
        assert column.other == column.size - 1
        assert column.other not in table["id"].to_pylist()
    if unseen == "error":
        with pytest.raises(vf.InputError, match="never seen"):
            book.ids("site", ["never seen"])


def test_a_column_of_which_all_is_rare_has_one_id():
    rows = pa.table({"rare": list("abcdefgh"), "site": ["x", "y"] * 4, "y": [0, 1, 1, 0, 0, 1, 1, 0]})
    for unseen in ("own", "other"):
        for method in ("frequency", "hashing"):
            book = fold_counts(
                vf.count(rows, "y"), 6, method=method, allocation="uniform", min_count=2, unseen=unseen
            )
            assert book.sizes["rare"] == 1
            assert book["rare"].num_rows == 0


@pytest.mark.parametrize("allocation", ["joint", "uniform", "information"])
@pytest.mark.parametrize("method", BY_VALUE)
def test_where_all_is_rare_and_new_values_have_their_own_id_there_is_one(method, allocation):
    rows = pa.table({"a": ["x", "y", "z", "w"], "y": [0, 1, 0, 1]})
    if (method, allocation) != ("hashing", "joint"):
        options = {"method": method, "allocation": allocation, "min_count": 2, "unseen": "own"}
        assert fold_counts(vf.count(rows, "y"), 4, **options).sizes == {"a": 1}


def test_values_are_assigned_by_md5_whatever_their_order(rows, counts):
    book = fold_counts(counts, 40, method="hashing", allocation="uniform")
    for name, kind in (("site", "text"), ("hour", "integer")):
        id_of_bucket = {}
        for row in book[name].to_pylist():
            text = "missing|" if row["value"] is None else f"{kind}|{row['value']}"
            bucket = int(hashlib.md5(text.encode()).hexdigest()[:15], 16) % 20
            assert id_of_bucket.setdefault(bucket, row["id"]) == row["id"]
        assert len(set(id_of_bucket.values())) == len(id_of_bucket) == book.sizes[name]
        assert book.columns[name].n_dedicated == 0
    turned = rows.take(np.arange(rows.num_rows)[::-1])
    again = fold_counts(vf.count(turned, "click", ["site", "hour"]), 40, method="hashing", allocation="uniform")
    assert again.digest == book.digest


@pytest.mark.parametrize("method", ["greedy", "stochastic", "threshold", "agglomerative"])
def test_infrequent_values_are_folded_by_any_method_of_intervals(method, counts):
    book = vf.fit(counts, 60, method=method, min_count=1)
    exact = vf.fit(counts, 60, min_count=1)
    assert book.size == exact.size
    assert book.gap is None
    assert book.columns["site"].n_dedicated == exact.columns["site"].n_dedicated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "hashing", "allocation": "uniform"},
            "method 'hashing' does not fold by rate, .*information",
        ),
        (
            {"method": "frequency", "aim": "information", "smoothing": 3},
            "counts as they are; leave smoothing out",
        ),
        ({"method": "divisive"}, "method 'divisive' has no joint allocation"),
        (
            {"method": "greedy", "budget": "auto"},
            "budget='auto' is for method='exact'; give that method, or a number",
        ),
        ({"epsilon": 2}, "epsilon must be a number, at least 1e-09 and below 1, got 2"),
        (
            {"method": "threshold", "aim": "information", "shards": 40},
            "shards must be fewer: 40 per column make 6",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, counts):
    with pytest.raises(vf.InputError, match=message):
        vf.fit(counts, **({"budget": 30} | options))


@pytest.mark.parametrize("method", ["frequency", "selection", "hashing", "exact"])
@pytest.mark.parametrize("unseen", ["other", "own"])
@pytest.mark.parametrize("budget", [6, 24, 60])
def test_the_rate_of_an_id_is_that_of_its_rows_those_of_rare_values_among_them(method, unseen, budget, counts):
    options = {"method": method, "allocation": allocation_of(method), "min_count": 15, "unseen": unseen}
    book = fold_counts(counts, budget, **options)
    for name, column in book.columns.items():
        sums = np.zeros((2, column.size), int)
        ids = {row["value"]: row["id"] for row in book[name].to_pylist()}
        for row in counts[name].to_pylist():
            sums[:, ids.get(row["value"], column.other)] += row["neg"], row["pos"]
        has_rows = sums.sum(axis=0) > 0
        expected = sums[1, has_rows] / sums.sum(axis=0)[has_rows]
        assert np.array(column.rates)[has_rows] == pytest.approx(expected)
        is_by_rate = np.ones(column.size, bool)
        is_by_rate[column.other] = unseen != "own"
        if column.kind == "text":
            assert (np.diff(np.array(column.rates)[is_by_rate]) >= 0).all()
