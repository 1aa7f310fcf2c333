"""Rows that cannot be encoded, and what is left behind: nothing."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import arrow, fold_counts
from support.encoded import NEW, refused
from vocabfold.encoding import encoder
from vocabfold.encoding import files as step

# Most tests look up the very rows that they fitted; test_crossfit.py is about what that warns of.
pytestmark = pytest.mark.filterwarnings("ignore:.*looks like the training data")


def test_columns_that_are_missing_or_of_another_type(book, tmp_path):
    table = arrow(NEW)
    refused(
        book,
        table.drop(["site", "day"]),
        r"^columns 'site', 'day' are not in the Arrow Table\. Columns: number",
    )
    wrong = table.set_column(1, "number", table["number"].cast(pa.string()))
    wrong = wrong.set_column(4, "day", pa.array([[1]] * len(NEW)))
    refused(
        book,
        wrong,
        r"^column 'number' holds text in the Arrow Table, but integer in the codebook; values of different "
        r"types never match, so convert it first\. column 'day' holds list<.*> in the Arrow Table, but date",
    )
    pq.write_table(wrong, tmp_path / "in.parquet")
    refused(
        book,
        tmp_path / "in.parquet",
        r"^column 'number' holds text in .*in.parquet",
        out=tmp_path / "o.parquet",
    )
    assert not (tmp_path / "o.parquet").exists()


def test_columns_without_texts_as_names(book):
    refused(
        book,
        pd.DataFrame({0: [1], "sit": ["a"]}),
        r"^columns 'site' \(did you mean 'sit'\?\), 'number', .*: 0, sit\.$",
    )


def test_a_column_that_comes_twice(book):
    frame = pd.concat([arrow(NEW).to_pandas(), arrow(NEW).to_pandas()[["site"]]], axis=1)
    refused(book, frame, r"^the pandas DataFrame has the column 'site' twice; rename one of them\.$")


def test_another_digest(book):
    assert book.transform(arrow(NEW), expect=book.digest).num_rows == len(NEW)
    refused(
        book,
        arrow(NEW),
        rf"^the codebook has the digest {book.digest}, but 'abc' was expected; use",
        expect="abc",
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, r"^out is required for PosixPath input, e\.g\. out='ids\.parquet' \(only frames and Arrow tables"),
        ({"out": ""}, r"^out must be the path of a file, or of a folder with a / at its end, got ''\.$"),
        ({"out": 7}, r"^out must be the path of a file"),
        ({"out": "a\0.parquet"}, r"^out must be the path of a file"),
        ({"out": "x" * 300 + ".parquet"}, r"^'x+' cannot be written: File name too long\.$"),
        ({"out": "~nobody-of-that-name/x.parquet"}, r" cannot be written: "),
        (
            {"out": "ids"},
            r"^cannot tell the format of ids from its name, or cannot write it; the name must end in",
        ),
        ({"out": "ids.jsonl"}, r"^cannot tell the format of ids.jsonl"),
        ({"out": "ids.parquet.gz"}, r"^cannot tell the format of ids.parquet.gz"),
        ({"out": "no/ids.parquet"}, r"^there is no folder 'no' to write to; create it first\.$"),
        ({"out": "no/folder/"}, r"^there is no folder 'no' to write to; create it first\.$"),
        ({"out": "in.parquet"}, r"^in.parquet is both input and output; write the result to another file\.$"),
        ({"out": "./"}, r"^in.parquet is both input and output"),
        (
            {"out": "old.parquet", "overwrite": False},
            r"^old.parquet exists; give another name, or use overwrite=True to replace it\.$",
        ),
        ({"out": "x.parquet", "preset": "avazu"}, r"^preset must be 'criteo', got 'avazu'\.$"),
        ({"out": "x.parquet", "memory_limit": "1KB"}, r"^memory_limit must be at least 200 MiB"),
    ],
)
def test_options_that_cannot_be_used(book, options, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(arrow(NEW), "in.parquet")
    Path("old.parquet").write_text("old")
    refused(book, Path("in.parquet"), match, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "old.parquet"]
    assert Path("old.parquet").read_text() == "old"


def test_a_frame_is_not_written_to_a_folder(book, tmp_path):
    refused(
        book,
        arrow(NEW),
        r"is a folder, which can take only files; give a file to write Table to\.$",
        out=tmp_path,
    )


def test_a_value_that_must_not_be_unseen_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = fold_counts(vf.count(pa.table({"site": ["a", "b"] * 3, "y": [0, 1] * 3}), "y"), 2, unseen="error")
    table = pa.table({"site": pa.array(["a", "c", "b"]).dictionary_encode(), "n": [1, 2, 3]})
    message = r"^column 'site': the value 'c' is not in the codebook, which was fitted with unseen='error'\.$"
    refused(book, table, message)
    pq.write_table(table, "in.parquet")
    for out in ("out.parquet", "out.csv", "folder/"):
        refused(book, "in.parquet", message, out=out)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
    assert book.transform(table.filter([True, False, True]))["site"].to_pylist() == [
        0,
        1,
    ]  # 'c' is a word still


def test_a_damaged_file_leaves_nothing_behind(book, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(arrow(NEW), "in.parquet", row_group_size=20, compression="zstd")
    content = bytearray(Path("in.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(40)
    Path("in.parquet").write_bytes(content)
    Path("out.parquet").write_text("old")
    refused(book, "in.parquet", r"^in.parquet cannot be read: ", out="out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]
    assert Path("out.parquet").read_text() == "old"


def test_threads_of_one_column_count_its_unseen_values_together(book, monkeypatch):
    class Slow(dict):
        def get(self, *arguments):
            found = super().get(*arguments)
            time.sleep(0.01)
            return found

    table = arrow([row | {"site": "never seen"} for row in NEW]).select(book.features)
    encoder.fill(book.indexes, book.store, book.features)
    one, many = {}, Slow()
    for piece, unseen in ((1000, one), (20, many)):  # each piece may be another thread's
        monkeypatch.setattr(encoder, "_PIECE", piece)
        monkeypatch.setattr(encoder.os, "cpu_count", lambda: 4)
        encoder.encode(encoder.Encoder(book, book.indexes, encoder.offsets(book, False), unseen), table)
    assert one["site"] == len(NEW)
    assert one == many


def test_of_two_who_write_one_file_one_gets_an_error(book, tmp_path):
    table = arrow(NEW)
    begun, may_end = threading.Event(), threading.Event()

    def slowly():
        yield table.to_batches()[0]
        begun.set()
        may_end.wait(30)

    reader = pa.RecordBatchReader.from_batches(table.schema, slowly())
    out = tmp_path / "out.parquet"
    first = threading.Thread(target=book.transform, args=(reader,), kwargs={"out": out})
    first.start()
    assert begun.wait(30)
    refused(
        book,
        table,
        r"out.parquet is being written by another process; wait until it has finished, or write elsewhere",
        out=out,
    )
    may_end.set()
    first.join()
    assert pq.read_table(out).num_rows == len(NEW)
    book.transform(table, out=out)
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_what_a_killed_run_left_is_taken_over(book, tmp_path):
    (tmp_path / ".out.parquet.unfinished").write_text("half a file, longer than it will be" * 10_000)
    book.transform(arrow(NEW), out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == len(NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_a_full_disk_is_said_in_one_sentence(book, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    refused(book, arrow(NEW), r"^the disk is full while writing .*out.parquet", out=tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())


def test_no_rows_are_not_taken_for_those_of_an_empty_file(tmp_path):
    rows = pa.table({"site": ["a", "b"] * 20, "click": [0, 1] * 20})
    for name, part in (("full", rows), ("empty", rows.slice(0, 0))):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    book = vf.fit(vf.count(tmp_path / "*.parquet", "click"), 4)
    assert book.transform(rows.slice(0, 0)).num_rows == 0  # without a warning, which would be an error
    with pytest.warns(UserWarning, match="looks like the training data"):
        book.transform(rows)


def test_a_column_that_does_not_fit_into_the_memory_limit_is_refused(book, tmp_path, monkeypatch):
    pq.write_table(arrow(NEW), tmp_path / "rows.parquet")
    monkeypatch.setattr(step, "_VALUE_BYTES", 2**30)
    with pytest.raises(
        vf.InputError, match=r"has \d+ values, which need about .* GB in memory, but the limit is 0\.21"
    ):
        book.transform(tmp_path / "rows.parquet", out=tmp_path / "ids.parquet", memory_limit="200MiB")
    assert not (tmp_path / "ids.parquet").exists()


def test_long_texts_count_by_their_length(tmp_path, monkeypatch):
    rows = pa.table({"x": ["a" * 600, "b" * 600], "y": [0, 1]})
    fold_counts(vf.count(rows, "y"), 2).save(tmp_path / "book")
    pq.write_table(rows, tmp_path / "rows.parquet")
    book = vf.load(tmp_path / "book")
    book.transform(tmp_path / "rows.parquet", out=tmp_path / "ids.csv", memory_limit="200MiB")
    monkeypatch.setattr(step, "_COPIES", 10**6)
    with pytest.raises(
        vf.InputError, match=r"has 2 values, which need about 1\.21 GB in memory, but the limit is"
    ):
        book.transform(tmp_path / "rows.parquet", out=tmp_path / "more.csv", memory_limit="200MiB")


def test_files_of_a_codebook_that_changed_are_refused_before_their_texts_are_counted(tmp_path):
    rows = pa.table({"x": ["a", "b"], "y": [0, 1]})
    fold_counts(vf.count(rows, "y"), 2).save(tmp_path / "book")
    pq.write_table(rows, tmp_path / "rows.parquet")

    def transform():
        book.transform(tmp_path / "rows.parquet", out=tmp_path / "ids.csv", memory_limit="200MiB")

    book = vf.load(tmp_path / "book")
    (path,) = book.store.files["x"]
    bomb = pa.table({"value": [f"{'x' * 10**6}{i:06}" for i in range(300)]})
    pq.write_table(bomb, path, use_dictionary=False, column_encoding={"value": "DELTA_BYTE_ARRAY"})
    with pytest.raises(vf.CodebookError, match="would unpack to more than"):
        transform()
    path.unlink()
    with pytest.raises(vf.CodebookError, match="has been removed or replaced since it was loaded"):
        transform()
    assert not (tmp_path / "ids.csv").exists()


def test_a_column_that_fills_the_memory_is_loaded_alone():
    sizes = {"large": 200, "huge": 300, "small": 5, "smaller": 4}
    asked = []

    def index_of(name):
        asked.append(name)
        return SimpleNamespace(nbytes=sizes[name])

    groups = [(list(group), is_last) for group, is_last in encoder.loaded(list(sizes), index_of, room=100)]
    assert groups == [(["large"], False), (["huge"], False), (["small", "smaller"], True)]
    assert asked == list(sizes)
