"""The verbs that make something: counts, codebooks, ids."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import vocabfold as vf
from vocabfold.codebook.settings import OPTIONS, FitSettings
from vocabfold.errors import InputError
from vocabfold.interfaces.cli import options
from vocabfold.interfaces.cli.app import app
from vocabfold.interfaces.cli.commands.inputs import are_counts, check_there, counted, first_given, load_counts

_FOLDS = 5  # of rows that are fitted


@app.command()
def count(
    data: options.Data,
    out: options.Out,
    label: options.Label = None,
    features: options.Features = None,
    also: options.Also = None,
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

    This is the first step of fit. Counts can be kept, merged with those of other days, and fitted:

    vocabfold count monday.parquet --label click -o monday
    """
    from vocabfold.io.folders import headers, places

    places.check_place(out, headers.COUNTS, overwrite=force)
    check_there(data)
    from vocabfold.interfaces.cli import display

    counts = vf.count(
        data,
        label,
        options.names(features),
        also=options.names(also),
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

    All of them must have the same columns and the same label:

    vocabfold merge monday tuesday -o both
    """
    from vocabfold.interfaces.cli import display
    from vocabfold.io.folders import headers, places

    places.check_place(out, headers.COUNTS, overwrite=force)
    merged = load_counts(counts, memory)
    merged.save(out)
    display.counts(out, vf.load_counts(out, memory_limit=memory), as_json)  # grouped by now


@app.command()
@options.with_settings("budget", *(name for name in OPTIONS if name != "budget"))
def fit(
    data: options.DataOrCounts,
    out: options.Out,
    label: options.Label = None,
    features: options.Features = None,
    also: options.Also = None,
    exclude: options.Exclude = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    drop_null_labels: options.DropNullLabels = False,
    preset: options.Preset = None,
    *,
    settings: dict[str, Any],
    train_out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write these rows, encoded out of fold, to train a model on."),
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

    All columns share the budget of ids. Rows are counted in 5 folds, unless --folds or --fold-column says
    otherwise. --train-out also writes them to train a model on, each encoded by the rows of the other folds:

    vocabfold fit 'days/*.parquet' --label click --budget 10k -o book --train-out train.parquet
    """
    from vocabfold.io.folders import headers, places

    places.check_place(out, headers.CODEBOOK, overwrite=force)
    FitSettings(**settings)  # refuses wrong options before anything is counted
    options.check_unused("method", [settings["method"]], settings)
    check_there(data)
    from vocabfold.interfaces.cli import display

    of_rows: dict[str, Any] = {
        "features": options.names(features),
        "also": options.names(also),
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
    if train_out is None and (given := first_given(of_ids)):
        raise InputError(
            f"{given} applies to the rows that --train-out writes; use it with 'vocabfold transform'."
        )
    written = None
    if folds is None and fold_column is None and not any(are_counts(data)):
        of_rows["folds"] = _FOLDS
    if train_out is None:
        book = vf.fit(counted(data, label, of_rows, memory), **settings)
    elif any(are_counts(data)):
        folder = data[are_counts(data).index(True)]
        raise InputError(
            f"--train-out needs rows, but {folder} holds counts: give the rows, or run 'vocabfold "
            "transform --counts' after this."
        )
    else:
        book, written = vf.fit_transform(
            data,
            label,
            out=train_out,
            overwrite=force,
            memory_limit=memory,
            **of_rows,
            **settings,
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
            help="A file that ends in .parquet, .csv or .tsv; or a folder, if it ends in /.",
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
            help="Encode the rows of these counts, which have folds, out of fold.",
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
    check_there(data)
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
