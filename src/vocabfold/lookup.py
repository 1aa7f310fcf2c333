"""Values -> ids by binary search: what serving needs, without a copy of the column as Python objects.

A column of ten million texts is two flat arrays: nothing is built when a codebook is loaded, and the memory is
the bytes of the values, and per value 4 bytes for where it ends and 4 for its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.compiling import inlined, kernel
from vocabfold.errors import InputError
from vocabfold.kinds import KINDS, as_kind

_SHORT = 2**31  # bytes of text that 32-bit offsets reach

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.signedinteger[Any]]


class Index:
    """The values of a column, sorted (missing first, if it is there), and their ids."""

    def __init__(self, values: pa.ChunkedArray, ids: NDArray[np.int32]) -> None:
        self._n_missing = int(values.null_count)
        self._begins_missing = self._n_missing > 0 and not values[0].is_valid
        self._is_text = pa.types.is_string(values.type)
        self._keys = _keys(values.slice(self._n_missing))
        self._ids = ids

    @property
    def is_sorted(self) -> bool:
        """Tell whether all values are in order and none comes twice, as the search needs it."""
        if self._n_missing > 1 or (self._n_missing and not self._begins_missing):
            return False
        if self._is_text:
            return bool(_is_rising(*self._keys))
        return bool((self._keys[1:] > self._keys[:-1]).all())

    def find(self, values: pa.Array, default: int) -> NDArray[np.int32]:
        """Return the id of each value, which are of the column's Arrow type; the default if it is not there."""
        is_missing = np.asarray(values.is_null())
        wanted = _keys(pa.chunked_array([values.drop_null()], values.type))
        if self._is_text:
            places = _search(*self._keys, *wanted)
        else:
            # The last key that is not above the wanted one: the one itself, or it is not there.
            places = np.searchsorted(self._keys, wanted, side="right") - 1
            is_there = places >= 0
            is_there[is_there] = self._keys[places[is_there]] == wanted[is_there]
            places[~is_there] = -1
        ids = np.full(len(values), default, np.int32)
        if self._n_missing:
            ids[is_missing] = self._ids[0]
        is_found = places >= 0
        ids[np.flatnonzero(~is_missing)[is_found]] = self._ids[places[is_found] + self._n_missing]
        return ids

    def find_one(self, value: str | float | None, default: int) -> int:
        """Return the id of one value, quickly: a text, a number or a boolean, as the column holds, or None."""
        if value is None:
            return int(self._ids[0]) if self._n_missing else default
        if self._is_text:
            text, offsets = self._keys
            place = _search_one(text, offsets, np.frombuffer(value.encode(errors="surrogatepass"), np.uint8))  # type: ignore[union-attr]
        else:
            place = int(self._keys.searchsorted(value))
            if place == self._keys.size or self._keys[place] != value:
                place = -1
        return int(self._ids[place + self._n_missing]) if place >= 0 else default


def is_plain(kind: str, value: Any) -> bool:
    """Tell whether a value is as the column holds it, or None, so that it can be looked up without detours."""
    if kind == "integer":
        return value is None or (type(value) is int and -(2**63) <= value < 2**63)
    if kind == "float":
        return value is None or (type(value) is float and value == value)
    return value is None or type(value) is {"text": str, "boolean": bool}.get(kind)


def _inferred(values: Any, kind: str) -> pa.Array:
    """Return values as an Arrow array of the type that they have."""
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:
        if kind != "unsigned":
            raise
        return pa.array(values, KINDS[kind].arrow, from_pandas=True)  # large numbers are not tried as unsigned


def of_kind(name: str, kind: str, values: Any) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return values as an Arrow array of a column's kind, and which of them that kind cannot hold."""
    try:
        if isinstance(values, str | bytes | Mapping):
            raise TypeError
        array = values.to_arrow() if hasattr(values, "to_arrow") else values
        if not isinstance(array, pa.Array | pa.ChunkedArray):
            array = _inferred(array, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError) as error:
        raise InputError(
            f"column {name!r}: values must be a list or array of {kind} values, got {short(values)}."
        ) from error
    converted = as_kind(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, kind)
    if converted is None:
        raise InputError(
            f"column {name!r} holds {kind} values, got {array.type}; values of another type never match, "
            "so convert them first."
        )
    return converted


def _keys(values: pa.ChunkedArray) -> Any:
    """Return values of which none is missing as an array; text as its bytes and where each value begins."""
    if not pa.types.is_string(values.type):
        return np.ascontiguousarray(values.to_numpy())
    is_long = values.nbytes >= _SHORT
    array = values.cast(pa.large_string()).combine_chunks() if is_long else values.combine_chunks()
    _, offsets, data = array.buffers()
    first = np.frombuffer(offsets, np.int64 if is_long else np.int32)[array.offset :][: len(array) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    for part in (text, first):
        part.flags.writeable = False  # numba compiles once for arrays of one kind
    return text, first


@inlined
def _compare(text: Bytes, begin: int, end: int, other: Bytes, other_begin: int, other_end: int) -> int:
    """Return -1, 0 or 1 as the bytes of one text are below, equal to or above those of another."""
    length, other_length = end - begin, other_end - other_begin
    for i in range(min(length, other_length)):
        a, b = text[begin + i], other[other_begin + i]
        if a != b:
            return -1 if a < b else 1
    if length == other_length:
        return 0
    return -1 if length < other_length else 1


@inlined
def _place(text: Bytes, offsets: Offsets, wanted: Bytes, begin: int, end: int) -> int:
    low, high = 0, offsets.size - 1
    while low < high:
        middle = (low + high) // 2
        sign = _compare(text, offsets[middle], offsets[middle + 1], wanted, begin, end)
        if sign == 0:
            return middle
        if sign < 0:
            low = middle + 1
        else:
            high = middle
    return -1


@kernel
def _search_one(text: Bytes, offsets: Offsets, wanted: Bytes) -> int:
    """Return the place of one text among sorted ones, or -1."""
    return _place(text, offsets, wanted, 0, wanted.size)


@kernel
def _search(text: Bytes, offsets: Offsets, wanted: Bytes, wanted_offsets: Offsets) -> NDArray[np.int64]:
    """Return the place of each wanted text among sorted ones, or -1."""
    places = np.empty(wanted_offsets.size - 1, np.int64)
    for i in range(places.size):
        places[i] = _place(text, offsets, wanted, wanted_offsets[i], wanted_offsets[i + 1])
    return places


@kernel
def _is_rising(text: Bytes, offsets: Offsets) -> bool:
    """Tell whether every text is above the one before."""
    for i in range(1, offsets.size - 1):
        if _compare(text, offsets[i - 1], offsets[i], text, offsets[i], offsets[i + 1]) >= 0:
            return False
    return True
