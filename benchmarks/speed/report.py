"""Raw rows of the speed benchmark -> README.md with tables, and one plot. Nothing in them is typed by hand."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
Cell = Callable[[Row], str]


def write_report(folder: Path, rows: Sequence[Row], about: dict[str, str]) -> None:
    """Write the tables of all parts that were run, and the plot."""
    texts = ["# Speed of the exact fold\n", *(f"- {name}: {text}" for name, text in about.items()), ""]
    for part, (title, cells) in TABLES.items():
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            texts += [f"## {title}\n", _table(chosen, cells), *_remarks(part, chosen)]
    (folder / "README.md").write_text("\n".join(texts) + "\n", encoding="utf-8")
    budgets = [row for row in rows if row["part"] == "criteo"]
    if budgets:
        _plot(folder, budgets)


def _number(field: str, form: str) -> Cell:
    return lambda row: format(row[field], form) if field in row else ""


def _share_lost(row: Row) -> str:
    return f"{row['loss'] / row['total']:.3g}"


_TIMES = {
    "seconds (least)": _number("seconds", ".3f"),
    "slowest": _number("slowest", ".3f"),
    "repeats": _number("repeats", ""),
}
_ANSWER = {"share of information lost": _share_lost, "gap (nats)": _number("gap", ".1g")}
_WHAT = {"method": _number("method", ""), "values": _number("n_values", ",")}
_MEMORY = {"memory beyond the input (MB)": _number("extra_mb", ",.0f")}
TABLES: dict[str, tuple[str, dict[str, Cell]]] = {
    "size": ("A million distinct rates, one core", {"ids": _number("size", ","), **_TIMES, **_ANSWER}),
    "growth": ("Growth", {**_WHAT, "ids": _number("size", ","), **_TIMES, **_ANSWER, **_MEMORY}),
    "rivals": ("Against rivals, same counts", {**_WHAT, "ids": _number("size", ","), **_TIMES, **_ANSWER}),
    "criteo": (
        "26 Criteo-shaped columns under one budget",
        {
            **_WHAT,
            "budget": _number("budget", ","),
            "ids": _number("size", ","),
            **_TIMES,
            **_ANSWER,
            **_MEMORY,
        },
    ),
    "start": ("New processes", {"what": _number("method", ""), **_TIMES}),
}


def _table(rows: Sequence[Row], cells: dict[str, Cell]) -> str:
    lines = [list(cells), ["---"] * len(cells), *([cell(row) for cell in cells.values()] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _remarks(part: str, rows: Sequence[Row]) -> list[str]:
    """Say what the table shows: ratios and exponents."""
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
    """Draw the share of information lost against the budget, for the joint and the uniform split."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "vocabfold", "svg.fonttype": "none", "font.family": "sans-serif"}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for method, label, style in [
        ("exact, uniform split", "same number of ids for every column", "s--"),
        ("exact", "one exact budget over all columns", "o-"),
    ]:
        points = [
            (row["budget"], row["loss"] / row["total"])
            for row in rows
            if row["method"] == method and row["loss"]
        ]
        axes.loglog(*zip(*points, strict=True), style, color="black", label=label, markersize=5)
    budgets = sorted({row["budget"] for row in rows})
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel("ids in all")
    axes.set_ylabel("share of information lost")
    seconds = max(row["seconds"] for row in rows if row["method"] == "exact")
    n_values = rows[0]["n_values"] / 1e6
    axes.set_title(f"{n_values:.1f} million values in 26 columns, folded within {seconds:.1f} s per budget")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "budget.svg", metadata={"Date": None})
