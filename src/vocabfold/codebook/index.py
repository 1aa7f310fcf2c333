"""Values -> ids: what serving and transform need, without a copy of the column as Python objects.

A column of ten million texts is two flat arrays: nothing is built when a codebook is loaded, and the memory is
the bytes of the values, and per value 4 bytes for where it ends and 4 for its id. A few values are found by
binary search; before many are looked up, a hash table is built, of 12 to 24 bytes per value.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.errors import InputError
from vocabfold.io.engines.kinds import KINDS, as_kind

_SHORT = 2**31  # bytes of text that 32-bit offsets reach
_SEARCHES = 1 / 8  # per value of the column: from there on, building a table is quicker than searching
_WRAPPING = np.errstate(over="ignore")  # hashes may: only the interpreter, in the place of the compiler, minds


class Index:
    """The values of a column, sorted (missing first, if it is there), and their ids.

    The compiled loops are imported where they are called: who only looks at a codebook does without numba.
    """

    def __init__(self, values: pa.ChunkedArray, ids: NDArray[np.int32]) -> None:
        self._n_missing = int(values.null_count)
        self._begins_missing = self._n_missing > 0 and not values[0].is_valid
        self._is_text = pa.types.is_string(values.type)
        present = values.slice(self._n_missing)
        if self._is_text and values.nbytes >= _SHORT:
            present = present.cast(pa.large_string())
        self._keys: Any = (_texts if self._is_text else _numbers)(present.combine_chunks())
        self._ids = ids
        self._n_wanted = 0
        self._slots: NDArray[np.uint64] | None = None  # the table; an empty one: the values do not allow it

    @property
    def is_sorted(self) -> bool:
        """Tell whether all values are in order and none comes twice, as the search needs it."""
        from vocabfold.codebook._index_kernels import is_rising

        if self._n_missing > 1 or (self._n_missing and not self._begins_missing):
            return False
        if self._is_text:
            return bool(is_rising(*self._keys))
        return bool((self._keys[1:] > self._keys[:-1]).all())

    @property
    def nbytes(self) -> int:
        """The memory it takes, with its table."""
        keys = self._keys if self._is_text else (self._keys,)
        n_slots = 1 << max(4, ((3 * self._ids.size + 1) // 2 - 1).bit_length())
        return int(sum(part.nbytes for part in keys)) + self._ids.nbytes + 8 * n_slots

    @_WRAPPING
    def prepare(self, n_wanted: int) -> None:
        """Build the table, if so many values more make it worth while."""
        from vocabfold.codebook._index_kernels import tabulate, tabulate_numbers

        self._n_wanted += n_wanted
        if self._slots is None and self._n_wanted > self._ids.size * _SEARCHES:
            self._slots = tabulate(*self._keys) if self._is_text else tabulate_numbers(_words(self._keys))

    @_WRAPPING
    def find(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the id of each value, which are of the column's Arrow type; -1 if it is not there."""
        places = self._places_of_texts(values) if self._is_text else self._places_of_numbers(values)
        ids = self._ids[places + self._n_missing] if self._ids.size else np.empty(len(values), np.int32)
        ids[places < 0] = -1
        if values.null_count:
            ids[np.asarray(values.is_null())] = self._ids[0] if self._n_missing else -1
        return ids

    def _places_of_texts(self, values: pa.Array) -> NDArray[np.int64]:
        from vocabfold.codebook._index_kernels import find, search

        (text, offsets), (wanted, wanted_offsets) = self._keys, _texts(values)
        if self._slots is None or not self._slots.size:
            return search(text, offsets, wanted, wanted_offsets)
        return find(self._slots, text, offsets, wanted, wanted_offsets)

    def _places_of_numbers(self, values: pa.Array) -> NDArray[np.int64]:
        from vocabfold.codebook._index_kernels import find_numbers

        wanted = _numbers(values)
        if self._slots is not None and self._slots.size:
            return find_numbers(self._slots, _words(self._keys), _words(wanted))
        # The last key that is not above the wanted one: the one itself, or it is not there.
        places: NDArray[np.int64] = np.searchsorted(self._keys, wanted, side="right") - 1
        is_there = places >= 0
        is_there[is_there] = self._keys[places[is_there]] == wanted[is_there]
        places[~is_there] = -1
        return places

    def find_one(self, value: str | float | None) -> int:
        """Return the id of one value, quickly: a text, a number or a boolean, as the column holds, or None."""
        if value is None:
            return int(self._ids[0]) if self._n_missing else -1
        if self._is_text:
            from vocabfold.codebook._index_kernels import search_one

            text, offsets = self._keys
            place = search_one(text, offsets, np.frombuffer(value.encode(errors="surrogatepass"), np.uint8))  # type: ignore[union-attr]
        else:
            place = int(self._keys.searchsorted(value))
            if place == self._keys.size or self._keys[place] != value:
                place = -1
        return int(self._ids[place + self._n_missing]) if place >= 0 else -1


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


def of_kind(name: str, kind: str, values: Any) -> tuple[pa.Array, NDArray[np.bool_] | slice]:
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
            f"column {name!r} holds {kind} values, got {array.type}; values of different types never match, "
            "so convert them first."
        )
    return converted


def _texts(values: pa.Array) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return texts as their bytes and where each begins; a missing one as any text."""
    is_long = pa.types.is_large_string(values.type)
    _, offsets, data = values.buffers()
    first = np.frombuffer(offsets, np.int64 if is_long else np.int32)[values.offset :][: len(values) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    for part in (text, first):
        part.flags.writeable = False  # the loops are compiled once for arrays of one kind
    return text, first


def _numbers(values: pa.Array) -> NDArray[Any]:
    """Return numbers, booleans, dates or instants as numbers of eight bytes; a missing one as any number."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    elif pa.types.is_date(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    if not len(values):
        return np.empty(0, np.int64)
    numbers = np.frombuffer(values.buffers()[1], values.type.to_pandas_dtype())[values.offset :][: len(values)]
    if numbers.dtype.kind == "f":
        return numbers + 0.0  # which makes one zero of two
    return numbers if numbers.itemsize == 8 else numbers.astype(np.int64)


def _words(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    words = numbers.view(np.uint64)
    words.flags.writeable = False
    return words
