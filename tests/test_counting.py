"""Rows of every kind and shape against a loop over them."""

import datetime
import gzip
import itertools
import json

import duckdb
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
from conftest import fold_counts
from reference import count_rows
from vocabfold.counts import local

SITES = ["a", "b", None, "", "nan", "NULL", " ", "None", "ä;\"'\n\t,", "\x00x", "💥", "a"]
FEATURES = ["site", "number", "real", "flag", "day"]


def sample(n=60, seed=0):
    """Rows with five kinds of values, all of them sometimes missing."""
    rng = np.random.default_rng(seed)

    def often(values):
        return [None if rng.random() < 0.1 else values[i] for i in rng.integers(0, len(values), n)]

    return [
        dict(zip(["site", "number", "real", "flag", "day", "click"], cells, strict=True))
        for cells in zip(
            [SITES[i] for i in rng.integers(0, len(SITES), n)],
            often([-3, 0, 1, 7, 2**40]),
            often([0.5, -0.0, 0.0, 1.0, 1e300, -2.25]),
            often([True, False]),
            often([datetime.date(1900 + i, 1, 2) for i in range(5)]),
            rng.integers(0, 2, n).tolist(),
            strict=True,
        )
    ]


SCHEMA = pa.schema(
    [
        ("site", pa.string()),
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("click", pa.int64()),
    ]
)


def arrow(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def tabulated(table):
    """Return {(type, value): [neg, pos]} of a column of counts, as `count_rows` does."""
    return {(type(row["value"]).__name__, row["value"]): [row["neg"], row["pos"]] for row in table.to_pylist()}


def assert_equals_loop(counts, rows, label="click", features=FEATURES, **options):
    for feature in features:
        assert tabulated(counts[feature]) == count_rows(rows, feature, label, **options)


def write_csv(table, path):
    # DuckDB's own writer quotes an empty text, so that it differs from a missing one.
    connection = duckdb.connect()
    connection.register("t", table)
    connection.execute(f"COPY t TO '{path}' (HEADER, DELIMITER '{',' if '.csv' in path.name else chr(9)}')")


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
        (["1.5", "2.0", "1e-07", "-3", ""], "float"),
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
        assert all(weighted[feature].equals(repeated[feature]) for feature in FEATURES)
        assert fold_counts(weighted, 20).digest == fold_counts(repeated, 20).digest


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
    with pytest.raises(vf.InputError, match="different ends of lines, and a name with one in it"):
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
