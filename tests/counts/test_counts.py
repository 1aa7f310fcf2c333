import functools
import operator
import pickle
import shutil

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.builders import FEATURES, arrow, assert_equals_loop, fold_counts, sample
from vocabfold.counts import local


def count(rows, **options):
    return vf.count(arrow(rows), "click", FEATURES, **options)


def equal(mine, theirs):
    return mine.features == theirs.features and all(mine[name].equals(theirs[name]) for name in mine.features)


FOLDED = arrow(sample()).append_column("fold", pa.array([i % 3 for i in range(60)]))


@functools.cache
def part_of(folds, start, end):
    options = {"fold_column": "fold", "folds": folds} if folds else {}
    return vf.count(FOLDED.slice(start, end - start), "click", FEATURES, **options)


@settings(max_examples=8)
@given(st.lists(st.integers(0, 60), max_size=4), st.sampled_from([0, 3]))
def test_the_sum_of_split_counts_is_the_count_of_the_whole(cuts, folds):
    borders = [0, *sorted(cuts), 60]
    parts = [part_of(folds, a, b) for a, b in zip(borders[:-1], borders[1:], strict=True) if a < b]
    whole = part_of(folds, 0, 60)
    for total in (sum(parts), functools.reduce(operator.add, reversed(parts))):
        assert equal(total, whole)
        assert (total.rows, total.positive_rows, total.folds) == (60, whole.positive_rows, folds)
        assert fold_counts(total, 20).digest == fold_counts(whole, 20).digest


def test_whole_and_broken_weights_add_up_exactly():
    rows = [row | {"w": 1 + i % 3} for i, row in enumerate(sample())]
    rows[50]["w"] = 0.1

    def part(a, b):
        weights = pa.array([row["w"] for row in rows[a:b]], pa.float64())
        return vf.count(arrow(rows[a:b]).append_column("w", weights), "click", FEATURES, weight="w")

    total, whole = part(0, 50) + part(50, 60), part(0, 60)
    assert equal(total, whole)
    assert total.rows == whole.rows == pytest.approx(sum(row["w"] for row in rows), abs=1e-6)
    assert fold_counts(total, 20).digest == fold_counts(whole, 20).digest
    assert equal(part(50, 60) + part(0, 50), whole)


def test_small_and_large_counts_add_up():
    table = pa.table({"x": ["a", "b"], "y": [0, 1], "w": [2**31, 7]})
    large = vf.count(table, "y", "x", weight="w")
    small = vf.count(table, "y", "x")
    for total in (large + small, small + large + small):
        n = len(total.parts)
        of_a = {"value": "a", "neg": 2**31 + n - 1, "pos": 0, "neg_rows": n, "pos_rows": 0}
        assert total["x"].to_pylist()[0] == of_a
    many = sum([vf.count(table.set_column(2, "w", [[2**30, 1]]), "y", "x", weight="w")] * 5)
    assert many["x"].to_pylist()[0] == {"value": "a", "neg": 5 * 2**30, "pos": 0, "neg_rows": 5, "pos_rows": 0}


def test_a_day_of_one_class_counts_and_merges():
    rows = sample()
    days = [[row for row in rows if row["click"] == click] for click in (0, 1)]
    total = count(days[0]) + count(days[1])
    assert equal(total, count(rows))
    with pytest.raises(vf.InputError, match=r"^no row has a positive label \('click', positive is '1'\); both"):
        fold_counts(count(days[0]), 20)
    with pytest.raises(vf.InputError, match=r"^no row has a negative label"):
        fold_counts(count(days[1]), 20)


def test_a_column_that_is_missing_on_one_day_merges():
    rows = sample()
    empty = arrow(rows).set_column(1, "number", pa.nulls(60))
    one = vf.count(empty, "click", FEATURES)
    assert one.kinds["number"] == "missing"
    total = one + count(rows)
    assert total.kinds["number"] == "integer"
    assert_equals_loop(total, rows + [row | {"number": None} for row in rows])
    assert fold_counts(one, 20).columns["number"].kind == "text"


def test_a_thousand_shards_are_added_and_read_at_once():
    part = count(sample(20))
    total = sum([part] * 1000)
    assert total.rows == 20_000
    assert [row["pos"] for row in total["site"].to_pylist()] == [
        1000 * row["pos"] for row in part["site"].to_pylist()
    ]


def test_counts_survive_a_round_trip(tmp_path):
    for folds in (0, 4):
        counts = count(sample(), folds=folds)
        counts.save(tmp_path / "counts")
        loaded = vf.load_counts(tmp_path / "counts", memory_limit="1GB")
        assert equal(loaded, counts)
        assert repr(loaded).split("\n")[0] == repr(counts).split("\n")[0]
        assert loaded.sources == counts.sources
        assert fold_counts(loaded, 20).digest == fold_counts(counts, 20).digest
        (loaded + counts).save(tmp_path / "counts")  # onto itself
        assert vf.load_counts(tmp_path / "counts").rows == 120
        with pytest.raises(
            vf.CodebookError, match=r"has been removed or replaced since it was loaded; load the"
        ):
            loaded["site"]


def test_counts_without_their_folds(tmp_path):
    folded, plain = count(sample(), folds=4), count(sample())
    folded.save(tmp_path / "counts")
    for counts in (folded, vf.load_counts(tmp_path / "counts"), plain):
        total = counts.without_folds()
        assert total.folds == 0
        assert equal(total, plain)
        assert repr(total).split("\n")[0] == repr(plain).split("\n")[0]
        assert total.n_values == plain.n_values
        assert equal(total + plain, plain + plain)
        assert equal(plain + total, plain + plain)
    with pytest.raises(vf.InputError, match="^counts with folds 4 and counts with folds 0 cannot be added"):
        folded + plain


@pytest.mark.parametrize("folds", [0, 3])
def test_a_pickle_holds_the_counts_and_no_path(folds, tmp_path, monkeypatch):
    in_memory = count(sample(), folds=folds)
    monkeypatch.setattr(local, "_MANY_ROWS", 1)
    on_disk = count(sample(), folds=folds)
    on_disk.save(tmp_path / "counts")
    saved = vf.load_counts(tmp_path / "counts")
    pickles = [pickle.dumps(counts) for counts in (in_memory, on_disk, saved, sum([in_memory, on_disk]))]
    del on_disk, saved
    shutil.rmtree(tmp_path / "counts")
    *copies, twice = map(pickle.loads, pickles)
    assert all(equal(copied, in_memory) for copied in copies)
    assert equal(twice, in_memory + in_memory)
    book = pickle.loads(pickle.dumps(fold_counts(copies[1], 20)))
    assert book.digest == fold_counts(in_memory, 20).digest
    assert book.ids("site", ["a"]) == fold_counts(in_memory, 20).ids("site", ["a"])


def test_counts_with_broken_weights_survive_a_round_trip(tmp_path):
    table = pa.table({"x": ["a", "b", "a"], "y": [0, 1, 1], "w": [0.25, 1.5, 3]})
    counts = vf.count(table, "y", "x", weight="w")
    counts.save(tmp_path / "counts")
    assert vf.load_counts(tmp_path / "counts")["x"].to_pylist() == [
        {"value": "a", "neg": 0.25, "pos": 3.0, "neg_rows": 1, "pos_rows": 1},
        {"value": "b", "neg": 0.0, "pos": 1.5, "neg_rows": 0, "pos_rows": 1},
    ]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            lambda t: vf.count(t, "y", ["a"]),
            r"^feature 'b' was counted on one side only; both must have the same",
        ),
        (
            lambda t: vf.count(t, "y", ["a", "b"], folds=2),
            r"^counts with folds 0 and counts with folds 2 cannot",
        ),
        (
            lambda t: vf.count(t.rename_columns(["a", "b", "z"]), "z", ["a", "b"]),
            r"^counts with label 'y' and counts with label 'z' cannot be added\.$",
        ),
        (
            lambda t: vf.count(t, "y", ["a", "b"], positive=0),
            r"^counts with positive '1' and counts with positive '0' cannot be added\.$",
        ),
        (
            lambda t: vf.count(t.set_column(1, "b", [["1", "2"]]), "y", ["a", "b"]),
            r"^feature 'b' is integer on one side and text on the other, so equal values would not match",
        ),
    ],
)
def test_counts_that_do_not_fit_are_not_added(other, message):
    table = pa.table({"a": ["x", "y"], "b": [1, 2], "y": [0, 1]})
    counts = vf.count(table, "y", ["a", "b"])
    with pytest.raises(vf.InputError, match=message):
        counts + other(table)
    with pytest.raises(TypeError):
        counts + 3


def test_sums_beyond_the_exact_range_are_refused():
    table = pa.table({"a": ["x", "y"], "y": [0, 1], "w": [2.0**41, 2.0**41]})
    counts = vf.count(table, "y", weight="w")
    with pytest.raises(vf.InputError, match=r"at most 2\*\*62 = [\d,]* are counted exactly, so add"):
        _many(counts)


def _many(counts):
    for _ in range(24):
        counts = counts + counts
    return counts


def test_counts_print_what_they_hold():
    counts = count(sample())
    assert repr(counts).split("\n")[0] == "Counts(5 columns, 60 rows, 63.3 % with click = 1)"
    assert "site    text, 11 values" in repr(counts)
    assert "5 folds, 2 parts" in repr(count(sample(), folds=5) + count(sample(), folds=5))
    wide = pa.table({f"c{i}": ["x", "y"] for i in range(50)} | {"y": [0, 1]})
    assert repr(vf.count(wide, "y")).endswith("... and 10 more columns")


def test_an_unknown_column_is_refused():
    with pytest.raises(vf.InputError, match=r"^column 'Site' \(did you mean 'site'\?\) is not in the counts\."):
        count(sample())["Site"]
    assert list(count(sample())) == FEATURES
    assert "site" in count(sample())


def test_any_seed_of_folds_is_saved_and_loaded(tmp_path):
    counts = vf.count(pa.table({"a": ["x", "y"], "y": [0, 1]}), "y", folds=2, fold_seed=2**127)
    counts.save(tmp_path / "counts")
    assert (vf.load_counts(tmp_path / "counts") + counts).fold_seed == 2**127
