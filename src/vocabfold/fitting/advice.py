"""Codebook -> what to look at before a model is trained on it, a line for each finding.

Counts and folds show these at fit; the rest, such as drift, takes other rows, and `evaluate` tells it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.settings import LEAST_IDS
from vocabfold.errors import argument
from vocabfold.support.checks import number

FEW_ROWS = 100  # whose values are often all different, and tell much by chance
_TOO_MUCH = 0.7  # of the label's entropy, to explain on rows that did not set the ids
_NEARLY_UNIQUE, _NEARLY_ALL = 0.5, 0.9  # values per row, and the share of the label's entropy
_SURE_ROWS = 1000  # that show whether a column gains anything
_FEW_DATES = 5  # that may be dates by chance
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")  # beside those of ISO 8601
_YEARS = range(1800, 2200)  # of eight digits that are a date


def advice(
    book: Codebook, n_frequent: int, dedicated: Mapping[str, pa.ChunkedArray], *, is_misled: bool
) -> list[str]:
    """Say what is suspicious in a codebook, given how many values have enough rows for a dedicated id.

    `dedicated` are the values that have one, of each column. If folds mislead, nothing follows from gains.
    """
    found = {
        name: nearly_unique(book, name) or _telling(book, column) or _dates(column, dedicated.get(name))
        for name, column in book.columns.items()
    }
    of_columns = [f"column {name!r} {text}" for name, text in found.items() if text]
    return [
        *_keeps_nothing(book),
        *_unspent(book, n_frequent),
        *of_columns,
        *([] if is_misled else _idle(book, [name for name, text in found.items() if not text])),
    ]


def _keeps_nothing(book: Codebook) -> Iterator[str]:
    least = len(book.columns) * LEAST_IDS.get(book.settings["unseen"], 1)
    if book.settings["budget"] == least and any(column.total > 0 for column in book.columns.values()):
        yield (
            f"{argument('budget', least)} is one id for all values of a column, which keeps nothing of what "
            "they tell about the label; give more ids."
        )


def cannot_be_spent(book: Codebook) -> bool:
    """Tell whether most of a budget for a model is left, though values share ids."""
    n_values = book.n_values + book.n_rare
    return book.settings["aim"] == "model" and 2 * book.size < book.budget and book.size < n_values


def _unspent(book: Codebook, n_frequent: int) -> Iterator[str]:
    if cannot_be_spent(book):
        used = f"only {number(book.size, 'id')} {'is' if book.size == 1 else 'are'} used"
        yield f"the budget of {number(book.budget, 'id')} cannot be spent: {used}, as {_why(book, n_frequent)}"


def _why(book: Codebook, n_frequent: int) -> str:
    least, option = max((book.settings[name], name) for name in ("dedicated_min", "min_count"))
    if n_frequent > book.n_dedicated:
        return "the next values, tied in rows, do not all fit. Give more ids, or a smaller budget."
    other = " other" * bool(book.n_dedicated)
    return f"no{other} value has {number(least, 'row')}. Lower {argument(option)}, or give a smaller budget."


def nearly_unique(book: Codebook, name: str) -> str | None:
    """Say that a column has nearly as many values as rows, if it has."""
    column = book.columns[name]
    n_values, n_rows = column.n_values + column.n_rare, book.rows_known
    is_unique = n_rows >= FEW_ROWS and n_values >= _NEARLY_UNIQUE * n_rows
    if not is_unique or column.total < _NEARLY_ALL * book.entropy:
        return None
    shares = f"{number(n_values, 'value')} in {number(n_rows, 'row')}"
    return f"is nearly unique ({shares}), so it can only memorise the training labels. Drop it."


def _telling(book: Codebook, column: BookColumn) -> str | None:
    if book.rows_known < FEW_ROWS:
        return None
    if column.gain is not None:
        return leaking(book, column.gain, "out of fold, its ids explain")
    # What values tell by chance alone is about half a nat each, over all rows.
    return leaking(book, column.information - column.n_values / (2 * book.rows_known), "its ids explain")


def leaking(book: Codebook, told: float, what: str) -> str | None:
    """Say that what a column tells is suspiciously much, if it is."""
    share = min(1.0, told / book.entropy)
    if share < _TOO_MUCH:
        return None
    return (
        f"leaks the label: {what} {100 * share:.0f} % of the label's entropy. Drop it unless it is known "
        "before the label."
    )


def _dates(column: BookColumn, dedicated: pa.ChunkedArray | None) -> str | None:
    """Say that text is dates, as far as the values with dedicated ids show: others take no ids of their own."""
    if dedicated is None or column.kind != "text" or len(dedicated) < _FEW_DATES:
        return None
    for part in (dedicated.slice(0, 100), dedicated):  # few columns need a look at all
        if not all(text is None or is_date(text) for text in part.to_pylist()):
            return None
    return (
        f"holds dates as text, and {number(len(dedicated), 'id')} went to a date each, which later rows will "
        "not have. Leave it out, or give its parts, such as the weekday."
    )


def is_date(text: str) -> bool:
    """Tell whether a text is a date, with or without a time."""
    try:
        return datetime.fromisoformat(text).year in _YEARS
    except ValueError:
        pass
    for form in _DATES:
        try:
            return datetime.strptime(text, form).year in _YEARS
        except ValueError:
            pass
    return False


def _idle(book: Codebook, names: Sequence[str]) -> Iterator[str]:
    """Name the columns that gain nothing out of fold, though their ids keep what there is.

    Few ids of a small budget may gain nothing, whatever the values would with more.
    """
    columns = {name: book.columns[name] for name in names}
    idle = {
        name: of.size
        for name, of in columns.items()
        if of.gain is not None and of.gain <= 0 and (math.isinf(of.strength) or of.information >= of.total / 2)
    }
    if not idle or book.rows_known < _SURE_ROWS:
        return
    if len(idle) == len(book.columns):
        yield "no column has a cross-validated gain: their values say nothing about the labels of other rows."
        return
    one = len(idle) == 1
    yield (
        f"{'column' if one else 'columns'} {', '.join(map(repr, idle))} {'has' if one else 'have'} no "
        f"cross-validated gain ({number(sum(idle.values()), 'id')}): {'it' if one else 'they'} may be left out."
    )
