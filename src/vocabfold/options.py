"""The words of the command line: options that several verbs share, and how names and budgets are read."""

from __future__ import annotations

import csv
import re
from typing import Annotated

import typer

from vocabfold.errors import InputError

DATA_HELP = (
    "Parquet, CSV, TSV or JSON-lines files, patterns such as 'day*.parquet', or folders of Parquet files."
)
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
Label = Annotated[str | None, typer.Option(metavar="COL", help="The column with two values.")]
Features = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="The columns to fold; by default all text-like ones.")
]
Exclude = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out, if none are named.")
]
Positive = Annotated[
    str | None, typer.Option(metavar="VALUE", help="The positive value of a label that is not 0/1 or boolean.")
]
Weight = Annotated[str | None, typer.Option(metavar="COL", help="A column with the weight of each row.")]
DropNullLabels = Annotated[bool, typer.Option("--drop-null-labels", help="Leave out rows without a label.")]
Preset = Annotated[str | None, typer.Option(metavar="criteo", help="The layout of the Criteo challenge.")]
Memory = Annotated[
    str | None, typer.Option(metavar="4GB", help="Memory to use; by default half of the machine's.")
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="PATH", help="Where the result goes.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a result that exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def names(given: list[str] | None) -> list[str] | None:
    """Return names that are separated by commas; one with a comma in it is quoted, as in CSV."""
    return [name for line in csv.reader(given, skipinitialspace=True) for name in line] if given else None


def parse_budget(text: str) -> int | str:
    """Return a number of ids: 160000, 160k or 1.5m."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+)([km]?)", text.strip().lower())
    n_ids = float(match[1].replace(",", "")) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2]] if match else 0.0
    if text == "auto":
        return text
    if n_ids < 1 or n_ids != int(n_ids):
        raise InputError(
            f"--budget must be a number of ids, at least 1, such as 160000, 160k or 1.5m, got {text!r}."
        )
    return int(n_ids)
