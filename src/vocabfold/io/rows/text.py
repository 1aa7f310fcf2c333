"""Text files -> a Parquet file and the kinds of its columns.

Text is parsed once. Fields are read as text, and a column has another kind only if every field of it, in all
files, is written in that kind's plain form: 7 is an integer, 007 and +7 are text. No two different fields ever
become one value of a feature: 1, 1.0 and 1e0 are the same weight, but for a feature, only 1.0 is a float. JSON
says what its values are.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from vocabfold.errors import InputError
from vocabfold.io.engines.duckdb import Engine, file_list, identifier, literal, parquet
from vocabfold.io.rows import files

CRITEO = "criteo"
PRESETS = (CRITEO,)
MIXED = "mixed types"
CRITEO_NAMES = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]

_MAX_LINE = 10_000_000  # bytes
_MAX_HEADER = 2**22  # characters
_TESTED = 32  # columns of a query
_SAMPLE = 10_000  # rows that rule out most kinds before all rows are looked at


def _digits(number: str) -> str:
    """Return the significant digits of a number in plain form, as SQL."""
    return f"trim(replace(regexp_replace(ltrim({number}, '-'), '[eE].*', ''), '.', ''), '0')"


# A column is of a kind if this holds for all its fields; of several, the first. TRY_CAST gives NULL for what it
# cannot read. A float must have the digits of its field, or fields that differ in the last of many digits would
# become one; it is exact if the field is the one text that stands for it, so -0.0 is not.
_EXACT = "exact float"
_PLAIN = {
    "missing": "bool_and({0} IS NULL)",
    "integer": "bool_and(coalesce(TRY_CAST({0} AS BIGINT)::VARCHAR = {0}, {0} IS NULL))",
    "boolean": "bool_and({0} IN ('true', 'false')) OR bool_and({0} IN ('True', 'False')) "
    "OR bool_and({0} IN ('TRUE', 'FALSE'))",
    "date": "bool_and(coalesce(length({0}) = 10 AND TRY_CAST({0} AS DATE)::VARCHAR = {0}, {0} IS NULL))",
    _EXACT: "bool_and(coalesce((TRY_CAST({0} AS DOUBLE) + 0)::VARCHAR = {0} AND {0} NOT IN "
    "('nan', 'inf', '-inf'), {0} IS NULL))",
    "float": "bool_and(regexp_full_match({0}, '-?(0|[1-9][0-9]*)([.](0|[0-9]*[1-9]))?([eE][+-]?[0-9]+)?') AND "
    f"coalesce({_digits('{0}')} = {_digits('TRY_CAST({0} AS DOUBLE)::VARCHAR')}, {{0}} IS NULL))",
    "number": "bool_and(regexp_full_match({0}, '[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?'))",
}
_JSON_KINDS = {
    "VARCHAR": "text",
    "BIGINT": "integer",
    "UBIGINT": "integer",
    "HUGEINT": "integer",  # some below 0, some above
    "DOUBLE": "float",
    "BOOLEAN": "boolean",
    "NULL": "missing",
}
_JSON_TYPES = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "missing": "VARCHAR",
}

# Whole numbers beyond 2**53 beside fractions, or beyond 2**64, are doubles, and not exact. Far beyond, they are
# no ids but measurements. And not all whole numbers are of 64 bits with a sign.
_INEXACT = {
    "float": "abs(TRY_CAST({0} AS DOUBLE)) BETWEEN 9007199254740992 AND 1e25",
    "integer": "{0} IS NOT NULL AND TRY_CAST({0} AS BIGINT) IS NULL",
}


class Fields(NamedTuple):
    """What the fields of a column are."""

    kind: str | None  # None: they cannot be counted
    type: str  # in words
    is_number: bool = False  # every field is a number, whatever the kind
    is_exact: bool = True  # no other text would be the same value

    @classmethod
    def of(cls, kinds: Sequence[str]) -> Fields:
        """Return the fields of a column, given which kinds they all have."""
        first = kinds[0] if kinds else "text"
        kind = {_EXACT: "float", "number": "text"}.get(first, first)
        return cls(kind, kind, first in ("float", "number"), first != "float")


TEXT = Fields("text", "text")


class Separated:
    """CSV, TSV, or Criteo's layout: tabs, no header, no quotes."""

    def __init__(self, engine: Engine, paths: Sequence[Path], format: str) -> None:
        self._engine, self._paths, self._format = engine, paths, format
        self._line_end = ""  # whatever the engine finds
        _check_whole(paths)
        if format == CRITEO:
            self._separator, self.names = "\t", CRITEO_NAMES
            return
        self._separator = "\t" if format == files.TSV else _separator(paths[0])
        self.names = _header(paths[0], self._separator)
        for path in paths[1:]:
            if _header(path, self._separator) != self.names:
                raise InputError(f"{path} must have the same columns as {paths[0]}, in the same order.")
        # The engine takes the first end of a line for the one of all, even one within a quoted name.
        if any("\n" in name or "\r" in name for name in self.names):
            ends = {end for path in paths if (end := _first_line(path)[1])}
            if len(ends) > 1:
                raise InputError(
                    f"{paths[0]} and others have different line ends, and a column name contains one; write "
                    "the files alike, or rename the column."
                )
            self._line_end = "".join(ends)

    def stage(self, names: Sequence[str], staged: Path, *, ordered: bool, whole: bool = False) -> list[Fields]:
        """Write the named columns as c0, c1, ... to a Parquet file, and return their kinds."""
        is_criteo = self._format == CRITEO
        quote = "" if is_criteo else '"'
        columns = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(self.names)))
        numbers = {name: i for i, name in enumerate(self.names)}
        chosen = ", ".join(f"f{numbers[name]} AS c{i}" for i, name in enumerate(names))
        line_end = self._line_end.replace("\r", "\\r").replace("\n", "\\n")  # as the engine spells them
        sql = (
            f"SELECT {chosen} FROM read_csv({file_list(self._paths)}, auto_detect = false, "
            f"header = {not is_criteo}, delim = {literal(self._separator)}, quote = '{quote}', "
            f"escape = '{quote}', nullstr = '', allow_quoted_nulls = false, max_line_size = {_MAX_LINE}, "
            f"columns = {{{columns}}}{f', new_line = {literal(line_end)}' if line_end else ''})"
        )
        try:
            self._engine.write(sql, staged, ordered=ordered)
        except InputError as error:
            raise _explained(error) from error
        found = _kinds(self._engine, staged, len(names))
        if is_criteo:  # whose texts may look like numbers
            return [TEXT if name.startswith("C") else of for name, of in zip(names, found, strict=True)]
        return found


class JsonLines:
    """One JSON object per line."""

    def __init__(self, engine: Engine, paths: Sequence[Path]) -> None:
        self._engine, self._paths = engine, paths
        _check_whole(paths)
        scan = f"read_ndjson_objects({file_list(paths)})"
        with _json_errors(paths):
            structure = engine.run(f"SELECT json_group_structure(json) AS all_lines FROM {scan}")
        self._types = json.loads(structure["all_lines"][0].as_py() or "{}")
        if not isinstance(self._types, dict):
            raise InputError(f"{paths[0]} must hold one JSON object per line, but holds other JSON.")
        # The engine finds names in any order: those of the first line first, then the alphabet.
        first = _first_object(paths[0])
        self.names = [*first, *sorted(self._types.keys() - first.keys())]

    def stage(self, names: Sequence[str], staged: Path, *, ordered: bool, whole: bool = False) -> list[Fields]:
        """Write the named columns as c0, c1, ... to a Parquet file, and return their kinds.

        Columns without a kind are left out. If the `whole` rows are wanted, they become the text of their JSON,
        and so do numbers: some of them may have more digits than a number can hold.
        """
        found = [self._types[name] for name in names]
        kinds = [_JSON_KINDS.get(type) if isinstance(type, str) else None for type in found]
        types = {
            i: "JSON" if kind is None or (whole and kind in ("integer", "float")) else _JSON_TYPES[kind]
            for i, kind in enumerate(kinds)
            if kind or whole
        }
        columns = ", ".join(f"{literal(names[i])}: '{type}'" for i, type in types.items())
        chosen = ", ".join(
            f"{identifier(names[i])}{'::VARCHAR' * (type == 'JSON')} AS c{i}" for i, type in types.items()
        )
        scan = f"read_json({file_list(self._paths)}, format = 'newline_delimited', columns = {{{columns}}})"
        with _json_errors(self._paths):
            self._engine.write(f"SELECT {chosen} FROM {scan}", staged, ordered=ordered)
        words = {"JSON": MIXED}
        described = [
            Fields(kind, kind or (words.get(type, type) if isinstance(type, str) else "nested"))
            for kind, type in zip(kinds, found, strict=True)
        ]
        for i, kind in enumerate(kinds):
            if kind in _INEXACT and (whole or kind == "float"):
                # As text, 1.5e16 differs from a whole number with as many digits.
                is_written_so = f" AND regexp_full_match(c{i}, '-?[0-9]+')" if whole else ""
                test = _INEXACT[kind].format(f"c{i}") + is_written_so
                if self._engine.run(f"SELECT count_if({test}) AS n FROM {parquet([staged])}")["n"][0].as_py():
                    described[i] = Fields(None, "numbers with more digits than a double")
        return described


def table(engine: Engine, paths: Sequence[Path], format: str) -> Separated | JsonLines:
    """Return the table that text files of a format hold."""
    return JsonLines(engine, paths) if format == files.JSON else Separated(engine, paths, format)


def _kinds(engine: Engine, staged: Path, n_columns: int) -> list[Fields]:
    """Return what the fields of each column are.

    A sample rules most kinds out. Of the others, the first is nearly always that of all rows; only if it is not
    are the rest looked at.
    """
    scan = parquet([staged])
    kinds = _left(engine, f"{scan} LIMIT {_SAMPLE}", {f"c{i}": list(_PLAIN) for i in range(n_columns)})
    first = _left(engine, scan, {column: left[:1] for column, left in kinds.items()})
    rest = {column: left[1:] for column, left in kinds.items() if not first[column]}
    return [Fields.of(left) for left in (first | _left(engine, scan, rest)).values()]


def _left(engine: Engine, rows: str, candidates: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return which of the kinds that each column may have are those of all of its fields."""
    left: dict[str, list[str]] = {column: [] for column in candidates}
    tested = [column for column, kinds in candidates.items() if kinds]
    # Not all columns at once: the time to plan a query grows with the square of its expressions.
    for start in range(0, len(tested), _TESTED):
        columns = tested[start : start + _TESTED]
        tests = [(column, kind) for column in columns for kind in candidates[column]]
        chosen = ", ".join(f"{_PLAIN[kind].format(column)} AS t{i}" for i, (column, kind) in enumerate(tests))
        found = engine.run(f"SELECT {chosen} FROM (SELECT {', '.join(columns)} FROM {rows})").to_pylist()[0]
        for test, (column, kind) in zip(found.values(), tests, strict=True):
            if test is not False:  # None: no rows
                left[column].append(kind)
    return left


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, compressed or not."""
    if path.name.lower().endswith(".gz"):
        with gzip.open(path) as file:
            yield file  # type: ignore[misc]
    elif path.name.lower().endswith(".zst"):
        with pa.input_stream(str(path), compression="zstd") as file:
            yield io.BufferedReader(file)
    else:
        with path.open("rb") as file:
            yield file


def _check_whole(paths: Sequence[Path]) -> None:
    """Refuse compressed files that were cut short or damaged: the engine would read what there is of them."""
    for path in paths:
        if path.name.lower().endswith((".gz", ".zst")):
            compression = "gzip" if path.name.lower().endswith(".gz") else "zstd"
            try:
                with pa.input_stream(str(path), compression=compression) as file:
                    while file.read(_MAX_HEADER):
                        pass
            except (OSError, pa.ArrowException) as error:
                raise InputError(
                    f"{path} is damaged or was cut short: it cannot be unpacked to its end."
                ) from error


def _first_text(path: Path) -> str:
    """Return the beginning of a file, which holds its first line."""
    try:
        with _opened(path) as file:
            begin = file.read(_MAX_HEADER)
        # A character may be cut in two at the end of what was read, not at the end of the file.
        return begin.decode("utf-8-sig", errors="strict" if len(begin) < _MAX_HEADER else "ignore")
    except UnicodeDecodeError as error:
        line = begin[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line:,}: this is not UTF-8; convert the file first.") from error
    except (OSError, EOFError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error


def _separator(path: Path) -> str:
    """Return what separates the names in the first line of a CSV file."""
    line, _ = _first_line(path)
    return next((mark for mark in ",;\t|" if mark in line), ",")


def _first_line(path: Path) -> tuple[str, str]:
    """Return the first line of a file without what stands in quotes, and its end."""
    line, *rest = re.split("(\r\n|\r|\n)", re.sub(r'"[^"]*"', "", _first_text(path)), maxsplit=1)
    return line, rest[0] if rest else ""


def _header(path: Path, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(_first_text(path), newline=""), delimiter=separator))
    except StopIteration:
        raise InputError(f"{path} is empty; a first line with the names of the columns is needed.") from None
    except csv.Error as error:
        raise InputError(f"{path}, line 1: the names of the columns cannot be read ({error}).") from error


def _explained(error: InputError) -> InputError:
    """Say in one sentence which line of which file is wrong."""
    message = str(error.__cause__)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    file = re.search(r"^  file = (.*)$", message, re.MULTILINE)
    if not file:
        return error
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if fields:
        more = (
            "more" if int(fields[2]) > int(fields[1]) else fields[2]
        )  # the engine stops at the first too many
        reason = f"expected {fields[1]} fields, found {more}"
    elif "unicode" in message:
        reason = "this is not UTF-8; convert the file first"
    elif "unterminated quote" in message:
        reason = "a quote is opened and not closed, or followed by more text"
    elif "Maximum line size" in message:
        reason = f"the line is longer than {_MAX_LINE:,} bytes"
    elif "invalid state" in message:
        reason = "this is not well-formed CSV (mixed line ends, or text after a closing quote)"
    else:
        return error
    return InputError(f"{file[1]}{f', line {int(line[1]):,}' if line else ''}: {reason}.")


@contextmanager
def _json_errors(paths: Sequence[Path]) -> Iterator[None]:
    """Find the line that the engine could not read: the number it gives is not always right."""
    try:
        yield
    except InputError:
        for path in paths:
            with _opened(path) as file:
                for number, line in enumerate(file, start=1):
                    _json_line(path, number, line)
        raise


def _json_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line) if line.strip() else {}
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {number:,}: this is not UTF-8; convert the file first.") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}, line {number:,}: this is not JSON.") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}, line {number:,}: one JSON object per line is needed.")
    return found


def _first_object(path: Path) -> dict[str, Any]:
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                return _json_line(path, number, line)
    return {}
