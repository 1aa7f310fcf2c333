"""Raw rows -> Markdown tables, and their place between two marks on a page, such as the README."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.record import ROOT, RUNS, Row, read_csv

README = ROOT / "README.md"

Cell = Callable[[Row], str]


def number(field: str, form: str) -> Cell:
    """Return what shows a field of a row, or nothing where it has none."""
    return lambda row: format(row[field], form) if field in row else ""


def share_lost(row: Row) -> str:
    """Show which part of the information is lost."""
    return f"{row['loss'] / row['total']:.3g}" if "loss" in row else ""


def step(rows: Sequence[Row], name: str) -> Row:
    """Return the row of a step."""
    return next(row for row in rows if row["step"] == name)


TIMES: dict[str, Cell] = {
    "seconds (least)": number("seconds", ".3f"),
    "slowest": number("slowest", ".3f"),
    "repeats": number("repeats", ""),
}


def table(rows: Sequence[Row], cells: Mapping[str, Cell]) -> str:
    """Return rows as a Markdown table."""
    lines = [list(cells), ["---"] * len(cells), *([cell(row) for cell in cells.values()] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def figures(lines: Sequence[tuple[str, str]]) -> str:
    """Return a table of what was measured and what came out."""
    return "\n".join(["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in lines)])


def shown(name: str, text: str) -> str:
    """Return the figures of a benchmark that a page shows, between its two marks."""
    begin, end = _marks(name)
    return text.partition(begin)[2].partition(end)[0].strip()


def update_readme(name: str, run: str, content: str) -> None:
    """Replace the figures of a benchmark in the project's README, and the name of its run."""
    update_page(README, name, run, content)


def update_page(page: Path, name: str, run: str, content: str) -> None:
    """Replace the figures of a benchmark on a page, and the name of its run."""
    begin, end = _marks(name)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{content}\n{end}{after}", encoding="utf-8")
    relink(page, name, run)


def relink(page: Path, name: str, run: str) -> None:
    """Replace the name of a benchmark's run on a page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(rf"\d{{4}}-\d\d-\d\d-{name}", run, text), encoding="utf-8")


def make_report(
    name: str,
    page: Path,
    write_report: Callable[[Path, Sequence[Row], Sequence[Row]], None],
    for_page: Callable[[Sequence[Row]], str],
    is_of_page: Callable[[Sequence[Row]], bool] = bool,
) -> None:
    """Make the report of the newest run of a benchmark, and its figures on a page about such rows."""
    folder = newest(name)
    rows = read_csv(folder / "raw.csv")
    write_report(folder, rows, read_csv(folder / "about.csv"))
    if is_of_page(rows):
        update_page(page, name, folder.name, for_page(rows))
    else:
        print(f"{page.name} keeps the figures that it has: it is about real rows, and {folder.name} has none")


def newest(name: str) -> Path:
    """Return the folder of the newest run of a benchmark."""
    return max(RUNS.glob(f"*-{name}"))


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: made by a script, see CONTRIBUTING.md -->", f"<!-- end of {name} -->"
