"""The paper's first figure (fig:mi_train): the average information loss at 10,000 to 160,000 ids.

    python -m benchmarks.figures.fig_mi_train                     generated counts, as many as Criteo's
    python -m benchmarks.figures.fig_mi_train --criteo train.txt  the rows of the challenge, too, if you have it
    python -m benchmarks.figures.fig_mi_train --small             seconds, only printed
    python -m benchmarks.figures.fig_mi_train --report            tables and plot of the newest run

The loss is (sum X_i - Z_i) / (sum X_j): the share of the information of all values about the label, by column,
that the ids do not keep. Of the challenge's file, the first 37 million rows are used, as in the paper (of a
sample, the first 80 %, with budgets for so few rows). `Submodular` is the paper's algorithm as printed:
`stochastic` with epsilon 0.1, values of equal rates not merged, the lists of all columns merged by gain.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb

import vocabfold as vf
from benchmarks import criteo_shaped
from benchmarks.figures.clicks import NOT_RUN
from tools import journal
from tools.measure import timed
from tools.plots import STYLES, canvas, save
from tools.record import Row
from tools.tables import README, make_report, newest, relink, table

NAME = "fig-mi-train"
PAGE = README.parent / "docs" / "results.md"
PACKAGES = ["vocabfold", "numpy", "numba", "duckdb"]
BUDGETS = (10_000, 20_000, 40_000, 80_000, 120_000, 160_000)
FEW_ROWS, OF_FEW = 10**6, (250, 500, 1_000, 2_000, 3_000, 4_000)
TRAINING_ROWS = 37_000_000
REPEATS, SEEDS = 5, 3  # of a method; of one that draws samples

# name -> method, allocation, whether equal rates are merged first
METHODS: dict[str, tuple[str, str, bool]] = {
    "Exact": ("exact", "joint", True),
    "Submodular, greedy": ("greedy", "joint", True),
    "Submodular": ("stochastic", "joint", False),
    "Divisive, uniform": ("divisive", "uniform", True),
    "Divisive, information": ("divisive", "information", True),
    "Bucketing, uniform": ("bucketing", "uniform", True),
    "Bucketing, information": ("bucketing", "information", True),
    "Frequency": ("frequency", "joint", True),
}
# What the paper's text says of Criteo's own rows: the losses at 10,000 and at 160,000 ids.
PAPER = {"Submodular": (9e-7, 3e-9), "Bucketing": (5e-3, 5e-6), "Frequency": (0.654, 0.520)}
PAPER_BUDGETS = (10_000, 160_000)
ORDER = "order of the rates"

Given = tuple[Any, int, Sequence[int]]  # counts, rows, budgets


def generated(scale: float) -> Given:
    """Return counts with the shape of the challenge, all of them or fewer."""
    columns = criteo_shaped.columns(scale)
    n_rows = int(sum(side.sum() for side in next(iter(columns.values()))))
    return columns, n_rows, [max(26, int(budget * scale)) for budget in BUDGETS]


def criteo(file: Path) -> Given:
    """Count the first rows of the challenge's file, or of a sample of it."""
    names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    rows = duckdb.read_csv(str(file), sep="\t", header=False, names=names, all_varchar=True)
    n_rows = rows.count("*").fetchall()[0][0]
    first = rows.limit(TRAINING_ROWS if n_rows > TRAINING_ROWS else n_rows * 4 // 5)
    counts = vf.count(first, "label", names[14:], positive="1")
    return counts, int(counts.rows), BUDGETS if n_rows > FEW_ROWS else OF_FEW


def losses(data: str, given: Callable[[], Given], name: str, small: bool) -> Iterator[Row]:
    """Yield what a method loses at every budget, some times; one that draws samples, with other seeds."""
    method, allocation, merge = METHODS[name]
    counts, n_rows, budgets = given()
    repeats = SEEDS if method == "stochastic" else REPEATS
    for seed in range(1 if small else repeats):
        found = vf.compare(counts, budgets, method, allocations=allocation, merge=merge, seed=seed)
        for trial in found:
            row = {"data": data, "n_rows": n_rows, "n_values": found.n_values, "name": name, "seed": seed}
            row |= {what: getattr(trial, what) for what in ("budget", "size", "loss", "gap", "seconds")}
            yield row | {"total": found.total, "lost": found.lost(trial)}


def ordering(data: str, given: Callable[[], Given], small: bool) -> Iterator[Row]:
    """Time what all methods by rate have before them: with one id per column there is nothing else to do."""
    columns, _, _ = given()
    _, times = timed(1 if small else REPEATS, vf.fold_table, columns, len(columns))
    yield {"data": data, "name": ORDER} | times


def tasks(options: argparse.Namespace) -> dict[str, journal.Task]:
    """Return a task for each table and method."""
    sources = {"generated": cache(partial(generated, 0.01 if options.small else 1.0))}
    if options.criteo:
        sources["criteo"] = cache(partial(criteo, options.criteo))
    found: dict[str, journal.Task] = {
        f"{data}, {name}": partial(losses, data, source, name, options.small)
        for data, source in sources.items()
        for name in METHODS
    }
    return found | {ORDER: partial(ordering, "generated", sources["generated"], options.small)}


def report() -> None:
    """Make the report of the newest run."""
    make_report(NAME, PAGE, write_report, for_page)
    relink(README, NAME, newest(NAME).name)


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables and plots of a run."""
    texts = ["# The paper's figure fig:mi_train\n"]
    texts += [f"- {fact['fact']}: {fact['is']}" for fact in about]
    if not any(row.get("n_rows") == TRAINING_ROWS and row["data"] == "criteo" for row in rows):
        texts.append(NOT_RUN)
    texts += [
        "\nAverage information loss, (sum X_i - Z_i) / (sum X_j). In brackets: × optimum at the same "
        f"budget. `Submodular` is the mean of {SEEDS} seeds.\n"
    ]
    for data in dict.fromkeys(row["data"] for row in rows):
        chosen = [row for row in rows if row["data"] == data and row["name"] != ORDER]
        texts += [f"## {_title(chosen)}\n", _table(chosen, _shown_loss), _about_seconds(rows, data)]
        texts += [_table(chosen, _seconds)]
        _plot(folder, chosen)
        texts += [f"![Loss against ids](fig_mi_train_{data}.svg)\n"]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def for_page(rows: Iterable[Row]) -> str:
    """Return the table for docs/results.md: the losses on generated counts, and what the paper says."""
    chosen = [row for row in rows if row["data"] == "generated" and row["name"] != ORDER]
    paper = [
        [
            f"paper: {name}",
            *("" if b not in PAPER_BUDGETS else f"{lost[PAPER_BUDGETS.index(b)]:.3g}" for b in BUDGETS),
        ]
        for name, lost in PAPER.items()
    ]
    return _table(chosen, _shown_loss, paper).strip()


def _about_seconds(rows: Sequence[Row], data: str) -> str:
    """Say what the times include."""
    order = [row["seconds"] for row in rows if row["data"] == data and row["name"] == ORDER]
    of_order = f" (sorting takes {order[0]:.2g} s here)" if order else ""
    return (
        "Seconds of the method alone: the least and, in brackets, the longest of "
        f"{REPEATS} runs (`Submodular`: {SEEDS}). Methods by rate start from sorted distinct "
        f"rates{of_order}; `Submodular` starts from all values in that order, and Frequency looks at every "
        "value. No time includes counting or the proof of the optimum.\n"
    )


def _title(rows: Sequence[Row]) -> str:
    kind = "generated" if rows[0]["data"] == "generated" else "real Criteo"
    return f"{rows[0]['n_values']:,} values in 26 columns, {rows[0]['n_rows']:,} {kind} rows"


def _means(rows: Sequence[Row]) -> dict[tuple[str, int], Row]:
    """Return a row for each method and budget: the mean loss and the least time over the seeds."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["name"], row["budget"]), []).append(row)
    return {
        key: {
            "lost": sum(row["lost"] for row in group) / len(group),
            "seconds": min(row["seconds"] for row in group),
            "slowest": max(row["seconds"] for row in group),
        }
        for key, group in groups.items()
    }


def _table(rows: Sequence[Row], cell: Callable[[Row, Row], str], more: Sequence[Sequence[str]] = ()) -> str:
    found = _means(rows)
    budgets = list(dict.fromkeys(row["budget"] for row in rows))
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = [[name, *(cell(found[name, b], found["Exact", b]) for b in budgets)] for name in names]
    heads = ["", *(f"{budget:,} ids" for budget in budgets)]
    return table(
        [dict(enumerate(line)) for line in (*lines, *more)],
        {head: lambda line, i=i: line[i] for i, head in enumerate(heads)},
    )


def _shown_loss(row: Row, exact: Row) -> str:
    if not row["lost"]:
        return "0"
    return f"{row['lost']:.2e}" + (f" ({row['lost'] / exact['lost']:.3g})" if exact["lost"] else "")


def _seconds(row: Row, exact: Row) -> str:
    return f"{row['seconds']:.3g} ({row['slowest']:.3g})"


def _plot(folder: Path, rows: Sequence[Row]) -> None:
    found = _means(rows)
    figure, (axes,) = canvas(width=8.5, height=4.6)
    for name, style in zip(METHODS, STYLES, strict=False):
        # A logarithmic axis has no 0: where nothing is lost, the line ends.
        points = [(b, row["lost"]) for (of, b), row in found.items() if of == name and row["lost"]]
        axes.plot(*zip(*points, strict=True), label=name, markersize=5, **style)
    if rows[0]["data"] == "generated":
        for name, lost in PAPER.items():
            axes.plot(PAPER_BUDGETS, lost, "+:", color="black", linewidth=0.7, markersize=9)
            beside = {"xytext": (10, -3), "textcoords": "offset points", "fontsize": 9}
            axes.annotate(f"paper: {name}", (PAPER_BUDGETS[1], lost[1]), **beside)
    budgets = sorted({row["budget"] for row in rows})
    axes.set(xscale="log", yscale="log", xlabel="ids in all", ylabel="average information loss")
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets], rotation=45)
    axes.minorticks_off()
    lossless = min((b for (name, b), row in found.items() if name == "Exact" and not row["lost"]), default=None)
    ending = f"; from {lossless:,} ids on, exact loses nothing" if lossless else ""
    figure.suptitle(f"{_title(rows)}{ending}", fontsize=10)
    figure.legend(loc="outside right center", frameon=False)
    save(figure, folder, f"fig_mi_train_{rows[0]['data']}")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--criteo", type=Path, help="train.txt of the challenge, or a sample of it")
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes; only prints")
    parser.add_argument("--report", action="store_true", help="make tables and plots of the newest run")
    options = parser.parse_args()
    if options.report:
        report()
        return
    command = "python -m benchmarks.figures.fig_mi_train" + (" --criteo FILE" if options.criteo else "")
    journal.run(NAME, tasks(options), PACKAGES, command, small=options.small, data=options.criteo)


if __name__ == "__main__":
    main()
