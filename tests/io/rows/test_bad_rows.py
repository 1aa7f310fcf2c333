"""Rows and options that cannot be used: one sentence each, before long work."""

import datetime
import decimal
import gzip
import os

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import vocabfold as vf

TABLE = pa.table(
    {"site": ["a", "b", "a", "c"], "n": [1, 2, 3, 4], "w": [1.0, 2.0, 0.5, 1.0], "y": [0, 1, 1, 0]}
)
FRAME = TABLE.to_pandas()


def refused(message, data=TABLE, label="y", features=None, **options):
    with pytest.raises(vf.InputError, match=message) as caught:
        vf.count(data, label, features, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": None}, r"^label is missing: name the column that holds it\.$"),
        ({"label": 3}, r"^label must be the name of a column, got int\.$"),
        (
            {"label": "Y"},
            r"^column 'Y' \(did you mean 'y'\?\) is not in the Arrow Table\. Columns: site, n, w, y\.$",
        ),
        (
            {"features": ["sites", "m"]},
            r"^columns 'sites' \(did you mean 'site'\?\), 'm' are not in the Arrow Table\. Columns: ",
        ),
        ({"features": {"site", "n"}}, r"^features must be a list of at least one column name, got set\.$"),
        ({"features": 3}, r"^features must be a list of at least one column name, got int\.$"),
        ({"label": TABLE}, r"^label must be the name of a column, got Table\.$"),
        ({"features": []}, r"^features must be a list of at least one column name, got \[\]\.$"),
        ({"features": [1]}, r"^features must be a list of at least one column name"),
        ({"features": ["site", "site"]}, r"^features names the column 'site' twice\.$"),
        ({"features": ["y"]}, r"^'y' is the label and cannot be a feature too\.$"),
        (
            {"label": "n"},
            r"^label 'n' has 4 distinct values \(1 in 1 row, .*\); exactly two are needed, so filter",
        ),
        ({"label": "site", "features": ["n"]}, r"^label 'site' has 3 distinct values \('a' in 2 rows"),
        ({"positive": 7}, r"^label 'y' has the values 0 and 1, and none of them is positive=7\.$"),
        ({"weight": "site"}, r"^weight 'site' must hold numbers, got text\.$"),
        ({"weight": "no"}, r"^column 'no' .*is not in"),
        ({"folds": 1}, r"^folds must be 0 \(none\) or between 2 and 1,000, got 1\.$"),
        ({"folds": 1001}, r"^folds must be 0 \(none\) or between 2 and 1,000, got 1,001\.$"),
        ({"folds": 2.5}, r"^folds must be a whole number, got 2\.5\.$"),
        ({"fold_seed": -1}, r"^fold_seed must be at least 0, got -1\.$"),
        ({"fold_column": "w"}, r"^fold_column 'w' must hold whole numbers, got float\.$"),
        (
            {"fold_column": "n", "folds": 2},
            r"^fold_column 'n' must hold whole numbers from 0 to 1, got 1 to 4\.$",
        ),
        ({"preset": "x"}, r"^preset must be 'criteo', got 'x'\.$"),
        ({"memory_limit": "4 apples"}, r"^memory_limit must be a number of bytes or a text such as '4GB'"),
        ({"memory_limit": "1MB"}, r"^memory_limit must be at least 200 MiB, got '1MB'\.$"),
        ({"memory_limit": True}, r"^memory_limit must be a number of bytes"),
    ],
)
def test_options_that_cannot_be_used(options, message):
    refused(message, **options)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["no", "yes", "no", "no"],
            r"^label 'y' has the values 'no' and 'yes'; name the positive one with",
        ),
        (["0", "1", "0", "0"], r"^label 'y' has the values '0' and '1'; name the positive one"),
        ([1, 2, 2, 2], r"^label 'y' has the values 1 and 2; name the positive one"),
        (["no", "no", "no", "no"], r"^label 'y' has the values 'no'; name the positive one"),
        ([0, 1, None, None], r"^label 'y' is missing in 2 rows; fill them in, or .* drop_null_labels=True\.$"),
        ([None] * 4, r"^label 'y' is missing in 4 rows"),
        (
            [[1], [0], [0], [1]],
            r"^column 'y' holds list<.*>, which cannot be counted; convert it to text or numbers\.$",
        ),
    ],
)
def test_labels_that_cannot_be_used(labels, message):
    refused(message, TABLE.set_column(3, "y", [labels]))


def test_a_label_that_is_always_missing():
    table = TABLE.set_column(3, "y", pa.nulls(4, pa.int64()))
    refused(r"has no rows with a label in 'y'\.$", table, drop_null_labels=True)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            [1, -1, 1, 1],
            r"^weight 'w' is negative, missing or not a finite number in 1 row; weights must be 0 or",
        ),
        ([1, None, 1, 1], r"^weight 'w' is negative, missing"),
        (
            [1.0, float("nan"), float("inf"), 1],
            r"^weight 'w' is negative, missing or not a finite number in 2 rows",
        ),
        (
            [0, 0, 0, 0],
            r"^all weights in 'w' are zero, or round to zero; at least one row needs a positive weight\.$",
        ),
        ([1e-9] * 4, r"^all weights in 'w' are zero"),
        (
            [1e300] * 4,
            r"^the weights in column 'w' sum to 4e\+300, but only sums up to 4\.4e\+12 are counted exactly",
        ),
    ],
)
def test_weights_that_cannot_be_used(weights, message):
    refused(message, TABLE.set_column(2, "w", [weights]), weight="w")


def test_folds_that_are_missing():
    refused(
        r"^fold_column 'n' is missing in 1 row;", TABLE.set_column(1, "n", [[0, 1, None, 1]]), fold_column="n"
    )


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            [1, "1", 2, "x"],
            r"^column 'm' mixes int and str, so 1 and '1' would be two values; convert it to one",
        ),
        ([True, 1, 2, False], r"^column 'm' mixes bool and int"),
        ([object()] * 4, r"^column 'm' holds values of type object, which cannot be read; convert it first\.$"),
        ([2**70] * 4, r"^column 'm' holds values of type int, which cannot be read"),
    ],
)
def test_columns_of_objects_that_cannot_be_read(column, message):
    frame = FRAME.assign(m=pd.Series(column, dtype=object))
    refused(message, frame)
    refused(message, frame, features=["m"])
    assert vf.count(frame, "y", ["site"]).features == ("site",)


def test_objects_of_several_types_are_refused_even_where_arrow_takes_them():
    instants = [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5), None, None]
    for column, types in (([1, 1.5, 2, None], "float and int"), (instants, "date and datetime")):
        frame = FRAME.assign(m=pd.Series(column, dtype=object))
        refused(rf"^column 'm' mixes {types}", frame, features=["m"])
    for column in (
        [1, np.nan, None, np.int8(3)],
        [True, None, np.bool_(False), pd.NA],
        ["a", np.nan, pd.NA, None],
    ):
        assert vf.count(FRAME.assign(m=pd.Series(column, dtype=object)), "y", ["m"]).rows == 4
    refused("^column 'm' mixes int and str", FRAME.assign(m=pd.Series([1, "a", pd.NA, None], dtype=object)))
    refused("^column 'm' mixes ndarray and str", FRAME.assign(m=pd.Series([np.ones(2), "a", "b", "c"])))


@pytest.mark.parametrize("positive", [pd.NA, np.ones(2), FRAME, object()], ids=lambda p: type(p).__name__)
def test_positive_must_be_a_value(positive):
    refused(r"^positive must be a value of the label, got \w+\.$", positive=positive)


def test_frames_and_relations_that_fail(tmp_path):
    lazy = pl.from_arrow(TABLE).lazy()
    refused(
        "^the polars LazyFrame cannot be read: ",
        lazy.with_columns(pl.col("site").cast(pl.Int64)),
        features="site",
    )
    refused("^the polars LazyFrame cannot be read: ", lazy.select("zz"))
    connection = duckdb.connect()
    relation = connection.sql("SELECT 'a' AS site, 1 AS y")
    connection.close()
    refused("^the DuckDB relation cannot be read: ", relation)
    table = TABLE.append_column("h", pa.array(np.ones(4, np.float16)))
    pq.write_table(table, tmp_path / "t.parquet")
    assert vf.count(ds.dataset(tmp_path), "y").features == ("site",)


def test_mixed_categories_and_polars_objects():
    refused("^column 'm' mixes int and str", FRAME.assign(m=pd.Categorical([1, "1", 1, 1])))
    objects = pl.from_arrow(TABLE).with_columns(m=pl.Series([1, "1", 2, None], dtype=pl.Object))
    refused("^column 'm' mixes int and str", objects)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]] * 4),
        pa.array([{"a": 1}] * 4),
        pa.array([b"x"] * 4),
        pa.array([decimal.Decimal("1.5")] * 4),
        pa.array([1] * 4, pa.time64("us")),
        pa.array([1] * 4, pa.timestamp("us", "UTC")),
        pa.array(np.ones(4, np.float16)),
        pa.array([1] * 4, pa.duration("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_types_that_are_no_values(tmp_path, column):
    table = TABLE.append_column("m", column)
    pq.write_table(table, tmp_path / "t.parquet")
    for data in (table, table.to_reader(), tmp_path / "t.parquet"):
        refused(
            r"^column 'm' holds .*, which cannot be counted; convert it to text or numbers\.$",
            data,
            features=["m"],
        )
    for data in (table, table.to_reader(), tmp_path / "t.parquet"):
        assert vf.count(data, "y").features == ("site",)


def test_instants_finer_than_a_microsecond(tmp_path):
    table = TABLE.append_column("t", pa.array([1, 2, 3, 4], pa.timestamp("ns")))
    refused(r"column 't' has timestamps finer than a microsecond; round them first\.$", table, features=["t"])
    pq.write_table(table, tmp_path / "a.parquet")
    for unit in ("s", "ms", "us"):
        coarse = TABLE.append_column("t", pa.array([1, 2, 3, 4], pa.timestamp(unit)))
        pq.write_table(coarse, tmp_path / "b.parquet")
        for names in ("ab", "ba"):
            paths = [tmp_path / f"{name}.parquet" for name in names]
            refused(r"column 't' has timestamps finer than a microsecond; round", paths, features=["t"])


def test_names_that_cannot_be_told_apart(tmp_path):
    for names in (["Site", "site"], ["site", "site"], ["s", "s"]):
        table = pa.table([["a", "b"], ["c", "d"], [0, 1]], [*names, "y"])
        message = rf"has the columns '{names[0]}' and '{names[1]}'; names must differ by more than case"
        refused(message, table)
        refused(message, table.to_reader())
        pq.write_table(table, tmp_path / "t.parquet")
        refused(message, tmp_path / "t.parquet")
        (tmp_path / "t.csv").write_text(f"{','.join(names)},y\na,c,0\nb,d,1\n")
        refused(message, tmp_path / "t.csv")
    refused(message, pd.DataFrame([["a", "c", 0]], columns=["s", "s", "y"]))
    (tmp_path / "t.jsonl").write_text('{"A": 1, "y": 0}\n{"a": 2, "y": 1}\n')
    refused("has the columns 'A' and 'a'", tmp_path / "t.jsonl")


def test_names_that_cannot_be_used(tmp_path):
    refused(
        r"^column names must be text, got 7 \(int\) in the pandas DataFrame", FRAME.rename(columns={"n": 7})
    )
    for name in ("", "a\0b"):
        table = TABLE.rename_columns(["site", name, "w", "y"])
        pq.write_table(table, tmp_path / "t.parquet")
        assert vf.count(tmp_path / "t.parquet", "y", "site").rows == 4
        assert vf.count(table, "y", ["site", name]).rows == 4
        refused("names need at least one character, none of them NUL", tmp_path / "t.parquet", features=[name])


def test_names_that_are_not_utf8(tmp_path):
    odd = FRAME.set_axis(pd.Index(["site", "lone \ud800", "\udfff", "y"], dtype=object), axis=1)
    message = r"^column names must be UTF-8, got 'lone \\ud800'; rename the columns first\.$"
    refused(message, odd, features=["lone \ud800"])
    refused(message, odd, label="lone \ud800", features=["site"])
    refused(message, odd, features=["site"], weight="lone \ud800")
    refused(message.replace(";", r", '\\udfff';"), odd)
    book = vf.fit(vf.count(odd, "y", ["site"]), 9)  # columns that are not used may be called anything
    new = odd[:3]
    assert list(book.transform(new)) == list(odd)
    with pytest.raises(vf.InputError, match="^column names must be UTF-8, got "):
        book.transform(new, out=tmp_path / "ids.parquet")
    assert not list(tmp_path.iterdir())


def test_rows_that_are_not_there(tmp_path):
    refused(r"^the Arrow Table has no rows\.$", TABLE.slice(0, 0))
    pq.write_table(TABLE.slice(0, 0), tmp_path / "t.parquet")
    refused(r"t\.parquet has no rows\.$", tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,y\n")
    refused(r"t\.csv has no rows\.$", tmp_path / "t.csv")
    refused(r"has no columns\.$", pa.table({}))
    refused(
        r"no other text-like column; name the features to count\. Columns: n \(integer\)\.$",
        TABLE.select(["n", "y"]),
    )


@pytest.mark.parametrize("data", [5, {"a": [1]}, np.ones(2), None, b"x", [{"a": 1}]], ids=str)
def test_data_of_another_kind(data):
    refused(
        r"^data must be a path, a pattern, a list of paths, .* a DuckDB relation, or a Spark frame, got ", data
    )


def test_paths_that_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(r"^there is no file 'none\.parquet'\.$", "none.parquet")
    refused(r"cannot be read: File name too long\.$", "x" * 5000)
    refused(r"^the path is empty; give a file, a pattern or a folder\.$", "")
    refused(r"^no file matches 'none\*\.csv'\.$", "none*.csv")
    refused(r"^the list of files is empty; give at least one\.$", [])
    refused(r"^s3://bucket/x\.parquet is a URL, which cannot be read yet", "s3://bucket/x.parquet")
    refused(r"^the folder .* holds no Parquet files; give a pattern", str(tmp_path))
    (tmp_path / "t.xlsx").write_text("")
    refused(r"^cannot tell the format of t\.xlsx from its name; it must end in \.parquet, \.csv", "t.xlsx")
    refused(r"^cannot tell the format of t\.parquet\.gz", _touch("t.parquet.gz"))
    pq.write_table(TABLE, "t.parquet")
    refused(r"^t\.parquet is given twice", ["t.parquet", "./t.parquet"])
    refused(
        r"^t\.parquet is Parquet and a\.csv is CSV; give files of one format", ["t.parquet", _touch("a.csv")]
    )


def test_paths_that_are_no_files_or_not_utf8(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    refused(r"pipe\.csv is not a plain file; write the rows to a file first\.$", tmp_path / "pipe.csv")
    refused(r"^/dev/zero is not a plain file", "/dev/zero", preset="criteo")
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    with open(name, "w") as file:
        file.write("site,y\na,0\nb,1\n")
    for given in (name, str(tmp_path / "*.csv").replace("*", "[!p]*")):
        refused(r"^the path '.*udcff\.csv' is not UTF-8; rename it first\.$", given)


def test_messages_are_one_line_however_long_and_hostile_a_name_is():
    name = "\x1b[31m\n\x9b" + "x" * 2**20
    table = TABLE.rename_columns([name, "n", "w", "y"])
    refused(
        r"^column 'site' is not in the Arrow Table\. Columns: \\x1b\[31m\\n\\x9bxx", table, features=["site"]
    )
    with pytest.raises(vf.InputError) as caught:
        vf.count(table, "y", [name], weight=name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 3000
    assert str(caught.value).endswith("must hold numbers, got text.")


def _touch(name):
    with open(name, "w"):
        return name


def test_parquet_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-9], b"text"):
        path.write_bytes(content)
        refused(r"t\.parquet is not a readable Parquet file: ", path)
    damaged = bytearray(whole)
    damaged[4:60] = bytes(56)
    path.write_bytes(damaged)
    refused(r"t\.parquet cannot be read: ", path)


def test_parquet_files_that_do_not_agree(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(TABLE, paths[0])
    pq.write_table(TABLE.drop_columns("site"), paths[1])
    refused(r"b\.parquet lacks the column 'site', which .*a\.parquet has\.$", paths)
    pq.write_table(TABLE.set_column(0, "site", [[1, 2, 3, 4]]), paths[1])
    refused(
        r"column 'site' is int64 in .*b\.parquet but string in .*a\.parquet; write them with one type", paths
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"t\.csv is empty; a first line with the names of the columns is needed\.$"),
        (b"a,y\nx,1\nz\nq,0\n", r"t\.csv, line 3: expected 2 fields, found 1\.$"),
        (b"a,y\nx,1\nz,1,2\nq,0\n", r"t\.csv, line 3: expected 2 fields, found more\.$"),
        (b"a,y\nx,1\n\xff,1\n", r"t\.csv, line 3: this is not UTF-8; convert the file first\.$"),
        (b"a,y\n" + b"x,1\n" * 1_200_000 + b"\xff,1\n", r"t\.csv, line 1,200,002: this is not UTF-8"),
        ("a,y\nx,1\n".encode("utf-16"), r"t\.csv, line 1: this is not UTF-8"),
        (
            b'a,y\nx,1\n"z,1\nq,0\n',
            r"t\.csv, line 3: a quote is opened and not closed, or followed by more text\.$",
        ),
        (b'a,y\nx,1\n"z"z,1\nq,0\n', r"t\.csv, line 3: a quote is opened and not closed"),
        (b"a,y\nx,1\r\nz,0\n", r"t\.csv: this is not well-formed CSV \(mixed line ends"),
    ],
)
def test_csv_files_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    refused(message, tmp_path / "t.csv")


def test_a_damaged_column_beside_those_that_are_folded(tmp_path):
    """Arrow ends the process if it is asked what such a column is like."""
    book = vf.fit(vf.count(TABLE, "y", "site"), 2, aim="information")
    path, out = tmp_path / "t.parquet", tmp_path / "ids.parquet"
    pq.write_table(pa.table({"z": ["p", "q"], "site": ["a", "b"]}), path)
    content = path.read_bytes()
    # A text (type 6) that may be missing (1) and is called z: now it may not, but has levels that say so.
    optional, required = (b"\x15\x0c\x25" + repetition + b"\x18\x01z" for repetition in (b"\x02", b"\x00"))
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    with pytest.raises(vf.InputError, match=r"t\.parquet cannot be read: Definition level histogram"):
        book.transform(path, out=out)
    book.transform(path, out=out, only_ids=True)
    assert pq.read_table(out)["site"].to_pylist() == book.ids("site", ["a", "b"]).tolist()


def test_a_parquet_file_whose_names_are_not_utf8(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"z\u00e9z": ["a"], "y": [0]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"z\xc3\xa9z", b"z\xcezz"))
    refused(r"t\.parquet is not a readable Parquet file: 'utf-8' codec can't decode", path)


def test_csv_files_without_a_header(tmp_path):
    (tmp_path / "t.csv").write_text("x,1\nz,0\n")
    refused(r"^column 'y' is not in the first line of .*t\.csv\. Columns: x, 1\.$", tmp_path / "t.csv")


def test_csv_files_that_do_not_agree(tmp_path):
    for name, header in (("a", "a,y"), ("b", "y,a")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,1\n")
    refused(r"b\.csv must have the same columns as .*a\.csv, in the same order\.$", f"{tmp_path}/*.csv")


def test_compressed_files_that_cannot_be_read(tmp_path):
    for name in ("t.csv.gz", "t.csv.zst"):
        (tmp_path / name).write_bytes(b"not compressed")
        refused(rf"{name} is damaged or was cut short: it cannot be unpacked to its end\.$", tmp_path / name)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.parametrize("n_cut", [4, 1000])
def test_compressed_files_that_were_cut_short(tmp_path, kind, compression, n_cut):
    lines = [
        f'{{"a": "v{i * 7919}", "y": {i % 2}}}' if kind == "jsonl" else f"v{i * 7919},{i % 2}"
        for i in range(50_000)
    ]
    content = "\n".join(lines if kind == "jsonl" else ["a,y", *lines]).encode() + b"\n"
    packed = gzip.compress(content) if compression == "gz" else pa.compress(content, "zstd", asbytes=True)
    path = tmp_path / f"t.{kind}.{compression}"
    path.write_bytes(packed)
    assert vf.count(path, "y").rows == 50_000
    path.write_bytes(packed[:-n_cut])
    refused(r"is damaged or was cut short: it cannot be unpacked to its end\.$", path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": "x", "y": 1}\n{"a": \n', r"t\.jsonl, line 2: this is not JSON\.$"),
        ('{"a": "x", "y": 1}\n[1, 2]\n', r"t\.jsonl.* one JSON object per line"),
        ('[{"a": "x", "y": 1}]', r"t\.jsonl.* one JSON object per line"),
        (
            '{"a": "x", "y": 1}\n{"a": 1, "y": 0}\n',
            r"^column 'a' mixes types, so 1 and '1' would be two values",
        ),
        ("", r"t\.jsonl has no columns\.$"),
        (
            '{"a": 123456789012345678901, "y": 1}\n{"a": 123456789012345678902, "y": 0}\n',
            r"t\.jsonl has no other text-like column; .* a \(numbers with more digits than a double\)",
        ),
    ],
)
def test_json_files_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "t.jsonl").write_text(content)
    refused(message, tmp_path / "t.jsonl")


def test_json_files_that_are_not_utf8(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b'{"a": "x", "y": 1}\n{"a": "\xff", "y": 0}\n')
    refused(r"t\.jsonl, line 2: this is not UTF-8", tmp_path / "t.jsonl")


def test_a_temporary_folder_is_removed_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "t.csv").write_text("a,y\nx,1\nz\n")
    refused("line 3", tmp_path / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
