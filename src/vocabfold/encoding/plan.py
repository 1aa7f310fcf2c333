"""What is to be done to rows, be they a frame, files, a Spark frame, or what scikit-learn hands over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.settings import BLIND
from vocabfold.encoding.crossfit import Folds
from vocabfold.encoding.encoder import DIGEST, AnyIndex, AnyStore, offsets
from vocabfold.encoding.order import Seen
from vocabfold.errors import either
from vocabfold.io.rows import frames, writing
from vocabfold.support import notes

OFFSET_IDS = b"vocabfold.offset_ids"  # a key in the metadata of Parquet files
_MANY_UNCOUNTED = 0.05  # share of the rows whose value was not counted in their fold


@dataclass(frozen=True)
class Plan:
    """What is to be done to every table."""

    book: Codebook
    offset_ids: bool
    offsets: Mapping[str, int]  # what is added to the ids of each column
    only_ids: bool
    overwrite: bool
    folds: Folds | None = None  # of the rows, if they are those that the codebook was fitted on,
    is_counted: bool = False  # which is certain, as they have just been counted

    @classmethod
    def of(
        cls,
        book: Codebook,
        *,
        offset_ids: bool,
        only_ids: bool = False,
        overwrite: bool = True,
        folds: Folds | None = None,
        is_counted: bool = False,
    ) -> Plan:
        """Return the plan that options ask for."""
        added = offsets(book, offset_ids)
        return cls(book, bool(offset_ids), added, only_ids, overwrite, folds, is_counted)

    @property
    def kept(self) -> dict[str, Any]:
        """The columns that stay in memory."""
        return self.folds.indexes if self.folds else self.book.indexes

    @property
    def store(self) -> AnyStore:
        """Where the columns are loaded from."""
        return self.folds.store if self.folds else self.book.store

    def load(self, name: str) -> AnyIndex:
        """Return the values of a column in memory, for as long as they are needed."""
        return self.kept.get(name) or self.store.load([name])[name]

    @property
    def fold_column(self) -> str | None:
        """The column with the folds of the rows."""
        return self.folds.column if self.folds else None

    @property
    def needed(self) -> list[str]:
        """The columns without which rows cannot be encoded."""
        name = self.fold_column
        beside = [] if name is None or name in self.book.columns else [name]
        return [*self.book.features, *beside]

    def used(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are looked at, of those that rows have."""
        label = self.folds.label if self.folds else None
        return [*self.needed, *(name for name in names if name == label)]

    def schema(self, given: pa.Schema) -> pa.Schema:
        """Return the columns of the result, with the digest of the codebook in their metadata."""
        names = self.book.features if self.only_ids else given.names
        about = {DIGEST: self.book.digest.encode(), OFFSET_IDS: json.dumps(self.offset_ids).encode()}
        fields = [
            pa.field(name, pa.int32(), metadata=about)
            if name in self.book.columns
            else writing.field_of(given.field(name))
            for name in names
        ]
        return pa.schema(fields, frames.metadata_of_ids(given.metadata, self.book.columns) | about)

    def of_rows(self, known: tuple[str, ...], place: str) -> Plan:
        """Return the plan for rows; warn of those that the codebook was fitted on, or refuse other folds."""
        training = either(
            "fit_transform, or transform(..., counts=) with counts by fold,",
            "'vocabfold fit --train-out', or 'vocabfold transform --counts' with counts by fold,",
        )
        if self.folds:
            return self if self.is_counted else replace(self, folds=self.folds.of_reading(known, place))
        if self.book.settings["method"] not in BLIND and self.book.knows(known):
            notes.warn(
                f"{place} looks like the training data: {either('transform()', 'transform')} leaks its "
                f"labels through infrequent values. Use {training} for training; score on held-out rows."
            )
        return self

    @property
    def needs_order(self) -> bool:
        """Whether rows must be in the order in which they were counted, as their folds go by number."""
        return self.folds is not None and self.folds.column is None and not self.is_counted

    def check(self, seen: Seen, n_rows: int, place: str) -> None:
        """Refuse rows in another order, and warn if many have values that were not counted in their fold.

        A few may: rows without a label, or of weight 0, are not counted. How many these are may be unknown.
        """
        if not self.folds or self.is_counted:
            return
        n_skipped = seen.n_skipped(n_rows, self.folds.store.counts.skipped)
        if self.needs_order:
            seen.check_order(n_rows, n_skipped, place)
        name, n_uncounted = seen.worst_column()
        if n_uncounted - (n_skipped or 0) > _MANY_UNCOUNTED * n_rows:
            notes.warn(
                f"{n_uncounted:,} of {n_rows:,} rows of {place} have a value in column {name!r} that "
                "was not counted in their fold. Unless these rows have no label or no weight, the rows "
                "or their folds are not those that were counted, and the ids leak labels: give the rows "
                "and folds as they were counted."
            )
