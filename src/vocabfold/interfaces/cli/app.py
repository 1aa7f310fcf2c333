"""The command line as an object of typer, to which `commands` adds its verbs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

import vocabfold as vf

DEBUG = "VOCABFOLD_DEBUG"  # the variable that asks for tracebacks

app = typer.Typer(
    help="Fold huge categorical vocabularies into a few ids that keep their information about a binary label.",
    epilog="Terms: docs/glossary.md",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
