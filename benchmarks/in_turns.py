"""Tasks on one file of rows, each in a process of its own, in turns: least times, largest memory."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.criteo_rows import write_rows
from benchmarks.criteo_shaped import CARDINALITIES
from tools.measure import peak
from tools.record import RUNS, Row, facts, show, write_run

Task = Callable[[str, str, str], list[Row]]  # its name, the file, the memory limit


def in_a_process(module: str, task: str, file: Path, memory: str) -> list[Row]:
    """Run a task of a benchmark in a process of its own, and return its rows with its peak memory."""
    command = [sys.executable, "-m", module, "--task", task, "--file", str(file), "--memory", memory]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(result.stderr)
    rows: list[Row] = json.loads(result.stdout.splitlines()[-1])  # Java may have printed lines before it
    return rows


def parser_of(doc: str | None, *, memory: str, repeats: int) -> argparse.ArgumentParser:
    """Return the options of a benchmark on a file of rows, whose tasks are processes of their own."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--memory", default=memory)
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--file", type=Path, help="where the rows are, or are to be kept")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser


def ran_task(options: argparse.Namespace, tasks: Mapping[str, Task]) -> bool:
    """Run the task that this process is for, if there is one, and print its rows."""
    if options.task:
        rows = tasks[options.task](options.task, str(options.file), options.memory)
        print(json.dumps([{"peak_mb": peak()} | row for row in rows]))
    return bool(options.task)


def in_turns(
    name: str, doc: str | None, tasks: Mapping[str, Task], packages: Sequence[str], *, memory: str, repeats: int
) -> None:
    """Measure all tasks of a benchmark on one file of rows in turns, print and keep the rows."""
    options = parser_of(doc, memory=memory, repeats=repeats).parse_args()
    if ran_task(options, tasks):
        return
    n_rows = 50_000 if options.small else options.rows
    with tempfile.TemporaryDirectory() as folder:
        file = options.file or Path(folder) / "rows.parquet"
        if not file.exists():
            write_rows(file, n_rows)
        found: dict[str, list[list[Row]]] = {task: [] for task in tasks}
        for _ in range(1 if options.small else options.repeats):
            for task in tasks:
                found[task].append(in_a_process(f"benchmarks.{name}.run", task, file, options.memory))
    rows = [{"part": task, "rows": n_rows, **row} for task, runs in found.items() for row in least(runs)]
    show(rows)
    if not options.small:
        keep(name, rows, packages, options)


def least(repeats: list[list[Row]]) -> list[Row]:
    """Return the least times of each step over the repeats, and the largest time and memory."""
    return [
        step[0]
        | {"seconds": min(row["seconds"] for row in step), "slowest": max(row["seconds"] for row in step)}
        | {field: min(row[field] for row in step) for field in ("driver_seconds",) if field in step[0]}
        | {field: max(row[field] for row in step) for field in ("peak_mb", "extra_mb") if field in step[0]}
        | {"repeats": len(step)}
        for step in zip(*repeats, strict=True)
    ]


def keep(name: str, rows: Sequence[Row], packages: Sequence[str], options: argparse.Namespace) -> None:
    """Keep the rows of a run, and what is needed to judge and repeat it."""
    about = facts(packages)
    about["rows"] = f"{options.rows:,} x {len(CARDINALITIES)} columns, memory limit {options.memory}"
    about["command"] = f"python -m benchmarks.{name}.run --rows {options.rows} --memory {options.memory}"
    write_run(RUNS / f"{about['date']}-{name}-{options.rows // 10**6}m", rows, about)
