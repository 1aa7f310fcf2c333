"""Sorted keys -> places, compiled: by binary search, or by a hash table where many keys are looked up.

Texts are their bytes and where each begins. A table holds in each slot the upper half of a key's hash and its
place + 1. Keys can be chosen so that their hashes meet; so no key is further from its slot than `_MAX_PROBES`,
or there is no table, and a lookup stays quick whatever the keys are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabfold.support.kernels import inlined, kernel

_MAX_PROBES = 1000  # chance never comes near it: some 150 for ten million keys

_BLOCK = 256  # keys that are looked up together

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF, _REST, _BYTE = np.uint64(32), np.uint64(29), np.uint64(8)
_LOWER = np.uint64(2**32 - 1)
_NONE, _ONE = np.uint64(0), np.uint64(1)

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.signedinteger[Any]]
Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]


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
def search_one(text: Bytes, offsets: Offsets, wanted: Bytes) -> int:
    """Return the place of one text among sorted ones, or -1."""
    return _place(text, offsets, wanted, 0, wanted.size)


@kernel
def search(text: Bytes, offsets: Offsets, wanted: Bytes, wanted_offsets: Offsets) -> Places:
    """Return the place of each wanted text among sorted ones, or -1."""
    places = np.empty(wanted_offsets.size - 1, np.int64)
    for i in range(places.size):
        places[i] = _place(text, offsets, wanted, wanted_offsets[i], wanted_offsets[i + 1])
    return places


@kernel
def is_rising(text: Bytes, offsets: Offsets) -> bool:
    """Tell whether every text is above the one before."""
    for i in range(1, offsets.size - 1):
        if _compare(text, offsets[i - 1], offsets[i], text, offsets[i], offsets[i + 1]) >= 0:
            return False
    return True


@inlined
def _mixed(hash: np.uint64, word: np.uint64) -> np.uint64:
    hash = (hash ^ word) * _ODD
    hash = (hash ^ (hash >> _HALF)) * _MIX
    return hash ^ (hash >> _REST)


@inlined
def _hash(text: Bytes, begin: int, end: int) -> np.uint64:
    """Return the hash of a text, taken in words of eight bytes; its length goes in, too."""
    hash, word, shift = np.uint64(end - begin), _NONE, _NONE
    for i in range(begin, end):
        word |= np.uint64(text[i]) << shift
        shift += _BYTE
        if shift == 64:
            hash, word, shift = _mixed(hash, word), _NONE, _NONE
    return _mixed(hash, word)


@inlined
def _slots(n_keys: int) -> Numbers:
    size = 16
    while 2 * size < 3 * n_keys:
        size *= 2
    return np.zeros(size, np.uint64)


@inlined
def _put(slots: Numbers, hash: np.uint64, place: int) -> bool:
    mask = np.uint64(slots.size - 1)
    slot = hash & mask
    for _ in range(_MAX_PROBES):
        if slots[slot] == _NONE:
            slots[slot] = (hash >> _HALF << _HALF) | np.uint64(place + 1)
            return True
        slot = (slot + _ONE) & mask
    return False


@kernel
def tabulate(text: Bytes, offsets: Offsets) -> Numbers:
    """Return the table of texts; an empty one if their hashes meet too often."""
    slots = _slots(offsets.size - 1)
    for place in range(offsets.size - 1):
        if not _put(slots, _hash(text, offsets[place], offsets[place + 1]), place):
            return slots[:0]
    return slots


@kernel
def tabulate_numbers(keys: Numbers) -> Numbers:
    """Return the table of numbers; an empty one if their hashes meet too often."""
    slots = _slots(keys.size)
    for place in range(keys.size):
        if not _put(slots, _mixed(_NONE, keys[place]), place):
            return slots[:0]
    return slots


@kernel
def find(slots: Numbers, text: Bytes, offsets: Offsets, wanted: Bytes, wanted_offsets: Offsets) -> Places:
    """Return the place of each wanted text, or -1."""
    mask = np.uint64(slots.size - 1)
    places = np.full(wanted_offsets.size - 1, -1)
    hashes, entries = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    for start in range(0, places.size, _BLOCK):
        n = min(_BLOCK, places.size - start)
        # Loads that do not depend on each other: the processor waits for many of them at once.
        for i in range(n):
            hashes[i] = _hash(wanted, wanted_offsets[start + i], wanted_offsets[start + i + 1])
        for i in range(n):
            entries[i] = slots[hashes[i] & mask]
        for i in range(n):
            begin, end = wanted_offsets[start + i], wanted_offsets[start + i + 1]
            hash, entry = hashes[i], entries[i]
            slot = hash & mask
            for _ in range(_MAX_PROBES):
                if entry == _NONE:
                    break
                if entry >> _HALF == hash >> _HALF:
                    place = np.int64(entry & _LOWER) - 1
                    if _compare(text, offsets[place], offsets[place + 1], wanted, begin, end) == 0:
                        places[start + i] = place
                        break
                slot = (slot + _ONE) & mask
                entry = slots[slot]
    return places


@kernel
def find_numbers(slots: Numbers, keys: Numbers, wanted: Numbers) -> Places:
    """Return the place of each wanted number, or -1."""
    mask = np.uint64(slots.size - 1)
    places = np.full(wanted.size, -1)
    for i in range(wanted.size):
        hash = _mixed(_NONE, wanted[i])
        slot = hash & mask
        for _ in range(_MAX_PROBES):
            entry = slots[slot]
            if entry == _NONE:
                break
            place = np.int64(entry & _LOWER) - 1
            if entry >> _HALF == hash >> _HALF and keys[place] == wanted[i]:
                places[i] = place
                break
            slot = (slot + _ONE) & mask
    return places
