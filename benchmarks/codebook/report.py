"""Raw rows of the codebook benchmark -> tables; nothing in them is typed by hand.

`python -m benchmarks.codebook.report` makes those of all runs, and the figures in the project's README.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.codebook.run import GROUP_BY, TRAINING
from tools.record import RUNS, read_csv
from tools.tables import TIMES, Cell, Row, figures, newest, number, share_lost, step, table, update_readme

_MEMORY: dict[str, Cell] = {"peak memory (MB)": number("peak_mb", ",.0f")}
_VALUES: dict[str, Cell] = {"step": number("step", ""), "values": number("n_values", ",")}
_ANSWER: dict[str, Cell] = {"positive rows": number("positives", ","), "share of information lost": share_lost}


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of a run."""
    steps = [row for row in rows if row["part"] != "serving"]
    serving = [row for row in rows if row["part"] == "serving"]
    texts = [
        "# From rows to a codebook\n",
        *(f"- {fact['fact']}: {fact['is']}" for fact in about),
        "\n## Count, fit and save 10,000 ids, relative to the bare GROUP BY of all columns\n",
        table(steps, {**_VALUES, **TIMES, **_MEMORY, **_ANSWER}),
        *(f"Count and fit take {ratio(rows, form):.2f} times as long as `{form}`.\n" for form in GROUP_BY),
        "## Serve\n",
        table(serving, {**_VALUES, **_SERVING}),
    ]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


_SERVING: dict[str, Cell] = {
    "milliseconds (least)": lambda row: f"{1000 * row['seconds']:,.3g}",
    "slowest": lambda row: f"{1000 * row['slowest']:,.3g}",
    "repeats": number("repeats", ""),
    "memory beyond Python's (MB)": number("extra_mb", ",.0f"),
}


def ratio(rows: Sequence[Row], form: str) -> float:
    """Return how much longer count and fit take than the bare queries."""
    return (step(rows, "count")["seconds"] + step(rows, "fit")["seconds"]) / step(rows, form)["seconds"]


def headlines(rows: Sequence[Row]) -> str:
    """Return the table for the project's README."""
    count, fit, save = (step(rows, name) for name in ("count", "fit", "save"))
    load, first, median = (
        step(rows, name)
        for name in (
            "load, every byte checked",
            "first row, which reads all columns",
            "book.row, median of 5,000",
        )
    )
    n_rows = f"{count['rows'] / 1e6:.0f} million rows x 26 columns"
    ratios = " and ".join(f"{ratio(rows, form):.2f}" for form in GROUP_BY)
    return figures(
        [
            (f"{n_rows}, {count['n_values']:,} values: count", f"{count['seconds']:.1f} s"),
            (f"fit {fit['size']:,} ids", f"{fit['seconds']:.1f} s"),
            ("both, relative to DuckDB's bare GROUP BY in two forms", f"{ratios} times as long"),
            *(
                (what, f"{row['seconds']:.1f} s, peak memory {row['peak_mb'] / 1000:.2f} GB")
                for what, name in (
                    ("fit for a model", "fit for a model"),
                    ("all training rows out of fold", TRAINING),
                )
                for row in rows
                if row["step"] == name
            ),
            ("save the codebook", f"{save['seconds']:.1f} s"),
            ("peak memory of all three, with a limit of 2 GB", f"{save['peak_mb'] / 1000:.2f} GB"),
            (
                "load it for serving, all columns",
                f"{load['seconds'] + first['seconds']:.1f} s, {first['extra_mb'] / 1000:.2f} GB",
            ),
            ("look up one row of 26 values", f"{1000 * median['seconds']:.2f} ms"),
        ]
    )


if __name__ == "__main__":
    for run in RUNS.glob("*-codebook-*m"):
        write_report(run, read_csv(run / "raw.csv"), read_csv(run / "about.csv"))
    largest = newest("codebook-37m")
    update_readme("codebook-37m", largest.name, headlines(read_csv(largest / "raw.csv")))
