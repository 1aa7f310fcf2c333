"""What bytes are thrown at: each target turns them into input for one door, and uses what comes out.

A target returns whether the input was taken (`DONE`) or refused in one sentence (`REFUSED`); any other
exception, a message of several lines, an exit code beyond 2 or control characters on a terminal are raised.
Bytes are choices, too, so that a mutation of bytes is a mutation of a command line or of a saved folder.
"""

import contextlib
import copy
import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib.corpus import ODD_JSON, ODD_WORDS
from vocabfold.errors import VocabfoldError
from vocabfold.io.folders import headers, saving

DONE, REFUSED = "done", "refused"
LABEL = "y"
Target = Callable[[bytes], str]


class Wrong(Exception):
    """What a door said or printed is not what a user should see."""


class Choices:
    """Bytes as a source of choices; when they are used up, the first choice is always taken."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def number(self, below: int) -> int:
        """Return a number from 0 on."""
        return int.from_bytes(self._data.read(1 if below <= 256 else 4)) % below

    def of(self, entries: Sequence[Any]) -> Any:
        """Return one of several things."""
        return entries[self.number(len(entries))]

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self._data.read()

    def word(self) -> str:
        """Return a text: an odd one that is known, or the next few bytes."""
        if self.number(3):
            return str(self.of(ODD_WORDS))
        return self._data.read(self.number(24)).decode("utf-8", "surrogateescape")


def refusals(door: Callable[[], Any]) -> str:
    """Run a door that may refuse its input in one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            door()
    except VocabfoldError as error:
        said = str(error)
        if not said.strip() or not said.isprintable() or len(said) > 5000:
            raise Wrong(f"a message of {len(said)} characters: {said[:500]!r}") from error
        return REFUSED
    return DONE


def rows(n: int = 60) -> pa.Table:
    """Return a few rows with two columns of text, one of numbers, a weight, a fold and a label."""
    return pa.table(
        {
            "site": [None if i % 13 == 0 else f"s{i * i % 7}" for i in range(n)],
            "user": [f"ü{i % 11}" for i in range(n)],
            "n": [i % 5 for i in range(n)],
            "w": [0.5 + i % 3 for i in range(n)],
            "part": [i % 3 for i in range(n)],
            LABEL: [int(i * 7 % 5 > 2) for i in range(n)],
        }
    )


def command(words: list[str]) -> tuple[int, str, str]:
    """Run a command as `vocabfold` does, in this process; return its exit code and what it printed."""
    from vocabfold.interfaces.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors=how) for how in ("strict", "backslashreplace")]
    sys.argv = ["vocabfold", *words]
    code: Any = 0
    try:
        with (
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
            warnings.catch_warnings(),
        ):
            main.main()
    except SystemExit as error:
        code = error.code
    finally:
        os.environ.pop("VOCABFOLD_DEBUG", None)
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    is_clean = all(text.replace("\n", "").isprintable() for text in (out, err))
    problem = (
        f"exit code {code}"
        if code not in (0, 1, 2)
        else "a traceback"
        if "Traceback" in out + err or "unexpected: " in err
        else "control characters"
        if not is_clean
        else "no word about it"
        if code and not (out + err).strip()
        else ""
    )
    if problem:
        raise Wrong(f"{problem} of {words!r}: {err[-600:]!r} {out[-200:]!r}")
    return int(code), out, err


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


class Words:
    """Bytes -> command lines: well-formed ones, with words replaced, added and taken away."""

    def __init__(self, folder: Path) -> None:
        import typer.main

        from vocabfold.interfaces.cli.commands import app

        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        os.environ["HOME"] = str(self.home)
        os.environ["COLUMNS"] = "80"
        self._furnish()
        commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        self.options = {
            verb: [name for option in command.params for name in option.opts if name.startswith("-")]
            for verb, command in commands.items()
        }
        self.bases = [line.split() for line in BASES]
        self.seeds = [
            bytes([i, *more]) for i in range(len(BASES)) for more in ((0,), (1, 1, 5, 2, 9), (3, 2, 4, 1))
        ]

    def _furnish(self) -> None:
        """Put files and folders of all kinds into the place where commands run."""
        os.chdir(self.home)
        table = rows(200)
        pq.write_table(table, "rows.parquet")
        pq.write_table(table.slice(0, 0), "none.parquet")
        pa.csv.write_csv(table, "rows.csv")
        Path("rows.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()), "utf-8")
        Path("criteo.txt").write_bytes(Text(self.home).seeds[-1][3:] * 9)
        Path("empty.csv").write_bytes(b"")
        Path("noise.parquet").write_bytes(bytes(range(256)) * 9)
        Path("noise.csv").write_bytes(bytes(range(256)) * 9)
        Path("it's %s [x]{0}.csv").write_bytes(Path("rows.csv").read_bytes())
        Path("folder").mkdir(exist_ok=True)
        if not Path("pipe.csv").exists():
            os.mkfifo("pipe.csv")
        counts = vf.count("rows.parquet", LABEL, ["site", "user", "n"], folds=3)
        counts.save("counts")
        vf.fit(counts, 9, aim="information").save("book")
        self.kept = {path.name for path in Path().iterdir()}

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        choices = Choices(data)
        words = list(choices.of(self.bases))
        for _ in range(choices.number(6)):
            place, what = choices.number(len(words) + 1), choices.number(5)
            known = self.options.get(words[0] if words else "", ["--json"])
            if what == 0:
                words[place : place + 1] = [choices.word()]
            elif what == 1:
                words[place:place] = [choices.of(known), choices.word()]
            elif what == 2:
                words[place:place] = [choices.of(known)]
            elif what == 3:
                del words[place : place + 1]
            else:
                words[place : place + 1] = [f"{choices.of(known)}={choices.word()}"]
        return self.run([fit_for_a_process(word) for word in words])

    def run(self, words: list[str]) -> str:
        """Run a command, and remove what it leaves."""
        try:
            code, *_ = command(words)
        finally:
            self._tidy()
        return REFUSED if code == 2 else DONE

    def _tidy(self) -> None:
        os.chdir(self.home)
        for path in self.home.iterdir():
            if path.name not in self.kept:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


BASES = [
    "count rows.parquet --label y -o new",
    "count rows.csv --label y --features site,n --folds 3 -o new --json",
    "count criteo.txt --preset criteo -o new",
    "count rows.jsonl --label y --weight w --positive 1 -o new",
    "merge counts -o new",
    "fit rows.parquet --label y --budget 9 -o new",
    "fit counts --budget 5 --aim information --method greedy --allocation uniform -o new",
    "fit rows.csv --label y --budget auto --smoothing 3 --min-count 2 -o new --train-out new.csv",
    "fit counts --budget 5 --aim information --method stochastic --epsilon 0.2 --seed 3 -o new",
    "transform book rows.parquet -o new.parquet",
    "transform book rows.csv -o new.tsv.gz --only-ids --offset-ids",
    "transform book rows.parquet --counts counts -o folder/",
    "evaluate book rows.parquet --label y --fail-below 0.01",
    "evaluate book rows.csv --json",
    "compare counts --budgets 3,9 --methods exact,frequency",
    "compare rows.parquet --label y --budgets 3 --methods exact,threshold --shards 2 --json",
    "inspect book",
    "inspect book --feature site --value s1",
    "inspect book --feature n --id 0 --limit 3 --json",
    "inspect book --feature user --missing",
    "report book -o new.html --steps 3",
    "demo --nothing",
    "--help",
]


def fit_for_a_process(word: str) -> str:
    """Return a word that a shell can hand over, and that leads nowhere outside of the folder to be written."""
    word = word.replace("\0", "")
    is_outside = word.startswith(("/", "~")) or ".." in word or "=/" in word or "=~" in word
    return (
        word.replace("/", "").replace("~", "").replace("..", ".")
        if is_outside and word not in ODD_WORDS
        else word
    )


class Parsers:
    """Bytes -> the texts that options are read from: memory, budgets, names, formats, paths, presets."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)
        self.table = rows(4)
        texts = [
            "4GB",
            "200 MiB",
            "1e9",
            "160k",
            "1.5m",
            "10,000",
            "1,2,3",
            'a,"b,c"',
            "auto",
            "0.5",
            "x.csv.gz",
            "days/*.parquet",
            "criteo",
            "http://x/y.parquet",
            "~/rows.csv",
            "2020-01-01",
            "true",
            "-0",
        ]
        self.seeds = [bytes([i]) + text.encode() for i in range(len(self._doors(""))) for text in texts]

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        choices = Choices(data)
        which = choices.number(len(self._doors("")))
        text = choices.word() if choices.number(8) == 7 else choices.rest().decode("utf-8", "surrogateescape")
        return refusals(self._doors(text)[which])

    def _doors(self, text: str) -> list[Callable[[], Any]]:
        from vocabfold.interfaces.cli import options
        from vocabfold.io.engines.duckdb import parse_memory
        from vocabfold.io.engines.kinds import KINDS, from_text
        from vocabfold.io.rows import files, writing

        def values() -> None:
            for kind in KINDS:
                with contextlib.suppress(ValueError):
                    from_text(kind, text)

        return [
            lambda: parse_memory(text),
            lambda: options.parse_budget(text),
            lambda: options.parse_budgets([text]),
            lambda: options.parse_smoothing(text),
            lambda: options.names([text]),
            lambda: options.in_options(text),
            lambda: files.format_of([Path(text)]),
            lambda: files.find(text.replace("/", "").replace("**", "")),
            lambda: writing.format_of(writing.place(text)),
            lambda: saving.check_place(text, headers.COUNTS, overwrite=False),
            lambda: vf.load(text),
            lambda: vf.load_counts(text),
            lambda: vf.count(self.table, LABEL, preset=text),
            lambda: vf.count(self.table, text),
            values,
        ]


class Folders:
    """Bytes -> a saved codebook or counts, changed and signed again -> load it, and use what it gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        table = rows(200)
        self.table = table
        counts = vf.count(table, LABEL, ["site", "user", "n"], folds=3)
        counts.save(folder / "counts")
        vf.fit(counts, 9, aim="information").save(folder / "book")
        vf.fit(counts, 12, min_count=2, private_min=5).save(folder / "model")
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
        files[header_name] = signed(header, is_book=name != "counts")
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


def signed(header: dict[str, Any], *, is_book: bool) -> bytes:
    """Return a header with its digest and sha256 as a writer would have them, if it still can."""
    header.pop("sha256", None)
    if is_book:
        with contextlib.suppress(Exception):
            header["digest"] = digest_of(header)
    text = json.dumps(header, indent=2)
    body = text.removesuffix("\n}").encode() + b",\n"
    return body + f'  "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def digest_of(header: dict[str, Any]) -> str:
    """Return the digest of a codebook, written again from docs/format.md alone."""
    lines = [f"vocabfold 1 {header['units_per_row']} {header['settings']['unseen']}"]
    for column in header["columns"]:
        tail = "".join(struct.pack(">i", id).hex() for id in column["tail"]) or "-"
        borders = "".join(struct.pack(">d", border).hex() for border in column["borders"]) or "-"
        strength = float("inf") if column["strength"] is None else column["strength"]
        prior = struct.pack(">dd", column["mean"], strength).hex()
        facts = f"{column['kind']} {column['size']} {column['other']} {tail} {borders} {prior}"
        lines.append(f"{facts} {column['rows_sha256']} {len(column['name'].encode())} {column['name']}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


TARGETS: dict[str, type] = {
    "command line": Words,
    "text files": Text,
    "Parquet files": Parquet,
    "saved folders, signed": Folders,
    "words of options": Parsers,
}
