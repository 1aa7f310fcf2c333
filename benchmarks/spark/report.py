"""Raw rows of the benchmark on Spark -> tables; nothing in them is typed by hand.

`python -m benchmarks.spark.report` makes that of the newest run, and the figures on docs/spark.md.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.spark.run import COUNT, EACH, ONE
from tools.record import ROOT, read_csv
from tools.tables import TIMES, Cell, Row, figures, newest, number, share_lost, step, table, update_page

PAGE = ROOT / "docs" / "spark.md"
_CELLS: dict[str, Cell] = {
    "step": number("step", ""),
    **TIMES,
    "of these, the driver's own": number("driver_seconds", ".2f"),
    "jobs": number("jobs", ""),
    "shuffled (MB)": number("shuffled_mb", ",.1f"),
    "sent to the driver (MB)": number("collected_mb", ",.1f"),
    "peak memory of the driver's Python (MB)": number("peak_mb", ",.0f"),
    "values": number("n_values", ","),
    "share of information lost": share_lost,
}


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the table of a run."""
    texts = [
        "# On Spark\n",
        *(f"- {fact['fact']}: {fact['is']}" for fact in about),
        "",
        table(rows, _CELLS),
        *(f"Count and fit take {ratio(rows, rival):.2f} times as long as {rival}.\n" for rival in (ONE, EACH)),
        f"Logged meanwhile: {step(rows, COUNT)['said']}.",
    ]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def ratio(rows: Sequence[Row], rival: str) -> float:
    """Return how much longer count and fit take than the bare groupBy."""
    return float(step(rows, COUNT)["seconds"] / step(rows, rival)["seconds"])


def headlines(rows: Sequence[Row]) -> str:
    """Return the table for the page on Spark."""
    first = step(rows, COUNT)
    by_threshold = next(row for row in rows if row["step"].startswith("fit by threshold"))
    plan, write = step(rows, "transform, plan"), step(rows, "transform, write")
    return figures(
        [
            (
                f"count and fit {first['size']:,} ids of {first['n_values']:,} values, "
                f"{first['rows'] / 1e6:.0f} million rows x 26 columns",
                f"{first['seconds']:.0f} s",
            ),
            (f"relative to {ONE}, nothing kept", f"{ratio(rows, ONE):.2f} times as long"),
            (f"relative to {EACH}, nothing kept", f"{ratio(rows, EACH):.2f} times as long"),
            ("jobs, and data that they shuffled", f"{first['jobs']}, {first['shuffled_mb']:,.0f} MB"),
            ("data that came to the driver", f"{first['collected_mb']:.1f} MB"),
            (
                "time of the driver itself: prior, order, solver, numbering",
                f"{first['driver_seconds']:.1f} s, {100 * first['driver_seconds'] / first['seconds']:.1f} %",
            ),
            ("peak memory of the driver's Python", f"{first['peak_mb']:,.0f} MB"),
            (
                "fit again, on existing counts",
                f"{step(rows, 'fit again, the counts are kept')['seconds']:.1f} s",
            ),
            ("fit for a model", f"{step(rows, 'fit for a model')['seconds']:.1f} s"),
            (f"{by_threshold['step']} ({by_threshold['said']})", f"{by_threshold['seconds']:.1f} s"),
            ("save the codebook, written by the workers", f"{step(rows, 'save')['seconds']:.1f} s"),
            ("encode all rows and write them", f"{plan['seconds'] + write['seconds']:.0f} s"),
        ]
    )


if __name__ == "__main__":
    run = newest("spark-5m")
    write_report(run, read_csv(run / "raw.csv"), read_csv(run / "about.csv"))
    update_page(PAGE, "spark-5m", run.name, headlines(read_csv(run / "raw.csv")))
