"""Hostile names and values at every entry point: each comes back exactly, or is refused in one sentence.

The corpus (`harden/lib/corpus.py`) holds SQL, HTML, control characters, terminal escapes, NUL, lone surrogates,
unicode in several normal forms, numbers and dates at their limits, texts that look like numbers or like
nothing, and names that the queries use themselves. A case is one value, or one name in one role (feature,
label, weight, fold column), at one entry point. Rows are counted, fitted, saved, loaded and encoded again, as
frames and as files, and compared value by value with a plain `dict`. `refused` cases are those that an entry
point cannot represent (`REFUSED`, and lone surrogates): the first step that sees them raises an `InputError` of
one line. Any other exception, any other or later refusal, and any other value is a failure. For wide tables,
the row also has time and memory.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib import harness
from harden.lib.hostile.cases import LABEL, Tally
from harden.lib.hostile.counting import names_in, surrogates_in, values_in
from harden.lib.hostile.doors import DOORS
from harden.lib.hostile.judge import EXACT, check
from harden.lib.hostile.on_spark import on_spark
from harden.lib.hostile.others import estimator, pages, serving, terminals, training
from harden.lib.tests import java, session
from tools.measure import extra_memory
from tools.record import Row

_WIDE = 10_000  # columns


def wide(what: str, door: str, n_columns: int) -> Row:
    """Count, fit, save, load and encode a table of very many columns; with the time and memory of each."""
    columns = {f"column {i}": [f"{j % (2 + i % 3)}" + "x" for j in range(20)] for i in range(n_columns)}
    table = pa.table(columns | {LABEL: [j % 2 for j in range(20)]})
    tally, facts = Tally(), {}

    def case(folder: Path) -> None:
        def work() -> None:
            data = DOORS[door](table, folder)
            counts = vf.count(data, LABEL)
            check(len(counts.features) == n_columns, "columns", len(counts.features))
            book = vf.fit(counts, 10 * n_columns, **EXACT)
            book.save(folder / "book")
            loaded = vf.load(folder / "book")
            out = folder / "out.parquet"
            found = (
                loaded.transform(data)
                if door == "pandas"
                else loaded.transform(data, out=out) and pq.read_table(out)
            )
            for i in (0, n_columns // 2, n_columns - 1):
                mapping = {row["value"]: row["id"] for row in loaded[f"column {i}"].to_pylist()}
                wanted = [mapping[value] for value in columns[f"column {i}"]]
                got = found[f"column {i}"]
                check((got.tolist() if door == "pandas" else got.to_pylist()) == wanted, "ids", i)

        started = time.perf_counter()
        facts["peak_mb"] = round(extra_memory(work))
        facts["seconds"] = round(time.perf_counter() - started, 1)

    tally.run(what, case)
    return {"what": what, **tally.facts, **facts, "columns": n_columns}


def run(small: bool) -> Iterator[Row]:
    """Try every door, one after another."""
    doors = ["CSV"] if small else list(DOORS)
    for door in doors:
        what = f"count, fit, save, load, transform: {door}"
        if harness.is_wanted(what):
            tally = Tally()
            values_in(door, tally, small)
            surrogates_in(door, tally)
            names_in(door, tally, small)
            yield {"what": what, **tally.facts}
    others: dict[str, Callable[[Tally, bool], None]] = {
        "fit_transform": training,
        "scikit-learn": estimator,
        "serving: ids, row, members": serving,
        "report, evaluate, compare": pages,
        "command line": terminals,
    }
    for what, door_of in others.items():
        # Of pages: seconds, and tests/report/test_report.py has such rows, too.
        if (small and door_of is pages) or not harness.is_wanted(what):
            continue
        tally = Tally()
        door_of(tally, small)
        yield {"what": what, **tally.facts}
    if not small and harness.is_wanted("Spark"):
        yield from _spark()
    n_columns = 20 if small else _WIDE
    for door in ("Parquet",) if small else ("Parquet", "CSV"):
        what = f"{n_columns:,} columns, {door}"
        if harness.is_wanted(what):
            yield wide(what, door, n_columns)


def _spark() -> Iterator[Row]:
    if java.home() is None:
        yield {"what": "Spark", "not_run": "there is no Java 17 or newer"}
        return
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, session("local[2]", folder) as found:
        on_spark(tally, found)
    yield {"what": "Spark", **tally.facts}


if __name__ == "__main__":
    harness.main("hostile", __doc__, run)
