"""Bytes -> files of rows: text of all kinds, and Parquet."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib.fuzz.choices import LABEL, Choices, refusals, rows


class Text:
    """Bytes -> CSV, TSV, JSON lines, Criteo's layout, compressed or not -> count, fit, transform.

    Half of the inputs are files as they are; of the others, bytes are names and fields of a well-formed one.
    """

    names = (".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.zst", ".txt")
    options = ({}, {"folds": 3}, {"weight": "w"}, {"drop_null_labels": True}, {"features": ["n", "w"]})

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        table = rows(12)
        lines = [",".join("" if v is None else str(v) for v in row.values()) for row in table.to_pylist()]
        plain = "\n".join([",".join(table.column_names), *lines, ""]).encode()
        quoted = b'site,y,n\r\n"a ""b"", c",0,1\r\n"two\r\nlines",1,2\r\n,0,3\r\nNULL,1,4\r\n'
        json_lines = "\n".join(json.dumps(row) for row in table.to_pylist()).encode()
        nested = (
            b'{"y":1,"site":{"a":[1,2]},"n":1e400}\n{"y":0,"site":"\\ud83d\\ude00","n":12345678901234567890}\n'
        )
        criteo = b"\t".join([b"1", *[b"5"] * 13, *[b"68fd1e64"] * 26]) + b"\n"
        whole = [
            b"\0\0" + plain,
            b"\0\1" + plain.replace(b",", b";"),
            b"\0\4" + quoted,
            b"\0\2" + b"\xef\xbb\xbf" + plain,
            b"\1\0" + plain.replace(b",", b"\t"),
            b"\2\0" + json_lines,
            b"\2\3" + nested,
            b"\3\0" + plain,
            b"\4\0" + plain.replace(b",", b"\t"),
            b"\5\0" + criteo + criteo.replace(b"1", b"0", 1),
        ]
        fields = [bytes([1, end, options, 2, *range(60)]) for end in range(4) for options in range(2)]
        self.seeds = [*fields, *(b"\0" + each for each in whole)]

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        choices = Choices(data)
        is_of_fields, end, options = choices.number(2), choices.of(self.names), choices.of(self.options)
        content = _of_fields(choices, end) if is_of_fields else choices.rest()
        if end.endswith((".gz", ".zst")) and len(content) % 4:  # mostly well packed
            content = (
                gzip.compress(content, 1) if end.endswith(".gz") else pa.compress(content, "zstd", asbytes=True)
            )
        path = self.folder / f"rows{end}"
        path.write_bytes(content)
        preset = {"preset": "criteo"} if end == ".txt" else {}
        if preset:
            options = {"features": ["I1", "C1", "C26"]}  # of all columns, it would take long

        def door() -> None:
            counts = vf.count(path, None if preset else LABEL, **options, **preset)
            book = vf.fit(counts, 50, aim="information")
            book.transform(path, out=self.folder / "out.tsv", overwrite=True, **preset)

        return refusals(door)


def _of_fields(choices: Choices, end: str) -> bytes:
    """Return a well-formed file of words, the label of which alternates."""
    names = [LABEL, *(choices.word() for _ in range(1 + choices.number(4)))]
    table = [[str(i % 2), *(choices.word() for _ in names[1:])] for i in range(2 + choices.number(8))]
    text = io.StringIO(newline="")
    if ".jsonl" in end:
        for row in table:
            text.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
    else:
        separator = "\t" if ".tsv" in end else ","
        csv.writer(text, delimiter=separator).writerows([names, *table])
    return text.getvalue().encode("utf-8", "replace" if choices.number(4) else "surrogatepass")


class Parquet:
    """Bytes -> a Parquet file -> count, fit, transform.

    Half of the inputs are files as they are; of the others, bytes say which few bytes of a good one change.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        table = rows(40)
        nested = table.append_column("list", pa.array([[1, 2], None] * 20))
        shapes: list[tuple[pa.Table, dict[str, Any]]] = [
            (table, {}),
            (table, {"compression": "none", "use_dictionary": False}),
            (table, {"compression": "zstd", "data_page_version": "2.0"}),
            (table, {"compression": "gzip", "row_group_size": 7}),
            (nested, {"compression": "none"}),
            (
                table,
                {
                    "use_dictionary": False,
                    "column_encoding": {"site": "DELTA_BYTE_ARRAY", "n": "DELTA_BINARY_PACKED"},
                },
            ),
            (
                table,
                {
                    "use_dictionary": False,
                    "compression": "none",
                    "column_encoding": {"site": "DELTA_LENGTH_BYTE_ARRAY", "w": "BYTE_STREAM_SPLIT"},
                },
            ),
            (table.slice(0, 0), {}),
        ]
        self.files = []
        for shape, options in shapes:
            sink = io.BytesIO()
            pq.write_table(shape, sink, store_schema=False, **options)
            self.files.append(sink.getvalue())
        changes = [bytes([1, i, n, *range(5 * n)]) for i in range(len(shapes)) for n in range(3)]
        self.seeds = [*changes, *(b"\0" + content for content in self.files)]

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        path = self.folder / "rows.parquet"
        choices = Choices(data)
        if choices.number(2):
            content = bytearray(choices.of(self.files))
            for _ in range(choices.number(4)):
                content[choices.number(len(content))] = choices.number(256)
            path.write_bytes(content)
        else:
            path.write_bytes(choices.rest())

        def door() -> None:
            counts = vf.count(path, LABEL, folds=3 * (len(data) % 2))
            book = vf.fit(counts, 50, aim="information")
            book.transform(path, out=self.folder / "out.parquet", overwrite=True)

        return refusals(door)
