"""The command line: every verb parses its options, calls one function and prints what it returns.

Results go to stdout, for people as a table and for machines as JSON; messages and progress go to stderr. Exit
code 0 means done, 2 that the command or the data cannot be used. Everything heavy is imported where it is
needed, so that `vocabfold --help` is quick.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import vocabfold as vf
from vocabfold import progress
from vocabfold.errors import InputError, VocabfoldError
from vocabfold.options import (
    DATA_HELP,
    Data,
    DropNullLabels,
    Exclude,
    Features,
    Force,
    Json,
    Label,
    Memory,
    Out,
    Positive,
    Preset,
    Weight,
    names,
    parse_budget,
)
from vocabfold.terminal import printable

if TYPE_CHECKING:
    from vocabfold.counts import Counts

app = typer.Typer(
    help="Fold huge categorical vocabularies into a few ids that keep what they tell about a binary label.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_DEBUG = "VOCABFOLD_DEBUG"
_OPTIONS = {  # what messages of the library call an option
    "label is missing": "--label is missing",
    "drop_null_labels=True": "--drop-null-labels",
    "with positive=.": "with --positive.",
    "memory_limit": "--memory",
    "overwrite=True": "--force",
    "(only_ids)": "(--only-ids)",
    "load it with vf.load_counts": "give it to 'vocabfold fit'",
    "load it with vf.load": "give it to 'vocabfold transform'",
}
_INTERRUPTED = 130  # what typer returns after Ctrl-C
_signals: list[int] = [signal.SIGINT]  # the last one is what ended the command


@app.command()
def count(
    data: Data,
    out: Out,
    label: Label = None,
    features: Features = None,
    exclude: Exclude = None,
    positive: Positive = None,
    weight: Weight = None,
    drop_null_labels: DropNullLabels = False,
    preset: Preset = None,
    folds: Annotated[int, typer.Option(metavar="N", help="Count each of N folds apart.")] = 0,
    fold_seed: Annotated[int, typer.Option(metavar="N", help="Deal rows to folds in another way.")] = 0,
    fold_column: Annotated[
        str | None, typer.Option(metavar="COL", help="A column with the fold of each row.")
    ] = None,
    memory: Memory = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Count rows by value and label.

    The first step of fit, to be kept, merged with the counts of other days, and fitted:

    vocabfold count monday.parquet --label click -o counts/monday
    """
    from vocabfold import display, storage

    storage.check_place(out, storage.COUNTS, overwrite=force)
    counts = vf.count(
        data,
        label,
        names(features),
        exclude=names(exclude),
        positive=positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
        folds=folds,
        fold_seed=fold_seed,
        fold_column=fold_column,
        memory_limit=memory,
    )
    counts.save(out)
    display.counts(out, counts, as_json)


@app.command()
def merge(
    counts: Annotated[list[str], typer.Argument(metavar="COUNTS", help="Folders from 'vocabfold count'.")],
    out: Out,
    memory: Memory = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Add the counts of days or shards.

    Counts of the same columns, with the same label:

    vocabfold merge counts/monday counts/tuesday -o counts/both
    """
    from vocabfold import display, storage

    storage.check_place(out, storage.COUNTS, overwrite=force)
    merged = _load_counts(counts, memory)
    merged.save(out)
    display.counts(out, vf.load_counts(out, memory_limit=memory), as_json)  # grouped by now


@app.command()
def fit(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA", help=DATA_HELP + " Or folders from 'vocabfold count'."),
    ],
    budget: Annotated[
        str, typer.Option("--budget", "-b", metavar="IDS", help="Ids in all: 160000, 160k, 1.5m.")
    ],
    out: Out,
    label: Label = None,
    features: Features = None,
    exclude: Exclude = None,
    positive: Positive = None,
    weight: Weight = None,
    drop_null_labels: DropNullLabels = False,
    preset: Preset = None,
    aim: Annotated[str, typer.Option(metavar="information", help="What the ids are for.")] = "information",
    method: Annotated[str, typer.Option(metavar="exact|dynamic", help="How to fold.")] = "exact",
    allocation: Annotated[
        str, typer.Option(metavar="joint|uniform|information", help="How to split the budget over columns.")
    ] = "joint",
    min_count: Annotated[
        int | None, typer.Option(metavar="N", help="Pool values with fewer rows; by default none.")
    ] = None,
    unseen: Annotated[
        str, typer.Option(metavar="other|own|error", help="What values get that are not in the codebook.")
    ] = "other",
    memory: Memory = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fold rows or counts into a codebook.

    All columns share the budget of ids, which goes where it keeps most:

    vocabfold fit 'days/*.parquet' --label click --budget 10k -o book
    """
    from vocabfold import checks, display, storage
    from vocabfold.fitting import check_options

    storage.check_place(out, storage.CODEBOOK, overwrite=force)
    n_ids: Any = parse_budget(budget)
    check_options(n_ids, aim, method, allocation, unseen)
    if min_count is not None:
        checks.at_least("--min-count", min_count, 1)
    is_counted = [(Path(path) / storage.COUNTS.header).exists() for path in data]
    for_rows: dict[str, Any] = {
        "features": names(features),
        "exclude": names(exclude),
        "positive": positive,
        "weight": weight,
        "preset": preset,
        "drop_null_labels": drop_null_labels,
    }
    if any(is_counted):
        if not all(is_counted):
            odd = data[is_counted.index(False)]
            raise InputError(f"{odd} holds no counts, and others do; count it first, or give all as rows.")
        given = [name.replace("_", "-") for name, value in for_rows.items() if value not in (None, False)]
        if given:
            problem = f"--{given[0]} is for rows, and {data[0]} holds counts"
            raise InputError(f"{problem}: give it to 'vocabfold count'.")
        counts = _load_counts(data, memory)
        if label not in (None, counts.label):
            raise InputError(f"{data[0]} was counted with the label {counts.label!r}, not {label!r}.")
    else:
        counts = vf.count(data, label, **for_rows, memory_limit=memory)
    book = vf.fit(
        counts, n_ids, aim=aim, method=method, allocation=allocation, min_count=min_count, unseen=unseen
    )
    book.save(out)
    display.book(out, book, as_json)


@app.command()
def transform(
    book: Annotated[str, typer.Argument(metavar="BOOK", help="A folder from 'vocabfold fit'.")],
    data: Data,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="A file that ends in .parquet, .csv or .tsv; or, with a / at its end, a folder of files.",
        ),
    ],
    preset: Preset = None,
    only_ids: Annotated[bool, typer.Option("--only-ids", help="Leave all other columns out.")] = False,
    offset_ids: Annotated[
        bool, typer.Option("--offset-ids", help="Number the ids over all columns, for one embedding table.")
    ] = False,
    expect: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Refuse a codebook with another digest.")
    ] = None,
    memory: Memory = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Replace values by their ids.

    Rows keep their order, and all other columns stay as they are:

    vocabfold transform book sunday.parquet -o sunday.ids.parquet
    """
    from vocabfold import display

    loaded = vf.load(book, memory_limit=memory)
    written = loaded.transform(
        data,
        out=out,
        offset_ids=offset_ids,
        only_ids=only_ids,
        expect=expect,
        preset=preset,
        overwrite=force,
    )
    display.transformed(written, loaded.digest, as_json)


@app.command()
def inspect(
    book: Annotated[str, typer.Argument(metavar="BOOK", help="A folder from 'vocabfold fit'.")],
    feature: Annotated[str | None, typer.Option(metavar="COL", help="Show the ids of one column.")] = None,
    id: Annotated[int | None, typer.Option(metavar="N", help="Show the values of one id of it.")] = None,
    value: Annotated[str | None, typer.Option(metavar="V", help="Show the id of one value of it.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Show the id of rows without a value.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="Rows to show at most.")] = 50,
    as_json: Json = False,
) -> None:
    """Show what is in a codebook.

    What it keeps of each column; the ids of one column, the values of an id, the id of a value:

    vocabfold inspect book --feature site --value example.org
    """
    from vocabfold import checks, display

    checks.at_least("--limit", limit, 1)
    asked = [
        option
        for option, is_given in (
            ("--id", id is not None),
            ("--value", value is not None),
            ("--missing", missing),
        )
        if is_given
    ]
    if asked and feature is None:
        raise InputError(f"{asked[0]} needs a column: add --feature.")
    if len(asked) > 1:
        raise InputError(f"{asked[0]} and {asked[1]} ask for different things; give one of them.")
    loaded = vf.load(book)
    if feature is None:
        display.book(book, loaded, as_json)
    elif value is not None or missing:
        display.value(loaded, feature, value, as_json)
    elif id is not None:
        display.members(loaded, feature, id, limit, as_json)
    else:
        display.ids(loaded, feature, limit, as_json)


@app.command()
def demo(
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FOLDER", help="Where its files go.")
    ] = "vocabfold-demo",
    force: Force = False,
) -> None:
    """Fold a year of flights.

    From rows to a codebook to ids, with the commands that do it.
    """
    from vocabfold import demo, display

    for command in demo.commands(Path(out), overwrite=force):
        display.line(f"\n$ vocabfold {shlex.join(command)}")
        if app(command, standalone_mode=False):
            raise KeyboardInterrupt


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"vocabfold {vf.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    if debug:
        os.environ[_DEBUG] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; every error is one sentence."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _interrupt)  # so that temporary files are removed
    progress.begin()
    code = 0
    try:
        code = app(prog_name="vocabfold", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except SystemExit:
        pass  # nobody reads the help any more
    except Exception as error:
        if os.environ.get(_DEBUG):
            traceback.print_exc()
        if isinstance(error, VocabfoldError):
            _fail(_in_options(str(error)), 2)
        if hasattr(error, "format_message"):  # a wrong option or argument
            message = error.format_message()
            _fail(message if message.endswith((".", "?", ")")) else f"{message}.", 2)
        _fail(f"{type(error).__name__}: {error} (unexpected: 'vocabfold --debug ...' shows where)", 2)
    if code == _INTERRUPTED:
        _fail("interrupted.", 128 + _signals[-1])
    sys.exit(code)


def _fail(message: str, code: int) -> NoReturn:
    with suppress(OSError, AttributeError):  # nobody reads it
        sys.stderr.write(f"error: {printable(message)}\n")
        sys.stderr.flush()
    sys.exit(code)


def _in_options(message: str) -> str:
    """Return a message of the library in the words of the command line."""
    for word, option in _OPTIONS.items():
        message = message.replace(word, option)
    return message


def _interrupt(number: int, _: object) -> NoReturn:
    _signals.append(number)
    raise KeyboardInterrupt


def _load_counts(paths: list[str], memory: str | None) -> Counts:
    seen: set[Path] = set()
    for path in paths:
        if Path(path).resolve() in seen:
            raise InputError(f"{path} is given twice; its rows would count twice.")
        seen.add(Path(path).resolve())
    first, *others = (vf.load_counts(path, memory_limit=memory) for path in paths)
    return sum(others, first)
