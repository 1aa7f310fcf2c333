"""Bytes -> saved codebooks and counts."""

import copy
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib.corpus import ODD_JSON
from harden.lib.fuzz.choices import LABEL, Choices, refusals, rows
from harden.lib.headers import checksummed


class Folders:
    """Bytes -> a saved codebook or counts, changed, with valid checksums -> load it, and use the result."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        table = rows(200)
        self.table = table
        counts = vf.count(table, LABEL, ["site", "user", "n"], folds=3)
        counts.save(folder / "counts")
        vf.fit(counts, 9, aim="information").save(folder / "book")
        vf.fit(counts, 12, min_count=2, dedicated_min=5).save(folder / "model")
        self.originals = {
            name: {path.name: path.read_bytes() for path in (folder / name).iterdir()}
            for name in ("counts", "book", "model")
        }
        self.seeds = [bytes([i, j, k, 7, 3, 1]) for i in range(3) for j in range(4) for k in (0, 5, 11)]

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        choices = Choices(data)
        name = choices.of(("counts", "book", "model"))
        files = dict(self.originals[name])
        header_name = "counts.json" if name == "counts" else "codebook.json"
        header = json.loads(files[header_name])
        what = choices.number(8)
        if what < 5:
            for _ in range(1 + choices.number(3)):
                self._change(header, choices)
        elif what == 5:
            self._damage(header, files, choices)
        elif what == 6:
            self._rewrite(header, files, choices)
        else:
            files["provenance.json"] = choices.rest()
        files[header_name] = checksummed(header, is_book=name != "counts")
        mutant = self.folder / "mutant"
        shutil.rmtree(mutant, ignore_errors=True)
        mutant.mkdir()
        for file, content in files.items():
            (mutant / file).write_bytes(content)
        return refusals(lambda: self._use(mutant, name))

    def _change(self, header: dict[str, Any], choices: Choices) -> None:
        """Replace, remove or double one field anywhere in the header."""
        node: Any = header
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                return
            key = choices.of(keys)
            if isinstance(node[key], dict | list) and node[key] and choices.number(4):
                node = node[key]
                continue
            if choices.number(5) == 4:
                del node[key]
            elif isinstance(node, list) and choices.number(3) == 2:
                node.append(copy.deepcopy(node[key]))
            else:
                node[key] = copy.deepcopy(choices.of(ODD_JSON)) if choices.number(4) else choices.word()
            return

    def _files_of(self, header: dict[str, Any], choices: Choices) -> dict[str, Any]:
        return choices.of([entry for column in header["columns"] for entry in column["files"]])

    def _replace(self, entry: dict[str, Any], files: dict[str, bytes], content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        del files[entry["name"]]
        entry |= {"name": f"{entry['name'][:3]}-{digest[:16]}.parquet", "bytes": len(content), "sha256": digest}
        files[entry["name"]] = content

    def _damage(self, header: dict[str, Any], files: dict[str, bytes], choices: Choices) -> None:
        """Change bytes of a Parquet file."""
        entry = self._files_of(header, choices)
        content = bytearray(files[entry["name"]])
        for _ in range(1 + choices.number(6)):
            content[choices.number(2**31) % len(content)] = choices.number(256)
        self._replace(entry, files, bytes(content))

    def _rewrite(self, header: dict[str, Any], files: dict[str, bytes], choices: Choices) -> None:
        """Write a Parquet file again with other values in one of its columns."""
        entry = self._files_of(header, choices)
        table = pq.read_table(io.BytesIO(files[entry["name"]]))
        which = choices.number(table.num_columns)
        old = table.column(which).to_pylist()
        change = choices.number(6)
        new = (
            old[::-1]
            if change == 0
            else old[:1] * len(old)
            if change == 1
            else [None] * len(old)
            if change == 2
            else [-1] * len(old)
            if change == 3
            else [2**62] * len(old)
            if change == 4
            else old
        )
        try:
            column = pa.array(new, table.schema.types[which])
        except (pa.ArrowException, OverflowError, TypeError):
            column = pa.array(new)
        table = table.set_column(which, table.column_names[which], column)
        if change == 5:
            table = table.slice(0, choices.number(table.num_rows))
            entry["rows"] = table.num_rows
        sink = io.BytesIO()
        pq.write_table(table, sink)
        self._replace(entry, files, sink.getvalue())

    def _use(self, mutant: Path, name: str) -> None:
        if name == "counts":
            counts = vf.load_counts(mutant)
            repr(counts)
            for feature in counts.features:
                counts[feature]
            both = counts + counts
            vf.fit(both, 30).transform(self.table)
            vf.fit(counts, 9, aim="information")
            vf.compare(counts, [4], ["exact", "frequency"])
            counts.save(self.folder / "again-counts")
            return
        book = vf.load(mutant)
        repr(book), book._repr_html_(), book.offsets, book.digest
        for feature in book.features:
            book[feature]
            book.groups(feature)
            book.members(feature, 0)
            book.ids(feature, [None])
        book.transform(self.table)
        book.row({name: None for name in book.features} | {"site": "s1", "user": "x", "n": 2})
        book.evaluate(self.table, label=LABEL)
        book.save(self.folder / "again")
