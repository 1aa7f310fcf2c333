"""Time a call, watch its memory, and keep the rows: what all benchmarks share."""

import argparse
import csv
import ctypes
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.criteo_rows import write_rows
from benchmarks.criteo_shaped import CARDINALITIES

RUNS = Path(__file__).parent / "runs"
CODE = (":(top)src", ":(top,glob)benchmarks/**/*.py")  # what decides on the figures, in the words of git
_READ = 64 << 20

Row = dict[str, Any]
Task = Callable[[str, str, str], list[Row]]  # its name, the file, the memory limit


def timed(repeats: int, call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, dict[str, float]]:
    """Return the result of a call, and its least and largest time over the repeats, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call(*args, **options)
        seconds.append(time.perf_counter() - start)
    return result, {"seconds": min(seconds), "slowest": max(seconds), "repeats": repeats}


def extra_memory(call: Callable[..., Any], *args: Any) -> float:
    """Return by how many megabytes a call raises the peak memory of this process; Linux only."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")

    def megabytes(field: str) -> float:
        line = next(line for line in status.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024

    ctypes.CDLL(None).malloc_trim(0)  # return what is free, or the call could hide in it
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = megabytes("VmRSS")
    call(*args)
    return megabytes("VmHWM") - before


def peak() -> float:
    """Return the peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def show(rows: Sequence[Row]) -> None:
    """Print rows, one per line."""
    for row in rows:
        shown = (
            f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}" for key, value in row.items()
        )
        print(" ".join(shown))


def keep(name: str, rows: Sequence[Row], packages: Sequence[str], options: argparse.Namespace) -> None:
    """Keep the rows of a run, and what is needed to judge and repeat it."""
    about = facts(packages)
    about["rows"] = f"{options.rows:,} x {len(CARDINALITIES)} columns, memory limit {options.memory}"
    about["command"] = f"python -m benchmarks.{name}.run --rows {options.rows} --memory {options.memory}"
    write_run(RUNS / f"{about['date']}-{name}-{options.rows // 10**6}m", rows, about)


def write_run(folder: Path, rows: Sequence[Row], about: Mapping[str, str]) -> None:
    """Write the raw rows of a run, and the facts about it, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "raw.csv", rows)
    write_csv(folder / "about.csv", [{"fact": fact, "is": text} for fact, text in about.items()])


def facts(packages: Sequence[str], code: Sequence[str] = CODE) -> dict[str, str]:
    """Return what a reader needs to judge and repeat a run: date, commit, machine, versions."""
    changed = "-dirty" if git("status", "--porcelain", "--", *code) else ""
    return {
        "date": date.today().isoformat(),
        "commit": git("rev-parse", "--short", "HEAD") + changed or "unknown",
        "machine": f"{_cores()} cores, {_processor()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version(name)}" for name in packages),
    }


def git(*words: str) -> str:
    """Return what git says; nothing, where there is none."""
    try:
        return subprocess.run(
            ["git", *words], cwd=RUNS, capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""


def fingerprint(file: Path) -> str:
    """Return by what a file of rows is known: its name, its size, and a digest of its beginning."""
    with file.open("rb") as opened:
        digest = hashlib.sha256(opened.read(_READ)).hexdigest()
    beginning = f" of its first {_READ >> 20} MB" if file.stat().st_size > _READ else ""
    return f"{file.name}, {file.stat().st_size:,} bytes, sha256{beginning} {digest[:16]}"


def _cores() -> str:
    """Return how many cores there are, and how many of them this process may use, if not all."""
    used = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{os.cpu_count()}" if used == os.cpu_count() else f"{used} of {os.cpu_count()}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    return names[0].split(":")[1].strip() if names else platform.machine()


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Keep the raw rows, with the union of their fields as columns."""
    fields = list(dict.fromkeys(field for row in rows for field in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path, *, texts: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Read raw rows back; empty cells are left out. Some columns are texts, even if they look like numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {k: v if k in texts else _number(v) for k, v in row.items() if v} for row in csv.DictReader(file)
        ]


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
