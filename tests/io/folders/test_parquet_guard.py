"""Files that unpack to far more than they are: refused before they are unpacked, or soon after."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from vocabfold.io.folders import parquet_guard


def written(path, values, **options):
    """Write values with ids and counts, as a codebook has them."""
    n = len(values)
    numbers = {"id": np.zeros(n, np.int32), "neg": np.ones(n, np.int64), "pos": np.ones(n, np.int64)}
    pq.write_table(pa.table({"value": values, **numbers}), path, store_schema=False, **options)
    return path


def checked(path):
    parquet_guard.check_sizes(path)
    with pq.ParquetFile(path) as opened:
        schema = pa.schema([opened.schema_arrow.field(i) for i in range(2)])
    return pa.Table.from_batches(parquet_guard.batches([path], schema), schema)


def long_texts(n):
    return pa.array([f"{'x' * 10**6}{i:06}" for i in range(n)])


@pytest.mark.parametrize("compression", ["zstd", "none", "gzip"])
@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "dictionary"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_honest_files_are_read_as_they_are(tmp_path, compression, encoding, version):
    values = pa.array([None, *(f"{i:06}-{'é' * (i % 40)}" for i in range(20_000))])
    is_dictionary = encoding == "dictionary"
    path = written(
        tmp_path / "x.parquet",
        values,
        compression=compression,
        use_dictionary=is_dictionary,
        column_encoding=None if is_dictionary else {"value": encoding},
        data_page_version=version,
        row_group_size=7_000,
        data_page_size=2**12,
    )
    assert checked(path)["value"].combine_chunks().equals(values)
    assert checked(written(path, pa.array([], pa.string()))).num_rows == 0
    assert checked(written(path, pa.array(range(200_000)))).num_rows == 200_000


BOMBS = {
    "compressed": lambda path: written(
        path, long_texts(300), compression="zstd", use_dictionary=False, write_batch_size=300
    ),
    "shared beginnings": lambda path: written(
        path,
        long_texts(300),
        compression="zstd",
        use_dictionary=False,
        column_encoding={"value": "DELTA_BYTE_ARRAY"},
    ),
    "one word": lambda path: written(
        path, pa.DictionaryArray.from_arrays(np.zeros(10**5, np.int32), ["y" * 10**6]), compression="zstd"
    ),
    "rows": lambda path: written(
        path,
        pa.DictionaryArray.from_arrays(np.zeros(10**7, np.int32), [1]),
        compression="zstd",
        row_group_size=10**7,
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(tmp_path, name):
    path = BOMBS[name](tmp_path / "x.parquet")
    assert path.stat().st_size < 2 * 10**5
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        vf.CodebookError, match=r"bytes and would unpack to more than [\d,]+; vocabfold writes no"
    ):
        checked(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # kilobytes


@pytest.mark.parametrize("change", [b"\xff" * 40, b"\x00", b"\x1c" * 40, b"\x15\x00\x15\x01\x15\x01"])
def test_pages_that_are_not_where_they_should_be_are_refused(tmp_path, change):
    path = written(tmp_path / "x.parquet", pa.array(["a", "b"]), use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(content[:4] + change + content[4 + len(change) :])  # the head of the first page
    with pytest.raises(vf.CodebookError, match=r"is not valid: its pages are not where its footer says\.$"):
        checked(path)


def test_chunks_that_are_the_same_bytes_are_refused(tmp_path):
    path = written(tmp_path / "x.parquet", pa.array([f"{i:05}" for i in range(1000)]))
    footer = pq.read_metadata(path)
    for _ in range(3):
        footer.append_row_groups(pq.read_metadata(path))
    content = path.read_bytes()
    footer.write_metadata_file(tmp_path / "footer")
    length = int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[: -8 - length] + (tmp_path / "footer").read_bytes()[4:])
    with pytest.raises(vf.CodebookError, match=r"its pages are not where its footer says\.$"):
        checked(path)


def varint(number):
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def zigzag(number):
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def with_footer(path, footer, pages=b""):
    path.write_bytes(b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize(
    "footer",
    {
        "a list of numbers that are not there": b"\x99\xf7" + varint(2**40) + b"\0",
        "a text that is not there": b"\x98" + varint(2**40) + b"\0",
        "millions of structs": b"\x19\xfc" + varint(2**22) + bytes(2**22),
        "millions of fields": b"\x11" * 2**22,
    }.values(),
)
def test_footers_that_say_more_than_they_hold_are_refused_at_once(tmp_path, footer):
    path = with_footer(tmp_path / "x.parquet", footer)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(vf.CodebookError, match=r"its pages are not where its footer says\.$"):
        parquet_guard.check_sizes(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**17  # kilobytes


def test_pages_that_are_counted_again_and_again_are_refused(tmp_path):
    """Empty chunks of less than no bytes would hide that others are the same."""
    pages = (b"\x15\0" * 3 + b"\0") * 100
    sizes = [(1, len(pages)), (1, len(pages)), (0, -len(pages))]
    facts = [b"\x56" + zigzag(n) + b"\x26" + zigzag(size) + b"\x26" + zigzag(4) + b"\0" for n, size in sizes]
    group = b"\x19\x3c" + b"".join(b"\x3c" + fact + b"\0" for fact in facts) + b"\0"
    path = with_footer(tmp_path / "x.parquet", b"\x36" + zigzag(1) + b"\x19\x1c" + group + b"\0", pages)
    with pytest.raises(vf.CodebookError, match=r"its pages are not where its footer says\.$"):
        parquet_guard.check_sizes(path)


def test_millions_of_empty_pages_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_guard, "_ROOM", 2**16)
    pages = (b"\x15\0" * 3 + b"\0") * 100
    facts = b"\x56" + zigzag(1) + b"\x26" + zigzag(len(pages)) + b"\x26" + zigzag(4) + b"\0"
    group = b"\x19\x1c\x3c" + facts + b"\0\0"
    path = with_footer(tmp_path / "x.parquet", b"\x36" + zigzag(1) + b"\x19\x1c" + group + b"\0", pages)
    with pytest.raises(vf.CodebookError, match=r"its pages are not where its footer says\.$"):
        parquet_guard.check_sizes(path)
    monkeypatch.setattr(parquet_guard, "_ROOM", 2**17)
    parquet_guard.check_sizes(path)


def test_heads_of_long_texts_are_read(tmp_path):
    for length in (100, 2_000, 50_000):
        values = pa.array([f"{i}{'x' * length}" for i in range(10, 30)])
        path = written(tmp_path / "x.parquet", values, data_page_size=1, compression="none")
        assert checked(path)["value"].combine_chunks().equals(values)


_EVERY_BYTE = """
import sys
from pathlib import Path
from vocabfold.codebook.stores import schema_of
from vocabfold.io.folders import parquet_guard
from vocabfold.errors import CodebookError
path, schema = Path(sys.argv[1]), schema_of("text", ("neg", "pos"))
content = path.read_bytes()
for place in range(len(content)):
    for change in (2, 255):
        path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
        try:
            if parquet_guard.look(path) == (2, schema.names, schema.types):  # as every reader asks
                list(parquet_guard.batches([path], schema))
        except CodebookError:
            pass
print("alive")
"""


def test_no_damaged_file_ends_the_process(tmp_path):
    path = written(tmp_path / "x.parquet", pa.array(["a", "b"]))
    command = [sys.executable, "-c", _EVERY_BYTE, str(path)]
    ended = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("alive\n", "")


def test_texts_that_are_no_utf8_are_refused(tmp_path):
    path = written(tmp_path / "x.parquet", pa.array(["abcd"]), use_dictionary=False, compression="none")
    path.write_bytes(path.read_bytes().replace(b"abcd", b"ab\xffd"))
    with pytest.raises(vf.CodebookError, match=r"is not valid: .*Invalid UTF8"):
        checked(path)
