"""Codebook + counts -> do they belong together, and if not: what differs."""

from __future__ import annotations

from collections.abc import Iterator

from vocabfold.codebook.codebook import Codebook
from vocabfold.counts.counts import Counts, not_counts
from vocabfold.counts.units import in_rows
from vocabfold.errors import InputError
from vocabfold.support.checks import number, shown_rows

_MAX_NAMED = 5  # columns


def check_same(book: Codebook, counts: Counts, *, all_columns: bool = True) -> None:
    """Refuse counts that the codebook cannot have been fitted on; without `all_columns`, there may be more."""
    if not isinstance(counts, Counts):
        raise not_counts(counts)
    found = list(_differences(book, counts, all_columns))
    if found:
        raise InputError(
            f"these are not the counts that the codebook was fitted on: they have {'; '.join(found)}. Give "
            "those, or fit these."
        )


def _differences(book: Codebook, counts: Counts, all_columns: bool) -> Iterator[str]:
    lacking = [name for name in book.features if name not in counts.features]
    more = [name for name in counts.features if name not in book.features] if all_columns else []
    if lacking or more:
        sides = (("without", lacking), ("with", more))
        named = " and ".join(f"{word} {_listed(names)}" for word, names in sides if names)
        yield f"{number(len(counts), 'column')}, not {len(book):,} ({named})"
    elif all_columns and counts.features != book.features:
        yield f"the columns in another order: {_listed(counts.features)}"
    for what in ("label", "positive"):
        mine, theirs = getattr(book, what), getattr(counts, what)
        if mine != theirs:
            yield f"the {'label' if what == 'label' else 'positive value'} {theirs!r}, not {mine!r}"
    if not counts.agree(book):
        rows, of_book = (shown_rows(noun.rows, noun.n_rows) for noun in (counts, book))
        positive, of_book_too = (in_rows(noun.pos, noun.units_per_row) for noun in (counts, book))
        if rows != of_book:
            yield f"{rows}, not {of_book}"
        elif positive != of_book_too:
            yield f"{number(positive, 'positive row')}, not {of_book_too:,}"
        else:
            yield "other weights"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:_MAX_NAMED])) + ", ..." * (len(names) > _MAX_NAMED)
