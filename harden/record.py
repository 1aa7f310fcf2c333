"""What every check under `harden/` shares: it prints its rows, keeps them, and fails if anything failed.

A check is a module with a function `run(small)` that yields rows. Each row says `what` was tried, how often
(`tried`), how often it `failed`, and beside these whatever figures belong to it. A row that could not
be run here has `not_run` with the reason instead. The log and the rows of the last run at full size are kept in
`harden/runs/<check>/`; `python -m harden.report` makes the table of docs/reliability.md from them.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Row, facts, write_run

RUNS = Path(__file__).parent / "runs"
PACKAGES = ["vocabfold", "numpy", "numba", "scipy", "duckdb", "pyarrow"]

Check = Callable[[bool], Iterator[Row]]


def main(name: str, doc: str | None, run: Check) -> None:
    """Run a check, and end with 1 if anything failed; at full size, keep its log and rows."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="in seconds, and keep nothing")
    options = parser.parse_args()
    about = facts(PACKAGES) | {"command": f"python -m harden.{name}"}
    rows, lines = [], []
    started = time.monotonic()
    for row in run(options.small):
        rows.append(row | {"at_second": round(time.monotonic() - started, 1)})
        lines.append(_line(rows[-1]))
        print(lines[-1], flush=True)
    failed = [row for row in rows if row.get("failed")]
    if not options.small:
        write_run(RUNS / name, rows, about)
        log = "".join(f"{line}\n" for line in lines)
        (RUNS / name / "log.txt").write_text(log, encoding="utf-8")
    sys.exit(1 if failed or not rows else 0)


def _line(row: Row) -> str:
    return " ".join(
        f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}" for key, value in row.items()
    )
