"""Codebook -> report: check all arguments first; then compute, draw and write."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from vocabfold.codebook.codebook import Codebook
from vocabfold.counts.counts import Counts
from vocabfold.errors import InputError
from vocabfold.evaluation.comparison import Comparison, read_comparison
from vocabfold.evaluation.held_out import count_new, judge
from vocabfold.evaluation.sweep import MOST_STEPS, check_counts, sweep
from vocabfold.io.rows.writing import check_place, place, replacing
from vocabfold.report.findings import findings
from vocabfold.report.page import check_libraries, page
from vocabfold.report.plots import pictures
from vocabfold.report.summary import Json, summarise
from vocabfold.support import checks, vega
from vocabfold.support.checks import number
from vocabfold.support.progress import track

_ROUNDING = 1e-6  # of the information of the values


def write_report(
    book: Codebook,
    path: str | os.PathLike[str],
    *,
    counts: Counts | None,
    heldout: Any,
    compare: Comparison | str | os.PathLike[str] | None,
    steps: int | None,
    pictures_to: str | os.PathLike[str] | None,
    overwrite: bool,
    **of_rows: Any,
) -> Json:
    """Write the report and return its figures; see `Codebook.report`."""
    file = _check_places(path, pictures_to, overwrite)
    check_libraries()
    if steps is not None and checks.at_least("steps", steps, 3) > MOST_STEPS:
        raise InputError(f"must be at most {MOST_STEPS}, got {steps:,}.", argument="steps")
    if counts is not None:
        check_counts(book, counts)
    elif steps is not None:
        raise InputError(
            "is for other budgets, which need the counts. Give these too, or leave it out.", argument="steps"
        )
    given = (name for name, value in of_rows.items() if not (value is None or value is False))
    unused = next((name for name in given if name != "memory_limit"), None)
    if heldout is None and unused:
        raise InputError("is for held-out rows. Give these too, or leave it out.", argument=unused)
    compared = compare if isinstance(compare, Comparison) or compare is None else read_comparison(compare)
    if compared is not None:
        _check_comparison(book, compared)
    new_rows, judged = None, None
    if heldout is not None:
        new_rows, name = count_new(book, heldout, **of_rows)
        judged = judge(book, new_rows, name)
        if judged.is_fitted:
            new_rows = None  # every budget would look too good on them
    tried = None if counts is None else sweep(book, counts, new_rows, steps)
    summary = summarise(book, tried, judged, compared)
    for _ in track([""], "writing the page"):
        with replacing(file, overwrite=overwrite) as partial:
            partial.write_text(page(summary), "utf-8")
    if pictures_to is not None:
        draw(summary, place(pictures_to), overwrite=overwrite)
    return summary


def draw(summary: Json, folder: Path, *, overwrite: bool) -> None:
    """Write every plot to a folder, as SVG and PNG."""
    specs = pictures(summary, findings(summary))
    for name in track(list(specs), "drawing"):
        svg = vega.as_svg(specs[name])
        with replacing(folder / f"{name}.svg", overwrite=overwrite) as partial:
            partial.write_text(svg, "utf-8")
        with replacing(folder / f"{name}.png", overwrite=overwrite) as partial:
            partial.write_bytes(vega.as_png(svg))


def _check_comparison(book: Codebook, compared: Comparison) -> None:
    """Refuse a comparison of other counts."""
    of_book = len(book), book.n_values + book.n_rare
    is_same = of_book == (compared.n_columns, compared.n_values)
    if not is_same or not math.isclose(compared.total, book.total, rel_tol=_ROUNDING):
        values = number(compared.n_values, "value")
        raise InputError(
            f"the comparison was made on other counts than the codebook: {values} in "
            f"{number(compared.n_columns, 'column')} with {compared.total:.4g} nats/row, not {of_book[1]:,} in "
            f"{of_book[0]:,} with {book.total:.4g}. Compare the counts that the codebook was fitted on."
        )


def _check_places(
    path: str | os.PathLike[str], pictures_to: str | os.PathLike[str] | None, overwrite: bool
) -> Path:
    """Refuse paths that cannot be written, before anything is computed."""
    file = place(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the report must be a file that ends in .html, got {path}.")
    check_place(file, file, overwrite=overwrite)
    if pictures_to is not None:
        folder = place(pictures_to)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"pictures must be a folder, but {folder} is a file.")
        if folder.is_dir() and any(folder.iterdir()) and not overwrite:
            raise checks.taken(folder)
        checks.folder(folder if folder.exists() else folder.absolute().parent)
    return file
