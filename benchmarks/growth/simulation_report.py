"""Raw rows of the simulation -> tables for its folder and for docs/scale.md; nothing in them is typed by hand.

`python -m benchmarks.growth.simulation_report` makes those of the newest run.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.growth.report import PAGE
from benchmarks.growth.simulation import PAIRS, RATES, TRILLION
from tools.tables import Cell, Row, figures, make_report, number, table

BOUND = 2 ** (1 / 3)  # of N^(2/3), for any N
ASYMPTOTIC = {RATES: 3 / np.pi**2 * (np.pi**2 / 2) ** (2 / 3), PAIRS: 3 ** (2 / 3) / 2}
IN_SPARK = 60  # bytes of storage memory per value, docs/spark.md
_FIELD = {RATES: "n_rates", PAIRS: "n_pairs"}


def tables(rows: Sequence[Row], *, is_short: bool = False) -> str:
    """Return all tables, and how they compare with the bounds; a short one has only the ends of each law."""
    return "\n".join(
        ["## Distinct pairs and rates\n", _laws(rows, is_short), _worst(rows)]
        + ["## What a counting job shuffles\n", _shuffle(rows), _drawn(rows)]
        + ["## Bytes\n", _bytes(rows)]
    )


def for_page(rows: Sequence[Row]) -> str:
    """Return the same tables for a page, one heading level lower."""
    return re.sub(r"^##", "###", tables(rows, is_short=True), flags=re.MULTILINE).strip()


def _of(rows: Sequence[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def _share(field: str) -> Cell:
    return lambda row: f"{row[field] / row['rows'] ** (2 / 3):.3g}" if field in row else ""


def _laws(rows: Sequence[Row], is_short: bool) -> str:
    """Return a line per law and number of rows."""
    cells: dict[str, Cell] = {
        "law of frequency": number("law", ""),
        "rows": number("rows", ","),
        "values": number("n_values", ","),
        "distinct (neg, pos)": number("n_pairs", ","),
        "pairs / N^(2/3)": _share("n_pairs"),
        "distinct rates": number("n_rates", ","),
        "rates / N^(2/3)": _share("n_rates"),
    }
    by_law: dict[str, list[Row]] = {}
    for row in [*_of(rows, "laws"), *_of(rows, "worst")]:
        by_law.setdefault(row["law"], []).append(row)
    chosen = [[found[0], found[-1]] if is_short else found for found in by_law.values()]
    return table([row for found in chosen for row in found], cells)


def _worst(rows: Sequence[Row]) -> str:
    """Compare the worst cases with the constants."""
    texts = []
    for law, constant in ASYMPTOTIC.items():
        largest = next(row for row in _of(rows, "largest") if row["law"] == law)
        last = max((row for row in _of(rows, "worst") if row["law"] == law), key=lambda row: row["rows"])
        texts.append(
            f"{law.capitalize()}: {last[_FIELD[law]] / last['rows'] ** (2 / 3):.4f} N^(2/3) at "
            f"{last['rows']:.0e} rows; the proof gives {constant:.4f} for large N. Over all N up to "
            f"{largest['asked']:.0e}, the largest is {largest['share']:.4f}, at "
            f"{largest['rows']} rows; the bound is {BOUND:.4f}."
        )
    most = max(max(row["n_pairs"], row["n_rates"]) / row["rows"] ** (2 / 3) for row in _of(rows, "laws"))
    return " ".join([*texts, f"No simulated column has more than {most:.2f} N^(2/3).\n"]).replace("e+", "e")


def _shuffle(rows: Sequence[Row]) -> str:
    """Return a line per law and number of values: what is sent for partitions of several sizes."""
    chosen = _of(rows, "shuffle")
    sizes = sorted({row["partition"] for row in chosen})
    found: dict[tuple[str, int], Row] = {}
    for row in chosen:
        line = found.setdefault((row["law"], row["values"]), dict(row))
        line[f"sent {row['partition']}"] = f"{row['sent']:.2g} ({row['sent'] / row['rows']:.1%})"
    cells: dict[str, Cell] = {
        "law of frequency": number("law", ""),
        "possible values": number("values", ","),
        "those in a trillion rows": number("n_values", ".3g"),
    }
    cells |= {f"sent, partitions of {size:,} rows": number(f"sent {size}", "") for size in sizes}
    return table(list(found.values()), cells).replace("e+0", "e").replace("e+", "e")


def _drawn(rows: Sequence[Row]) -> str:
    """State how far sampled partitions are from the formula."""
    chosen = _of(rows, "drawn")
    off = max(abs(row[side] / row["expected"] - 1) for row in chosen for side in ("least", "most"))
    n_drawn = sum(row["drawn"] for row in chosen)
    least, most = (f"{pick(row['partition'] for row in chosen):,}" for pick in (min, max))
    return (
        f"{n_drawn} partitions of {least} to {most} rows were sampled; the formula is off by at most "
        f"{off:.1%}.\n"
    )


def _bytes(rows: Sequence[Row]) -> str:
    """Return bytes per value and pair, and what large tables of them take."""
    found = _of(rows, "bytes")
    saved = {row["digits"]: row for row in found if row["what"] == "counts"}
    lines = []
    for digits, row in saved.items():
        lines.append((f"a value in saved counts, {digits} digits", f"{row['bytes']:.1f} bytes"))
    for row in found:
        if row["what"] == "book":
            lines.append((f"a value in a saved codebook, {row['digits']} digits", f"{row['bytes']:.1f} bytes"))
    digits = max(saved)  # there are not so many shorter texts
    for n_values in (10**9, 10**10):
        gigabytes = f"{n_values * saved[digits]['bytes'] / 1e9:,.0f} GB at the same bytes per value"
        lines.append((f"saved counts of {n_values:,} values, {digits} digits", gigabytes))
        in_spark = f"{IN_SPARK * n_values / 1e9:,.0f} GB in all"
        lines.append((f"the same in Spark's storage, {IN_SPARK} bytes a value", in_spark))
    of_pair = next(row["bytes"] for row in found if row["what"] == "pairs")
    pairs = next(row for row in _of(rows, "worst") if row["law"] == PAIRS and row["rows"] == TRILLION)
    at_most = f"{pairs['n_pairs'] * of_pair / 1e9:.1f} GB"
    by_bound = f"{BOUND * TRILLION ** (2 / 3) * of_pair / 1e9:.1f} GB by the bound"
    lines.append((f"the most pairs of a trillion rows, {pairs['n_pairs']:,}", f"{at_most}; {by_bound}"))
    fewest = f"{min(row['n'] for row in saved.values()):,}"
    about = (
        f"Texts of {_or(saved)} random hexadecimal digits, {fewest} values or more, four rows per value.\n\n"
    )
    return about + figures(lines)


def _or(numbers: Iterable[int]) -> str:
    return " or ".join(str(number) for number in numbers)


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables."""
    texts = ["# What is distinct, sent and stored: formulas and simulation\n"]
    texts += [*(f"- {fact['fact']}: {fact['is']}" for fact in about), "", tables(rows), ""]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    make_report("scale", PAGE, write_report, for_page)
