"""Codebook -> report: what it needs is checked first, then computed, drawn and written in one go."""

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

_ROUNDING = 1e-6  # of what values tell


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
    """Write the report, and return the figures in it; see `Codebook.report`."""
    file = _check_places(path, pictures_to, overwrite)
    check_libraries()
    if steps is not None and checks.at_least("steps", steps, 3) > MOST_STEPS:
        raise InputError(f"must be at most {MOST_STEPS}, got {steps:,}.", argument="steps")
    if counts is not None:
        check_counts(book, counts)
    elif steps is not None:
        raise InputError(
            "is for other budgets, which need the counts: give these, too, or leave it out.", argument="steps"
        )
    given = (name for name, value in of_rows.items() if not (value is None or value is False))
    unused = next((name for name in given if name != "memory_limit"), None)
    if heldout is None and unused:
        raise InputError("is for held-out rows; give these, too, or leave it out.", argument=unused)
    compared = compare if isinstance(compare, Comparison) or compare is None else read_comparison(compare)
    if compared is not None:
        _check_comparison(book, compared)
    new_rows, judged = None, None
    if heldout is not None:
        new_rows, name = count_new(book, heldout, **of_rows)
        judged = judge(book, new_rows, name)
        if judged.is_fitted:
            new_rows = None  # which would flatter every budget
    tried = None if counts is None else sweep(book, counts, new_rows, steps)
    summary = summarise(book, tried, judged, compared)
    for _ in track([""], "writing the page"):
        with replacing(file, overwrite=overwrite) as partial:
            partial.write_text(page(summary), "utf-8")
    if pictures_to is not None:
        draw(summary, place(pictures_to), overwrite=overwrite)
    return summary


def draw(summary: Json, folder: Path, *, overwrite: bool) -> None:
    """Write every plot to a folder, as SVG and as PNG."""
    specs = pictures(summary, findings(summary))
    for name in track(list(specs), "drawing"):
        svg = vega.as_svg(specs[name])
        with replacing(folder / f"{name}.svg", overwrite=overwrite) as partial:
            partial.write_text(svg, "utf-8")
        with replacing(folder / f"{name}.png", overwrite=overwrite) as partial:
            partial.write_bytes(vega.as_png(svg))


def _check_comparison(book: Codebook, compared: Comparison) -> None:
    """Refuse a comparison on other counts."""
    of_book = len(book), book.n_values + book.n_rare
    is_same = of_book == (compared.n_columns, compared.n_values)
    if not is_same or not math.isclose(compared.total, book.total, rel_tol=_ROUNDING):
        raise InputError(
            f"the comparison is of {compared.n_values:,} values in {number(compared.n_columns, 'column')} that "
            f"tell {compared.total:.4g} nats, and the codebook of {of_book[1]:,} in {of_book[0]:,} that tell "
            f"{book.total:.4g}; compare the counts that the codebook was fitted on."
        )


def _check_places(
    path: str | os.PathLike[str], pictures_to: str | os.PathLike[str] | None, overwrite: bool
) -> Path:
    """Refuse places that cannot be written, before anything is computed."""
    file = place(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path} must end in .html to be a report.")
    check_place(file, file, overwrite=overwrite)
    if pictures_to is not None:
        folder = place(pictures_to)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; give a folder for the pictures.")
        if folder.is_dir() and any(folder.iterdir()) and not overwrite:
            raise checks.taken(folder)
        checks.folder(folder if folder.exists() else folder.absolute().parent)
    return file
