"""What all checks in `harden/checks/` share: print the rows, keep them, and exit with 1 if anything failed.

A check is a module with a function `run(small)` that yields rows. Each row says `what` was tried, how often
(`tried`), how often it `failed`, and has any further figures beside these. A row that could not be run here has
the reason in `not_run` instead. `harden/runs/<check>/` keeps the log and the rows of the last run at full size,
row by row, so that an interrupted run keeps what it found. `python -m harden.report` makes the tables of
docs/reliability.md from them.

Some checks take an hour. After a fix, `--only` repeats just the rows that showed the problem. The others stay
in the log with the date and the commit of their run; checks that ask `is_wanted` do not even run them.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tools.record import CODE, ROOT, Row, facts, line, read_csv, write_run

RUNS = ROOT / "harden" / "runs"
HARDEN = (":(top,glob)harden/**/*.py", ":(top,glob)harden/**/*.c")  # in the words of git
OF_A_ROW = ("date", "commit")  # what about a run is kept with every row of it
PACKAGES = ["vocabfold", "numpy", "numba", "scipy", "duckdb", "pyarrow"]

Check = Callable[[bool], Iterator[Row]]

# Rows of the runs that are kept, where they are called otherwise today.
_RENAMED = {
    "lies in the header, signed for": "lies in the header, valid checksums",
    "bytes of Parquet, signed for": "bytes of Parquet, valid checksums",
    "saved folders, signed": "saved folders, valid checksums",
}

_only: list[str] = []


def is_wanted(what: str) -> bool:
    """Say whether to run a row: every row, unless `--only` chooses some."""
    return not _only or what.startswith(tuple(_only))


def main(name: str, doc: str | None, run: Check) -> None:
    """Run a check, and exit with 1 if anything failed; at full size, keep its log and rows."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="in seconds, and keep nothing")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WHAT",
        help="run only the rows whose names start like this, and keep the others",
    )
    options = parser.parse_args()
    _only[:] = options.only
    words = "".join(f" --only {shlex.quote(what)}" for what in options.only)
    about = facts(PACKAGES, [*CODE, *HARDEN]) | {"command": f"python -m harden.checks.{name}{words}"}
    before = kept(RUNS / name)[1] if options.only else []
    rows: list[Row] = []
    started = time.monotonic()
    for row in run(options.small):
        if is_wanted(row["what"]):
            when = {"at_second": round(time.monotonic() - started, 1)}
            rows.append(row | when | {fact: about[fact] for fact in OF_A_ROW})
            print(line(rows[-1]), flush=True)
            if not options.small:
                _keep(RUNS / name, _in_places(rows, before), about)
    sys.exit(1 if not rows or any(row.get("failed") for row in rows) else 0)


def kept(folder: Path) -> tuple[dict[str, str], list[Row]]:
    """Return the facts of the last run, and its rows, each with its date and commit."""
    about = {row["fact"]: row["is"] for row in read_csv(folder / "about.csv", texts=["is"])}
    rows = read_csv(folder / "raw.csv", texts=["commit"])  # 54e4513 is no number
    return about, [_named(row) | {fact: row.get(fact, about[fact]) for fact in OF_A_ROW} for row in rows]


def _named(row: Row) -> Row:
    return row | {"what": _RENAMED.get(row["what"], row["what"])}


def _in_places(rows: Sequence[Row], before: Sequence[Row]) -> list[Row]:
    """Return the rows of the previous run, with the new ones in their places."""
    new = {row["what"]: row for row in rows}
    old = [new.pop(row["what"], row) for row in before]
    return [*old, *new.values()]


def _keep(folder: Path, rows: Sequence[Row], about: Mapping[str, str]) -> None:
    write_run(folder, rows, about)
    log = "".join(f"{line(row)}\n" for row in rows)
    (folder / "log.txt").write_text(log, encoding="utf-8")
