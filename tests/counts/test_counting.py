"""Rows of every kind and shape against a loop over them."""

import datetime
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.builders import FEATURES, arrow, assert_equals_loop, fold_counts, sample, tabulated
from support.reference import count_rows
from vocabfold.counts import local


@pytest.mark.parametrize(
    ("labels", "options", "n_positive"),
    [
        ([0, 1, 1], {}, 2),
        ([0.0, 1.0, 1.0], {}, 2),
        ([False, True, True], {}, 2),
        ([0, 0, 0], {}, 0),
        ([True, True, True], {}, 3),
        (["no", "yes", "yes"], {"positive": "yes"}, 2),
        (["no", "yes", "yes"], {"positive": "no"}, 1),
        (["no", "no", "no"], {"positive": "yes"}, 0),
        ([1, 2, 2], {"positive": 2}, 2),
        ([1, 2, 2], {"positive": "2"}, 2),
        ([-1, 1, 1], {"positive": 1}, 2),
        ([True, False, False], {"positive": False}, 2),
        ([True, False, False], {"positive": "true"}, 1),
        ([True, False, False], {"positive": "True"}, 1),
        (["Yes", "yes", "yes"], {"positive": "Yes"}, 1),
        ([0, None, 1], {"drop_null_labels": True}, 1),
    ],
)
def test_labels_are_any_two_values(labels, options, n_positive):
    table = pa.table({"x": ["a", "b", "b"], "y": labels})
    counts = vf.count(table, "y", ["x"], **options)
    assert counts.positive_rows == n_positive
    assert counts.rows == sum(label is not None for label in labels)
    assert sum(row["pos"] for row in counts["x"].to_pylist()) == n_positive


@pytest.mark.parametrize(
    ("labels", "one_class", "positive"),
    [
        ([0.0, 1.0], [1.0], "1"),
        ([0, 1], [0], "1"),
        ([False, True], [False], "true"),
        ([False, True], [True], "True"),
        ([1, 2], [1], "2"),
        (["no", "yes"], ["no"], "yes"),
    ],
)
def test_days_of_one_class_know_the_same_positive_label(labels, one_class, positive):
    both = vf.count(pa.table({"x": ["a", "b"], "y": labels}), "y", positive=positive)
    one = vf.count(pa.table({"x": ["a"], "y": one_class}), "y", positive=positive)
    expected = sum(label == labels[1] for label in labels + one_class)
    assert (both + one).positive_rows == expected


def test_whole_weights_count_as_repeated_rows():
    rng = np.random.default_rng(3)
    rows = [row | {"w": int(weight)} for row, weight in zip(sample(), rng.integers(0, 4, 60), strict=True)]
    repeated = vf.count(arrow([row for row in rows for _ in range(row["w"])]), "click", FEATURES)
    for kind in (pa.int8(), pa.uint64(), pa.float32()):
        table = arrow(rows).append_column("w", pa.array([row["w"] for row in rows]).cast(kind))
        weighted = vf.count(table, "click", FEATURES, weight="w")
        assert weighted.rows == repeated.rows
        book, expected = fold_counts(weighted, 20), fold_counts(repeated, 20)
        for feature in FEATURES:
            assert weighted[feature].select(["value", "neg", "pos"]).equals(repeated[feature])
            assert book[feature].select(["value", "id", "neg", "pos"]).equals(expected[feature])
        assert book.information == expected.information


@pytest.mark.parametrize("role", ["weight", "fold_column"])
def test_a_column_without_a_name_has_the_role_that_it_is_given(role, tmp_path):
    (tmp_path / "t.csv").write_text('site,"",click\na,2,1\na,0,0\nb,1,0\n')
    (tmp_path / "named.csv").write_text("site,x,click\na,2,1\na,0,0\nb,1,0\n")
    nameless, named = (
        vf.count(tmp_path / file, "click", "site", **{role: name})
        for file, name in (("t.csv", ""), ("named.csv", "x"))
    )
    assert nameless["site"].equals(named["site"])
    assert nameless["site"].num_rows == (2 if role == "weight" else 3)
    with pytest.raises(vf.InputError, match="^column '' .*is not in"):
        vf.count(tmp_path / "named.csv", "click", "site", **{role: ""})


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_weights_are_rounded_to_a_millionth_of_a_row(rows):
    if not any(weight * 2**20 >= 1 for _, _, weight in rows):
        return
    table = pa.table(dict(zip("xyw", map(list, zip(*rows, strict=True)), strict=True)))
    counts = vf.count(table, "y", ["x"], weight="w")
    expected = count_rows([dict(zip("xyw", row, strict=True)) for row in rows], "x", "y", weight="w")
    found = tabulated(counts["x"])
    for value, sides in expected.items():
        assert found.get(value, [0, 0]) == pytest.approx(sides, abs=len(rows) * 2**-21 + 1e-9)
    assert counts.rows == pytest.approx(sum(weight for *_, weight in rows), abs=len(rows) * 2**-21 + 1e-9)


def test_folds_are_even_independent_and_depend_on_the_seed():
    n, folds = 40_000, 5
    table = pa.table({"row": list(map(str, range(n))), "y": [0, 1] * (n // 2)})
    by_seed = []
    for seed in (0, 1):
        counts = vf.count(table, "y", ["row"], folds=folds, fold_seed=seed)["row"]
        fold = dict(zip(counts["value"].to_pylist(), counts["fold"].to_pylist(), strict=True))
        by_seed.append(np.array([fold[str(i)] for i in range(n)]))
    for lag, (a, b) in itertools.product((0, 1, 2, 7, 1000), itertools.product((0, 1), repeat=2)):
        if lag or a != b:
            pairs = np.bincount(by_seed[a][: n - lag] * folds + by_seed[b][lag:], minlength=folds**2)
            expected = (n - lag) / folds**2
            assert ((pairs - expected) ** 2 / expected).sum() < 60  # chi-square with 24 degrees: p < 1e-4
    assert np.bincount(by_seed[0]).min() > 0.95 * n / folds


def test_a_column_may_name_the_folds():
    rows = [row | {"part": i % 4} for i, row in enumerate(sample())]
    table = arrow(rows).append_column("part", pa.array([row["part"] for row in rows], pa.int16()))
    counts = vf.count(table, "click", ["site"], fold_column="part")
    assert counts.folds == 4
    for fold in range(4):
        chosen = counts["site"].filter(pa.compute.equal(counts["site"]["fold"], fold))
        expected = count_rows([row for row in rows if row["part"] == fold], "site", "click")
        assert tabulated(chosen) == expected


@pytest.mark.parametrize("others", [[0.0], [0.0, 1.0], [5.0, 5.0], [-1.0, 0.0]])
def test_nan_is_missing_even_where_the_statistics_of_a_file_hide_it(tmp_path, others):
    table = pa.table({"x": [float("nan"), *others], "y": [1] + [0] * len(others)})
    pq.write_table(table, tmp_path / "t.parquet")
    for data in (table, tmp_path / "t.parquet", ds.dataset(tmp_path), table.to_reader()):
        counts = vf.count(data, "y", "x")["x"].to_pylist()
        assert counts[0] == {"value": None, "neg": 0, "pos": 1}
        assert [row["value"] for row in counts[1:]] == sorted(set(others))


def test_the_order_of_files_does_not_decide_on_the_width_of_a_type(tmp_path):
    columns = {
        "real": (pa.array([0.1, 0.5], pa.float32()), pa.array([0.1, 0.7], pa.float64())),
        "number": (pa.array([1, 2], pa.int8()), pa.array([1, 1000], pa.int64())),
        "when": (pa.array([1, 2], pa.timestamp("s")), pa.array([10**9, 3 * 10**9], pa.timestamp("ns"))),
    }
    for i in (0, 1):
        table = pa.table({name: parts[i] for name, parts in columns.items()} | {"y": [0, 1]})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    counts = [vf.count(files, "y", list(columns), folds=2) for files in (paths, paths[::-1])]
    assert [counts[0][name].num_rows for name in columns] >= [4, 3, 3]
    apart = sum(vf.count(path, "y", list(columns)) for path in paths)
    for files in (paths, paths[::-1]):
        together = vf.count(files, "y", list(columns))
        assert all(together[name].equals(apart[name]) for name in columns)


def test_equal_types_of_any_width_are_one_kind():
    expected = None
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()):
        table = pa.table({"x": pa.array([1, 2, None, 1], kind), "y": [0, 1, 1, 0]})
        counts = vf.count(table, "y", "x")
        expected = expected or counts["x"]
        assert counts["x"].equals(expected)
    unsigned = vf.count(pa.table({"x": pa.array([1, 2**64 - 1], pa.uint64()), "y": [0, 1]}), "y", "x")
    assert unsigned.kinds["x"] == "unsigned"
    assert unsigned["x"]["value"].to_pylist() == [1, 2**64 - 1]


def test_categories_and_instants_are_read_by_value():
    instants = pd.to_datetime(["2020-01-01 10:00", None, "2020-01-01 10:00"])
    frame = pd.DataFrame({"c": pd.Categorical(["x", None, "x"]), "t": instants, "y": [0, 1, 1]})
    counts = vf.count(frame, "y", ["c", "t"])
    assert dict(counts.kinds) == {"c": "text", "t": "timestamp"}
    assert counts["c"].to_pylist() == [
        {"value": None, "neg": 0, "pos": 1},
        {"value": "x", "neg": 1, "pos": 1},
    ]
    for unit in ("s", "ms", "us", "ns"):
        frame["t"] = instants.astype(f"datetime64[{unit}]")
        assert vf.count(frame, "y", ["t"])["t"].equals(counts["t"])


@pytest.mark.parametrize(
    ("many_rows", "share", "n_files"), [(100, 1, len(FEATURES)), (1000, 1, 0), (1000, 1e-9, len(FEATURES))]
)
def test_many_counts_are_kept_on_disk_and_the_temporary_files_go(
    tmp_path, monkeypatch, many_rows, share, n_files
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("vocabfold.counts.local._MANY_ROWS", many_rows)
    monkeypatch.setattr("vocabfold.counts.local._KEPT_SHARE", share)
    rows = sample(300)
    counts = vf.count(arrow(rows).to_reader(), "click", FEATURES, memory_limit="300MB")
    assert len(list(tmp_path.rglob("*.parquet"))) == n_files
    assert_equals_loop(counts, rows)
    total = counts + vf.count(arrow(rows[:7]), "click", FEATURES)
    del counts
    assert_equals_loop(total, rows + rows[:7])
    del total
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_a_csv_column_may_hold_the_end_of_a_line(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        for name in ("a\nb", "a\r\nb", "a\rb"):
            (tmp_path / "t.csv").write_bytes(f'"{name}",y{end}p,0{end}"q\r\n1\n",1{end}'.encode())
            counts = vf.count(tmp_path / "t.csv", "y")
            assert counts.features == (name,)
            assert counts[name]["value"].to_pylist() == ["p", "q\r\n1\n"]
    (tmp_path / "t.csv").write_bytes(b'"a\nb",y\r\np,0\r\n')
    (tmp_path / "u.csv").write_bytes(b'"a\nb",y\np,1\n')
    with pytest.raises(vf.InputError, match="different line ends, and a column name contains one"):
        vf.count([tmp_path / "t.csv", tmp_path / "u.csv"], "y")


def test_columns_of_wide_tables_are_counted_alike(tmp_path, monkeypatch):
    n = 60
    columns = {f"c{i}": [f"{j % (2 + i)}" if j % 9 else None for j in range(n)] for i in range(5)}
    columns |= {"x": [j % 4 / 2 for j in range(n)], "d": [datetime.date(1, 1, 1 + j % 3) for j in range(n)]}
    table = pa.table(columns | {"w": [0.5 * (j % 3) for j in range(n)], "y": ["no", "yes", None] * 20})
    pq.write_table(table, tmp_path / "t.parquet")
    options = {"weight": "w", "positive": "yes", "drop_null_labels": True, "folds": 3}
    sources = (table, tmp_path / "t.parquet")
    plain = [vf.count(data, "y", list(columns), **options) for data in sources]
    monkeypatch.setattr(local, "_MANY_COLUMNS", 3)
    monkeypatch.setattr(local, "_STAGED", 2)
    for data, expected in zip(sources, plain, strict=True):
        found = vf.count(data, "y", list(columns), **options)
        for name in columns:
            assert found[name].equals(expected[name])


def test_polars_columns_may_have_nul_in_their_names():
    frame = pl.DataFrame({"a\0b": ["p", "q", "q"], "y": [0, 1, 1]})
    assert vf.count(frame, "y")["a\0b"].to_pylist() == [
        {"value": "p", "neg": 1, "pos": 0},
        {"value": "q", "neg": 0, "pos": 2},
    ]
    assert frame.columns == ["a\0b", "y"]


@pytest.mark.parametrize("place", ["interrupted/rows.csv", "INTERRUPT Error: Interrupted!.csv"])
def test_what_a_message_quotes_is_no_interrupt(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("y,a\n1,u\n0,v,Out of Memory Error: interrupted\n")
    with pytest.raises(vf.InputError, match=r"\.csv, line 3: expected 2 fields, found more\.$"):
        vf.count(path, "y")


CHOICE = pa.table(
    {
        "hour": [1, 2, 1, 3],
        "site": ["a", "b", "a", "c"],
        "tags": [["x"], [], None, ["y"]],
        "price": [0.5, 1.5, 0.5, 2.5],
        "click": [1, 0, 0, 1],
    }
)


def test_columns_may_be_added_to_the_text_columns():
    counts = vf.count(CHOICE, "click", also=["price"])
    assert (counts.features, counts.left_out) == (("site", "price"), ("hour", "tags"))
    assert vf.count(CHOICE, "click", also="hour", exclude="site").features == ("hour",)
    assert vf.count(CHOICE.drop_columns("site"), "click", also="hour").features == ("hour",)
    book, _ = vf.fit_transform(CHOICE, "click", budget=9, folds=2, also=["hour"])
    assert (book.features, book.left_out) == (("hour", "site"), ("tags", "price"))


def test_columns_may_be_added_to_those_of_a_preset(tmp_path):
    line = "\t".join(["{}", *["7"] * 13, *["a"] * 26])
    (tmp_path / "train.txt").write_text(f"{line.format(0)}\n{line.format(1)}\n")
    features = vf.count(tmp_path / "train.txt", preset="criteo", also=["I3"], exclude=["C1"]).features
    assert features == ("I3", *(f"C{i}" for i in range(2, 27)))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"also": ["hours"]}, r"^column 'hours' \(did you mean 'hour'\?\) is not in the Arrow Table\."),
        ({"also": ["click"]}, "^'click' is the label and cannot be a feature too"),
        ({"also": ["tags"]}, "^column 'tags' holds list<.*>, which cannot be counted"),
        (
            {"also": ["hour"], "exclude": ["hour"]},
            r"^also and exclude both name 'hour'\. Name each column in one",
        ),
        ({"also": ["hour"], "features": ["site"]}, "^features and also cannot both be given; .* those to add"),
    ],
)
def test_columns_that_cannot_be_added_are_refused(options, text):
    with pytest.raises(vf.InputError, match=text):
        vf.count(CHOICE, "click", **options)
