"""Hostile names and values through every door: each comes back exactly, or is refused in one sentence.

The corpus (`harden/lib/corpus.py`) holds SQL, HTML, control characters, terminal escapes, NUL, lone surrogates,
unicode in several normal forms, numbers and dates at their limits, texts that look like numbers or like
nothing, and names that the queries use themselves. A case is one value in one door, or one name in one role
(feature, label, weight, fold column) in one door: rows are counted, fitted, saved, loaded and encoded
again, as frames and as files, and compared value by value with a plain `dict`. `refused` cases are those that
a door cannot hold (`REFUSED`, and lone surrogates): they got an `InputError` of one line from the first step
that saw them. Any other exception, any other refusal or a later one, and any other value, is a failure. Wide
tables have their time and memory beside them.
"""

import csv
import datetime
import gzip
import html.parser
import io
import json
import math
import os
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib import corpus, harness
from harden.lib.fuzz.targets import Wrong, command
from harden.lib.tests import java, session
from tools.measure import extra_memory
from tools.record import Row
from vocabfold.errors import InputError

LABEL, VALUE, KEPT = "y", "v", "kept"
_EXACT = {"private_min": 1, "min_count": 1}  # an id for every value, so that no two can change places unseen
_TEXT_DOORS = ("CSV", "CSV.gz", "TSV", "JSON lines")
_WIDE, _SPARK_COLUMNS = 10_000, 60  # columns of a wide table, and of one that is transformed on Spark

Door = Callable[[pa.Table, Path], Any]


# The doors


def _parquet(table: pa.Table, folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(table, path)
    return path


def _separated(end: str, separator: str) -> Door:
    def write(table: pa.Table, folder: Path) -> Path:
        path = folder / f"rows{end}"
        lines = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
        text = "".join(separator.join(map(_field, line)) + "\r\n" for line in lines)
        content = text.encode("utf-8", "surrogatepass")
        path.write_bytes(gzip.compress(content) if end.endswith(".gz") else content)
        return path

    return write


def _field(value: Any) -> str:
    """Return a field of CSV: texts in quotes, nothing for what is missing."""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else _spelled(value)


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(table: pa.Table, folder: Path) -> Path:
    path = folder / "rows.jsonl"
    lines = [json.dumps(row, default=str, ensure_ascii=i % 2 == 0) for i, row in enumerate(table.to_pylist())]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return path


def _polars(table: pa.Table, _: Path) -> Any:
    import polars

    frame = polars.from_arrow(table)
    frame.columns = table.column_names  # of "" it made column_0
    return frame


def _dataset(table: pa.Table, folder: Path) -> Any:
    from pyarrow.dataset import dataset

    return dataset(_parquet(table, folder))


def _relation(table: pa.Table, folder: Path) -> Any:
    import duckdb

    return duckdb.from_parquet(str(_parquet(table, folder)))


DOORS: dict[str, Door] = {
    "pandas": lambda table, _: table.to_pandas(),
    "polars": _polars,
    "Arrow table": lambda table, _: table,
    "Arrow reader": lambda table, _: table.to_reader(),
    "Arrow dataset": _dataset,
    "DuckDB relation": _relation,
    "Parquet": _parquet,
    "CSV": _separated(".csv", ","),
    "CSV.gz": _separated(".csv.gz", ";"),
    "TSV": _separated(".tsv", "\t"),
    "JSON lines": _json,
}

_NO_IDENTIFIERS = ["", "\0", "nul \0 inside"]  # of SQL, by which these doors are read
REFUSED: dict[tuple[str, str], list[Any]] = {  # by door and type, or role: what it cannot hold
    ("Arrow dataset", "name"): [*_NO_IDENTIFIERS, "__fragment_index"],  # a column that Arrow adds itself
    ("DuckDB relation", "name"): _NO_IDENTIFIERS,
    ("Parquet", "name"): _NO_IDENTIFIERS,
    ("JSON lines", "name"): _NO_IDENTIFIERS,
    ("JSON lines", "uint64"): [2**63, 2**64 - 1],  # as integers of JSON are read as signed ones
    ("JSON lines", "double"): [2.0**53, 1e22],  # as from here on two whole numbers of JSON may be one double
}


# The judge


def judged(value: Any, kind: str, door: str) -> Any:
    """Return what a value must be after it went through a door and was found to be of a kind."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if door in _TEXT_DOORS and not isinstance(value, str | bool):
        if kind == "text":
            return _spelled(value)
        if kind == "float":
            return float(_spelled(value)) + 0.0
    return value + 0.0 if isinstance(value, float) else value


def check(condition: bool, what: str, *details: Any) -> None:
    """Fail with a word on what is wrong."""
    if not condition:
        raise Wrong(f"{what}: {', '.join(f'{detail!r:.200}' for detail in details)}")


class Refused(Exception):
    """What the first step that sees it does not take."""


@contextmanager
def at_the_door() -> Iterator[None]:
    """Run the first step: it may refuse, in one line; for a later one it is too late, and a failure."""
    try:
        yield
    except InputError as error:
        said = str(error)
        check(said.isprintable() and 0 < len(said) <= 5000, "a message that is not one line", said)
        raise Refused(said) from error


def same(found: dict[Any, Any], expected: dict[Any, Any], what: str) -> None:
    """Compare two dicts, their keys by type too."""
    typed, wanted = ({(type(key), key): entry for key, entry in facts.items()} for facts in (found, expected))
    odd = [key[1] for key in typed.keys() ^ wanted.keys()] or [k[1] for k in typed if typed[k] != wanted[k]]
    check(not odd, what, odd[0] if odd else None, len(odd))


def round_trip(
    door: str,
    table: pa.Table,
    folder: Path,
    features: Sequence[str],
    roles: dict[str, Any],
    ends: Sequence[str] = (".parquet", ".csv", ".tsv"),
) -> None:
    """Send rows through a door to a codebook and back, and compare every value with plain dicts."""
    made = DOORS[door]
    label = roles["label"]
    columns = {name: table[name].to_pylist() for name in table.column_names}
    with at_the_door():
        counts = vf.count(made(table, folder), features=list(features), **roles)
    positive = roles.get("positive", 1)
    weights = columns[roles["weight"]] if roles.get("weight") else [1] * table.num_rows
    mappings: dict[str, dict[Any, int]] = {}
    book = vf.fit(counts, 4 * table.num_rows * len(features) + 8, **_EXACT)
    book.save(folder / "book")
    loaded = vf.load(folder / "book")
    check(loaded.digest == book.digest, "the digest of what was loaded", loaded.digest)
    check(list(loaded.features) == list(features) == list(counts.features), "the names", loaded.features)
    check((loaded.label, loaded.positive) == (label, str(positive)), "the label", loaded.label, loaded.positive)
    for name in features:
        kind = counts.kinds[name]
        values = [judged(value, kind, door) for value in columns[name]]
        neg, pos = Counter[Any](), Counter[Any]()
        for value, target, weight in zip(values, columns[label], weights, strict=True):
            (pos if target == positive else neg)[value] += weight
        expected = {value: (neg[value], pos[value]) for value in values}
        found = counts[name].to_pylist()
        totals = Counter[Any]()
        for row in found:
            totals[row["value"], "neg"] += row["neg"]
            totals[row["value"], "pos"] += row["pos"]
        read = {row["value"]: (totals[row["value"], "neg"], totals[row["value"], "pos"]) for row in found}
        same(read, expected, f"the counts of {name!r:.50}")
        saved = loaded[name].to_pylist()
        same({row["value"]: (row["neg"], row["pos"]) for row in saved}, expected, f"what {name!r:.50} saved")
        mapping = {row["value"]: row["id"] for row in saved}
        check(len(set(mapping.values())) == len(mapping), "an id for every value", name)
        check(loaded.ids(name, list(mapping)).tolist() == list(mapping.values()), "ids", name)
        mappings[name] = {value: mapping[judged(value, kind, door)] for value in columns[name]}
        for value, id in list(mapping.items())[: 2 * (len(features) == 1)]:
            check(loaded.members(name, id) == [value], "members", name, value, loaded.members(name, id))
    first = {name: judged(columns[name][0], counts.kinds[name], door) for name in features}
    check(loaded.row(first) == {name: mappings[name][columns[name][0]] for name in features}, "row", first)
    expected_ids = {name: [mappings[name][value] for value in columns[name]] for name in features}
    _check_transform(loaded, door, table, folder, expected_ids, ends)


def _check_transform(
    book: vf.Codebook,
    door: str,
    table: pa.Table,
    folder: Path,
    expected: dict[str, list[int]],
    ends: Sequence[str],
) -> None:
    """Compare ids in frames and files with those that are expected, and other columns with what they were."""
    data = DOORS[door](table, folder)
    wanted = table.to_pydict() | expected
    if door in ("pandas", "polars", "Arrow table"):
        ids = book.transform(data)
        if door == "pandas":
            wanted = data.to_dict("list") | expected
        found = {"pandas": lambda: ids.to_dict("list"), "polars": lambda: ids.to_dict(as_series=False)}
        _compare(found.get(door, lambda: ids.to_pydict())(), wanted, door)
        return
    for end in ends:
        out = folder / f"out{end}"
        book.transform(data, out=out, overwrite=True)
        found = (
            pq.ParquetFile(out).read().to_pydict()
            if end == ".parquet"
            else _fields(out, "\t" if end == ".tsv" else ",")
        )
        _compare(found, wanted, f"{door} to {end}")
        data = DOORS[door](table, folder)  # a reader is used up


def _fields(path: Path, separator: str) -> dict[str, list[str | None]]:
    """Return the columns of a text file; an empty field in quotes is a text, one without is missing."""
    text = path.read_bytes().decode()
    rows: list[list[str | None]] = [[]]
    field = re.compile(f'(?:"((?:[^"]|"")*)"|([^"{separator}\r\n]*))({separator}|\r?\n|$)')
    place = 0
    while place < len(text):
        match = field.match(text, place)
        check(match is not None and match.end() > place, "a file that is no CSV", text[place : place + 50])
        assert match
        rows[-1].append(match[2] or None if match[1] is None else match[1].replace('""', '"'))
        rows += [[]] if match[3] != separator else []
        place = match.end()
    heads, *lines = (row for row in rows if row)
    check(all(len(line) == len(heads) for line in lines), "a line with other fields", heads)
    return dict(zip(map(str, heads), map(list, zip(*lines, strict=True)), strict=True))


def _compare(found: dict[str, list[Any]], expected: dict[str, list[Any]], what: str) -> None:
    check(list(found) == list(expected), f"the columns of {what}", list(found))
    for name, values in expected.items():
        for one, other in zip(found[name], values, strict=True):
            check(_agree(one, other), f"{what}, column {name!r:.60}", one, other)


def _agree(found: Any, value: Any) -> bool:
    """Tell whether what was found is a value: itself, or, in and out of text files, how it is spelled."""
    if found is None or value is None or type(found) is type(value):
        return bool(found == value or (found != found and value != value))
    if isinstance(value, str):
        found, value = value, found
    if isinstance(found, str):
        readers = {float: float, datetime.datetime: datetime.datetime.fromisoformat}
        return bool(
            readers[type(value)](found) == value if type(value) in readers else found == _spelled(value)
        )
    return bool(found == value)


# The cases


class Tally:
    """Cases of one door: how many came back, were refused, failed."""

    def __init__(self) -> None:
        self.facts: Row = {"tried": 0, "failed": 0, "refused": 0}

    def run(self, what: str, case: Callable[[Path], None], refused: bool = False) -> None:
        """Try one case, which must come back, or must be refused."""
        self.facts["tried"] += 1
        error = _raised(case)
        if isinstance(error, Refused) and refused:
            self.facts["refused"] += 1
        elif error or refused:
            self._fail(what, error or Wrong("it came back, and should have been refused"))

    def all(
        self,
        what: str,
        entries: Sequence[Any],
        case: Callable[[Sequence[Any], Path], None],
        refused: Collection[Any] = (),
    ) -> None:
        """Try many entries together, and those that must be refused one by one."""
        for entry in entries:
            if entry in refused:
                self.run(f"{what} {entry!r:.80}", lambda folder, entry=entry: case([entry], folder), True)
        self._together(what, [entry for entry in entries if entry not in refused], case)

    def _together(self, what: str, entries: Sequence[Any], case: Callable[[Sequence[Any], Path], None]) -> None:
        """Try many entries at once; if that fails, halves of them, down to the one that is to blame."""
        if len(entries) < 2:
            for entry in entries:
                self.run(f"{what} {entry!r:.80}", lambda folder: case(entries, folder))
            return
        error = _raised(lambda folder: case(entries, folder))
        if error is None:
            self.facts["tried"] += len(entries)
            return
        failed, half = self.facts["failed"], len(entries) // 2
        self._together(what, entries[:half], case)
        self._together(what, entries[half:], case)
        if self.facts["failed"] == failed:  # no entry is wrong alone: some are taken for one another
            self._fail(f"{what} {entries[0]!r:.80} and {len(entries) - 1} more", error)

    def _fail(self, what: str, error: BaseException) -> None:
        self.facts["failed"] += 1
        failure = f"{what}: {type(error).__name__}: {str(error)[:400]}"
        self.facts.setdefault("first_failure", failure)
        if os.environ.get("HOSTILE_DEBUG"):
            print(f"    {failure}", flush=True)


def _raised(case: Callable[[Path], None]) -> BaseException | None:
    """Return what a case raised; a panic of a library in Rust is no Exception."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case(Path(folder))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error
    return None


def rows_of(values: Sequence[Any], type: str) -> pa.Table:
    """Return rows in which each value comes a number of times of its own."""
    repeated = [(value, i) for i, value in enumerate(values) for _ in range(2 + i % 3)]
    target = [j % (2 + i % 2) == 0 for j, (_, i) in enumerate(repeated)]
    target[:2] = [True, False]
    column = pa.array([value for value, _ in repeated], pa.type_for_alias(type))
    kept = column if type == "string" else column.cast(pa.string()) if type == "bool" else column
    return pa.table({VALUE: column, KEPT: kept, LABEL: pa.array(target).cast(pa.int64())})


def values_in(door: str, tally: Tally, small: bool) -> None:
    """Try all values of all kinds in one door."""

    def case(values: Sequence[Any], folder: Path) -> None:
        type = kind
        # Alone, a value has something beside it that is no surprise.
        round_trip(door, rows_of([*values, *plain], type), folder, [VALUE], {"label": LABEL})

    for kind, values in corpus.VALUES.items():
        plain = ["plain"] if kind == "string" else []
        chosen = [*values, None] if kind == "string" or door != "pandas" else values
        if not small or kind == "string":
            tally.all(kind, chosen[:: 5 if small else 1], case, REFUSED.get((door, kind), ()))
    kind, plain = "string", ["plain"]
    if not small:
        tally.all("megabyte", [corpus.MEGABYTE, corpus.MEGABYTE[:-1] + "n"], case)


def surrogates_in(door: str, tally: Tally) -> None:
    """Try texts that are no UTF-8 as value, feature and label: refused, where a door can hold them at all."""
    make: dict[str, Callable[[str, str, str, Path], Any]] = {
        "pandas": lambda value, feature, label, _: _of_objects({feature: [value, "b"], label: [0, 1]}),
        "CSV": lambda value, feature, label, folder: _written(
            folder / "x.csv", f"{feature},{label}\n{value},0\nb,1\n"
        ),
        "TSV": lambda value, feature, label, folder: _written(
            folder / "x.tsv", f"{feature}\t{label}\n{value}\t0\nb\t1\n"
        ),
        "JSON lines": lambda value, feature, label, folder: _written(
            folder / "x.jsonl", "\n".join(json.dumps({feature: v, label: y}) for v, y in [(value, 0), ("b", 1)])
        ),
    }
    if door not in make:
        return
    for text in ["plain", *corpus.SURROGATES]:
        for words in ((text, VALUE, LABEL), ("a", text, LABEL), ("a", VALUE, text)):

            def case(folder: Path, words: tuple[str, str, str] = words) -> None:
                _, feature, label = words
                with at_the_door():
                    vf.count(make[door](*words, folder), label, [feature])

            tally.run(f"{door} surrogate {words!r}", case, refused=text in corpus.SURROGATES)


def _of_objects(columns: dict[str, list[Any]]) -> Any:
    """Return a frame of pandas with names and values as Python has them, UTF-8 or not."""
    import pandas

    frame = pandas.DataFrame(dict(enumerate(columns.values())), dtype=object)
    return frame.set_axis(pandas.Index(list(columns), dtype=object), axis=1)


def _written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def names_in(door: str, tally: Tally, small: bool) -> None:
    """Try all names as features, all at once; then each as label, weight, fold column and feature."""
    firsts: dict[str, str] = {}
    for name in corpus.TEXTS:
        firsts.setdefault(name.lower(), name)
    names = [*firsts.values(), "long name " + "x" * 100_000][:: 40 if small else 1]
    refused = REFUSED.get((door, "name"), [])

    def features(chosen: Sequence[str], folder: Path) -> None:
        columns = {name: [f"{i % 5}-{j % (2 + i % 2)}" for j in range(12)] for i, name in enumerate(chosen)}
        table = pa.table(columns | {"the label": [j % 2 for j in range(12)]})
        round_trip(door, table, folder, list(chosen), {"label": "the label"})

    def roles(chosen: Sequence[str], folder: Path) -> None:
        label, weight, part, feature = chosen
        columns = {label: ["no", label, label] * 4, weight: [1, 2, 3, 4] * 3, part: [0, 1, 2] * 4}
        table = pa.table(columns | {feature: ["a", "b", "c", "a"] * 3})
        data = DOORS[door](table, folder)
        with at_the_door():
            counts = vf.count(data, label, [feature], weight=weight, fold_column=part, positive=label)
        found = Counter[Any]()
        for row in counts[feature].to_pylist():
            found[row["value"], "neg"] += row["neg"]
            found[row["value"], "pos"] += row["pos"]
        wanted = Counter[Any]()
        for i, value in enumerate(table[feature].to_pylist()):
            wanted[value, "pos" if i % 3 else "neg"] += 1 + i % 4
        check(found == wanted, "counts by role", chosen)
        vf.fit(counts, 9, **_EXACT).save(folder / "book")
        book = vf.load(folder / "book")
        check((book.label, book.positive) == (label, label), "label and positive", book.label, book.positive)
        check((counts.fold_column, book.features) == (part, (feature,)), "fold column", counts.fold_column)

    tally.all("feature", names, features, refused)
    # Each name has every role once; those that are refused have plain ones beside them.
    good = [name for name in names if name not in refused]
    for i in range(0, len(good), 3 if small else 1 if door in ("Parquet", "CSV") else 4):
        four = [good[(i + j) % len(good)] for j in range(4)]
        tally.run(f"roles {four!r:.60}", lambda folder, four=four: roles(four, folder))
    for name in (name for name in names if name in refused):
        for i in range(4):
            four = ["plain 1", "plain 2", "plain 3"]
            four.insert(i, name)
            tally.run(f"role {i} {name!r}", lambda folder, four=four: roles(four, folder), refused=True)
    for twin in (["Site", "site"], ["caf\u00e9", "cafe\u0301"], ["s\u0130te", "site"]):
        is_one = twin[0].lower() == twin[1].lower()  # to SQL, so that they are refused
        tally.run(f"twins {twin!r}", lambda folder, twin=twin: features(twin, folder), refused=is_one)


# Doors beside counting


def _hostile_rows(n: int = 3) -> pa.Table:
    """Return rows with hostile texts in columns of hostile names, which Parquet and all doors take."""
    texts = [text for text in corpus.TEXTS if len(text) < 5000] * n
    columns = {
        "'; DROP TABLE table_0; --": texts,
        "<script>window.hacked = 1</script>": texts[::-1],
        "\x1b[31mred\x1b[0m\n": [text[:1] for text in texts],
        "value": [i % 7 for i in range(len(texts))],
        "label": [float(i % 4) / 4 for i in range(len(texts))],
    }
    return pa.table(columns | {"\u202ey \x9b": [int(i * i % 7 < 3) for i in range(len(texts))]})


def training(tally: Tally, small: bool) -> None:
    """fit_transform: private ids are those of the codebook, in frames and files."""
    table = _hostile_rows()
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
                private_min=1,
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
            compressor = vf.VocabularyCompressor(1000, private_min=1, cv=2).fit(X, y)  # as rows are few
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
            X = _of_objects({feature: [value, "b"] * 4})
            y = pandas.Series([0, 1] * 4, name=label)

            def fitted(_: Path, X: Any = X, y: Any = y) -> None:
                with at_the_door():
                    vf.VocabularyCompressor(9).fit(X, y)

            tally.run(f"estimator {(value, feature, label)!r}", fitted, refused=text in corpus.SURROGATES)


def serving(tally: Tally, small: bool) -> None:
    """ids, row and members of one saved codebook, value by value; and values that are not in it."""
    with tempfile.TemporaryDirectory() as folder:
        table = rows_of(corpus.TEXTS, "string")
        vf.fit(vf.count(table, LABEL, [VALUE]), 9999, **_EXACT).save(Path(folder) / "book")
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
    table = _hostile_rows()
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
    table = _hostile_rows()
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
                of_ids = ["--min-count", "1", "--private-min", "1"]
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
                check(vf.fit(counts, 9999, **_EXACT).digest == vf.load("book").digest, "the digest", door)
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


def on_spark(tally: Tally, session: Any) -> None:
    """Try the same on Spark: counts, codebook and ids by plain dicts."""
    from pyspark.sql import types

    spark_types = {
        "string": types.StringType(),
        "int64": types.LongType(),
        "double": types.DoubleType(),
        "bool": types.BooleanType(),
        "date32": types.DateType(),
    }
    for kind, type in spark_types.items():

        def case(values: Sequence[Any], folder: Path, kind: str = kind, type: Any = type) -> None:
            table = rows_of([*values, *(["plain"] if kind == "string" else [])], kind)
            name, label = "value '\"`;--<b>\u202e", "neg"
            schema = types.StructType(
                [types.StructField(name, type), types.StructField(label, types.LongType())]
            )
            columns = [table[VALUE].to_pylist(), table[LABEL].to_pylist()]
            frame = session.createDataFrame(list(zip(*columns, strict=True)), schema)
            counts = vf.count(frame, label, [name])
            neg, pos = Counter[Any](), Counter[Any]()
            for value, target in zip(*columns, strict=True):
                (pos if target else neg)[judged(value, kind, "Spark")] += 1
            expected = {value: (neg[value], pos[value]) for value in neg | pos}
            same(
                {r["value"]: (r["neg"], r["pos"]) for r in counts[name].to_pylist()},
                expected,
                "counts on Spark",
            )
            book = vf.fit(counts, 9999, **_EXACT)
            book.save(folder / "book")
            loaded = vf.load(folder / "book")
            saved = loaded[name].to_pylist()
            same({r["value"]: (r["neg"], r["pos"]) for r in saved}, expected, "what Spark saved")
            mapping = {r["value"]: r["id"] for r in saved}
            check(len(set(mapping.values())) == len(mapping), "an id for every value")
            numbered = session.createDataFrame(
                [(v, i) for i, v in enumerate(columns[0])],
                types.StructType([types.StructField(name, type), types.StructField("i", types.LongType())]),
            )
            found = {row["i"]: row[name] for row in loaded.transform(numbered).collect()}
            wanted = {i: mapping[judged(value, kind, "Spark")] for i, value in enumerate(columns[0])}
            check(found == wanted, "ids on Spark", kind)

        tally.all(f"Spark {kind}", [*corpus.VALUES[kind], None], case)
    names = {name.lower(): name for name in corpus.TEXTS}

    def named(chosen: Sequence[str], folder: Path) -> None:
        columns = {name: [f"{i}-{j % (2 + i % 2)}" for j in range(6)] for i, name in enumerate(chosen)}
        rows = list(zip(*columns.values(), [0, 1] * 3, strict=True))
        fields = [types.StructField(name, types.StringType()) for name in chosen]
        schema = types.StructType([*fields, types.StructField("the label", types.LongType())])
        frame = session.createDataFrame(rows, schema)
        book = vf.fit(vf.count(frame, "the label", list(chosen)), 9999, **_EXACT)
        book.save(folder / "book")
        loaded = vf.load(folder / "book")
        check(list(loaded.features) == list(chosen), "names on Spark")
        found = loaded.transform(frame).collect()
        for i, (name, values) in enumerate(columns.items()):
            mapping = {row["value"]: row["id"] for row in loaded[name].to_pylist()}
            wanted = Counter((mapping[value], j % 2) for j, value in enumerate(values))
            check(Counter((row[i], row[-1]) for row in found) == wanted, "ids of a name on Spark", name)

    # Not all at once: for each column that is looked up, Spark keeps a table on every worker.
    for first in range(0, len(names), _SPARK_COLUMNS):
        tally.all("Spark name", list(names.values())[first : first + _SPARK_COLUMNS], named)


def wide(what: str, door: str, n_columns: int) -> Row:
    """Count, fit, save, load and encode a table of very many columns; with the time and memory of each."""
    columns = {f"column {i}": [f"{j % (2 + i % 3)}" + "x" for j in range(20)] for i in range(n_columns)}
    table = pa.table(columns | {LABEL: [j % 2 for j in range(20)]})
    tally, facts = Tally(), {}

    def case(folder: Path) -> None:
        def work() -> None:
            data = DOORS[door](table, folder)
            counts = vf.count(data, LABEL)
            check(len(counts.features) == n_columns, "columns", len(counts.features))
            book = vf.fit(counts, 10 * n_columns, **_EXACT)
            book.save(folder / "book")
            loaded = vf.load(folder / "book")
            out = folder / "out.parquet"
            found = (
                loaded.transform(data)
                if door == "pandas"
                else loaded.transform(data, out=out) and pq.read_table(out)
            )
            for i in (0, n_columns // 2, n_columns - 1):
                mapping = {row["value"]: row["id"] for row in loaded[f"column {i}"].to_pylist()}
                wanted = [mapping[value] for value in columns[f"column {i}"]]
                got = found[f"column {i}"]
                check((got.tolist() if door == "pandas" else got.to_pylist()) == wanted, "ids", i)

        started = time.perf_counter()
        facts["peak_mb"] = round(extra_memory(work))
        facts["seconds"] = round(time.perf_counter() - started, 1)

    tally.run(what, case)
    return {"what": what, **tally.facts, **facts, "columns": n_columns}


def run(small: bool) -> Iterator[Row]:
    """Try every door, one after another."""
    doors = ["CSV"] if small else list(DOORS)
    for door in doors:
        what = f"count, fit, save, load, transform: {door}"
        if harness.is_wanted(what):
            tally = Tally()
            values_in(door, tally, small)
            surrogates_in(door, tally)
            names_in(door, tally, small)
            yield {"what": what, **tally.facts}
    others: dict[str, Callable[[Tally, bool], None]] = {
        "fit_transform": training,
        "scikit-learn": estimator,
        "serving: ids, row, members": serving,
        "report, evaluate, compare": pages,
        "command line": terminals,
    }
    for what, door_of in others.items():
        # Of pages: seconds, and tests/report/test_report.py has such rows, too.
        if (small and door_of is pages) or not harness.is_wanted(what):
            continue
        tally = Tally()
        door_of(tally, small)
        yield {"what": what, **tally.facts}
    if not small and harness.is_wanted("Spark"):
        yield from _spark()
    n_columns = 20 if small else _WIDE
    for door in ("Parquet",) if small else ("Parquet", "CSV"):
        what = f"{n_columns:,} columns, {door}"
        if harness.is_wanted(what):
            yield wide(what, door, n_columns)


def _spark() -> Iterator[Row]:
    if java.home() is None:
        yield {"what": "Spark", "not_run": "there is no Java 17 or newer"}
        return
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, session("local[2]", folder) as found:
        on_spark(tally, found)
    yield {"what": "Spark", **tally.facts}


if __name__ == "__main__":
    harness.main("hostile", __doc__, run)
