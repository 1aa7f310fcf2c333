"""Raw rows of the growth benchmark -> tables, exponents and a plot; nothing in them is typed by hand.

`python -m benchmarks.growth.report` makes those of the newest run, and the table in docs/scale.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth.counts import DISTINCT, FEWEST, POWER_LAW
from tools.plots import STYLES, canvas, save
from tools.tables import README, Cell, Row, make_report, number, share_lost, table

PAGE = README.parent / "docs" / "scale.md"
FITTED_FROM = 10**5  # values; below, the overhead of every call hides the growth
TRILLION = 10**12
_ON_ROWS = ("count", "fit", "transform", "ids")
_ON_COUNTS = ("order", "order and solve")
_SHAPES = (POWER_LAW, DISTINCT, FEWEST)
_INTRODUCTION = """
`count`, `fit`, `transform` and `ids` work on a file with four rows per value, on all cores of the run. `order`
is `vf.fold` with one id, so that there is nothing to solve; `order and solve` is `vf.fold` with 4,096 ids;
both run on one core. `power law` has few distinct rates, as large vocabularies do. In `distinct rates`, nearly
every value has a random rate of its own. `fewest rows` has the distinct rates that need the fewest rows: no
column with as many rows has more.
"""


def lines(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each step on each shape, the fewest values first."""
    found: dict[tuple[str, str], list[Row]] = {}
    for step, shapes in [(s, (POWER_LAW,)) for s in _ON_ROWS] + [(s, _SHAPES) for s in _ON_COUNTS]:
        for shape in shapes:
            chosen = [row for row in rows if (row["step"], row["shape"]) == (step, shape)]
            if chosen:
                found[step, shape] = sorted(chosen, key=lambda row: row["n_values"])
    return found


def exponent(rows: Sequence[Row], field: str = "seconds") -> float | None:
    """Return the slope of the least squares in logarithms over the larger sizes, if there are two."""
    fitted = [row for row in rows if row["n_values"] >= FITTED_FROM]
    if len(fitted) < 2:
        return None
    slope, _ = np.polyfit(np.log([r["n_values"] for r in fitted]), np.log([r[field] for r in fitted]), 1)
    return float(slope)


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of all steps, and the plot."""
    texts = ["# How the time grows with the values\n", *(f"- {fact['fact']}: {fact['is']}" for fact in about)]
    texts += [_INTRODUCTION, "![seconds against values](growth.svg)\n", _exponents(rows)]
    for (step, shape), chosen in lines(rows).items():
        texts += [f"## {_name(step, shape)}\n", table(chosen, _cells(chosen))]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")
    _plot(folder, rows)


def _cells(rows: Sequence[Row]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        "values": number("n_values", ","),
        "rows": number("rows", ",.0f"),
        "distinct (neg, pos)": number("n_pairs", ","),
        "distinct rates": number("n_rates", ","),
        "seconds (least)": number("seconds", ".3g"),
        "slowest": number("slowest", ".3g"),
        "repeats": number("repeats", ""),
        "memory added (MB)": number("extra_mb", ",.0f"),
        "positive rows": number("positives", ","),
        "rows with unseen values": number("n_unseen", ","),
        "ids": number("size", ","),
        "share of information lost": share_lost,
        "gap (nats)": number("gap", ".1g"),
    }
    return {head: cell for head, cell in cells.items() if any(cell(row) for row in rows)}


def _name(step: str, shape: str) -> str:
    return step if step in _ON_ROWS else f"{step}, {shape}"


def _exponents(rows: Sequence[Row]) -> str:
    """Return a line per step: seconds at each size, and how they grow."""
    summary = []
    for (step, shape), chosen in lines(rows).items():
        slope, last = exponent(chosen), chosen[-1]
        line = {"step": _name(step, shape), "exponent": "" if slope is None else f"{slope:.2f}"}
        line |= {_power(row["n_values"]): f"{row['seconds']:.3g} s" for row in chosen}
        line["memory"] = f"{last['extra_mb'] / 1000:.2g} GB at {_power(last['n_values'])}"
        if len(chosen) > 1:
            line["last"] = f"x {last['seconds'] / chosen[-2]['seconds']:.3g}"
        summary.append(line)
    sizes = [_power(n) for n in sorted({row["n_values"] for row in rows}) if n >= FITTED_FROM]
    cells: dict[str, Cell] = {"step": number("step", "")}
    cells |= {f"{size} values": number(size, "") for size in sizes}
    cells |= {"exponent": number("exponent", ""), "last tenfold": number("last", "")}
    return table(summary, cells | {"memory added": number("memory", "")})


def _power(n: int) -> str:
    return f"{n:.0e}".replace("e+0", "e")


def for_page(rows: Sequence[Row]) -> str:
    """Return the table for docs/scale.md, and the cost of the worst column of a trillion rows."""
    worst = lines(rows)["order and solve", FEWEST]
    last, memory = worst[-1], exponent(worst, "extra_mb")
    texts = [_exponents(rows)]
    if memory is not None:
        n_most = 2 ** (1 / 3) * TRILLION ** (2 / 3)
        longer, larger = ((n_most / last["n_values"]) ** power for power in (_steepest(rows), memory))
        texts += [
            f"The largest `fewest rows` has {last['n_rates']:,} distinct rates in {last['rows']:,} rows: "
            f"{last['seconds']:.0f} s into {last['size']:,} ids with a gap of {last['gap']:.1g} nats, and "
            f"{last['extra_mb'] / 1000:.2g} GB on top of the counts. A trillion rows have fewer. The "
            f"{n_most / 1e6:.0f} million of the bound for any N would take {last['seconds'] * longer:.0f} s, "
            "if everything grew as steeply as its steepest part over the last tenfold, and "
            f"{last['extra_mb'] * larger / 1000:.2g} GB. At that size, each step ran {_times(last['repeats'])}."
        ]
    return "\n".join(texts).strip()


def _steepest(rows: Sequence[Row]) -> float:
    """Return the largest exponent between the two largest sizes of the worst column."""
    found = lines(rows)
    pairs = [found[step, FEWEST][-2:] for step in _ON_COUNTS]
    return max(
        float(np.log(b["seconds"] / a["seconds"]) / np.log(b["n_values"] / a["n_values"])) for a, b in pairs
    )


def _times(repeats: int) -> str:
    return "once" if repeats == 1 else f"{repeats} times"


def _plot(folder: Path, rows: Sequence[Row]) -> None:
    """Draw seconds against values: steps on rows, and steps on bare counts."""
    figure, panels = canvas(2, width=10.0, height=5.2)
    slopes = {name: exponent(chosen) for name, chosen in lines(rows).items()}
    known = [slope for slope in slopes.values() if slope is not None]
    if known:
        figure.suptitle(
            f"From {FITTED_FROM:,} values on, the time of every step grows with a power of the values\n"
            f"between {min(known):.2f} and {max(known):.2f}"
        )
    for panel, title, steps in zip(
        panels,
        ("rows in a file, four per value", "bare counts, on one core"),
        (_ON_ROWS, _ON_COUNTS),
        strict=True,
    ):
        chosen = {name: of for name, of in lines(rows).items() if name[0] in steps}
        for style, (name, of) in zip(STYLES, chosen.items(), strict=False):
            _draw(panel, of, _name(*name), slopes[name], style)
        panel.set(xscale="log", yscale="log", xlabel="values", ylabel="seconds (least of the repeats)")
        panel.set_title(title, fontsize="medium")
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 2}  # where no line is
        panel.legend(frameon=False, fontsize="small", title="step, and its exponent", **below)
    save(figure, folder, "growth")


def _draw(panel: Any, rows: Sequence[Row], name: str, slope: float | None, style: dict[str, Any]) -> None:
    label = name if slope is None else f"{name}: {slope:.2f}"
    panel.plot([row["n_values"] for row in rows], [row["seconds"] for row in rows], label=label, **style)


if __name__ == "__main__":
    make_report("growth", PAGE, write_report, for_page)
