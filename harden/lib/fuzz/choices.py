"""Bytes as choices, rows to begin with, and what a refusal must look like: what all targets share."""

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from harden.lib.commands import Wrong
from harden.lib.corpus import ODD_WORDS
from vocabfold.errors import VocabfoldError

DONE, REFUSED = "done", "refused"
LABEL = "y"


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
