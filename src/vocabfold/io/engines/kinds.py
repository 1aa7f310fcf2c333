"""The kinds of values: what a column may hold, and how SQL, Arrow and the digest spell it.

A column has one kind, and values of different kinds are different values: 1, "1", 1.0 and true never meet.
All widths of a kind are one: an int8 column and an int64 column with the same numbers have the same values.
In a text file the fields of a column determine its kind (`io/rows/text.py`).
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True)
class Kind:
    """One kind of value."""

    sql: str  # the type in DuckDB
    arrow: pa.DataType  # the type in Arrow and Parquet
    read: str  # SQL from a column of any width to the type; what is missing becomes NULL
    digest: str  # SQL from the type to the text that the digest of a codebook is made of


_EPOCH = "DATE '1970-01-01'"
KINDS = {
    "text": Kind("VARCHAR", pa.string(), "{0}::VARCHAR", "{0}"),
    "integer": Kind("BIGINT", pa.int64(), "{0}::BIGINT", "{0}"),
    "unsigned": Kind("UBIGINT", pa.uint64(), "{0}::UBIGINT", "{0}"),
    # Adding 0 makes one zero out of 0.0 and -0.0.
    "float": Kind(
        "DOUBLE",
        pa.float64(),
        "CASE WHEN isnan({0}::DOUBLE) THEN NULL ELSE {0}::DOUBLE + 0 END",
        "{0}::BIT",
    ),
    "boolean": Kind("BOOLEAN", pa.bool_(), "{0}::BOOLEAN", "{0}"),
    "date": Kind("DATE", pa.date32(), "{0}::DATE", f"({{0}} - {_EPOCH})"),
    "timestamp": Kind("TIMESTAMP", pa.timestamp("us"), "{0}::TIMESTAMP", "epoch_us({0})"),
    # A column in which all is missing; it merges with a column of any kind.
    "missing": Kind("VARCHAR", pa.string(), "NULL::VARCHAR", "{0}"),
}


def kind_of(type: pa.DataType) -> str | None:
    """Return the kind of an Arrow type, or None for types that are not values: lists, bytes, decimals, ..."""
    types = pa.types
    if types.is_dictionary(type):
        return kind_of(type.value_type)
    tests = {
        "text": lambda t: types.is_string(t) or types.is_large_string(t) or types.is_string_view(t),
        "unsigned": types.is_uint64,
        "integer": types.is_integer,
        "float": lambda t: types.is_float32(t) or types.is_float64(t),
        "boolean": types.is_boolean,
        "date": types.is_date,
        "timestamp": lambda t: types.is_timestamp(t) and t.tz is None,
        "missing": types.is_null,
    }
    return next((kind for kind, fits in tests.items() if fits(type)), None)


def from_text(kind: str, text: str) -> Any:
    """Return the value of a kind that a text spells; a ValueError, if it spells none."""
    if "_" in text and kind != "text":
        raise ValueError(text)  # Python would read 1_000
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda text: ["false", "true"].index(text.lower()) == 1,
        "integer": int,
        "unsigned": int,
        "float": float,
        "date": datetime.date.fromisoformat,
        "timestamp": datetime.datetime.fromisoformat,
    }
    return readers.get(kind, str)(text)


def converted(value: str, found: str, kind: str) -> tuple[str, str]:
    """Return a value of one kind as another, and whether that can hold it: the rule of `as_kind`, in SQL."""
    same = f"TRY_CAST({value} AS {KINDS[kind].sql})"
    return same, f"({value} IS NULL OR coalesce(TRY_CAST({same} AS {KINDS[found].sql}) = {value}, false))"


_NUMBERS = {"integer", "unsigned", "float"}


def is_comparable(found: str | None, kind: str) -> bool:
    """Tell whether values of one kind can be values of another: numbers are compared by value."""
    return found in (kind, "missing") or {found, kind} <= _NUMBERS


def as_kind(array: pa.Array, kind: str) -> tuple[pa.Array, NDArray[np.bool_] | slice] | None:
    """Return an array as a kind, and which entries that kind cannot hold (1.5 as an integer).

    Only numbers change their kind, by value; None for arrays of any other kind.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    found, target = kind_of(array.type), KINDS[kind].arrow
    if not is_comparable(found, kind):
        return None
    import pyarrow.compute as pc  # slow to import, and few need it

    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), None, array)
    if array.type == target or kind == "text" or found == "missing":
        return array.cast(target), slice(0)
    converted = array.cast(target, safe=False)
    is_same = np.asarray(pc.equal(converted.cast(array.type, safe=False), array).fill_null(True))
    if found != kind:  # as a signed integer, a large unsigned one would be negative
        signs = [np.asarray(numbers.fill_null(0)) < 0 for numbers in (converted, array)]
        is_same = is_same & (signs[0] == signs[1])
        if found == "float":  # a cast may end at the largest integer
            limit = 2.0**64 if kind == "unsigned" else 2.0**63
            is_same = is_same & (np.asarray(array.fill_null(0)) < limit)
    return converted, ~is_same
