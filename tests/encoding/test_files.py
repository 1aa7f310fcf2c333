"""Files with ids from files with values."""

import datetime
import decimal
import gzip
import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample, write_csv
from support.encoded import NEW, by_hand, read, refused
from vocabfold.encoding import encoder
from vocabfold.encoding import files as step
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.rows import streams
from vocabfold.io.rows.source import source

# Most tests look up the very rows that they fitted; test_crossfit.py is about what that warns of.
pytestmark = pytest.mark.filterwarnings("ignore:.*looks like the training data")


INPUTS = {
    "parquet": lambda path, rows: pq.write_table(arrow(rows), path / "in.parquet", row_group_size=37),
    "plain.parquet": lambda path, rows: pq.write_table(
        arrow(rows), path / "in.plain.parquet", row_group_size=50, use_dictionary=False
    ),
    "csv": lambda path, rows: write_csv(arrow(rows), path / "in.csv"),
    "csv.gz": lambda path, rows: (
        write_csv(arrow(rows), path / "x.csv"),
        (path / "in.csv.gz").write_bytes(gzip.compress((path / "x.csv").read_bytes())),
    ),
    "tsv": lambda path, rows: write_csv(arrow(rows), path / "in.tsv"),
    "jsonl": lambda path, rows: (path / "in.jsonl").write_text(
        "".join(json.dumps(row, default=str) + "\n" for row in rows)
    ),
}


@pytest.mark.parametrize("target", ["out.parquet", "out.csv"])
@pytest.mark.parametrize("end", INPUTS)
def test_files_become_files(book, end, target, tmp_path):
    if end == "jsonl":  # which has no dates
        book = fold_counts(vf.count(arrow(sample()), "click", FEATURES[:4]), 12, min_count=2)
    rows = [row for row in NEW if "\x00" not in (row["site"] or "")]
    INPUTS[end](tmp_path, rows)
    written = book.transform(tmp_path / f"in.{end}", out=tmp_path / target)
    out = read(tmp_path / target)
    expected = by_hand(book, rows)
    assert {name: out[name].to_pylist() for name in book} == expected
    assert out["click"].to_pylist() == [row["click"] for row in rows]
    known = {name: set(book[name]["value"].to_pylist()) for name in book}
    unseen = {name: sum(row[name] not in known[name] for row in rows) for name in book}
    assert written == vf.Transformed((tmp_path / target,), len(rows), unseen)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


SOURCES = {
    "frame": lambda table: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "table": lambda table: table,
    "reader": lambda table: table.to_reader(11),
    "dataset": ds.dataset,
    "relation": lambda table: duckdb.connect().from_arrow(table),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("is_narrow", [False, True])
def test_everything_that_can_be_counted_can_be_written(book, kind, is_narrow, tmp_path, monkeypatch):
    if is_narrow:  # so that columns take turns
        monkeypatch.setattr(step, "_OWN_MEMORY", 2**60)
        monkeypatch.setattr(step, "_LEAST_SHARE", 0)
    book.transform(SOURCES[kind](arrow(NEW)), out=tmp_path / "out.parquet", memory_limit="300MB")
    out = pq.read_table(tmp_path / "out.parquet")
    assert {name: out[name].to_pylist() for name in book} == by_hand(book, NEW)
    assert out["click"].to_pylist() == [row["click"] for row in NEW]
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_columns_take_turns_if_they_do_not_fit(book, tmp_path, monkeypatch):
    pq.write_table(arrow(NEW), tmp_path / "in.parquet")
    book.transform(tmp_path / "in.parquet", out=tmp_path / "one.parquet", offset_ids=True)
    monkeypatch.setattr(step, "_OWN_MEMORY", 2**60)
    monkeypatch.setattr(step, "_LEAST_SHARE", 0)
    groups = []

    def watched(*args):
        for group in encoder.loaded(*args):
            groups.append(group)
            yield group

    monkeypatch.setattr(step, "loaded", watched)
    book.transform(tmp_path / "in.parquet", out=tmp_path / "turns.parquet", offset_ids=True)
    assert [(list(group), is_last) for group, is_last in groups] == [
        ([name], name == FEATURES[-1]) for name in FEATURES
    ]
    assert pq.read_table(tmp_path / "one.parquet").equals(pq.read_table(tmp_path / "turns.parquet"))


def test_other_columns_stay_as_they_are(tmp_path):
    table = pa.table(
        {
            "list": [[1, 2], None, []],
            "site": ["a", "b", None],
            "money": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-3.00")]),
            "instant": pa.array([datetime.datetime(2020, 1, 1)] * 3, pa.timestamp("ns", "Europe/Berlin")),
            "word": pa.array(["x", "y", "x"]).dictionary_encode(),
            "bytes": [b"\xff", None, b""],
            "struct": [{"a": 1}, None, {"a": None}],
            "small": pa.array([1, 2, None], pa.int8()),
        },
        metadata={"who": "me"},
    )
    book = fold_counts(vf.count(pa.table({"site": ["a", "b", "a"], "y": [0, 1, 0]}), "y"), 2)
    pq.write_table(table, tmp_path / "in.parquet")
    before = pq.read_table(tmp_path / "in.parquet")
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.parquet")
    after = pq.read_table(tmp_path / "out.parquet")
    assert after.drop(["site"]).equals(before.drop(["site"]), check_metadata=False)
    assert after.schema.names == before.schema.names
    assert after["site"].to_pylist() == [0, 1, 0]
    about = {b"vocabfold.digest": book.digest.encode(), b"vocabfold.offset_ids": b"false"}
    assert after.schema.metadata == {b"who": b"me", **about}
    assert after.schema.field("site").metadata.items() >= about.items()
    with pytest.raises(
        vf.InputError, match=r"^column 'list' holds list<.*>, which .*out.csv cannot hold; write Parq"
    ):
        book.transform(tmp_path / "in.parquet", out=tmp_path / "out.csv")
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.csv", only_ids=True)
    assert (tmp_path / "out.csv").read_text() == "site\n0\n1\n0\n"


def test_a_file_of_pandas_is_read_by_pandas_with_its_index_and_without_old_types(book, tmp_path):
    frame = arrow(NEW).to_pandas(types_mapper=pd.ArrowDtype).astype({"site": "string"})
    frame.index = pd.Index(range(7, 7 + len(frame)), name="key")
    frame.to_parquet(tmp_path / "in.parquet")
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.parquet")
    out = pd.read_parquet(tmp_path / "out.parquet")
    assert {name: out[name].tolist() for name in book} == by_hand(book, NEW)
    assert all(out[name].dtype == np.int32 for name in book)
    assert out.index.equals(frame.index)
    assert out["click"].dtype == frame["click"].dtype


def test_a_table_of_pandas_goes_back_to_pandas_with_numbers(book, tmp_path):
    # Before pandas 3, "str" makes texts of missing values.
    for site in ("string", "category", object, *(["str"] if pd.__version__ >= "3" else [])):
        frame = arrow(NEW).to_pandas(types_mapper=pd.ArrowDtype).astype({"site": site})
        out = book.transform(pa.Table.from_pandas(frame)).to_pandas()
        assert {name: out[name].tolist() for name in book} == by_hand(book, NEW)
        assert all(out[name].dtype == np.int32 for name in book)
    frame.set_index("site").to_parquet(tmp_path / "in.parquet")
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet").index.tolist() == by_hand(book, NEW)["site"]


def test_a_frame_of_a_class_derived_from_pandas_is_a_frame(book):
    class Special(pd.DataFrame):
        pass

    frame = Special(arrow(NEW).to_pandas(types_mapper=pd.ArrowDtype))
    assert book.transform(frame)["site"].tolist() == by_hand(book, NEW)["site"]


def test_large_numbers_among_objects_are_unsigned():
    rows = pd.DataFrame({"x": pd.Series([2**63, 1, 2**63] * 3, dtype=object), "y": [0, 1, 0] * 3})
    book = fold_counts(vf.count(rows, "y", "x"), 2)
    assert book.transform(rows)["x"].tolist() == [0, 1, 0] * 3


def test_text_is_written_as_it_was_read(tmp_path):
    (tmp_path / "in.csv").write_text('n,site,code,note\n1.50,a,007,"x ""y"""\n,b,1,\n+2,a,,""\n')
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    book.transform(tmp_path / "in.csv", out=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'n,site,code,note\n1.50,0,007,"x ""y"""\n,1,1,\n+2,0,,""\n'
    book.transform(tmp_path / "in.csv", out=tmp_path / "out.tsv.zst")
    with pa.input_stream(tmp_path / "out.tsv.zst", compression="zstd") as file:
        assert file.read() == b'n\tsite\tcode\tnote\n1.50\t0\t007\t"x ""y"""\n\t1\t1\t\n+2\t0\t\t""\n'


def test_heads_of_a_text_file_may_be_empty_or_differ_by_case(tmp_path):
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    (tmp_path / "in.csv").write_text(",site\n0,a\n1,b\n")
    book.transform(tmp_path / "in.csv", out=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == '"",site\n0,0\n1,1\n'
    frame = pa.table({"site": ["a"], "A": ["x"], "a": ["y"], "q,": ["z"]})
    pq.write_table(frame.drop(["A"]), tmp_path / "in.parquet")
    book.transform(tmp_path / "in.parquet", out=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'site,a,"q,"\n0,y,z\n'


def test_instants_are_written_as_they_are_whatever_the_time_zone_of_the_machine(tmp_path):
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    instant = datetime.datetime(2020, 1, 1, 12)
    table = pa.table(
        {
            "site": ["a"],
            "zoned": pa.array([instant], pa.timestamp("us", "UTC")),
            "fine": pa.array([instant], pa.timestamp("ns")),
            "time": pa.array([datetime.time(1, 2, 3)]),
            "date": pa.array([instant.date()]),
        }
    )
    book.transform(table, out=tmp_path / "out.csv")
    line = (tmp_path / "out.csv").read_text().splitlines()[1]
    assert line == "0,2020-01-01 12:00:00.000000Z,2020-01-01 12:00:00.000000000,01:02:03.000000,2020-01-01"
    for wrong in (pa.array([1], pa.duration("ns")), pa.array([1.0], pa.float16()), pa.array([b"x"])):
        with pytest.raises(
            vf.InputError, match=r"^column 'x' holds .*, which .*out.csv cannot hold; write Parquet"
        ):
            book.transform(pa.table({"site": ["a"], "x": wrong}), out=tmp_path / "out.csv")


def test_digits_are_text_where_the_codebook_holds_texts(tmp_path):
    rows = pa.table({"zip": ["10115", "x", "20095"] * 3, "y": [0, 1, 1] * 3})
    book = fold_counts(vf.count(rows, "y"), 3)
    (tmp_path / "in.csv").write_text("zip,other\n10115,1\n20095,2\n")
    book.transform(tmp_path / "in.csv", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {
        "zip": book.ids("zip", ["10115", "20095"]).tolist(),
        "other": [1, 2],
    }
    (tmp_path / "in.jsonl").write_text('{"zip": 10115}\n')
    with pytest.raises(
        vf.InputError, match=r"^column 'zip' holds integer in .*in.jsonl, but text in the codebook"
    ):
        book.transform(tmp_path / "in.jsonl", out=tmp_path / "json.parquet")


def test_nested_json_is_carried_as_its_text(tmp_path):
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    (tmp_path / "in.jsonl").write_text('{"site": "a", "tags": [1, {"b": 2}]}\n{"site": "b"}\n')
    book.transform(tmp_path / "in.jsonl", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["tags"].to_pylist() == ['[1,{"b":2}]', None]


def test_numbers_of_json_keep_all_their_digits(tmp_path):
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    lines = [
        '{"site": "a", "n": 1, "x": 0.5, "m": 18446744073709551615, "big": 9007199254740993}',
        '{"site": "b", "big": 0.5}',
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    book.transform(tmp_path / "in.jsonl", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist()[0] == {
        "site": 0,
        "n": 1,
        "x": 0.5,
        "m": "18446744073709551615",
        "big": "9007199254740993",
    }


def test_json_says_what_its_numbers_are(tmp_path):
    rows = pa.table({"f": [1.5e16, 0.25] * 3, "i": [1, 2] * 3, "y": [0, 1] * 3})
    book = fold_counts(vf.count(rows, "y", ["f", "i"]), 4)
    (tmp_path / "in.jsonl").write_text('{"f": 1.5e16, "i": 2, "x": 3e20}\n{"f": 0.25, "i": 1, "x": 0.5}\n')
    book.transform(tmp_path / "in.jsonl", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"f": [0, 1], "i": [1, 0], "x": [3e20, 0.5]}
    (tmp_path / "in.jsonl").write_text('{"f": 1, "i": 18446744073709551615}\n{"f": 0.25, "i": 1}\n')
    message = r"^column 'i' of .*in.jsonl holds numbers with more digits than a double; convert it to integer"
    refused(book, tmp_path / "in.jsonl", message, out=tmp_path / "out.parquet")


@pytest.mark.parametrize("end", ["csv", "tsv"])
def test_a_text_file_without_rows_has_none(book, end, tmp_path):
    (tmp_path / f"in.{end}").write_text(("," if end == "csv" else "\t").join([*FEATURES, "x"]) + "\n")
    for out in (tmp_path / "out.parquet", tmp_path / "out.csv"):
        assert book.transform(tmp_path / f"in.{end}", out=out).rows == 0
    assert pq.read_table(tmp_path / "out.parquet").shape == (0, 6)
    assert (tmp_path / "out.csv").read_text() == "site,number,real,flag,day,x\n"


@pytest.mark.parametrize("target", ["out.parquet", "out.csv"])
def test_dictionaries_that_cannot_be_one_are_written_apart(target, tmp_path):
    book = fold_counts(vf.count(pa.table({"s": ["a", "b", None] * 3, "y": [0, 1, 1] * 3}), "y"), 2)
    type = pa.dictionary(pa.int8(), pa.string())
    words = [pa.array([f"{letter}{i}" for i in range(100)]).dictionary_encode().cast(type) for letter in "ab"]
    holed = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50, pa.int8()), pa.array(["b", None]))
    table = pa.table({"s": pa.chunked_array([holed, words[0]]), "w": pa.chunked_array(words)})
    book.transform(table, out=tmp_path / target)
    out = read(tmp_path / target)
    assert out["w"].to_pylist() == table["w"].to_pylist()
    assert out["s"].to_pylist() == book.transform(table)["s"].to_pylist()


def test_the_criteo_preset(tmp_path):
    lines = [["1", "3", *[""] * 12, "68fd1e64", *["x"] * 25], ["0", *[""] * 13, "05db9164", *[""] * 25]]
    (tmp_path / "train.txt").write_text("".join("\t".join(line) + "\n" for line in lines))
    book = fold_counts(vf.count(tmp_path / "train.txt", preset="criteo"), 52)
    book.transform(tmp_path / "train.txt", out=tmp_path / "out.parquet", preset="criteo")
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.names[:2] == ["label", "I1"]
    assert out.select(["label", "I1", "I2", "C1", "C26"]).to_pylist() == [
        {"label": 1, "I1": 3, "I2": None, "C1": 1, "C26": 1},
        {"label": 0, "I1": None, "I2": None, "C1": 0, "C26": 0},
    ]


def test_several_files_become_one_or_one_each(book, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = [NEW[:50], [], NEW[50:120], NEW[120:]]
    for i, part in enumerate(parts):
        folder = Path("days") / f"day={i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(arrow(part), folder / f"part-{i}.parquet")
    paths = [Path("days") / f"day={i % 2}" / f"part-{i}.parquet" for i in range(4)]
    book.transform(paths, out="one.parquet")
    one = pq.read_table("one.parquet")
    assert {name: one[name].to_pylist() for name in book} == by_hand(book, NEW)
    written = book.transform("days", out="each/")
    assert [str(path) for path in written.paths] == [
        "each/day=0/part-0.parquet",
        "each/day=0/part-2.parquet",
        "each/day=1/part-1.parquet",
        "each/day=1/part-3.parquet",
    ]
    assert written.rows == len(NEW)
    for i, part in enumerate(parts):
        table = pq.ParquetFile(f"each/day={i % 2}/part-{i}.parquet").read()
        assert {name: table[name].to_pylist() for name in book} == by_hand(book, part)
    book.transform("days/day=0/*.parquet", out="each")  # which is a folder by now
    assert sorted(path.name for path in Path("each").glob("*.parquet")) == ["part-0.parquet", "part-2.parquet"]


def test_formats_that_are_not_written_become_parquet_in_a_folder(tmp_path):
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.b.jsonl").write_text('{"site": "a"}\n')
    written = book.transform(tmp_path / "in" / "*.jsonl", out=f"{tmp_path}/out/")
    assert written.paths == (tmp_path / "out" / "a.b.parquet",)


def test_two_files_are_not_written_to_one_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    for name in ("x.jsonl", "x.json"):
        Path(name).write_text('{"site": "a"}\n')
    with pytest.raises(
        vf.InputError, match=r"^x.jsonl and x.json would both become o/x.parquet; rename one of them"
    ):
        book.transform(["x.jsonl", "x.json"], out="o/")
    assert not Path("o").exists()


def test_a_link_is_written_under_its_own_name(book, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("blobs").mkdir()
    pq.write_table(arrow(NEW), "blobs/4f2a")
    Path("day.parquet").symlink_to("blobs/4f2a")
    assert book.transform("day.parquet", out="o/").paths == (Path("o/day.parquet"),)


def test_a_link_in_the_place_of_the_unfinished_file_is_not_followed(book, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".out.parquet.unfinished").symlink_to("victim")
    refused(book, arrow(NEW), r"out.parquet cannot be written: ", out=tmp_path / "out.parquet")
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_file_that_is_replaced_keeps_its_permissions(book, tmp_path):
    book.transform(arrow(NEW), out=tmp_path / "out.parquet")
    (tmp_path / "out.parquet").chmod(0o600)
    book.transform(arrow(NEW), out=tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").stat().st_mode & 0o777 == 0o600


def test_ids_are_not_taken_for_values(tmp_path):
    book = fold_counts(vf.count(pa.table({"x": [1, 2] * 3, "y": [0, 1] * 3}), "y", "x"), 2)
    book.transform(pa.table({"x": [1, 2]}), out=tmp_path / "ids.parquet")
    message = r"^column 'x' of .*ids.parquet holds ids already; give the original rows\.$"
    refused(book, tmp_path / "ids.parquet", message, out=tmp_path / "again.parquet")


def test_small_batches_are_looked_up_together(book, tmp_path):
    table = pa.concat_tables([arrow(NEW).slice(i, 1) for i in range(len(NEW))] * 5)
    table = table.set_column(0, "site", pa.chunked_array([c.dictionary_encode() for c in table["site"].chunks]))
    assert len(list(streams.from_table(table).read(table.schema.names, ()))) == 1
    book.transform(table.to_reader(), out=tmp_path / "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    assert {name: out[name].to_pylist() for name in book} == by_hand(book, NEW * 5)


def test_texts_come_as_dictionaries_where_files_have_them(tmp_path):
    words = pa.table({"w": ["a", "b"] * 50, "plain": [f"p{i}" for i in range(100)], "n": range(100)})
    path, other, text = (tmp_path / name for name in ("it's [1].parquet", "other.parquet", "t.csv"))
    pq.write_table(words, path, use_dictionary=["w", "n"], row_group_size=40)
    pq.write_table(words, other, use_dictionary=False)
    pa.csv.write_csv(words, text)
    names = words.schema.names

    def coded(stream):
        batch = next(stream.read(names, names))
        return [name for name in names if pa.types.is_dictionary(batch.schema.field(name).type)]

    with Engine() as engine:
        assert coded(streams.from_parquet(engine, [path], names, names)) == ["w"]
        assert coded(streams.from_parquet(engine, [other], names, names)) == []
        both = streams.from_parquet(engine, [other, path], names, names)
        types = [batch.schema.field("w").type for batch in both.read(["w"], ["w"])]
        assert list(map(pa.types.is_dictionary, types)) == [False, True, True, True]  # a batch per row group
        once = streams.from_reader("a reader", words.to_reader(), names)
        assert "w" in coded(streams.spooled(engine, once, tmp_path / "kept.parquet", names))
        assert "w" in coded(source(engine, text).stream(None, {"w": "text", "plain": "text"}, False))


def test_files_with_columns_of_several_types_and_orders_become_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = fold_counts(vf.count(pa.table({"x": [1, 2] * 3, "y": [0, 1] * 3}), "y", "x"), 2)
    pq.write_table(pa.table({"x": pa.array([1], pa.int8()), "n": pa.array([7], pa.int32())}), "a.parquet")
    pq.write_table(pa.table({"n": pa.array([2**40]), "x": pa.array([2.0])}), "b.parquet")
    book.transform(["a.parquet", "b.parquet"], out="out.parquet")
    assert pq.read_table("out.parquet").to_pydict() == {"x": [0, 1], "n": [7, 2**40]}
    text = fold_counts(vf.count(pa.table({"s": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2)
    pq.write_table(pa.table({"s": ["a"]}), "text.parquet")
    pq.write_table(pa.table({"s": pa.array(["b"]).dictionary_encode()}), "words.parquet")
    text.transform(["text.parquet", "words.parquet"], out="out.parquet")
    assert pq.read_table("out.parquet").to_pydict() == {"s": [0, 1]}
    for name, words in (("p", pa.array(["p"])), ("q", pa.array(["q"]).dictionary_encode())):
        pq.write_table(pa.table({"x": [1], "w": words}), f"{name}.parquet")
    book.transform(["q.parquet", "p.parquet"], out="out.parquet")
    assert pq.read_table("out.parquet").to_pydict() == {"x": [0, 0], "w": ["q", "p"]}
    for name, numbers in (("large", [2**60 + 1]), ("real", [1.5])):
        pq.write_table(pa.table({"x": [1], "n": numbers}), f"{name}.parquet")
    with pytest.raises(
        vf.InputError, match=r"^column 'n' is int64 in one file and double in another, which does not"
    ):
        book.transform(["large.parquet", "real.parquet"], out="none.parquet")
    assert not Path("none.parquet").exists()
    pq.write_table(pa.table({"x": [2], "n": ["seven"]}), "c.parquet")
    with pytest.raises(
        vf.InputError, match=r"^column 'n' is string in c.parquet but int32 in a.parquet; write them to"
    ):
        book.transform(["a.parquet", "c.parquet"], out="out.parquet")
    pq.write_table(pa.table({"x": [2]}), "d.parquet")
    for paths in (["a.parquet", "d.parquet"], ["d.parquet", "a.parquet"]):
        with pytest.raises(
            vf.InputError, match=r"^d.parquet lacks the column 'n', which a.parquet has; write them"
        ):
            book.transform(paths, out="out.parquet")
    book.transform(["a.parquet", "c.parquet", "d.parquet"], out="out.parquet", only_ids=True)
    assert pq.read_table("out.parquet").to_pydict() == {"x": [0, 1, 1]}
    book.transform(["a.parquet", "c.parquet", "d.parquet"], out="each/")


def test_batches_of_any_size_give_one_answer(book, tmp_path, monkeypatch):
    pq.write_table(arrow(NEW), tmp_path / "in.parquet", row_group_size=23)
    book.transform(tmp_path / "in.parquet", out=tmp_path / "one.parquet")
    monkeypatch.setattr(streams, "_LEAST_ROWS", 5)
    monkeypatch.setattr(streams, "BATCH_ROWS", 17)
    book.transform(tmp_path / "in.parquet", out=tmp_path / "many.parquet")
    assert pq.read_table(tmp_path / "many.parquet").equals(pq.read_table(tmp_path / "one.parquet"))
