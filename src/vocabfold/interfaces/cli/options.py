"""The words of the command line: options that several verbs share, and how names and budgets are read."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from reprlib import repr as short
from typing import Annotated

import typer

from vocabfold.errors import InputError

_OPTIONS = {  # what messages of the library call an option
    "label is missing": "--label is missing",
    "drop_null_labels=True": "--drop-null-labels",
    "with positive=.": "with --positive.",
    "label is for held-out rows": "--label is for held-out rows",
    "raise memory_limit": "raise --memory",
    "memory_limit must be": "--memory must be",
    "overwrite=True": "--force",
    "(only_ids)": "(--only-ids)",
    "use fit_transform, or transform(..., counts=) with counts by fold": "use 'vocabfold fit --train-out', or "
    "'vocabfold transform --counts' with counts by fold",
    "give these as counts=": "give these with --counts",
    "count the rows with folds=5, say": "count the rows with --folds 5, say",
    "with a fold_column": "with a --fold-column",
    "with that fold_column": "with that --fold-column",
    "raise min_count": "raise --min-count",
    "leave smoothing out": "leave --smoothing out",
    "aim='model'": "--aim model",
    "aim='information'": "--aim information",
    "allocation='uniform'": "--allocation uniform",
    "allocation='information'": "--allocation information",
    "method='exact'": "--method exact",
    "budget='auto'": "--budget auto",
    "load it with vf.load_counts": "give it to 'vocabfold fit'",
    "load it with vf.load": "give it to 'vocabfold transform'",
}
# Messages begin with the name of the option that they are about.
_NAMES = (
    "aim|allocation|allocations|budget|budgets|drop_null_labels|epsilon|fold_column|fold_seed|folds|method|"
    "methods|min_count|positive|preset|dedicated_min|seed|shards|smoothing|shared_ids|steps|time_limit|unseen|weight"
)
DATA_HELP = (
    "Parquet, CSV, TSV or JSON-lines files, patterns such as 'day*.parquet', or folders of Parquet files."
)
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
DataOrCounts = Annotated[
    list[str], typer.Argument(metavar="DATA", help=DATA_HELP + " Or folders from 'vocabfold count'.")
]
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
Folds = Annotated[int | None, typer.Option(metavar="N", help="Folds, counted apart.")]
FoldSeed = Annotated[int, typer.Option(metavar="N", help="Deal rows to folds in another way.")]
FoldColumn = Annotated[str | None, typer.Option(metavar="COL", help="A column with the fold of each row.")]
OnlyIds = Annotated[bool, typer.Option("--only-ids", help="Leave all other columns out.")]
OffsetIds = Annotated[
    bool, typer.Option("--offset-ids", help="Number the ids over all columns, for one embedding table.")
]
Budget = Annotated[
    str, typer.Option("--budget", "-b", metavar="IDS", help="Ids in all: 160000, 160k, 1.5m, or auto.")
]
Aim = Annotated[
    str,
    typer.Option(
        metavar="model|information",
        help="What the ids are for: a model to learn from, or to keep most information of these rows.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How to fold: exact, dynamic (the optimum); greedy, stochastic, threshold (the paper's); "
        "agglomerative, divisive, bucketing, frequency, selection, hashing (to compare with; the last three "
        "for information alone).",
    ),
]
Allocation = Annotated[
    str,
    typer.Option(
        metavar="joint|uniform|information",
        help="How to split the budget over columns; divisive, bucketing and hashing have no joint split.",
    ),
]
Smoothing = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS",
        help="Rows at the overall rate that each value is credited with, or auto; by the aim.",
    ),
]
MinCount = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Pool values with fewer rows; by default 20 for a model, and none (1) with --train-out or for "
        "information.",
    ),
]
DedicatedMin = Annotated[
    int, typer.Option(metavar="N", help="For a model: rows that earn a value an id of its own.")
]
SharedIds = Annotated[
    int, typer.Option(metavar="N", help="For a model: ids for all other values of a column, on average.")
]
Unseen = Annotated[
    str, typer.Option(metavar="other|own|error", help="What values get that are not in the codebook.")
]
Epsilon = Annotated[
    float,
    typer.Option(
        metavar="X", help="For stochastic and threshold: the smaller, the better and the slower; below 1."
    ),
]
Shards = Annotated[
    int, typer.Option(metavar="N", help="For threshold: pieces of each column that are folded on their own.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="For stochastic: draw other samples.")]
Book = Annotated[str, typer.Argument(metavar="BOOK", help="A folder from 'vocabfold fit'.")]
Memory = Annotated[
    str | None, typer.Option(metavar="4GB", help="Memory to use; by default half of the machine's.")
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="PATH", help="Where the result goes.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a result that exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def check_unused(option: str, methods: Sequence[str], epsilon: float, shards: int, seed: int) -> None:
    """Refuse options that none of the methods looks at, which an option names."""
    used_by = {
        "epsilon": (epsilon != 0.1, ["stochastic", "threshold"]),
        "shards": (shards != 1, ["threshold"]),
        "seed": (seed != 0, ["stochastic"]),
    }
    for name, (is_given, users) in used_by.items():
        if is_given and not set(methods) & set(users):
            raise InputError(
                f"--{name} is for {option} {' or '.join(users)}, not {', '.join(methods)}; leave it out."
            )


def names(given: list[str] | None) -> list[str] | None:
    """Return names that are separated by commas; one with a comma in it is quoted, as in CSV."""
    if not given:
        return None
    try:
        # A name may hold the end of a line, and then stands in quotes too.
        lines = [csv.reader(io.StringIO(text, newline=""), skipinitialspace=True) for text in given]
        return [name for line in lines for row in line for name in row]
    except csv.Error as error:
        raise InputError(
            f"{short(given)} cannot be read as names with commas between them ({error}); put a name with a "
            "comma, a quote or a line end in it into double quotes."
        ) from None


def parse_smoothing(text: str | None) -> float | str | None:
    """Return a number of rows, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--smoothing must be 'auto' or a number of rows, 0 or more, got {text!r}.") from None


def parse_budget(text: str) -> int | str:
    """Return a number of ids: 160000, 160k or 1.5m; or "auto"."""
    if text == "auto":
        return text
    n_ids = _number_of_ids(text)
    if n_ids is None:
        raise InputError(
            f"--budget must be auto or a number of ids, at least 1, such as 160000, 160k or 1.5m, got {text!r}."
        )
    return n_ids


def parse_budgets(given: Sequence[str]) -> list[int]:
    """Return several numbers of ids, separated by commas."""
    budgets, text = [], ",".join(given)
    for part in text.split(","):
        n_ids = _number_of_ids(part)
        if n_ids is None:
            raise InputError(
                "--budgets must be numbers of ids, at least 1, with commas between them alone, such as "
                f"1000,160k,1.5m, got {part or text!r}."
            )
        budgets.append(n_ids)
    return budgets


def _number_of_ids(text: str) -> int | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+)([km]?)", text.strip().lower())
    n_ids = float(match[1].replace(",", "")) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2]] if match else 0.0
    return int(n_ids) if 1 <= n_ids < math.inf and n_ids == int(n_ids) else None


def in_options(message: str) -> str:
    """Return a message of the library in the words of the command line."""
    for word, option in _OPTIONS.items():
        message = message.replace(word, option)
    return re.sub(rf"^({_NAMES})(?= )", lambda found: f"--{found[1].replace('_', '-')}", message)
