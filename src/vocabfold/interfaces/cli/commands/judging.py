"""The verbs that show something: what the ids are worth, other methods, what is in a codebook, the demo."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

import vocabfold as vf
from vocabfold.errors import InputError
from vocabfold.interfaces.cli import options
from vocabfold.interfaces.cli.app import app
from vocabfold.interfaces.cli.commands.inputs import check_there, counted


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
        typer.Option(
            metavar="NATS", help="Exit with code 1 if the gains of all columns sum to less than this per row."
        ),
    ] = None,
    memory: options.Memory = None,
    as_json: options.Json = False,
) -> None:
    """Evaluate a codebook on held-out rows.

    Shows the mutual information and the gain of the ids on these rows, how many values are not in the codebook,
    and which columns need attention:

    vocabfold evaluate book sunday.parquet
    """
    check_there(data)
    from vocabfold.interfaces.cli import display

    if fail_below is not None and fail_below != fail_below:
        raise InputError("must be a number of nats per row, such as 0.01, got nan.", argument="fail_below")
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
@options.with_settings("epsilon", "shards", "seed")
def compare(
    data: options.DataOrCounts,
    budgets: Annotated[
        list[str], typer.Option("--budgets", "-b", metavar="A,B", help="Numbers of ids to try: 500,10k,160k.")
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
            help="Joint, uniform, information; by default joint, or uniform for methods without it.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", help="Stop a fold after so many seconds.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also draw a chart: a file that ends in .svg, .png or .pdf."),
    ] = None,
    features: options.Features = None,
    also: options.Also = None,
    exclude: options.Exclude = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    unmerged: Annotated[
        bool, typer.Option("--unmerged", help="Also cut between values of equal rate, as the paper does.")
    ] = False,
    *,
    settings: dict[str, Any],
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Try every method on the same rows or counts.

    Shows how much information about the label each method loses, against the least that any fold of that budget
    loses, and how long it takes. All of it is about these rows; 'vocabfold evaluate' shows what generalises:

    vocabfold compare 'days/*.parquet' --label click --budgets 1k,10k --methods exact,greedy,frequency
    """
    check_there(data)
    from vocabfold.evaluation import comparison
    from vocabfold.interfaces.cli import display

    given: dict[str, Any] = {
        "budgets": options.parse_budgets(budgets),
        "methods": options.names(methods),
        "allocations": options.names(allocations),
    }
    tuning = settings | {"time_limit": time_limit}
    comparison.check_options(**given, **tuning)
    options.check_unused("methods", given["methods"] or comparison.DEFAULT_METHODS, settings)
    if plot is not None:
        from vocabfold.evaluation.chart import check_plot

        check_plot(plot, overwrite=force)
    of_rows = {
        "features": options.names(features),
        "also": options.names(also),
        "exclude": options.names(exclude),
        "positive": positive,
        "weight": weight,
        "preset": preset,
        "drop_null_labels": drop_null_labels,
    }
    counts = counted(data, label, of_rows, memory)
    display.left_out(counts.left_out)
    found = vf.compare(counts, **given, merge=not unmerged, **tuning)
    drawn = None if found.is_empty else plot
    if drawn is not None:
        found.plot(drawn, overwrite=force)
    display.comparison(found, drawn, as_json)
    if drawn != plot:
        raise InputError(f"no method finished, so there is nothing to draw: {plot} was not written.")


@app.command()
def report(
    book: options.Book,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write the page: a file that ends in .html."),
    ],
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS", help="The counts that the codebook was fitted on, to try other budgets."
        ),
    ] = None,
    heldout: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Held-out rows, to evaluate the codebook on. May be repeated."),
    ] = None,
    label: options.Label = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    compare: Annotated[
        str | None, typer.Option(metavar="FILE", help="The output of 'vocabfold compare --json'.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of budgets to try, 3 to 200; by default as many as are useful."),
    ] = None,
    pictures: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Also write the plots as SVG and PNG.")
    ] = None,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a page about a codebook.

    One HTML file shows what is kept, which budget is enough, which columns the ids go to, which values they
    stand for, and what generalises to held-out rows. --label and the options after it are for those rows:

    vocabfold report book --counts counts --heldout sunday.parquet -o report.html
    """
    if heldout is not None:
        check_there(heldout)
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
    id: Annotated[
        int | None, typer.Option(metavar="N", help="Show the values of one id of that column.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="V", help="Show the id of one value of that column.")
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Show the id of rows without a value.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="Show at most N rows.")] = 50,
    as_json: options.Json = False,
) -> None:
    """Show what is in a codebook.

    Shows what is kept of each column, or the ids of one column, the values of an id, the id of a value:

    vocabfold inspect book --feature site --value example.org
    """
    from vocabfold.interfaces.cli import display
    from vocabfold.support import checks

    checks.at_least("limit", limit, 1)
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
        str, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write its files.")
    ] = "vocabfold-demo",
    force: options.Force = False,
) -> None:
    """Fold a year of flights.

    Shows and runs the commands that lead from rows to a codebook, and from there to ids.
    """
    from vocabfold.interfaces.cli import demo, display

    for command in demo.commands(Path(out), overwrite=force):
        display.line(f"\n$ vocabfold {shlex.join(command)}")
        if app(command, standalone_mode=False):
            raise KeyboardInterrupt
