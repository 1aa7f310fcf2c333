"""Raw rows of the methods benchmark -> tables; nothing in them is typed by hand.

`python -m benchmarks.methods.report` makes those of the newest run, and the one in docs/paper.md.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from tools.record import ROOT
from tools.tables import TIMES, Cell, Row, make_report, number, share_lost, table

PAGE = ROOT / "docs" / "paper.md"
TITLES = {
    "column": "One column of 100,000 rates",
    "shaped": "26 columns with the shape of the Criteo challenge",
    "real": "26 columns of 100,000 real Criteo rows",
}


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of all parts that were run."""
    texts = ["# Every method on the same counts\n", *(f"- {fact['fact']}: {fact['is']}" for fact in about), ""]
    for part, title in TITLES.items():
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            texts += [f"## {title}\n", table(chosen, _cells(chosen))]
            texts += [
                f"{row['method']}, {row['budget']:,} ids: {row['said']}\n" for row in chosen if "said" in row
            ]
    grown = [row for row in rows if row["part"] == "growth"]
    if grown:
        texts += ["## Growth, the algorithms alone, equal rates not merged\n"]
        texts += ["Rates are all distinct, or those of a column with the shape of the challenge.\n"]
        texts += [table(grown, _growth())]
        for method, rates, size in dict.fromkeys((row["method"], row["rates"], row["budget"]) for row in grown):
            exponent = slope(
                [row for row in grown if (row["method"], row["rates"], row["budget"]) == (method, rates, size)]
            )
            texts.append(f"Growth exponent of {method} at {size:,} ids, {rates} rates: {exponent:.2f}.\n")
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def _cells(rows: Sequence[Row]) -> dict[str, Cell]:
    least = {row["budget"]: row["loss"] for row in rows if row["method"] == "exact" and _is_first(row)}
    base = {row["budget"]: row["seconds"] for row in rows if row["method"] == "exact" and _is_first(row)}

    def ratio(row: Row) -> str:
        if "loss" not in row or not least[row["budget"]]:
            return ""
        losses = [
            row[name] / least[row["budget"]] for name in ("loss", "least_loss", "most_loss") if name in row
        ]
        spread = " ({:.3g} to {:.3g} over seeds)".format(*losses[1:]) if len(losses) > 1 else ""
        return f"{losses[0]:.4g}{spread}"

    def longer(row: Row) -> str:
        return f"{row['seconds'] / base[row['budget']]:.3g}" if "seconds" in row else ""

    return {
        "ids allowed": number("budget", ","),
        "method": lambda row: row["method"],
        **({"allocation": number("allocation", "")} if any("allocation" in row for row in rows) else {}),
        "ids used": number("size", ","),
        "loss, × optimum": ratio,
        "share of information lost": share_lost,
        **TIMES,
        "time, × exact": longer,
        "not run": number("not_run", ""),
    }


def _is_first(row: Row) -> bool:
    return row.get("allocation", "joint") == "joint"


def _growth() -> dict[str, Cell]:
    def per(power: int) -> Cell:
        def cell(row: Row) -> str:
            n = row["n_values"]
            return f"{1e9 * row['seconds'] / (n * math.log2(n) ** power):.3g}"

        return cell

    return {
        "method": lambda row: row["method"],
        "rates": lambda row: row["rates"],
        "values": number("n_values", ","),
        "ids": number("size", ","),
        **TIMES,
        "ns / (n log2 n)": per(1),
        "ns / (n log2^2 n)": per(2),
        "share of information lost": share_lost,
    }


def slope(rows: Sequence[Row]) -> float:
    """Return the exponent with which the time grows from the fewest values to the most."""
    first, last = rows[0], rows[-1]
    return math.log(last["seconds"] / first["seconds"]) / math.log(last["n_values"] / first["n_values"])


def for_page(rows: Sequence[Row]) -> str:
    """Return the table for docs/paper.md: loss (× optimum) and time of every method."""
    parts = [("column", 256), ("column", 4096), ("shaped", 10_000), ("shaped", 40_000), ("real", 2_000)]
    heads = ["1 column, 256 ids", "4,096 ids", "26 shaped, 10,000", "40,000", "26 real, 2,000"]
    found = {(row["part"], row["budget"], _name(row)): row for row in rows if row["part"] in TITLES}
    names = dict.fromkeys(_name(row) for row in rows if row["part"] in TITLES and "shards" not in row["method"])
    lines = []
    for name in names:
        cells = []
        for part in parts:
            row, best = found.get((*part, name)), found[(*part, "exact")]
            is_there = row is not None and "loss" in row
            cells.append(f"{row['loss'] / best['loss']:.3g} ({row['seconds']:.2g} s)" if is_there else "-")
        lines.append(
            f"| `{name.partition(',')[0]}`{''.join(name.partition(',')[1:])} | " + " | ".join(cells) + " |"
        )
    return "\n".join([f"| method | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|", *lines])


def _name(row: Row) -> str:
    allocation = row.get("allocation", "joint")
    if row["part"] == "column" and row["method"] in ("divisive", "bucketing", "hashing"):
        allocation = "uniform"  # one column has no other
    return str(row["method"]) + ("" if allocation == "joint" else f", {allocation}")


if __name__ == "__main__":
    make_report("methods", PAGE, write_report, for_page)
