"""A long run: 24 days of 5 million rows, each counted, merged, refitted, saved and transformed, in one process.

Every day is a file of six columns; two of them have large vocabularies that grow by new values each day. The
counts of the day are added to the saved ones and replace them, a codebook is fitted on all days so far
and saved, and it transforms the day. Memory must stay flat: the resident set at the end of a day, as the median
of the last six days (`last_mb`), may exceed that of the six days from the fifth on (`first_mb`) by a tenth plus
50 MB. No temporary files may remain. The time of a day may grow at most linearly with the values so far; it is
processor time, which other processes hardly change, and the exponent of a power law fitted to it. The digest
after all days must be that of counting all files at once. Six columns keep the run within 12 minutes on two
cores. `days.csv` beside the log has the figures of every day.
"""

import gc
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import vocabfold as vf
from harden.lib import harness
from tools.record import Row, write_csv

_LIMIT = "1GB"
_BUDGET = 20_000
_MORE_MEMORY, _MORE_BYTES = 1.1, 50e6  # what is still flat: so many times, and so much more
_MOST_EXPONENT = 1.15
# Two large vocabularies: what was there from the beginning, and what is new on each day until today.
_DAY = """COPY (
    SELECT 'page-' || hash(x % ({n} // 20 + {day} * {n} // 100)) AS page,
        'user-' || hash(7, (x >> 8) % ({n} // 10 + {day} * {n} // 50)) AS user,
        'site-' || (sqrt(x % 100_000_000)::BIGINT) AS site,
        'device-' || (x >> 16) % 500 AS device,
        'country-' || (x >> 24) % 200 AS country,
        'hour-' || i * 24 // {n} AS hour,
        (x >> 4) % 100 < 10 + x % 7 AS click
    FROM (SELECT i, (hash(i, {day}) >> 2)::BIGINT AS x FROM range({n}) t(i))
) TO '{path}' (FORMAT parquet)"""
_GENERATE = "import duckdb, sys; duckdb.sql(sys.argv[1])"


def run(small: bool) -> Iterator[Row]:
    """Live through the days, and look back."""
    n_days, n_rows = (4, 5_000) if small else (24, 5_000_000)
    before = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="harden-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the codebook was fitted on these rows, on purpose
        folder = Path(name)
        temporary = folder / "temporary"
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        try:
            days = [_live(folder, day, n_rows) for day in range(n_days)]
            if not small:
                (harness.RUNS / "long_run").mkdir(parents=True, exist_ok=True)
                write_csv(harness.RUNS / "long_run" / "days.csv", days)
            yield from _looked_back(days)
            left = max(day["temporary_files"] for day in days)
            yield {"what": "no temporary files stay", "tried": n_days, "failed": int(left > 0), "largest": left}
            yield _at_once(folder, n_days)
        finally:
            tempfile.tempdir = before


def _live(folder: Path, day: int, n_rows: int) -> Row:
    """Do all that is done in a day, and return its figures."""
    file, total = folder / f"day-{day:02}.parquet", folder / "counts"
    sql = _DAY.format(n=n_rows, day=day, path=file)
    subprocess.run([sys.executable, "-c", _GENERATE, sql], check=True)  # elsewhere: it is no part of the run
    row: Row = {"day": day + 1}

    def step(name: str, call: Callable[..., Any], *given: Any, **options: Any) -> Any:
        start, used = time.perf_counter(), time.process_time()
        result = call(*given, **options)
        row[f"{name}_seconds"] = time.perf_counter() - start
        row[f"{name}_cpu"] = time.process_time() - used
        return result

    def load() -> vf.Counts:
        return vf.load_counts(total, memory_limit=_LIMIT)

    counts = step("count", vf.count, file, "click", memory_limit=_LIMIT)
    step("merge", (load() + counts if total.exists() else counts).save, total)
    book = step("fit", vf.fit, load(), _BUDGET)
    step("save", book.save, folder / "book")
    step("transform", book.transform, file, out=folder / "ids.parquet", overwrite=True)
    row |= {"values": sum(load().n_values.values()), "digest": book.digest}
    del counts, book
    gc.collect()
    return row | {"rss_mb": _resident() / 1e6, "temporary_files": len(os.listdir(folder / "temporary"))}


def _resident() -> int:
    """Return the memory of this process in bytes; 0 if the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def _looked_back(days: list[Row]) -> Iterator[Row]:
    """Yield what became of memory and time."""
    early, late = days[4:10] or days[1:3], days[-6:] if len(days) > 6 else days[-1:]
    first, last = (median(day["rss_mb"] for day in some) for some in (early, late))
    yield {
        "what": "memory stays flat",
        "tried": len(days),
        "failed": int(last > first * _MORE_MEMORY + _MORE_BYTES / 1e6),
        "first_mb": first,
        "last_mb": last,
        "largest_mb": max(day["rss_mb"] for day in days),
    }
    values = np.array([day["values"] for day in days], float)
    for step in ("count", "merge", "fit", "save", "transform"):
        seconds = np.array([day[f"{step}_cpu"] for day in days])
        exponent = float(np.polyfit(np.log(values[1:]), np.log(seconds[1:]), 1)[0])
        slope, start = np.polyfit(values[1:] / 1e6, seconds[1:], 1)
        yield {
            "what": f"time of a day is at most linear: {step}",
            "tried": len(days),
            # So few rows take no time, but for what is done once.
            "failed": int(len(days) > 6 and exponent > _MOST_EXPONENT),
            "exponent": exponent,
            "start_s": float(start),
            "s_per_million_values": float(slope),
            "first_values": int(values[0]),
            "last_values": int(values[-1]),
            "wall_seconds": float(sum(day[f"{step}_seconds"] for day in days)),
        }


def _at_once(folder: Path, n_days: int) -> Row:
    """Count all files at once, and compare the digest of the codebook with that of the last day."""
    start = time.perf_counter()
    files = [folder / f"day-{day:02}.parquet" for day in range(n_days)]
    digest = vf.fit(vf.count(files, "click", memory_limit=_LIMIT), _BUDGET).digest
    return {
        "what": "the digest is that of all files at once",
        "tried": 1,
        "failed": int(digest != vf.load(folder / "book").digest),
        "seconds": time.perf_counter() - start,
    }


if __name__ == "__main__":
    harness.main("long_run", __doc__, run)
