"""Kept rows and docstrings of all checks -> the tables of docs/reliability.md, and their explanation.

python -m harden.report
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harden.lib.harness import OF_A_ROW, RUNS, kept
from tools.record import ROOT, Row
from tools.tables import table, update_page

SCRIPTS = ROOT / "harden" / "checks"
PAGE = ROOT / "docs" / "reliability.md"
_UNSHOWN = ("what", "tried", "failed", "not_run", "first_failure", "at_second", *OF_A_ROW)
_LONG = ("survivors", "missed")  # in the log alone


@dataclass(frozen=True)
class Check:
    """A check, its target, and how its rows are summed up."""

    title: str
    target: str
    measured: Callable[[Sequence[Row]], str]
    is_shown: Callable[[Row], bool] = bool  # of rows, which of them the page shows; the log has all


def of_all(noun: str, *, with_refused: bool = False, **largest: str) -> Callable[[Sequence[Row]], str]:
    """Sum up tried and failed, and refused, and add the largest of some figures, each with its words."""

    def measured(rows: Sequence[Row]) -> str:
        n_failed = _sum(rows, "failed")
        failed = f"**{n_failed:,}**" if n_failed else "0"
        said = [f"{failed} of {_sum(rows, 'tried'):,} {noun} failed"]
        if with_refused:
            said.append(f"{_sum(rows, 'refused'):,} were refused, as expected")
        for field, words in largest.items():
            found = [row[field] for row in rows if field in row]
            if found:
                said.append(words.format(max(found)))
        said += [f"not run: {row['what']} ({row['not_run']})" for row in rows if "not_run" in row]
        return "; ".join(said)

    return measured


def of_each(words: str, begin: str) -> Callable[[Sequence[Row]], str]:
    """State figures of the rows that start so, and which others failed, in bold, or were not run."""

    def measured(rows: Sequence[Row]) -> str:
        said = []
        for row in rows:
            what = str(row["what"])
            if "not_run" in row:
                said.append(f"not run: {row['not_run']}")
            elif what.startswith(begin):
                figures = f"{what.removeprefix(begin)} {words.format(**row)}".strip()
                said.append(f"**{figures}**" if row["failed"] else figures)
            elif row["failed"]:
                said.append(f"**{what} failed**")
        return ", ".join(said)

    return measured


def _sum(rows: Sequence[Row], field: str) -> int:
    return int(sum(row.get(field, 0) for row in rows))


CHECKS: Mapping[str, Check] = {
    "answers": Check(
        "wrong answers",
        "0 of 10,000 tables beyond 1e-12 of I(X;C), 0 of 100,000 examples of the laws",
        of_all("tables and examples", largest="largest difference {:.1g} of I(X;C)"),
    ),
    "leaks": Check(
        "leaks of labels",
        "no label moves a value with few rows among its like; folds warn if they depend on the label, and only "
        "then",
        of_all(
            "flips of labels and assignments to folds",
            followed="{:.0f} ids of values numbered by rate moved with the label",
            together="in {:.0f} flips of a kind, the ids of all values with few rows moved past another",
        ),
    ),
    "overflow": Check("overflow", "exact or refused, never wrong", of_all("totals, sums and weights")),
    "crash": Check(
        "crash while saving",
        "old or new content, never a mixture; no orphans",
        of_all("crashes and failing writes"),
    ),
    "artefacts": Check(
        "damaged and hostile artefacts",
        "refused or usable; < 1 s and < 256 MB each, every single bit found",
        of_all("mutants", longest="at most {:.2f} s", grown_mb="and {:.0f} MB for one mutant"),
    ),
    "memory": Check(
        "memory limit",
        "within the cap, or one clear error",
        of_all("tasks", with_refused=True, of_cap="at most {:.0%} of the cap"),
    ),
    "determinism": Check("determinism", "one digest", of_all("repeats", digests="digests per setting: {:.0f}")),
    "concurrency": Check("concurrency", "identical results; one writer wins", of_all("results")),
    "hostile": Check("hostile names and values", "returned exactly, or a clear error", of_all("cases")),
    "fuzz": Check("fuzzing", "no traceback, no hang, an hour in all", of_all("inputs")),
    "long_run": Check(
        "long run",
        "flat memory, linear time",
        of_all("figures of 24 days", exponent="time grows at most as values^{:.2f}"),
    ),
    "covered": Check(
        "coverage",
        ">= 95 % of lines and branches",
        of_each(
            "{percent:.1f} % of lines and branches, {percent_of_branches:.1f} % of branches", "all modules"
        ),
        lambda row: row.get("percent", 0) < 95 or row["what"] == "all modules",
    ),
    "mutants": Check("mutation score", ">= 85 % of each module", of_each("{score:.1f} %", "mutants of ")),
    "supply": Check("supply", "lowest and newest versions, wheel and sdist, audit: clean", of_all("steps")),
}


def main() -> None:
    """Write the tables from the rows of the last runs."""
    lines, details = [], []
    for name, check in CHECKS.items():
        script = f"[{name}](../harden/checks/{name}.py)"
        line = {"what": check.title, "target": check.target, "script": script}
        if (RUNS / name).exists():
            rows = kept(RUNS / name)[1]
            runs = dict.fromkeys(row[fact] for fact in OF_A_ROW for row in rows)
            when = ", ".join([*runs, f"[log](../harden/runs/{name}/log.txt)"])
            lines.append(line | {"measured": check.measured(rows), "when": when})
            doc = ast.get_docstring(ast.parse((SCRIPTS / f"{name}.py").read_text(encoding="utf-8")))
            details.append(
                f"### {check.title.capitalize()}\n\n{doc}\n\n{_detail(filter(check.is_shown, rows))}"
            )
        else:
            lines.append(line | {"measured": "not yet at full size", "when": ""})
    head = ["what", "target", "measured", "script", "when"]
    update_page(PAGE, "checks", "", table(lines, {field: lambda row, f=field: str(row[f]) for field in head}))
    update_page(PAGE, "rows", "", "\n".join(details))


def _detail(rows: Iterable[Row]) -> str:
    """Return the rows of a check as a table, all other figures in one cell."""
    return table(
        list(rows),
        {
            "what": lambda row: str(row["what"]),
            "tried": lambda row: _whole(row, "tried"),
            "failed": lambda row: _whole(row, "failed"),
            "figures": _figures,
        },
    )


def _whole(row: Row, field: str) -> str:
    return f"{int(row[field]):,}" if field in row else ""


def _figures(row: Row) -> str:
    if "not_run" in row:
        return f"not run: {row['not_run']}"
    shown = {field: value for field, value in row.items() if field not in (*_UNSHOWN, *_LONG)}
    return ", ".join(f"{field.replace('_', ' ')} {_figure(value)}" for field, value in shown.items())


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
