"""Write docs/cli.md from the commands themselves: `make docs`."""

from pathlib import Path
from typing import Any

import typer

from vocabfold.interfaces.cli.commands import app

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# Command line

`make docs` makes this page from the commands. The [guide](guide.md) and the [tutorial](tutorial.md) show them
at work; the [glossary](glossary.md) defines the terms.

Results go to stdout, as a table or, with `--json`, as JSON. Messages go to stderr, and so does progress on a
terminal. The exit code is 0 on success, 1 if a requested check failed, 2 if the command or the data cannot be
used, and 130 after Ctrl-C. An error is one sentence; `vocabfold --debug VERB ...` shows its traceback.
"""


def page() -> str:
    """Return the page."""
    group: Any = typer.main.get_command(app)
    return "\n".join([HEAD, *(_command(name, command) for name, command in group.commands.items())])


def _command(name: str, command: Any) -> str:
    about, *paragraphs = [paragraph.strip() for paragraph in command.help.split("\n\n")]
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    required = [f"{option.opts[-1]} {option.metavar}" for option in options if option.required]
    words = [f"{argument.metavar}{'...' * (argument.nargs != 1)}" for argument in arguments]
    usage = " ".join(["vocabfold", name, *words, *required, "[OPTIONS]"])
    lines = [f"## vocabfold {name}\n", f"{about}\n", f"    {usage}\n"]
    for paragraph in paragraphs:
        lines.append(
            f"    {paragraph}\n" if paragraph.startswith("vocabfold ") else f"{' '.join(paragraph.split())}\n"
        )
    lines += ["| | |", "|---|---|"]
    for param in [*arguments, *options]:
        lines.append(f"| {_name(param)} | {param.help}{_default(param)} |")
    return "\n".join(lines) + "\n"


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{param.metavar}`"
    shown = f" {param.metavar}" if param.metavar else ""
    return ", ".join(f"`{name}{shown}`".replace("|", r"\|") for name in param.opts)


def _default(param: Any) -> str:
    if param.required:
        return " Required."
    is_said = param.default in (None, False, 0, ()) or callable(param.default)
    return "" if is_said else f" By default `{param.default}`."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
