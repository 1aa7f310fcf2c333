"""Rows of a run, and what is needed to judge and repeat it: kept as CSV, read back, printed."""

import csv
import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "benchmarks" / "runs"
# What decides on the figures of a benchmark, in the words of git.
CODE = (":(top)src", ":(top,glob)tools/**/*.py", ":(top,glob)benchmarks/**/*.py")
_READ = 64 << 20

Row = dict[str, Any]


def show(rows: Sequence[Row]) -> None:
    """Print rows, one per line."""
    for row in rows:
        print(line(row))


def line(row: Row) -> str:
    """Return a row as a line of a log."""
    return " ".join(
        f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={' '.join(str(value).split())}"
        for key, value in row.items()
    )


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
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
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
