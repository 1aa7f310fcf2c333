"""The verbs of the command line: each parses its options, calls one function and prints what it returns.

Everything heavy is imported where it is needed, so that `vocabfold --help` is quick.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import vocabfold as vf
from vocabfold.errors import InputError
from vocabfold.interfaces.cli import options

if TYPE_CHECKING:
    from vocabfold.counts.counts import Counts

DEBUG = "VOCABFOLD_DEBUG"  # the variable that asks for tracebacks

app = typer.Typer(
    help="Fold huge categorical vocabularies into a few ids that keep what they tell about a binary label.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command()
def count(
    data: options.Data,
    out: options.Out,
    label: options.Label = None,
    features: options.Features = None,
    exclude: options.Exclude = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    folds: options.Folds = None,
    fold_seed: options.FoldSeed = 0,
    fold_column: options.FoldColumn = None,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Count rows by value and label.

    The first step of fit, to be kept, merged with the counts of other days, and fitted:

    vocabfold count monday.parquet --label click -o monday
    """
    from vocabfold.interfaces.cli import display
    from vocabfold.io.folders import headers, places

    places.check_place(out, headers.COUNTS, overwrite=force)
    counts = vf.count(
        data,
        label,
        options.names(features),
        exclude=options.names(exclude),
        positive=positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
        folds=folds or 0,
        fold_seed=fold_seed,
        fold_column=fold_column,
        memory_limit=memory,
    )
    counts.save(out)
    display.left_out(counts.left_out)
    display.counts(out, counts, as_json)


@app.command()
def merge(
    counts: Annotated[list[str], typer.Argument(metavar="COUNTS", help="Folders from 'vocabfold count'.")],
    out: options.Out,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Add the counts of days or shards.

    Counts of the same columns, with the same label:

    vocabfold merge monday tuesday -o both
    """
    from vocabfold.interfaces.cli import display
    from vocabfold.io.folders import headers, places

    places.check_place(out, headers.COUNTS, overwrite=force)
    merged = _load_counts(counts, memory)
    merged.save(out)
    display.counts(out, vf.load_counts(out, memory_limit=memory), as_json)  # grouped by now


@app.command()
def fit(
    data: options.DataOrCounts,
    budget: options.Budget,
    out: options.Out,
    label: options.Label = None,
    features: options.Features = None,
    exclude: options.Exclude = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    aim: options.Aim = "model",
    method: options.Method = "exact",
    allocation: options.Allocation = "joint",
    smoothing: options.Smoothing = None,
    min_count: options.MinCount = None,
    private_min: options.PrivateMin = 30,
    tail: options.Tail = 8,
    unseen: options.Unseen = "other",
    epsilon: options.Epsilon = 0.1,
    shards: options.Shards = 1,
    seed: options.Seed = 0,
    train_out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write these rows with ids that do not know their labels."),
    ] = None,
    folds: options.Folds = None,
    fold_seed: options.FoldSeed = 0,
    fold_column: options.FoldColumn = None,
    only_ids: options.OnlyIds = False,
    offset_ids: options.OffsetIds = False,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fold rows or counts into a codebook.

    All columns share the budget of ids. With --train-out, the rows are written for a model to be trained on,
    each encoded by what the other folds (5, if not said) tell:

    vocabfold fit 'days/*.parquet' --label click --budget 10k -o book --train-out train.parquet
    """
    from vocabfold.fitting.settings import check_options
    from vocabfold.interfaces.cli import display
    from vocabfold.io.folders import headers, places

    places.check_place(out, headers.CODEBOOK, overwrite=force)
    for_fit: dict[str, Any] = {
        "aim": aim,
        "method": method,
        "allocation": allocation,
        "smoothing": options.parse_smoothing(smoothing),
        "min_count": min_count,
        "private_min": private_min,
        "tail": tail,
        "unseen": unseen,
        "epsilon": epsilon,
        "shards": shards,
        "seed": seed,
    }
    n_ids = options.parse_budget(budget)
    check_options(n_ids, **for_fit)
    options.check_unused("--method", [method], epsilon, shards, seed)
    of_rows: dict[str, Any] = {
        "features": options.names(features),
        "exclude": options.names(exclude),
        "positive": positive,
        "weight": weight,
        "preset": preset,
        "drop_null_labels": drop_null_labels,
        "folds": folds,
        "fold_seed": fold_seed,
        "fold_column": fold_column,
    }
    of_ids: dict[str, Any] = {"only_ids": only_ids, "offset_ids": offset_ids}
    if train_out is None and (given := _given(of_ids)):
        raise InputError(f"{given} is for the rows that --train-out writes; give it to 'vocabfold transform'.")
    written = None
    if train_out is None:
        book = vf.fit(_counted(data, label, of_rows, memory), n_ids, **for_fit)
    elif any(_are_counts(data)):
        counted = data[_are_counts(data).index(True)]
        raise InputError(
            f"--train-out needs rows, and {counted} holds counts: give the rows, or use 'vocabfold "
            "transform --counts' after this."
        )
    else:
        of_rows["folds"] = 5 if folds is None else folds
        book, written = vf.fit_transform(
            data,
            label,
            n_ids,
            out=train_out,
            overwrite=force,
            memory_limit=memory,
            **of_rows,
            **for_fit,
            **of_ids,
        )
    book.save(out)
    display.book(out, book, as_json, written)


@app.command()
def transform(
    book: options.Book,
    data: options.Data,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="A file that ends in .parquet, .csv or .tsv; or, with a / at its end, a folder of files.",
        ),
    ],
    preset: options.Preset = None,
    only_ids: options.OnlyIds = False,
    offset_ids: options.OffsetIds = False,
    expect: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Refuse a codebook with another digest.")
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Encode the rows of these counts by fold with ids that do not know their labels.",
        ),
    ] = None,
    fold_column: options.FoldColumn = None,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Replace values by their ids.

    Rows keep their order, and all other columns stay as they are:

    vocabfold transform book sunday.parquet -o sunday.ids.parquet
    """
    from vocabfold.interfaces.cli import display

    loaded = vf.load(book, memory_limit=memory)
    written = loaded.transform(
        data,
        out=out,
        offset_ids=offset_ids,
        only_ids=only_ids,
        expect=expect,
        counts=None if counts is None else vf.load_counts(counts, memory_limit=memory),
        fold_column=fold_column,
        preset=preset,
        overwrite=force,
    )
    display.transformed(written, loaded.digest, as_json)


@app.command()
def evaluate(
    book: options.Book,
    data: options.Data,
    label: options.Label = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    fail_below: Annotated[
        float | None,
        typer.Option(metavar="NATS", help="Exit with code 1 if the gains of all columns sum to less, per row."),
    ] = None,
    memory: options.Memory = None,
    as_json: options.Json = False,
) -> None:
    """Judge a codebook by rows that it was not fitted on.

    What its ids tell about them, how many values it does not know, and what should be looked at:

    vocabfold evaluate book sunday.parquet
    """
    from vocabfold.interfaces.cli import display

    if fail_below is not None and fail_below != fail_below:
        raise InputError("--fail-below must be a number of nats per row, such as 0.01, got nan.")
    found = vf.load(book, memory_limit=memory).evaluate(
        data,
        label,
        positive=positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
    )
    if not display.evaluation(found, fail_below, as_json):
        raise typer.Exit(1)


@app.command()
def compare(
    data: options.DataOrCounts,
    budgets: Annotated[
        list[str], typer.Option("--budgets", "-b", metavar="A,B", help="Ids in all, several: 500,10k,160k.")
    ],
    label: options.Label = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Methods, as for 'vocabfold fit'; by default all but dynamic."),
    ] = None,
    allocations: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Of joint, uniform, information, those that a method has; by default joint, or else uniform.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds, after which a fold is stopped.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also draw it: a file that ends in .svg, .png or .pdf.")
    ] = None,
    features: options.Features = None,
    exclude: options.Exclude = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    unmerged: Annotated[
        bool, typer.Option("--unmerged", help="Cut between values of equal rate, too, as the paper does.")
    ] = False,
    epsilon: options.Epsilon = 0.1,
    shards: options.Shards = 1,
    seed: options.Seed = 0,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Try every method on the same rows or counts.

    What each loses of the information about the label, against the least that any fold of that budget loses,
    and how long it takes. It is about these rows alone: what holds on new ones, 'vocabfold evaluate' tells.

    vocabfold compare 'days/*.parquet' --label click --budgets 1k,10k --methods exact,greedy,frequency
    """
    from vocabfold.evaluation import comparison
    from vocabfold.interfaces.cli import display

    given: dict[str, Any] = {
        "budgets": options.parse_budgets(budgets),
        "methods": options.names(methods),
        "allocations": options.names(allocations),
    }
    tuning: dict[str, Any] = {"epsilon": epsilon, "shards": shards, "seed": seed, "time_limit": time_limit}
    comparison.check_options(**given, **tuning)
    options.check_unused("--methods", given["methods"] or comparison.DEFAULT_METHODS, epsilon, shards, seed)
    if plot is not None:
        from vocabfold.evaluation.chart import check_plot

        check_plot(plot, overwrite=force)
    of_rows = {
        "features": options.names(features),
        "exclude": options.names(exclude),
        "positive": positive,
        "weight": weight,
        "preset": preset,
        "drop_null_labels": drop_null_labels,
    }
    counts = _counted(data, label, of_rows, memory)
    display.left_out(counts.left_out)
    found = vf.compare(counts, **given, merge=not unmerged, **tuning)
    drawn = None if found.is_empty else plot
    if drawn is not None:
        found.plot(drawn, overwrite=force)
    display.comparison(found, drawn, as_json)
    if drawn != plot:
        raise InputError(f"no method came to its end, so there is nothing to draw: {plot} was not written.")


@app.command()
def report(
    book: options.Book,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where the page goes: a file that ends in .html.")
    ],
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS", help="The folder that the codebook was fitted on: to try other budgets."
        ),
    ] = None,
    heldout: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Rows that it was not fitted on: to judge it by. May be repeated."),
    ] = None,
    label: options.Label = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    compare: Annotated[
        str | None, typer.Option(metavar="FILE", help="What 'vocabfold compare --json' printed.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Budgets to try, 3 to 200; by default as many as are of use."),
    ] = None,
    pictures: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Also write the plots, as SVG and PNG.")
    ] = None,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show a codebook as a page.

    One HTML file: what is kept, which budget is enough, where the ids go, what is in them, what holds on new
    rows. --label and the options after it are about the held-out rows:

    vocabfold report book --counts counts --heldout sunday.parquet -o report.html
    """
    from vocabfold.interfaces.cli import display

    summary = vf.load(book, memory_limit=memory).report(
        out,
        counts=None if counts is None else vf.load_counts(counts, memory_limit=memory),
        heldout=heldout,
        label=label,
        positive=positive,
        weight=weight,
        drop_null_labels=drop_null_labels,
        preset=preset,
        compare=compare,
        steps=steps,
        pictures=pictures,
        overwrite=force,
        memory_limit=memory,
    )
    display.report(out, pictures, summary, as_json)


@app.command()
def inspect(
    book: options.Book,
    feature: Annotated[str | None, typer.Option(metavar="COL", help="Show the ids of one column.")] = None,
    id: Annotated[int | None, typer.Option(metavar="N", help="Show the values of one id of it.")] = None,
    value: Annotated[str | None, typer.Option(metavar="V", help="Show the id of one value of it.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Show the id of rows without a value.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="Rows to show at most.")] = 50,
    as_json: options.Json = False,
) -> None:
    """Show what is in a codebook.

    What it keeps of each column; the ids of one column, the values of an id, the id of a value:

    vocabfold inspect book --feature site --value example.org
    """
    from vocabfold.interfaces.cli import display
    from vocabfold.support import checks

    checks.at_least("--limit", limit, 1)
    given = {"--id": id is not None, "--value": value is not None, "--missing": missing}
    asked = [option for option, is_given in given.items() if is_given]
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
    force: options.Force = False,
) -> None:
    """Fold a year of flights.

    From rows to a codebook to ids, with the commands that do it.
    """
    from vocabfold.interfaces.cli import demo, display

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
        os.environ[DEBUG] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _given(values: dict[str, Any]) -> str | None:
    """Return the first option that was given."""
    return next((f"--{name.replace('_', '-')}" for name, value in values.items() if value), None)


def _are_counts(data: list[str]) -> list[bool]:
    from vocabfold.io.folders.headers import COUNTS

    return [os.path.exists(os.path.join(path, COUNTS.header)) for path in data]  # a name may be too long


def _counted(data: list[str], label: str | None, of_rows: dict[str, Any], memory: str | None) -> Counts:
    """Return the counts of rows; or those of folders that hold counts."""
    is_counted = _are_counts(data)
    if not any(is_counted):
        options_of_rows = {name: value for name, value in of_rows.items() if value is not None}
        return vf.count(data, label, **options_of_rows, memory_limit=memory)
    if not all(is_counted):
        odd = data[is_counted.index(False)]
        if not os.path.exists(odd):
            raise InputError(
                f"there is no {odd}; {data[is_counted.index(True)]} holds counts: give folders of counts."
            )
        raise InputError(f"{odd} holds no counts, and others do; count it first, or give all as rows.")
    if given := _given(of_rows):
        raise InputError(f"{given} is for rows, and {data[0]} holds counts: give it to 'vocabfold count'.")
    counts = _load_counts(data, memory)
    if label not in (None, counts.label):
        raise InputError(
            f"{data[0]} was counted with the label {counts.label!r}, not {label!r}; leave --label out, or "
            "count again."
        )
    return counts


def _load_counts(paths: list[str], memory: str | None) -> Counts:
    seen: set[Path] = set()
    for path in paths:
        if Path(path).resolve() in seen:
            raise InputError(f"{path} is given twice; its rows would count twice.")
        seen.add(Path(path).resolve())
    first, *others = (vf.load_counts(path, memory_limit=memory) for path in paths)
    return sum(others, first)
