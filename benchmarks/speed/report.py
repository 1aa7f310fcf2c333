"""Raw rows of the speed benchmark -> tables and a plot; nothing in them is typed by hand.

`python -m benchmarks.speed.report` makes those of the newest run, and its table in the project's README.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.record import read_csv
from tools.tables import TIMES, Cell, Row, figures, newest, number, share_lost, table, update_readme


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of all parts that were run, and the plot."""
    texts = ["# Speed of the exact fold\n", *(f"- {fact['fact']}: {fact['is']}" for fact in about), ""]
    for part, (title, cells) in TABLES.items():
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            texts += [f"## {title}\n", table(chosen, cells), *_remarks(part, chosen)]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")
    budgets = [row for row in rows if row["part"] == "criteo"]
    if budgets:
        _plot(folder, budgets)


def headlines(rows: Sequence[Row]) -> str:
    """Return the table for the project's README."""

    def find(part: str, **wanted: Any) -> Row:
        return next(row for row in rows if row["part"] == part and wanted.items() <= row.items())

    def against(method: str) -> str:
        mine, rival = (find("rivals", method=m, n_values=10**6, size=256) for m in ("exact", method))
        longer, worse = rival["seconds"] / mine["seconds"], rival["loss"] / mine["loss"]
        return f"takes {longer:.3g} times as long, loses {worse:.3g} times as much"

    criteo = find("criteo", method="exact", budget=10_000)
    worst = max(
        (row for row in rows if row["part"] == "criteo" and "extra_mb" in row), key=lambda row: row["seconds"]
    )
    budgets = {row["budget"] for row in rows if row["part"] == "criteo"}
    growth = [row for row in rows if row["part"] == "growth"]
    lines = [
        ("a million distinct rates into 256 ids", f"{find('size', size=256)['seconds']:.2f} s on one core"),
        ("the same into 65,536 ids", f"{find('size', size=65_536)['seconds']:.2f} s"),
        ("growth of the time from 10,000 to 10 million rates", f"exponent {_slope(growth, 256):.2f}"),
        ("scikit-learn's entropy tree on the same counts, 256 leaves", against("scikit-learn tree")),
        ("the same tree, on sorted rows", against("scikit-learn tree, rows sorted for it")),
        ("kmeans1d on the rates (it takes no weights), 256 clusters", against("kmeans1d")),
        (
            f"26 columns, {criteo['n_values']:,} values into {criteo['size']:,} ids",
            f"{criteo['seconds']:.2f} s, {criteo['loss'] / criteo['total']:.1g} of the information lost",
        ),
        (
            f"the slowest of {len(budgets)} budgets from {min(budgets):,} to {max(budgets):,}",
            f"{worst['seconds']:.2f} s, {worst['extra_mb']:,.0f} MB on top of the counts",
        ),
        (
            "`import vocabfold`",
            f"{find('start', method='import vocabfold')['seconds']:.2f} s, including the start of Python",
        ),
        ("a fold in a new process", f"{find('start', method='fold in a new process')['seconds']:.2f} s"),
        (
            "the first fold ever, which compiles",
            f"{find('start', method='first fold ever, compiles')['seconds']:.1f} s",
        ),
    ]
    return figures(lines)


_ANSWER: dict[str, Cell] = {"share of information lost": share_lost, "gap (nats)": number("gap", ".1g")}
_WHAT = {"method": number("method", ""), "values": number("n_values", ",")}
_MEMORY = {"memory beyond the input (MB)": number("extra_mb", ",.0f")}
TABLES: dict[str, tuple[str, dict[str, Cell]]] = {
    "size": ("A million distinct rates, one core", {"ids": number("size", ","), **TIMES, **_ANSWER}),
    "growth": ("Growth", {**_WHAT, "ids": number("size", ","), **TIMES, **_ANSWER, **_MEMORY}),
    "rivals": ("Against rivals, same counts", {**_WHAT, "ids": number("size", ","), **TIMES, **_ANSWER}),
    "criteo": (
        "26 Criteo-shaped columns under one budget",
        {
            **_WHAT,
            "budget": number("budget", ","),
            "ids": number("size", ","),
            **TIMES,
            **_ANSWER,
            **_MEMORY,
        },
    ),
    "prior": (
        "The prior of maximum likelihood, 26 columns",
        {
            **_WHAT,
            "pairs": number("pairs", ","),
            **TIMES,
            "log-likelihood where the strength is finite": number("log_likelihood", ".6f"),
            "mean strength (rows)": number("strength", ".6g"),
        },
    ),
    "start": ("New processes", {"what": number("method", ""), **TIMES}),
}


def _remarks(part: str, rows: Sequence[Row]) -> list[str]:
    """State what the table shows: ratios and exponents."""
    if part == "growth":
        return [
            f"Growth exponent in the number of rates at {size:,} ids: {_slope(rows, size):.2f}.\n"
            for size in sorted({row["size"] for row in rows})
        ]
    if part == "rivals":
        ours = {(row["n_values"], row["size"]): row for row in rows if row["method"] == "exact"}
        return [
            f"{row['method']}, {row['n_values']:,} values, {row['size']:,} ids: exact is "
            f"{row['seconds'] / own['seconds']:.1f} times faster, and the rival loses "
            f"{row['loss'] / own['loss']:.3f} times as much.\n"
            for row in rows
            if (own := ours[row["n_values"], row["size"]]) is not row
        ]
    return []


def _slope(rows: Sequence[Row], size: int) -> float:
    """Fit the exponent of the time over the number of values."""
    points = [(math.log(row["n_values"]), math.log(row["seconds"])) for row in rows if row["size"] == size]
    return float(np.polyfit(*zip(*points, strict=True), 1)[0]) if len(points) > 1 else math.nan


def _plot(folder: Path, rows: Sequence[Row]) -> None:
    """Draw the share of information lost against the budget."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "vocabfold", "svg.fonttype": "none", "font.family": "sans-serif"}
    from matplotlib import pyplot as plt

    rows = [row for row in rows if row["method"] == "exact"]
    points = [(row["budget"], row["loss"] / row["total"]) for row in rows if row["loss"]]
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    axes.loglog(*zip(*points, strict=True), "o-", color="black", markersize=5)
    for budget, lost in points:
        axes.annotate(f"{lost:.0e}", (budget, lost), textcoords="offset points", xytext=(5, 5))
    budgets = sorted({row["budget"] for row in rows if row["loss"]})
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets], rotation=45)
    axes.minorticks_off()
    lossless = max(row["size"] for row in rows)
    axes.set_xlabel(f"ids in total (nothing is lost from {lossless:,} on, the number of distinct rates)")
    axes.set_ylabel("share of information lost")
    seconds = max(row["seconds"] for row in rows)
    n_values = rows[0]["n_values"] / 1e6
    axes.set_title(f"{n_values:.1f} million values in 26 columns, folded within {seconds:.1f} s per budget")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "budget.svg", metadata={"Date": None})


if __name__ == "__main__":
    run = newest("speed")
    raw = read_csv(run / "raw.csv")
    write_report(run, raw, read_csv(run / "about.csv"))
    update_readme("speed", run.name, headlines(raw))
