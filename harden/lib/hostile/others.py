"""Doors beside counting: training rows, scikit-learn, single values, the report, the command line."""

import csv
import datetime
import html.parser
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib import corpus
from harden.lib.commands import command
from harden.lib.hostile.cases import LABEL, VALUE, Tally, hostile_rows, of_objects, rows_of
from harden.lib.hostile.doors import DOORS
from harden.lib.hostile.judge import EXACT, at_the_door, check, judged


def training(tally: Tally, small: bool) -> None:
    """fit_transform: dedicated ids are those of the codebook, in frames and files."""
    table = hostile_rows()
    label, features = table.column_names[-1], table.column_names[:-1]
    for door in ("pandas", "Arrow table", "Parquet", "CSV", "JSON lines"):

        def case(folder: Path, door: str = door) -> None:
            data = DOORS[door](table, folder)
            is_frame = door in ("pandas", "Arrow table")
            book, out = vf.fit_transform(
                data,
                label,
                10_000,
                features=features,
                out=None if is_frame else folder / "train.parquet",
                dedicated_min=1,
            )
            ids = out if is_frame else pq.read_table(folder / "train.parquet")
            for name in features:
                kind = book.columns[name].kind
                mapping = {row["value"]: row["id"] for row in book[name].to_pylist()}
                wanted = [mapping[judged(value, kind, door)] for value in table[name].to_pylist()]
                got = ids[name].tolist() if door == "pandas" else ids[name].to_pylist()
                check(got == wanted, "the ids of training rows", name)

        tally.run(f"fit_transform {door}", case)
        if small:
            return


def estimator(tally: Tally, small: bool) -> None:
    """Try the scikit-learn door: ids by a dict, names, values of ids."""
    import pandas

    for kind, values in list(corpus.VALUES.items())[: 1 if small else None]:

        def case(_: Path, kind: str = kind, values: Sequence[Any] = values) -> None:
            table = rows_of(values, kind)
            X, y = table.select([VALUE]).to_pandas(), table[LABEL].to_pylist()
            X.columns = ["<b>\x1b[1m'\";--"]
            compressor = vf.VocabularyCompressor(1000, dedicated_min=1, cv=2).fit(X, y)  # as rows are few
            rows = compressor.codebook_[X.columns[0]].to_pylist()
            mapping = {row["value"]: row["id"] for row in rows}
            wanted = [mapping[judged(value, "", "")] for value in table[VALUE].to_pylist()]
            check(set(mapping) == {judged(value, "", "") for value in values}, "values", kind)
            check(compressor.transform(X)[:, 0].tolist() == wanted, "ids of the estimator", kind)
            check(compressor.fit_transform(X, y)[:, 0].tolist() == wanted, "ids of fit_transform", kind)
            check(list(compressor.get_feature_names_out()) == list(X.columns), "names")
            members = compressor.members_[X.columns[0]]
            check(all(members[id] == [value] for value, id in mapping.items()), "members", kind)

        tally.run(f"estimator {kind}", case)
    for text in ["plain", *corpus.SURROGATES]:
        for value, feature, label in ((text, VALUE, LABEL), ("a", text, LABEL), ("a", VALUE, text)):
            X = of_objects({feature: [value, "b"] * 4})
            y = pandas.Series([0, 1] * 4, name=label)

            def fitted(_: Path, X: Any = X, y: Any = y) -> None:
                with at_the_door():
                    vf.VocabularyCompressor(9).fit(X, y)

            tally.run(f"estimator {(value, feature, label)!r}", fitted, refused=text in corpus.SURROGATES)


def serving(tally: Tally, small: bool) -> None:
    """ids, row and members of one saved codebook, value by value; and values that are not in it."""
    with tempfile.TemporaryDirectory() as folder:
        table = rows_of(corpus.TEXTS, "string")
        vf.fit(vf.count(table, LABEL, [VALUE]), 9999, **EXACT).save(Path(folder) / "book")
        book = vf.load(Path(folder) / "book")
        mapping = {row["value"]: row["id"] for row in book[VALUE].to_pylist()}
        for text in corpus.TEXTS[:: 20 if small else 1]:

            def case(_: Path, text: str = text) -> None:
                check(book.row({VALUE: text}) == {VALUE: mapping[text]}, "row", text)
                check(book.ids(VALUE, [text]).tolist() == [mapping[text]], "ids", text)
                check(book.members(VALUE, mapping[text]) == [text], "members", text)
                near = [
                    text + "\0",
                    text + "\u200b",
                    "\ufeff" + text,
                    text.encode()[:-1].decode("utf-8", "replace") + "?",
                ]
                for other in near:
                    if other not in mapping:
                        check(
                            book.row({VALUE: other}) == {VALUE: book.columns[VALUE].other},
                            "another text",
                            other,
                        )

            tally.run(f"serving {text!r:.60}", case)
        for odd in [*corpus.SURROGATES, 1, 1.5, b"x", [], {}, object(), datetime.date.max, 2**70, float("nan")]:

            def row(_: Path, odd: Any = odd) -> None:
                with at_the_door():
                    found = book.row({VALUE: odd})
                check(found == {VALUE: book.columns[VALUE].other}, "an odd value has an id", odd)

            def ids(_: Path, odd: Any = odd) -> None:
                with at_the_door():
                    found = book.ids(VALUE, [odd]).tolist()
                check(found == [book.columns[VALUE].other], "an odd value has an id", odd)

            # NaN is missing, and a text that is no UTF-8 is one that was not seen; Arrow has no array of it.
            is_other_type = not isinstance(odd, str) and odd == odd
            tally.run(f"row {odd!r:.60}", row, refused=is_other_type)
            tally.run(f"ids {odd!r:.60}", ids, refused=is_other_type or odd in corpus.SURROGATES)


class _Tags(html.parser.HTMLParser):
    """All tags of a page, and all attributes that would run code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.code: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.code += [
            name for name, text in attributes if name.startswith("on") or "javascript:" in (text or "")
        ]


def pages(tally: Tally, small: bool) -> None:
    """Make a report: a page with hostile names and values has the tags of one without."""
    table = hostile_rows()
    label, features = table.column_names[-1], table.column_names[:-1]
    tame = table.rename_columns([*(f"column{i}" for i in range(len(features))), "y"])
    for i in range(3):
        words = [f"word{hash_of(value)}" for value in table.column(i).to_pylist()]
        tame = tame.set_column(i, tame.column_names[i], pa.array(words))

    def page(rows: pa.Table, folder: Path, name: str) -> _Tags:
        counts = vf.count(rows, rows.column_names[-1], rows.column_names[:-1], folds=3)
        book = vf.fit(counts, 60)
        compared = vf.compare(counts, [10, 60], ["exact", "frequency"])
        book.report(folder / name, counts=counts, heldout=rows.slice(9), compare=compared, steps=3)
        repr(book), book._repr_html_(), repr(book.evaluate(rows.slice(5)))
        tags = _Tags()
        tags.feed((folder / name).read_text("utf-8"))
        return tags

    def case(folder: Path) -> None:
        hostile, plain = page(table, folder, "hostile.html"), page(tame, folder, "tame.html")
        check(not hostile.code, "code in an attribute", hostile.code)
        check(set(hostile.tags) == set(plain.tags), "other tags", set(hostile.tags) ^ set(plain.tags))
        check(hostile.tags["script"] == plain.tags["script"], "another script", hostile.tags["script"])
        for name in (label, *features):
            check(
                "<" not in name or name not in (folder / "hostile.html").read_text("utf-8"), "a raw name", name
            )

    tally.run("report, evaluate, compare, repr", case)


def hash_of(value: object) -> int:
    """Return a number for a value, the same in every process."""
    return sum(i * byte for i, byte in enumerate(repr(value).encode(), start=1)) % 10**6


def terminals(tally: Tally, small: bool) -> None:
    """Run commands on hostile rows: what they print is printable, what they make is the library's."""
    table = hostile_rows()
    label, features = table.column_names[-1], table.column_names[:-1]

    def quoted(names: Sequence[str]) -> str:
        sink = io.StringIO()
        csv.writer(sink, quoting=csv.QUOTE_ALL, lineterminator="").writerow(names)
        return sink.getvalue()

    for door in ("Parquet", "CSV", "TSV", "JSON lines")[: 1 if small else 4]:

        def case(folder: Path, door: str = door) -> None:
            before = os.getcwd()
            os.chdir(folder)
            try:
                path = str(DOORS[door](table, folder))
                rows = ["--label", label, "--features", quoted(features)]
                of_ids = ["--min-count", "1", "--dedicated-min", "1"]
                made = [
                    ["count", path, *rows, "--folds", "3", "-o", "counts"],
                    ["fit", "counts", "--budget", "9999", *of_ids, "-o", "book"],
                    ["inspect", "book", "--json"],
                    ["inspect", "book", "--feature", features[0]],
                ]
                looks = [
                    ["transform", "book", path, "-o", "out.parquet"],
                    ["transform", "book", path, "-o", "out.csv", "--json"],
                    ["evaluate", "book", path],
                    ["evaluate", "book", path, "--json"],
                    ["inspect", "book"],
                    ["compare", "counts", "--budgets", "9,99", "--methods", "exact,frequency"],
                    ["report", "book", "--counts", "counts", "-o", "page.html", "--steps", "3"],
                    *(["inspect", "book", "--feature", name, "--json"] for name in features),
                    *(["inspect", "book", "--feature", name, "--id", "0"] for name in features),
                ]
                for words in made if small else made + looks:
                    code, out, _ = command(words)
                    check(code == 0, "exit code", code, words)
                    if "--json" in words:
                        json.loads(out)
                counts = vf.count(DOORS[door](table, folder), label, features, folds=3)
                check(vf.fit(counts, 9999, **EXACT).digest == vf.load("book").digest, "the digest", door)
                for text in corpus.TEXTS[:: 40 if small else 1]:
                    if "\0" in text or len(text) > 5000:
                        continue
                    words = ["inspect", "book", "--feature", features[0], f"--value={text}", "--json"]
                    code, out, err = command(words)
                    check(code == 0 and json.loads(out)["is_known"], "inspect does not know", text, err)
                    check(json.loads(out)["value"] == text, "inspect shows another value", text)
            finally:
                os.chdir(before)

        tally.run(f"command line {door}", case)
