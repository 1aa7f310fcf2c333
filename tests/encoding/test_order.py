"""Rows whose folds go by their number must come in the order in which they were counted, or do no harm."""

from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.builders import clicks
from vocabfold.counts.target import assigned
from vocabfold.encoding.order import labels_of

FEATURES = ["site", "device"]
REFUSED = "does not have its rows in the order in which they were counted"
ENDS = 10  # rows by which a table is recognised; those between may change places
KEPT = {"aim": "information", "min_count": 4}  # all ids are shared, and some values are rare


@pytest.fixture(autouse=True, scope="module")
def looked_into():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vocabfold.io.rows.fingerprints._ROWS", ENDS)
        patch.setattr("vocabfold.io.rows.fingerprints._BYTES", 50)
        yield


def encoded(counts, data, budget=40, out=None, **options):
    book = vf.fit(counts, budget, **{"min_count": 1} | options)
    return book.transform(data, out=out, counts=counts)


def swapped(table, i, j):
    order = np.arange(table.num_rows)
    order[[i, j]] = j, i
    return table.take(order)


def test_rows_that_were_shuffled_in_the_middle_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    n = 10_000
    table = pa.table({"user": rng.integers(0, 3000, n).astype(str), "click": rng.integers(0, 2, n)})
    counts = vf.count(table, "click", folds=5)
    order = np.arange(n)
    order[1000:9000] = rng.permutation(order[1000:9000])
    shuffled = table.take(order)
    proof = (
        r"3,\d\d\d of 10,000 rows have a value in column 'user' that was not counted in their fold\. Rows were"
    )
    for rows in (shuffled, shuffled.drop_columns("click"), shuffled.to_pandas(), pl.from_arrow(shuffled)):
        with pytest.raises(vf.InputError, match=f"{REFUSED}: {proof}.*count them with a fold_column=?\\.$"):
            encoded(counts, rows)
    out = tmp_path / "out.parquet"
    out.write_text("what was there")
    pq.write_table(shuffled, tmp_path / "in.parquet", row_group_size=700)
    with pytest.raises(vf.InputError, match=REFUSED):
        encoded(counts, tmp_path / "in.parquet", out=out)
    assert out.read_text() == "what was there"
    assert {path.name for path in tmp_path.iterdir()} == {"in.parquet", "out.parquet"}


@pytest.mark.parametrize("options", [{}, KEPT, {"method": "greedy", "aim": "information"}], ids=str)
def test_a_single_pair_that_changes_places_is_refused(options):
    table = clicks(4000, n_sites=60)
    counts = vf.count(table, "click", FEATURES, folds=5)
    book = vf.fit(counts, 40, **{"min_count": 1} | options)
    shared = np.isin(
        book.ids("site", table["site"].to_pylist()), book.columns["site"].shared
    )  # whose ids depend on the fold
    folds, sites = assigned(np.arange(4000), 5, 0), table["site"].to_pylist()
    i = next(i for i in range(1500, 2000) if shared[i])
    pairs = [j for j in range(2000, 2400) if shared[j] and folds[i] != folds[j] and sites[i] != sites[j]]
    for j in pairs[:5]:
        for rows in (swapped(table, i, j), swapped(table, i, j).drop_columns("click")):
            with pytest.raises(vf.InputError, match=REFUSED):
                book.transform(rows, counts=counts)
    same_fold = next(j for j in range(2000, 2400) if folds[i] == folds[j])
    assert book.transform(swapped(table, i, same_fold), counts=counts).num_rows == 4000


def test_rare_values_that_change_places_with_others_are_refused():
    table = clicks(n_sites=60)
    counts = vf.count(table, "click", FEATURES, folds=5)
    book = vf.fit(counts, 40, **KEPT)
    site = book.columns["site"]
    assert site.n_rare
    assert site.other in site.shared
    assert book.transform(table, counts=counts).num_rows == 3000
    known, folds = set(book["site"]["value"].to_pylist()), assigned(np.arange(3000), 5, 0)
    is_rare = [name not in known for name in table["site"].to_pylist()]
    i = next(i for i in range(ENDS, 3000) if is_rare[i])
    j = next(j for j in range(ENDS, 3000 - ENDS) if not is_rare[j] and folds[i] != folds[j])
    with pytest.raises(vf.InputError, match=REFUSED):
        book.transform(swapped(table, i, j), counts=counts)


def test_rows_with_equal_values_are_told_apart_by_their_labels():
    """A query that sorts by value alone returns equal values in any order."""
    table = clicks(4000, n_sites=60).select(["site", "click"])
    by_site, by_both = table.sort_by("site"), table.sort_by([("site", "ascending"), ("click", "ascending")])
    assert by_site["site"].equals(by_both["site"])
    counts = vf.count(by_site, "click", folds=5)
    with pytest.raises(vf.InputError, match=rf"{REFUSED}: in column 'site', some value has other rows in some"):
        encoded(counts, by_both)
    for label in (by_both["click"].cast(pa.float64()), by_both["click"].cast(pa.bool_())):
        with pytest.raises(vf.InputError, match=REFUSED):
            encoded(counts, by_both.set_column(1, "click", label))
    # Nobody sees it without a label, or with another one in its place.
    encoded(counts, by_both.select(["site"]))
    encoded(counts, by_both.set_column(1, "click", pa.array([["?"]] * 4000)))


@pytest.mark.parametrize(
    "kind", ["one", "two", "each", "csv", "csv to csv", "json", "pandas", "polars", "lazy"]
)
@pytest.mark.parametrize("options", [{"smoothing": 2}, KEPT], ids=str)
def test_rows_in_their_order_pass_and_others_do_not(tmp_path, kind, options):
    """Whatever holds them, and in batches of whatever size."""
    table = clicks(n_sites=60)
    order = np.arange(3000)
    order[1300:1500], order[1700:1900] = order[1700:1900].copy(), order[1300:1500].copy()
    changed = table.take(order)
    for name, rows in (("given", table), ("changed", changed)):
        (tmp_path / name).mkdir()
        pq.write_table(rows.slice(0, 1600), tmp_path / name / "a.parquet", row_group_size=700)
        pq.write_table(rows.slice(1600), tmp_path / name / "b.parquet", row_group_size=300)
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=450)
        pa.csv.write_csv(rows, tmp_path / f"{name}.csv")
        pl.from_arrow(rows).write_ndjson(tmp_path / f"{name}.jsonl")

    def held(name, rows):
        frames = {"pandas": rows.to_pandas, "polars": lambda: pl.from_arrow(rows)}
        frames["lazy"] = lambda: pl.from_arrow(rows).lazy()
        if kind in frames:
            return frames[kind](), None
        folder = [tmp_path / name / f"{part}.parquet" for part in "ab"]
        suffix = {"csv": "csv", "csv to csv": "csv", "json": "jsonl"}.get(kind, "parquet")
        data = {"two": folder, "each": folder}.get(kind, tmp_path / f"{name}.{suffix}")
        out = {"each": f"{tmp_path}/out-{name}/", "csv to csv": tmp_path / f"out-{name}.csv"}
        return data, out.get(kind, tmp_path / f"out-{name}.parquet")

    data, out = held("given", table)
    counts = vf.count(data if kind != "lazy" else data.collect(), "click", FEATURES, folds=5)
    counts.save(tmp_path / "counts")
    for known in (counts, vf.load_counts(tmp_path / "counts")):
        encoded(known, data, out=out, **options)
        other, out_of_other = held("changed", changed)
        with pytest.raises(vf.InputError, match=REFUSED):
            encoded(known, other, out=out_of_other, **options)
        assert not (tmp_path / "out-changed").exists() or not list((tmp_path / "out-changed").iterdir())


def test_columns_that_take_turns_are_checked_too(tmp_path, monkeypatch):
    table = clicks(n_sites=60)
    counts = vf.count(table, "click", FEATURES, folds=3)
    changed = swapped(swapped(table, 1400, 1621), 1401, 1623)
    for name, rows in (("given", table), ("changed", changed)):
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=700)
    monkeypatch.setattr("vocabfold.encoding.files._KEPT_SHARE", 0)
    monkeypatch.setattr("vocabfold.encoding.files._LEAST_SHARE", 0)
    encoded(counts, tmp_path / "given.parquet", out=tmp_path / "out.parquet", **KEPT)
    with pytest.raises(vf.InputError, match=REFUSED):
        encoded(counts, tmp_path / "changed.parquet", out=tmp_path / "other.parquet", **KEPT)
    assert not (tmp_path / "other.parquet").exists()


def test_several_files_appear_together_or_not_at_all(tmp_path):
    """Whichever of them is not in its order: what an earlier run has written stays as it is."""
    table = clicks(n_sites=60)
    data, out = [tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out"

    def write(table):
        for i, path in enumerate(data):
            pq.write_table(table.slice(i * 1000, 1000 + i * 1000), path)

    write(table)
    counts = vf.count(data, "click", FEATURES, folds=5)
    encoded(counts, data, out=f"{out}/", **KEPT)
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert len(before) == 2
    for half in (0, 1000):
        order = np.arange(3000)
        order[half + 300 : half + 400] = order[half + 300 : half + 400][::-1]
        write(table.take(order))
        with pytest.raises(vf.InputError, match=REFUSED):
            encoded(counts, data, out=f"{out}/", **KEPT)
        assert {path: path.read_bytes() for path in out.iterdir()} == before
        with pytest.raises(vf.InputError, match=REFUSED):
            encoded(counts, data, out=f"{tmp_path}/new/", **KEPT)
        assert not (tmp_path / "new").exists()
    write(table)
    encoded(counts, data, out=f"{out}/", **KEPT)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_text_file_with_fewer_rows_is_refused(tmp_path):
    """It passes for the one that was counted, as it has its size and its ends."""
    lines = [f"s{i % 7},{i % 2}" for i in range(1000)]
    path, size = tmp_path / "rows.csv", 0
    for rows in (lines, [*lines[:500], "long-" + lines[501], *lines[502:]]):
        path.write_text("\n".join(["site,click", *rows, ""]))
        if rows is lines:
            counts, size = vf.count(path, "click", folds=5), path.stat().st_size
    assert path.stat().st_size == size
    with pytest.raises(vf.InputError, match=rf"{REFUSED}: it has 999 rows, but 1,000 were counted\. Rows"):
        encoded(counts, path, 4, tmp_path / "out.parquet", **KEPT)


def without_labels(table, step):
    click = [None if i % step == 0 else c for i, c in enumerate(table["click"].to_pylist())]
    return table.set_column(2, "click", pa.array(click))


def test_rows_that_counting_left_out_are_no_proof():
    table = without_labels(clicks(n_sites=10**6), step=101)
    counts = vf.count(table, "click", FEATURES, folds=5, drop_null_labels=True)
    rng = np.random.default_rng(0)
    order = np.arange(3000)
    order[1000:2000] = rng.permutation(order[1000:2000])
    for rows in (table, table.drop_columns("click")):
        encoded(counts, rows)
        with pytest.raises(vf.InputError, match=REFUSED):
            encoded(counts, rows.take(order))
    with pytest.raises(vf.InputError, match=REFUSED):  # labels tell which rows were left out
        encoded(counts, swapped(table, 1401, 1602), **KEPT)
    weighted = table.append_column("w", pa.array([0.0, 1.0, 2.5] * 1000))
    counts = vf.count(weighted, "click", FEATURES, folds=5, weight="w", drop_null_labels=True)
    encoded(counts, weighted)
    whole = clicks(n_sites=60).append_column("w", pa.array([1.0, 0.5, 2.5] * 1000))
    counts = vf.count(whole, "click", FEATURES, folds=5, weight="w")
    encoded(counts, whole)
    with pytest.raises(vf.InputError, match=REFUSED):
        encoded(counts, swapped(whole, 1401, 1602), **KEPT)


@pytest.mark.parametrize("left_out", ["weight", "label"])
def test_many_rows_that_counting_left_out_are_no_reason_to_warn(left_out):
    """A third of the rows has values that were not counted in their fold: the others are those that were."""
    rng = np.random.default_rng(0)
    n, is_out = 6000, np.arange(6000) % 3 == 0
    click = pa.array(rng.integers(0, 2, n), mask=is_out if left_out == "label" else None)
    columns = {"user": rng.integers(0, 3000, n).astype(str), "click": click, "part": np.arange(n) % 5}
    options = {"drop_null_labels": True}
    if left_out == "weight":
        columns["w"], options = np.where(is_out, 0.0, 1.0), {"weight": "w"}
    table = pa.table(columns)
    for of_folds in ({"folds": 5}, {"fold_column": "part"}):
        counts = vf.count(table, "click", ["user"], **options, **of_folds)
        for rows in (table, table.drop_columns("click")):
            assert encoded(counts, rows).num_rows == n  # warnings are errors
        added = (counts + counts).compacted()
        assert encoded(added, table).num_rows == n


def test_each_day_is_checked_as_long_as_its_counts_are_apart(tmp_path):
    days = [clicks(n_sites=60, seed=seed) for seed in (1, 2)]
    days[1] = days[1].append_column("w", pa.array([1.0, 0.5, 2.5] * 1000))
    parts = [
        vf.count(days[0], "click", FEATURES, folds=5),
        vf.count(days[1], "click", FEATURES, folds=5, weight="w"),
    ]
    for i, part in enumerate(parts):
        part.save(tmp_path / f"{i}")
    loaded = sum(vf.load_counts(tmp_path / f"{i}") for i in range(2))
    for counts in (sum(parts), loaded):
        for day in days:
            encoded(counts, day, **KEPT)
            with pytest.raises(vf.InputError, match=REFUSED):
                encoded(counts, swapped(swapped(day, 1401, 1602), 1404, 1605), **KEPT)
    # Once they are added up, what is left is that every value must have been counted in its fold.
    loaded.save(tmp_path / "both")
    for counts in (vf.load_counts(tmp_path / "both"), loaded.compacted()):
        for day in days:
            encoded(counts, day, **KEPT)
            encoded(counts, swapped(day, 1401, 1602), **KEPT)
    users = [clicks(n_sites=10**6, seed=seed) for seed in (1, 2)]
    counts = sum(vf.count(day, "click", FEATURES, folds=5) for day in users).compacted()
    order = np.arange(3000)
    order[1000:2000] = order[1000:2000][::-1]
    for day in users:
        encoded(counts, day)
        with pytest.raises(vf.InputError, match=REFUSED):
            encoded(counts, day.take(order))


def test_a_day_that_was_counted_twice_is_not_one_reading():
    table = clicks(n_sites=60)
    once = vf.count(table, "click", FEATURES, folds=5)
    encoded(once + once, table, **KEPT)
    encoded(once, table, **KEPT)


def test_counts_that_do_not_know_what_was_left_out_only_warn():
    table = clicks(n_sites=10**6)
    counts = vf.count(table, "click", FEATURES, folds=5)
    older = vf.Counts(**vars(counts) | {"neg_rows": None, "pos_rows": None, "skipped": None})
    encoded(older, table)
    order = np.arange(3000)
    order[500:2500] = order[500:2500][::-1]
    with pytest.warns(
        UserWarning, match=r"^\d+ of 3,000 rows of .* that was not counted in their fold. Unless"
    ):
        encoded(older, table.take(order))


ROWS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from([None, 1, 2]), st.sampled_from([0, 1])),
    min_size=2 * ENDS + 12,
    max_size=2 * ENDS + 20,
)


@settings(max_examples=100)
@given(
    ROWS,
    st.permutations(range(ENDS, ENDS + 12)),
    st.sampled_from([2, 3]),
    st.booleans(),
    st.sampled_from([1, 4]),
)
def test_an_order_passes_if_its_counts_are_those_that_were_counted_and_is_refused_otherwise(
    rows, moved, folds, has_label, min_count
):
    rows[:2] = [(*rows[0][:2], 0), (*rows[1][:2], 1)]
    order = [*range(ENDS), *moved, *range(ENDS + 12, len(rows))]
    table = pa.table(dict(zip(["site", "number", "click"], map(list, zip(*rows, strict=True)), strict=True)))
    counts = vf.count(table, "click", ["site", "number"], folds=folds)
    book = vf.fit(counts, 6, aim="information", min_count=min_count)
    fold = assigned(np.arange(len(rows)), folds, 0).tolist()

    def counted(order, at, values):
        """Return the rows by fold, label and value; rare values are one."""
        return Counter(
            (f, has_label and rows[i][2], values.get(rows[i][at]))
            for i, f in zip(order, fold, strict=True)
            if values.get(rows[i][at], "rare") != "dedicated"
        )

    is_same, is_refused, most = True, False, 0
    for at, name in enumerate(book.features):
        shared, n_values = book.columns[name].shared, book.columns[name].n_values + book.columns[name].n_rare
        if len(shared) < 2:
            continue  # one id, which is the same in all folds
        values = {
            row["value"]: repr(row["value"]) if row["id"] in shared else "dedicated"
            for row in book[name].to_pylist()
        }
        is_alike = counted(range(len(rows)), at, values) == counted(order, at, values)
        is_same &= is_alike
        if n_values > most:  # the column that is looked at
            most, is_refused = n_values, not is_alike
    given_again = table.take(order) if has_label else table.take(order).drop_columns("click")
    if is_same:
        assert book.transform(given_again, counts=counts).num_rows == len(rows)
    elif is_refused:
        with pytest.raises(vf.InputError, match=REFUSED):
            book.transform(given_again, counts=counts)


def test_labels_are_known_however_they_are_spelled():
    for values, positive in (
        ([0, 1, None], "1"),
        ([0.0, 1.0, float("nan")], "1"),
        ([False, True, None], "1"),
        (["no", "yes", None], "yes"),
        ([-1, 1, None], "1"),
        ([2, 7, None], "7"),
        ([b"no", b"1", None], "b'1'"),
    ):
        column = pa.chunked_array([pa.array(values), pa.array(values[::-1])])
        for given_column in (column, column.dictionary_encode(), column.combine_chunks()):
            assert labels_of(given_column, 6, positive).tolist() == [0, 1, 2, 2, 1, 0]
    assert labels_of(None, 2, "1").tolist() == [2, 2]
    assert labels_of(pa.chunked_array([], pa.int64()), 0, "1").tolist() == []
