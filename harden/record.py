"""What every check under `harden/` shares: it prints its rows, keeps them, and fails if anything failed.

A check is a module with a function `run(small)` that yields rows. Each row says `what` was tried, how often
(`tried`), how often it `failed`, and beside these whatever figures belong to it. A row that could not
be run here has `not_run` with the reason instead. The log and the rows of the last run at full size are kept in
`harden/runs/<check>/`; `python -m harden.report` makes the table of docs/reliability.md from them.

Some checks take an hour, and some of their rows are repeated alone with `--only`, after what they found was
mended: checks that ask `is_wanted` leave the others out, which stay in the log with the commit of their run.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Row, facts, read_csv, write_run

RUNS = Path(__file__).parent / "runs"
PACKAGES = ["vocabfold", "numpy", "numba", "scipy", "duckdb", "pyarrow"]

Check = Callable[[bool], Iterator[Row]]

_only: list[str] = []


def is_wanted(what: str) -> bool:
    """Tell whether a row is to be run: all are, but with `--only`."""
    return not _only or what.startswith(tuple(_only))


def main(name: str, doc: str | None, run: Check) -> None:
    """Run a check, and end with 1 if anything failed; at full size, keep its log and rows."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="in seconds, and keep nothing")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WHAT",
        help="run rows that begin so, and keep the others",
    )
    options = parser.parse_args()
    _only[:] = options.only
    about = facts(PACKAGES) | {"command": f"python -m harden.{name}"}
    rows: list[Row] = []
    started = time.monotonic()
    for row in run(options.small):
        if is_wanted(row["what"]):
            rows.append(row | {"at_second": round(time.monotonic() - started, 1), "commit": about["commit"]})
            print(_line(rows[-1]), flush=True)
    failed = [row for row in rows if row.get("failed")]
    if not options.small:
        rows = _with_kept(RUNS / name, rows) if options.only else rows
        write_run(RUNS / name, rows, about)
        log = "".join(f"{_line(row)}\n" for row in rows)
        (RUNS / name / "log.txt").write_text(log, encoding="utf-8")
    sys.exit(1 if failed or not rows else 0)


def kept(folder: Path) -> tuple[dict[str, str], list[Row]]:
    """Return what is known about the last run, and its rows, each with its commit."""
    about = {row["fact"]: row["is"] for row in read_csv(folder / "about.csv", texts=["is"])}
    rows = read_csv(folder / "raw.csv", texts=["commit"])  # 54e4513 is no number
    return about, [row | {"commit": row.get("commit", about["commit"])} for row in rows]


def _with_kept(folder: Path, rows: list[Row]) -> list[Row]:
    """Return the rows of the last run, with the new ones in their places."""
    new = {row["what"]: row for row in rows}
    old = [new.pop(row["what"], row) for row in kept(folder)[1]]
    return [*old, *new.values()]


def _line(row: Row) -> str:
    return " ".join(
        f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}" for key, value in row.items()
    )
