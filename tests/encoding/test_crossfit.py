"""Ids of training rows: against a loop over rows that never looks at their own fold."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.builders import clicks, fold_counts
from support.saved import edited
from vocabfold.codebook.out_of_fold import rest_of, told_by_rest
from vocabfold.counts.target import _assigned, assigned
from vocabfold.counts.totals import Totals
from vocabfold.fitting.enough import merged
from vocabfold.io.engines.duckdb import Engine


def looped(book, counts, table, folds):
    """Return the ids of all rows by the loop."""
    encoded = {}
    for name, column in book.columns.items():
        ids = {row["value"]: row["id"] for row in book[name].to_pylist()}
        rows = list(zip(table[name].to_pylist(), table["click"].to_pylist(), folds, strict=True))
        prior = column.mean, column.strength
        of_column = column.shared, column.borders, prior, column.other, column.is_other_trained
        encoded[name] = reference.out_of_fold(rows, ids, *of_column)
    return encoded


def test_the_fold_of_a_row_is_the_one_that_was_counted():
    numbers = np.append(np.arange(5000), [2**31 - 2, 2**31 - 1, 2**31, 2**40])
    for folds, seed in ((2, 0), (5, 3), (1000, 10**12)):
        with Engine() as engine:
            table = engine.table(pa.table({"n": numbers}))
            found = engine.run(f"SELECT n, {_assigned('n', folds, seed)} AS fold FROM {table} ORDER BY n")
        assert assigned(numbers, folds, seed).tolist() == found["fold"].to_pylist()
        if folds == 5:
            assert np.bincount(assigned(numbers, folds, seed)).min() > 900


OPTIONS = [
    {},
    {"dedicated_min": 5, "shared_ids": 3},
    {"smoothing": 0},
    {"smoothing": 2, "min_count": 3},
    {"aim": "information"},
    {"aim": "information", "min_count": 4, "unseen": "own"},
    {"aim": "information", "min_count": 4},
    {"budget": 2, "min_count": 20},
    {"budget": "auto"},
    {"unseen": "own"},
    {"unseen": "own", "min_count": 3, "dedicated_min": 10},
    {"unseen": "own", "budget": "auto", "smoothing": 0},
]


def test_infrequent_values_may_have_rows_in_one_fold_only():
    table = pa.table({"x": ["a", "b"] * 100 + ["rare"], "click": [0, 1, 1, 0, 1] * 40 + [1]})
    book, ids = vf.fit_transform(table, "click", 9, smoothing=1)
    assert ids["x"][-1].as_py() == book.ids("x", ["rare"])[0]  # its only id


@pytest.mark.filterwarnings("ignore:budget=")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_training_rows_are_encoded_by_other_folds(options):
    table = clicks(1200)
    options = {"budget": 40} | options
    book, encoded = vf.fit_transform(
        table, "click", folds=4, fold_seed=7, features=["site", "device"], **options
    )
    folds = assigned(np.arange(table.num_rows), 4, 7).tolist()
    expected = looped(book, None, table, folds)
    assert encoded.drop_columns(["click", "part"]).to_pydict() == expected
    assert encoded.select(["click", "part"]).equals(table.select(["click", "part"]))
    # The codebook is the one of all rows; values with dedicated ids and rare ones have one id. Whether ids have
    # enough training rows depends on the folds.
    of_folds = {"folds": 4, "fold_seed": 7} if options.get("unseen") == "own" else {}
    counts = vf.count(table, "click", ["site", "device"], **of_folds)
    fitted = vf.fit(counts, **{"min_count": 1} | options)
    assert fitted.digest == book.digest
    with pytest.warns(
        UserWarning,
        match=r"^the Arrow Table looks like the training data: transform\(\) leaks",
    ):
        naive = book.transform(table)
    if book.columns["site"].n_dedicated:
        dedicated = set(range(book.sizes["site"])) - {*book.columns["site"].shared}
        dedicated = list(dedicated - {book.columns["site"].other} if "unseen" in options else dedicated)
        assert np.isin(naive["site"], dedicated).any()
        assert (np.isin(naive["site"], dedicated) == np.isin(encoded["site"], dedicated)).all()


def test_folds_may_come_from_a_column_and_counts_from_a_folder(tmp_path):
    table = clicks()
    counts = vf.count(table, "click", ["site", "device"], fold_column="part")
    book = vf.fit(counts, 60, min_count=1)
    expected = looped(book, counts, table, table["part"].to_pylist())
    counts.save(tmp_path / "counts")
    book.save(tmp_path / "book")
    book, counts = vf.load(tmp_path / "book"), vf.load_counts(tmp_path / "counts")
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    for rows in (table, shuffled):
        order = {tuple(row.values()): i for i, row in enumerate(table.to_pylist())}
        ids = book.transform(rows, counts=counts)
        for row, found in zip(rows.to_pylist()[:200], ids.to_pylist(), strict=False):
            i = order[tuple(row.values())]
            assert (found["site"], found["device"]) == (expected["site"][i], expected["device"][i])
    renamed = table.rename_columns(["site", "device", "click", "fold"])
    found = book.transform(renamed, counts=counts, fold_column="fold", only_ids=True)
    assert found.to_pydict() == expected


@pytest.mark.parametrize("kind", ["parquet", "two", "folder", "csv", "pandas", "polars", "lazy"])
def test_all_doors_give_the_same_ids(tmp_path, kind):
    table = clicks()
    options = {"features": ["site", "device"], "budget": 50, "fold_seed": 2}
    book, expected = vf.fit_transform(table, "click", **options)
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(table.slice(0, 1700), paths[0], row_group_size=500)
    pq.write_table(table.slice(1700), paths[1], row_group_size=300)
    out = tmp_path / "out.parquet"
    if kind in ("parquet", "csv", "two", "folder"):
        data = {"two": paths, "folder": tmp_path}.get(kind, tmp_path / f"in.{kind}")
        if kind == "parquet":
            pq.write_table(table, data, row_group_size=450)
        if kind == "csv":
            pa.csv.write_csv(table, data)
        where = f"{tmp_path}/ids/" if kind == "folder" else out
        fitted, written = vf.fit_transform(data, "click", out=where, **options)
        found = pa.concat_tables(pq.read_table(path) for path in written.paths)
        assert written.rows == table.num_rows
    else:
        frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}.get(
            kind, lambda: pl.from_arrow(table).lazy()
        )()
        fitted, found = vf.fit_transform(frame, "click", **options)
        assert type(found) is type(frame)
        found = pa.Table.from_pandas(found) if kind == "pandas" else found.lazy().collect().to_arrow()
    assert fitted.digest == book.digest
    assert found.select(["site", "device"]).to_pydict() == expected.select(["site", "device"]).to_pydict()


def test_columns_may_take_turns(tmp_path, monkeypatch):
    table = clicks()
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=700)
    counts = vf.count(tmp_path / "in.parquet", "click", ["site", "device"], folds=3)
    book = vf.fit(counts, 40)
    expected = book.transform(table, counts=counts)
    monkeypatch.setattr("vocabfold.encoding.files._KEPT_SHARE", 0)
    monkeypatch.setattr("vocabfold.encoding.files._LEAST_SHARE", 0)
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.parquet", counts=counts)
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == expected.to_pydict()


@pytest.mark.parametrize("size", [1, 200, 999, 5000])
def test_a_dictionary_in_a_file_is_known_as_its_values_are(tmp_path, size):
    table = clicks(2500).slice(0, 2500 if size > 1 else 30)
    table = table.set_column(0, "site", table["site"].dictionary_encode())
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=size)
    counts = vf.count(table, "click", ["site", "device"], folds=3)
    book = vf.fit(counts, 20)
    assert book.evaluate(tmp_path / "in.parquet").is_fitted
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.parquet", counts=counts)


def test_rows_with_other_folds_are_noticed(tmp_path):
    table = clicks(n_sites=10**6)
    counts = vf.count(table, "click", ["site", "device"], fold_column="part")
    book = vf.fit(counts, 60, min_count=1)
    assigned_again = table.set_column(3, "part", table["part"].take(np.roll(np.arange(table.num_rows), 1)))
    pq.write_table(assigned_again, tmp_path / "in.parquet")
    match = r"^\d+ of 3,000 rows of .* have a value in column 'site' that was not counted in their fold. Unless"
    with pytest.warns(UserWarning, match=match):
        book.transform(assigned_again, counts=counts)
    with pytest.warns(UserWarning, match=match):
        book.transform(tmp_path / "in.parquet", out=tmp_path / "out.csv", counts=counts)
    for fold in (None, -1):
        without = table.set_column(3, "part", pa.array([fold] * table.num_rows, pa.int64()))
        with pytest.warns(UserWarning, match=match):
            book.transform(without, counts=counts)
    alone = table.set_column(3, "part", pa.array([1] * table.num_rows))
    counts = vf.count(alone, "click", ["site", "device"], fold_column="part")
    with pytest.raises(vf.InputError, match=r"^all rows are in one fold, but at least two folds are needed"):
        vf.fit(counts, 60).transform(alone, counts=counts)


def test_offsets_weights_and_rows_without_a_label():
    table = clicks().append_column("w", pa.array([1.0, 0.5, 2.0] * 1000))
    click = pa.array([None if i % 11 == 0 else c for i, c in enumerate(table["click"].to_pylist())])
    table = table.set_column(2, "click", click)
    options = {"features": ["site", "device"], "weight": "w", "drop_null_labels": True}
    book, ids = vf.fit_transform(table, "click", 30, offset_ids=True, only_ids=True, **options)
    assert ids.schema.names == ["site", "device"]
    assert (np.asarray(ids["device"]) >= book.offsets["device"]).all()
    counts = vf.count(table, "click", folds=5, **options)
    plain = book.transform(table, counts=counts, only_ids=True)
    assert (np.asarray(ids["device"]) - book.offsets["device"]).tolist() == plain["device"].to_pylist()


def test_the_column_with_the_folds_may_have_no_name(tmp_path):
    lines = [f"s{i % 4},{i % 3},{i * i % 5 % 2}" for i in range(40)]
    found = []
    for file, name in (("nameless", ""), ("named", "part")):
        path = tmp_path / f"{file}.csv"
        path.write_text("\n".join([f'site,"{name}",click', *lines]))
        options = {"features": "site", "budget": 3, "fold_column": name, "out": tmp_path / f"{file}.parquet"}
        book, _ = vf.fit_transform(path, "click", **options)
        found.append((book.digest, pq.read_table(options["out"])["site"].to_pylist()))
    assert found[0] == found[1]


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([2, 5]))
def test_noise_stays_noise(seed, folds):
    """A nearly unique column tells nothing: whoever leaks finds a lot in it."""
    rng = np.random.default_rng(seed)
    n = 4000
    table = pa.table({"user": rng.integers(0, 3000, n), "click": rng.integers(0, 2, n)})
    options = {"features": "user", "smoothing": 1, "fold_seed": seed}
    book, ids = vf.fit_transform(table, "click", 8, folds=folds, **options)
    told = [information(frame, "user") for frame in (ids, naive(book, table))]
    assert told[0] < 16 / n  # by chance some (ids - 1) / 2n
    assert told[1] > 0.2
    assert book.gain < 16 / n


def naive(book, table):
    with pytest.warns(UserWarning, match="looks like the training data"):
        return book.transform(table)


def information(frame, name):
    counts = np.zeros((2, 1 + max(frame[name].to_pylist())), int)
    np.add.at(counts, (frame["click"].to_numpy(), frame[name].to_numpy()), 1)
    return vf.fold(*counts, size=1).total


@pytest.mark.filterwarnings("ignore:budget=")
def test_the_out_of_fold_gain_is_that_of_the_encoded_rows():
    table = clicks()
    counts = vf.count(table, "click", ["site", "device"], folds=4)
    for options in OPTIONS:
        book = vf.fit(counts, **{"budget": 40} | options)
        ids = book.transform(table, counts=counts)
        folds = assigned(np.arange(table.num_rows), 4, 0)
        for name, column in book.columns.items():
            told, overall = 0.0, np.mean(table["click"])
            for fold in range(4):
                others, here = folds != fold, folds == fold
                click, id = np.asarray(table["click"]), np.asarray(ids[name])
                base = overall
                for i in range(column.size):
                    labels = click[others & (id == i)]
                    rate = reference.shrunk(
                        (labels == 0).sum(), (labels == 1).sum(), base, column.strength or 1.0
                    )
                    mine = click[here & (id == i)]
                    told += (mine == 1).sum() * math.log(rate / base)
                    told += (mine == 0).sum() * math.log((1 - rate) / (1 - base))
            assert column.gain == pytest.approx(told / table.num_rows, abs=1e-12)
            assert column.training_rows == tuple(np.bincount(ids[name], minlength=column.size))
        assert book.gain == pytest.approx(sum(column.gain for column in book.columns.values()))


def test_a_value_without_rows_in_other_folds_is_an_unseen_one(tmp_path):
    places = {"often": (0, 1, 2) * 20, "twice": (0, 1), "once": (1,), "in one fold": (2, 2)}
    known = [
        (f"{name} {i}", fold)
        for name, folds in places.items()
        for i in range(1 if name == "often" else 20)
        for fold in folds
    ]
    values, folds = zip(*known, strict=True)
    rows = pa.table({"x": values, "click": [i % 3 % 2 for i in range(len(values))], "fold": folds})
    book, ids = vf.fit_transform(rows, "click", 9, fold_column="fold", unseen="own")
    column = book.columns["x"]
    assert column.is_other_trained
    assert column.other == column.size - 1 == book.ids("x", ["new"])[0]
    has_other = [id == column.other for id in ids["x"].to_pylist()]
    assert has_other == [value.startswith(("once", "in one fold")) for value in values]
    assert column.other not in book.ids("x", rows["x"])  # values of the codebook have the ids of their rates
    assert column.training_rows[column.other] == 60
    book.save(tmp_path / "book")
    loaded = vf.load(tmp_path / "book")
    assert loaded.columns == book.columns
    counts = vf.count(rows, "click", "x", fold_column="fold")
    assert loaded.transform(rows, counts=counts).equals(ids.replace_schema_metadata())
    # One that was saved before training rows had the id encodes them as it did.
    edited(tmp_path / "book", lambda header: header["columns"][0].pop("is_other_trained"))
    older = vf.load(tmp_path / "book")
    assert older.digest == book.digest
    assert column.other not in older.transform(rows, counts=counts)["x"].to_pylist()
    # As before: without `own`, and for information.
    for options in ({}, {"aim": "information", "unseen": "own"}):
        book, ids = vf.fit_transform(rows, "click", 9, fold_column="fold", **options)
        assert not book.columns["x"].is_other_trained
        assert ("own" in options.values()) == (book.columns["x"].other not in ids["x"].to_pylist())


ROWS_OF_VALUES = st.lists(st.integers(1, 60), min_size=1, max_size=40)
COLUMNS = ROWS_OF_VALUES.filter(lambda sizes: sum(sizes) >= 10)  # or all of them may be in one fold


@settings(max_examples=40)
@given(
    COLUMNS, st.integers(0, 99), st.sampled_from([5, 30]), st.sampled_from([1, 3]), st.sampled_from(["auto", 0])
)
def test_with_own_every_id_has_enough_training_rows(sizes, seed, dedicated_min, min_count, smoothing):
    rng = np.random.default_rng(seed)
    x = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = pa.table({"x": [f"v{i}" for i in x], "click": (rng.random(x.size) < 0.2 + 0.6 * (x % 3 == 0))})
    rows = pa.concat_tables([rows, pa.table({"x": ["a"] * 20, "click": [True, False] * 10})])
    options = {"min_count": min_count, "smoothing": smoothing, "dedicated_min": dedicated_min}
    book, ids = vf.fit_transform(rows, "click", 30, unseen="own", fold_seed=seed, folds=3, **options)
    column = book.columns["x"]
    n_rows = np.bincount(ids["x"], minlength=column.size)
    assert column.training_rows == tuple(n_rows)
    assert column.size == 1 or n_rows.min() >= dedicated_min
    assert column.is_other_trained == (column.other not in book["x"]["id"].to_pylist())


def test_too_few_rows_join_the_id_with_most_rows():
    values = ["steel"] * 40 + ["alloy"] * 70 + ["wire", "rare", "special"] * 4
    rows = pa.table({"wheel": values, "click": [i % 3 == 0 for i in range(len(values))]})
    book, ids = vf.fit_transform(rows, "click", 9, unseen="own")
    column, most = book.columns["wheel"], book.ids("wheel", ["alloy"])[0]
    assert book.ids("wheel", ["wire", "rare", "special", "new", "steel"]).tolist() == [most] * 4 + [1 - most]
    assert set(ids["wheel"].to_pylist()[-12:]) == {most}
    assert (column.size, column.shared, column.other, column.is_other_trained) == (2, (), most, False)
    assert sorted(column.training_rows) == [40, 82]
    # With enough of them together, they share one id with unseen values.
    book, ids = vf.fit_transform(rows, "click", 9, unseen="own", dedicated_min=12)
    assert book.sizes["wheel"] == 3
    other = book.columns["wheel"].other
    assert book.ids("wheel", ["wire", "rare", "special", "new"]).tolist() == [other] * 4
    assert set(ids["wheel"].to_pylist()[-12:]) == {other}


def test_ids_with_few_rows_join_their_smaller_neighbour():
    assert merged(np.array([5.0, 40.0, 3.0, 50.0, 9.0]), 10).tolist() == [0, 0, 0, 1, 1]
    assert merged(np.array([1.0, 2.0]), 10).tolist() == [0, 0]
    assert merged(np.array([10.0, 11.0]), 10).tolist() == [0, 1]


def test_the_gain_is_finite_where_a_fold_has_all_of_a_class():
    here = {"neg": np.array([[5, 5], [0, 3]]), "pos": np.array([[0, 0], [2, 0]])}
    for strength in (0.0, 3.0, math.inf):
        assert np.isfinite(told_by_rest(rest_of(here), here, Totals(1, 13, 2, 13, 2), strength)).all()


def test_without_folds_there_is_no_gain():
    assert fold_counts(vf.count(clicks(), "click"), 9).gain is None


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "parquet", "csv", "files"])
def test_rows_that_were_fitted_are_known_again(tmp_path, kind, recwarn):
    table = clicks()
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet", "a.csv")]
    pq.write_table(table, paths[0])
    pq.write_table(table.slice(5), paths[1])
    pa.csv.write_csv(table, paths[2])
    data = {
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "parquet": paths[0],
        "csv": paths[2],
        "files": paths[:2],
    }[kind]
    book = vf.fit(vf.count(data, "click", ["site", "device"]), 9)
    book.save(tmp_path / "book")
    book = vf.load(tmp_path / "book")
    match = "looks like the training data: .*Use fit_transform, or transform"
    out = tmp_path / "out.parquet"
    with pytest.warns(UserWarning, match=match):
        book.transform(data, out=out if kind in ("parquet", "csv", "files") else None)
    if kind != "csv":  # the same rows in another container
        for other in (table, table.to_pandas(), pl.from_arrow(table)):
            with pytest.warns(UserWarning, match=match):
                book.transform(other)
        with pytest.warns(UserWarning, match=match):
            book.transform(paths[0], out=out)
    # Other rows are not.
    book.transform(table.slice(1))
    book.transform(table.take([*range(10), *range(9, -1, -1), *range(20, table.num_rows)]))
    book.transform(pd.DataFrame({"site": ["s1"], "device": ["d1"]}))


def test_other_rows_are_not_taken_for_those_that_were_fitted(tmp_path):
    days = []
    for day in (1, 2):
        days.append([tmp_path / f"{day}-{i:02}.parquet" for i in range(51)])
        for i, path in enumerate(days[-1]):
            pq.write_table(clicks(30, seed=1000 * day + i).slice(0, 30 if i else 0), path)  # the first is empty
    book = vf.fit(vf.count(days[0], "click", ["site", "device"]), 9)
    book.transform(days[1], out=tmp_path / "out.parquet")
    assert not book.evaluate(days[1]).is_fitted
    with pytest.warns(UserWarning, match="looks like the training data"):
        book.transform(days[0][3:9], out=tmp_path / "out.parquet")  # some of them


def test_the_order_of_the_features_does_not_matter():
    first, second = clicks(400), clicks(300, seed=3)
    counts = vf.count(first, "click", ["site", "device"], folds=3) + vf.count(
        second, "click", ["device", "site"], folds=3
    )
    book = vf.fit(counts, 20)
    for part in (first, second):
        assert book.transform(part, counts=counts).num_rows == part.num_rows


def test_rows_that_were_not_counted_need_no_fold():
    table = clicks(600)
    part = pa.array([None if i % 4 == 3 else i % 3 if i % 8 else -1 for i in range(600)])
    click = [None if i % 4 == 3 or i % 8 == 0 else c for i, c in enumerate(table["click"].to_pylist())]
    table = table.set_column(3, "part", part).set_column(2, "click", pa.array(click))
    options = {"features": ["site", "device"], "fold_column": "part", "drop_null_labels": True}
    book, ids = vf.fit_transform(table, "click", 20, **options)
    whole = [i for i in range(600) if click[i] is None]
    assert ids.take(whole)["site"].to_pylist() == book.ids("site", table["site"].take(whole)).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t, c, b: b.transform(t, counts=3),
            r"^counts must come from vf\.count or vf\.load_counts, got int; for rows, use",
        ),
        (
            lambda t, c, b: b.transform(t, fold_column="part"),
            r"^fold_column is for rows that were counted with folds",
        ),
        (
            lambda t, c, b: b.transform(t, counts=vf.count(t, "click")),
            r"^the counts have no folds; count the rows with folds=5, for example, and fit those counts\.$",
        ),
        (
            lambda t, c, b: b.transform(t, counts=c, fold_column="part"),
            r"^fold_column is 'part', but the rows were assigned to folds by their number",
        ),
        (
            lambda t, c, b: b.transform(t.slice(1), counts=c),
            r"^the Arrow Table is not what was counted: its rows are others, or in another order",
        ),
        (
            lambda t, c, b: b.transform(t, counts=vf.count(t.slice(1), "click", folds=3)),
            r"^these are not the counts that the codebook was fitted on: they have 299 rows, not 300 rows",
        ),
        (
            lambda t, c, b: by_column(t).transform(
                t, counts=vf.count(t.set_column(0, "site", t["device"]), "click", fold_column="part")
            ),
            r"^these are not the counts that the codebook was fitted on",
        ),
        (
            lambda t, c, b: b.transform(t, counts=vf.count(t, "click", "site", folds=3)),
            r"they have 1 column, not 2 \(without 'device'\)\. Give those, or fit these\.$",
        ),
        (
            lambda t, c, b: by_column(t).transform(t.drop_columns("part"), counts=by_column.counts),
            r"^column 'part' is not in the Arrow Table",
        ),
        (
            lambda t, c, b: by_column(t).transform(
                t.set_column(3, "part", pa.array([9] * t.num_rows)), counts=by_column.counts
            ),
            r"^fold_column 'part' must hold whole numbers from 0 to 2, as when the rows were counted, got 9\.$",
        ),
        (
            lambda t, c, b: by_column(t).transform(
                t.set_column(3, "part", pa.array(["x"] * t.num_rows)), counts=by_column.counts
            ),
            r"^fold_column 'part' must hold whole numbers, got string\.$",
        ),
        (
            lambda t, c, b: vf.fit_transform(t, "click"),
            r"^budget is missing: give a number of ids, or 'auto'\.$",
        ),
        (lambda t, c, b: vf.fit_transform(t, "click", 9, folds=1), r"^folds must be at least 2, got 1\.$"),
        (lambda t, c, b: vf.fit_transform(t, "click", 9, aim="x"), r"^aim must be one of"),
        (
            lambda t, c, b: vf.fit_transform(t, "click", 9, unseen="error", min_count=2),
            r"^unseen='error' refuses rare values, which these rows would have; give min_count=1\.$",
        ),
        (
            lambda t, c, b: vf.fit_transform(t.to_reader(), "click", 9),
            r"^fit_transform reads the rows twice, in the same order, so it needs files or a frame, got",
        ),
        (
            lambda t, c, b: vf.fit_transform("rows.parquet", "click", 9),
            r"^out is required for str input",
        ),
        (
            lambda t, c, b: vf.fit_transform(t, "click", 9, out="no/out.parquet"),
            r"^there is no folder 'no' to write",
        ),
    ],
)
def test_what_cannot_be_encoded(call, message):
    table = clicks(300)
    counts = vf.count(table, "click", ["site", "device"], folds=3)
    with pytest.raises(vf.InputError, match=message):
        call(table, counts, vf.fit(counts, 9))


def by_column(table):
    by_column.counts = vf.count(table, "click", ["site", "device"], fold_column="part")
    return vf.fit(by_column.counts, 9)


def test_counts_with_folds_are_added_if_they_were_assigned_alike():
    table = clicks(300)
    counts = [
        vf.count(table, "click", "site", **options)
        for options in ({"folds": 3}, {"folds": 3, "fold_seed": 1}, {"folds": 3, "fold_column": "part"})
    ]
    for other, what in ((counts[1], "fold_seed"), (counts[2], "fold_column")):
        with pytest.raises(vf.InputError, match=f"^counts with {what} .* cannot be added"):
            counts[0] + other
    both = counts[0] + vf.count(table.slice(7), "click", "site", folds=3)
    book = vf.fit(both, 9)
    for part in (table, table.slice(7)):  # each is known by itself
        assert book.transform(part, counts=both).num_rows == part.num_rows
