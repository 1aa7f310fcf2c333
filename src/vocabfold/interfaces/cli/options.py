"""Options that several verbs share, and how names and budgets are read.

The flags of `fit`, such as `--budget`, are made from `codebook/settings.py`.
"""

from __future__ import annotations

import csv
import functools
import inspect
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from reprlib import repr as short
from typing import Annotated, Any, TypeVar, cast

import typer

from vocabfold.codebook.settings import AUTO, OPTIONS
from vocabfold.errors import InputError, flag

Command = TypeVar("Command", bound=Callable[..., Any])

DATA_HELP = (
    "Parquet, CSV, TSV or JSON-lines files, patterns such as 'day*.parquet', or folders of Parquet files."
)
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
DataOrCounts = Annotated[
    list[str], typer.Argument(metavar="DATA", help=DATA_HELP + " Or folders from 'vocabfold count'.")
]
Label = Annotated[str | None, typer.Option(metavar="COL", help="The column with two values.")]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="The columns to fold; by default every text-like column."),
]
Also = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Columns of numbers or dates to fold beside the text-like ones."),
]
Exclude = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out, if --features is not given.")
]
Positive = Annotated[
    str | None, typer.Option(metavar="VALUE", help="The positive value of a label that is not 0/1 or boolean.")
]
Weight = Annotated[str | None, typer.Option(metavar="COL", help="A column with the weight of each row.")]
DropNullLabels = Annotated[bool, typer.Option("--drop-null-labels", help="Leave out rows without a label.")]
Preset = Annotated[str | None, typer.Option(metavar="criteo", help="The layout of the Criteo challenge.")]
Folds = Annotated[
    int | None, typer.Option(metavar="N", help="Count each of N folds separately, to encode out of fold.")
]
FoldSeed = Annotated[int, typer.Option(metavar="N", help="Assign rows to folds in another way.")]
FoldColumn = Annotated[str | None, typer.Option(metavar="COL", help="A column with the fold of each row.")]
OnlyIds = Annotated[bool, typer.Option("--only-ids", help="Write the ids alone, without the other columns.")]
OffsetIds = Annotated[
    bool, typer.Option("--offset-ids", help="Number the ids over all columns, for one embedding table.")
]
Book = Annotated[str, typer.Argument(metavar="BOOK", help="A folder from 'vocabfold fit'.")]
Memory = Annotated[
    str | None, typer.Option(metavar="4GB", help="Memory limit; by default half of the machine's memory.")
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="PATH", help="Where to write the result.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the result if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def with_settings(*names: str) -> Callable[[Command], Command]:
    """Give a command these options of `fit`, and what was given to them as its argument `settings`."""

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            by_name = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += map(_parameter, names) if parameter.name == "settings" else [by_name]
        parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)  # required ones first

        @functools.wraps(command)
        def run(**given: Any) -> Any:
            settings = {name: given.pop(name) for name in names}
            settings |= {name: parse(settings[name]) for name, parse in _PARSE.items() if name in settings}
            return command(**given, settings=settings)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return cast(Command, run)

    return decorate


def _parameter(name: str) -> inspect.Parameter:
    """Return an option of `fit` as a parameter of a command."""
    option = OPTIONS[name]
    read, is_required = (str if name in _PARSE else option.read), name == "budget"
    kind = read if is_required or option.default is not None else read | None
    words = option.help + _ALSO.get(name, "")
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else option.default,
        annotation=Annotated[kind, typer.Option(flag(name), *option.short, metavar=option.metavar, help=words)],
    )


def check_unused(name: str, methods: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Refuse options that apply to none of the methods; `name` is the argument that names these."""
    for unused, given in settings.items():
        option = OPTIONS[unused]
        if given != option.default and not set(methods) & set(option.methods):
            raise InputError(
                f"applies to {flag(name)} {' or '.join(option.methods)}, not to {', '.join(methods)}; leave it "
                "out.",
                argument=unused,
            )


def names(given: list[str] | None) -> list[str] | None:
    """Return names that are separated by commas; one with a comma in it is quoted, as in CSV."""
    if not given:
        return None
    try:
        # A name may contain a line end, and is then quoted too.
        lines = [csv.reader(io.StringIO(text, newline=""), skipinitialspace=True) for text in given]
        return [name for line in lines for row in line for name in row]
    except csv.Error as error:
        raise InputError(
            f"{short(given)} cannot be read as names separated by commas ({error}); put names "
            "that contain a comma, a quote or a line end into double quotes."
        ) from None


def parse_smoothing(text: str | None) -> float | str | None:
    """Return a number of rows, or "auto"."""
    try:
        return text if text in (None, AUTO) else float(str(text))
    except ValueError:
        return text  # which FitSettings refuses


def parse_budget(text: str) -> int | str:
    """Return a number of ids: 160000, 160k or 1.5m; or "auto"."""
    n_ids = text if text == AUTO else _number_of_ids(text)
    if n_ids is None:
        raise InputError(
            f"must be auto or a number of ids, at least 1, such as 160000, 160k or 1.5m, got {text!r}.",
            argument="budget",
        )
    return n_ids


def parse_budgets(given: Sequence[str]) -> list[int]:
    """Return several numbers of ids, separated by commas."""
    found, text = [], ",".join(given)
    for part in text.split(","):
        n_ids = _number_of_ids(part)
        if n_ids is None:
            raise InputError(
                "must be numbers of ids, at least 1, separated by commas without spaces, such as "
                f"1000,160k,1.5m, got {part or text!r}.",
                argument="budgets",
            )
        found.append(n_ids)
    return found


def _number_of_ids(text: str) -> int | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+)([km]?)", text.strip().lower())
    n_ids = float(match[1].replace(",", "")) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2]] if match else 0.0
    return int(n_ids) if 1 <= n_ids < math.inf and n_ids == int(n_ids) else None


_ALSO = {"budget": " 160k and 1.5m are numbers, too."}
_PARSE: Mapping[str, Callable[[Any], Any]] = {"budget": parse_budget, "smoothing": parse_smoothing}
