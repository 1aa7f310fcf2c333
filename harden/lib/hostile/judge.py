"""The judge: rows go through a door to a codebook and back, and every value is compared with plain dicts."""

import datetime
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib.commands import Wrong
from harden.lib.hostile.doors import DOORS, TEXT_DOORS, spelled
from vocabfold.errors import InputError

EXACT = {"dedicated_min": 1, "min_count": 1}  # an id for every value, so that no two can change places unseen


def judged(value: Any, kind: str, door: str) -> Any:
    """Return what a value must be after it went through a door and was found to be of a kind."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if door in TEXT_DOORS and not isinstance(value, str | bool):
        if kind == "text":
            return spelled(value)
        if kind == "float":
            return float(spelled(value)) + 0.0
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
    book = vf.fit(counts, 4 * table.num_rows * len(features) + 8, **EXACT)
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
        return bool(readers[type(value)](found) == value if type(value) in readers else found == spelled(value))
    return bool(found == value)
