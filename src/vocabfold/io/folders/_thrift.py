"""Bytes in Thrift's compact protocol -> structs, within bounds: just what the footers of Parquet files need."""

from __future__ import annotations

from typing import Any

# Types of the protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_MAX_DEPTH, _MAX_FIELDS = 12, 2**18  # of structs and lists, in all: a row group of Parquet has some hundred

Struct = dict[int, Any]


class Parser:
    """Bytes in Thrift's compact protocol, and how far they were read; beyond their end is an IndexError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._n_fields = 0
        self.at = 0

    def struct(self, depth: int = 0) -> Struct:
        """Return the fields of a struct by their numbers."""
        fields: Struct = {}
        field = 0
        while head := self._byte():
            self._n_fields += 1
            kind, step = head & 15, head >> 4
            field = field + step if step else self._number()
            fields[field] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self._n_fields += 1
        if depth > _MAX_DEPTH:
            raise ValueError
        if kind in _INTEGERS:
            return self._number()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(self._varint() if size == 15 else size)]
        raise ValueError  # Parquet has no maps

    def _byte(self) -> int:
        if self._n_fields > _MAX_FIELDS:
            raise ValueError
        self.at += 1
        return self._data[self.at - 1]

    def _bytes(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self._data):
            raise IndexError
        return self._data[self.at - size : self.at]

    def _number(self) -> int:
        """Return a whole number with a sign."""
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError
        return number | byte << shift
