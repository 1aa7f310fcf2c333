"""Rows in every form, in files of every kind: the counts are those of a loop over them."""

import gzip
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabfold as vf
from support.builders import FEATURES, arrow, assert_equals_loop, fold_counts, sample, tabulated, write_csv


def write_jsonl(table, path):
    lines = [json.dumps(row | {"day": str(row["day"])}) for row in table.to_pylist()]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(
    params=[
        *("arrow", "batch", "reader", "dataset", "pandas", "pandas-pyarrow", "polars", "polars-lazy"),
        *("relation", "parquet", "csv", "tsv", "csv.gz", "csv.zst", "parquet-dataset", "capsule"),
    ]
)
def form(request, tmp_path):
    """Return a function from an Arrow table to the same rows in another form."""

    def capsule(table):
        return type(
            "Capsule", (), {"__arrow_c_stream__": lambda self, schema=None: table.__arrow_c_stream__()}
        )()

    def file(table):
        path = tmp_path / f"rows.{request.param}"
        if request.param == "parquet":
            pq.write_table(table, path, row_group_size=7)
            return path
        plain = tmp_path / f"rows.{request.param.split('.')[0]}"
        write_csv(table, plain)
        if request.param.endswith(".gz"):
            path.write_bytes(gzip.compress(plain.read_bytes()))
        elif request.param.endswith(".zst"):
            path.write_bytes(pa.compress(plain.read_bytes(), "zstd", asbytes=True))
        return str(path)

    def parquet_dataset(table):
        for i in range(0, table.num_rows, 25):
            pq.write_table(table.slice(i, 25), tmp_path / f"{i:03}.parquet")
        return ds.dataset(tmp_path)

    return {
        "arrow": lambda table: table,
        "batch": lambda table: table.combine_chunks().to_batches()[0],
        "reader": lambda table: table.to_reader(max_chunksize=11),
        "dataset": lambda table: ds.dataset(table.to_batches(max_chunksize=11)),
        "pandas": lambda table: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
        "pandas-pyarrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow,
        "polars-lazy": lambda table: pl.from_arrow(table).lazy(),
        "relation": lambda table: duckdb.connect().from_arrow(table),
        "parquet-dataset": parquet_dataset,
        "capsule": capsule,
    }.get(request.param, file)


def test_every_form_of_the_rows_gives_the_counts_of_a_loop(form):
    rows = sample()
    counts = vf.count(form(arrow(rows)), "click", FEATURES)
    assert counts.features == tuple(FEATURES)
    assert dict(counts.kinds) == dict(
        zip(FEATURES, ["text", "integer", "float", "boolean", "date"], strict=True)
    )
    assert counts.rows == 60
    assert counts.positive_rows == sum(row["click"] for row in rows)
    assert_equals_loop(counts, rows)


def test_every_form_deals_its_rows_to_the_same_folds(form):
    rows = sample()
    counts = vf.count(form(arrow(rows)), "click", FEATURES, folds=3)
    expected = vf.count(arrow(rows), "click", FEATURES, folds=3)
    for feature in FEATURES:
        assert counts[feature].equals(expected[feature])


def test_json_lines_have_the_types_that_they_say(tmp_path):
    rows = sample()
    write_jsonl(arrow(rows), tmp_path / "rows.jsonl")
    counts = vf.count(tmp_path / "rows.jsonl", "click", FEATURES)
    assert counts.kinds["day"] == "text"
    assert_equals_loop(counts, [row | {"day": str(row["day"])} for row in rows])


def test_json_lines_may_lack_names_and_hold_blank_lines(tmp_path):
    (tmp_path / "rows.ndjson").write_text('{"y": 0, "a": "x"}\n\n{"y": 1}\n{"b": {"c": 1}, "y": 1, "a": "x"}\n')
    counts = vf.count(tmp_path / "rows.ndjson", "y")
    assert counts.features == ("a",)
    assert counts["a"].to_pylist() == [
        {"value": None, "neg": 0, "pos": 1},
        {"value": "x", "neg": 1, "pos": 1},
    ]


def test_missing_and_its_lookalikes_are_different_values(tmp_path):
    (tmp_path / "t.csv").write_text('site,y\n,1\n"",1\nnan,1\nNULL,1\n ,1\n"",0\n')
    counts = vf.count(tmp_path / "t.csv", "y")
    assert tabulated(counts["site"]) == {
        ("NoneType", None): [0, 1],
        ("str", ""): [1, 1],
        ("str", "nan"): [0, 1],
        ("str", "NULL"): [0, 1],
        ("str", " "): [0, 1],
    }


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1", "-7", "", "0"], "integer"),
        (["007", "7"], "text"),
        (["+7", "7"], "text"),
        (["9223372036854775807"], "integer"),
        (["9223372036854775808", "9223372036854775809"], "text"),
        (["0.5", "9007199254740993", "9007199254740992"], "text"),
        (["0.1", "0.1000000000000000055"], "text"),
        (["0.30000000000000004", "1e+16", "100.0", "-1e-07"], "float"),
        (["1e400", "2e400"], "text"),
        (["1.5", "2.0", "1e-07", "-3.0", "0.0", ""], "float"),
        (["1", "1.0"], "text"),
        (["1.5", "2.0", "-3"], "text"),
        (["0", "-0"], "text"),
        (["0.0", "-0.0"], "text"),
        (["1e5", "100000"], "text"),
        (["1e+16", "1e16"], "text"),
        (["1.5", "1.50"], "text"),
        (["1.5", "nan"], "text"),
        (["true", "false", ""], "boolean"),
        (["True", "False"], "boolean"),
        (["true", "True"], "text"),
        (["2020-02-29", "1999-12-31", ""], "date"),
        (["2021-02-29"], "text"),
        (["infinity"], "text"),
        (["2020-01-01 10:00:00"], "text"),
        (["", ""], "missing"),
        (["1", "true"], "text"),
    ],
)
def test_a_csv_column_has_a_type_only_if_no_two_fields_become_one_value(tmp_path, fields, kind):
    # What decides comes after the sample that is looked at first.
    lines = [f"{field},{i % 2}" for i, field in enumerate([fields[0]] * 10_001 + fields)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    counts = vf.count(tmp_path / "t.csv", "y", "x")
    assert counts.kinds["x"] == kind
    assert counts["x"].num_rows == len(set(fields))


_NUMBERS = st.one_of(
    st.sampled_from(["0.0", "1.0", "2.5", "1e-07", "100000.0", "9007199254740992.0"]),
    st.integers(-3, 3).map(str),
    st.integers(2**53 - 2, 2**53 + 2).map(str),
    st.floats().map(str),
)
_LOOKALIKES = st.sampled_from(["inf", "nan", "9223372036854775808", "1e400", "True", "TRUE", "2020-01-02"])
_SPELLINGS = [  # of a number; the first ones were once read as the number
    *(lambda text: text, lambda text: text + ".0", lambda text: text + "e0", lambda text: "-" + text),
    *(lambda text: text.replace(".0", ""), lambda text: text.replace("00000.0", "e5")),
    *(lambda text: text.replace("e-0", "E-"), lambda text: text.replace("e+", "e"), lambda text: ""),
    *(lambda text: "+" + text, lambda text: "0" + text, lambda text: text + "0", lambda text: text + "."),
    *(lambda text: " " + text, lambda text: f'"{text},000"'),
]


@given(
    fields=st.lists(_NUMBERS, min_size=1, max_size=3, unique=True)
    | st.lists(_NUMBERS | _LOOKALIKES, min_size=1),
    spell=st.lists(st.sampled_from(_SPELLINGS[:9]), min_size=2, max_size=3, unique=True)
    | st.lists(st.sampled_from(_SPELLINGS), min_size=1, max_size=4),
)
def test_there_are_as_many_values_as_different_fields_in_a_csv_column(tmp_path_factory, fields, spell):
    spelled = [one(field) for field in fields for one in spell]
    path = tmp_path_factory.mktemp("odd") / "t.csv"
    path.write_text("\n".join(["x,y", *(f"{field},{i % 2}" for i, field in enumerate(spelled))]) + "\n")
    assert vf.count(path, "y", "x")["x"].num_rows == len(set(spelled))


def test_labels_weights_and_folds_are_numbers_however_they_are_written(tmp_path):
    (tmp_path / "t.csv").write_text("x,w,y\na,1,1\na,1.0,1.0\nb,1e0,0\nb,2.5,0.0\n")
    counts = vf.count(tmp_path / "t.csv", "y", ["x", "w"], weight="w")
    assert tabulated(counts["x"]) == {("str", "a"): [0.0, 2.0], ("str", "b"): [3.5, 0.0]}
    assert counts["w"]["value"].to_pylist() == ["1", "1.0", "1e0", "2.5"]  # as a feature
    assert vf.count(tmp_path / "t.csv", "y").left_out == ("w",)


def test_numbers_and_their_lookalikes_are_features_only_when_named(tmp_path):
    rows = [{"a": "x", "n": 1, "f": 0.5, "zip": f"{i:05}", "price": f"{i}.50", "y": i % 2} for i in range(4)]
    for name, data in {"csv": None, "frame": pd.DataFrame(rows)}.items():
        if data is None:
            data = tmp_path / "t.csv"
            pd.DataFrame(rows).to_csv(data, index=False)
        expected = ("a",) if name == "csv" else ("a", "zip", "price")
        assert vf.count(data, "y").features == expected
    named = vf.count(tmp_path / "t.csv", "y", ["zip", "price"])
    assert set(named.kinds.values()) == {"text"}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_csv_file_is_found_in_its_header(tmp_path, separator):
    text = '"a,b;c"|y\nx|1\nz|0\n'.replace("|", separator)
    (tmp_path / "t.csv").write_text("\ufeff" + text)
    assert vf.count(tmp_path / "t.csv", "y").features == ("a,b;c",)


def test_the_criteo_preset(tmp_path):
    rng = np.random.default_rng(1)
    rows = []
    for i in range(50):
        numbers = ["" if rng.random() < 0.3 else str(rng.integers(-1, 9)) for _ in range(13)]
        texts = ["" if rng.random() < 0.3 else f"{rng.integers(0, 5):08x}" for _ in range(26)]
        rows.append([str(i % 3 == 0 and 1 or 0), *numbers, *texts])
    rows[7][15] = '"quoted'
    (tmp_path / "train.txt").write_text("\n".join("\t".join(row) for row in rows) + "\n")
    counts = vf.count(tmp_path / "train.txt", preset="criteo")
    names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    dicts = [{n: v or None for n, v in zip(names, row, strict=True)} for row in rows]
    assert counts.features == tuple(names[14:])
    assert_equals_loop(counts, dicts, "label", names[14:], positive="1")
    with_numbers = vf.count(tmp_path / "train.txt", preset="criteo", features=["I3", "C2"])
    assert dict(with_numbers.kinds) == {"I3": "integer", "C2": "text"}
    rows[0][3], rows[1][3] = "1.5", "2"  # of which the first would be rounded to the second
    (tmp_path / "train.txt").write_text("\n".join("\t".join(row) for row in rows) + "\n")
    assert {"1.5", "2"} <= set(
        vf.count(tmp_path / "train.txt", preset="criteo", features="I3")["I3"]["value"].to_pylist()
    )


def test_patterns_folders_and_lists_mean_their_files(tmp_path):
    rows = sample(40)
    table = arrow(rows)
    (tmp_path / "in" / "er").mkdir(parents=True)
    for i, name in enumerate(["b.parquet", "a.parquet", "in/er/c.parquet", "_skip.parquet"]):
        pq.write_table(table.slice(10 * i, 10), tmp_path / name)
    (tmp_path / "note.txt").write_text("not a table")
    inside = [rows[i] for i in (*range(10, 20), *range(10), *range(20, 30))]
    expected = vf.count(arrow(inside), "click", FEATURES, folds=2)
    files = [tmp_path / "a.parquet", str(tmp_path / "b.parquet"), tmp_path / "in/er/c.parquet"]
    for data in (files, tmp_path, [f"{tmp_path}/[ab].parquet", f"{tmp_path}/**/c.parquet"]):
        counts = vf.count(data, "click", FEATURES, folds=2)
        assert all(counts[feature].equals(expected[feature]) for feature in FEATURES)


def test_a_file_may_be_called_like_a_pattern(tmp_path):
    for name in ("a*[1]?.parquet", 'it\'s; "quoted".parquet'):
        pq.write_table(arrow(sample(20)), tmp_path / name)
        assert_equals_loop(vf.count(tmp_path / name, "click", FEATURES), sample(20))


@pytest.mark.parametrize("name", ["file_row_number", "FILE_INDEX", "filename"])
def test_columns_may_be_called_like_the_engine_s_own(tmp_path, name):
    table = arrow(sample()).rename_columns([name, *FEATURES[1:], "click"])
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    for i, path in enumerate(paths):
        pq.write_table(table.slice(30 * i, 30), path)
    counts = vf.count(paths, "click", [name], folds=3)
    assert counts[name].equals(vf.count(table, "click", [name], folds=3)[name])


@pytest.mark.parametrize("label", ["n", "p", "value", "neg", "label", "units", "row", "c0"])
def test_columns_may_be_called_like_those_of_the_queries(tmp_path, label):
    rows = [{"x": "ab"[i % 2], label: i % 3 % 2, "first": i % 2, "total": i % 4} for i in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    for data in (pa.Table.from_pylist(rows), tmp_path / "t.parquet"):
        counts = vf.count(data, label, ["x"], weight="total")
        assert_equals_loop(counts, rows, label, ["x"], weight="total")
        assert vf.count(data, label, ["x"], fold_column="first").folds == 2


HOSTILE = [
    'a"b',
    "a;b",
    '"; DROP TABLE rows; --',
    "new\nline",
    "💥",
    "'",
    "value",
    "neg",
    "row",
    "select",
    "x" * 999,
]


@pytest.mark.parametrize("kind", ["arrow", "parquet", "csv", "jsonl", "relation", "reader"])
def test_names_are_data(tmp_path, kind):
    rows = [{name: f"v{i % 3}" for name in HOSTILE} | {"la'bel": i % 2, 'w"': 2} for i in range(6)]
    table = pa.Table.from_pylist(rows)
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        pl.from_arrow(table).write_csv(path)
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    data = {
        "arrow": table,
        "relation": duckdb.connect().from_arrow(table) if kind == "relation" else None,
        "reader": table.to_reader(),
    }.get(kind, path)
    counts = vf.count(data, "la'bel", HOSTILE, weight='w"')
    assert_equals_loop(counts, rows, "la'bel", HOSTILE, weight='w"')
    book = fold_counts(counts, 50)
    book.save(tmp_path / "book")
    assert vf.load(tmp_path / "book").digest == book.digest
    assert vf.load(tmp_path / "book").row(rows[1]) == book.row(rows[1])


def test_values_are_data(tmp_path):
    values = [
        "'; DROP TABLE rows; --",
        "\x00",
        "a\x00b",
        "x" * 1_000_000,
        "\\",
        "%s",
        "{0}",
        "\r\n",
        "\u202e",
        "é",
        "e\u0301",
    ]
    rows = [{"x": value, "y": i % 2} for i, value in enumerate(values * 2)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "t.parquet")
    write_csv(table, tmp_path / "t.csv")
    for data in (table, tmp_path / "t.parquet", tmp_path / "t.csv", table.to_pandas()):
        counts = vf.count(data, "y", ["x"])
        assert_equals_loop(counts, rows, "y", ["x"])
    book = fold_counts(counts, 3)
    book.save(tmp_path / "book")
    assert (vf.load(tmp_path / "book").ids("x", values) == book.ids("x", values)).all()
