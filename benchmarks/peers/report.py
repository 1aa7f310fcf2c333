"""Raw rows of the peers benchmark -> tables and plots; nothing in them is typed by hand.

`python -m benchmarks.peers.report` makes those of the newest run, and the tables in docs/results.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.peers import EXACT, MODEL, PEERS
from tools import plots
from tools.tables import README, Cell, Row, make_report, number, share_lost, table

PLOTTED, REAL = "b", "real"
TITLES = {
    "a": "One column, few groups",
    "b": "One column, more of everything",
    "c": "One column of a million values",
    "d": "26 Criteo-shaped columns under one budget",
    REAL: "26 columns of real Criteo rows under one budget",
}
PAGE = README.parent / "docs" / "results.md"
_NEAR = (26, 14)  # pixels, within which points share a label
_SMALL: dict[str, Any] = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center", "fontsize": 8}
_INTRODUCTION = f"""
All peers group the values of the same training rows into at most m groups, and the same function judges all
groups. The tables are sorted by loss. Ratios are relative to `{EXACT}`, the optimum; above 1 is worse.

- groups: how many groups the training rows really have, in all columns together
- share lost: the part of I(X;C), the information of the values about the label in the training rows, that the
  groups do not keep. If values have few rows, much of I(X;C) is chance, so a small loss means good
  compression and promises nothing for new rows
- held-out gain: mean log-loss of the overall rate minus that of the rate of a row's group (of its training
  rows, and one row at the overall rate), on rows that nobody was fitted on, in nats per row, summed over the
  columns; unseen values are in the group that the peer gives them. Below 0: worse than the overall rate
- held-out information: I(Z;C) of groups and label in those rows, in nats; it does not require that the rates
  generalise, and grows by chance with the number of groups
- fit, transform: seconds of the fastest repeat; transform is of the training rows, and empty where
  one call does both. Counting the values is part of the fit. Everything ran on one core, after a warm-up with
  some rows; what the warm-up did not compile is in the slowest repeat
- memory: how far the peak of the process rose above what it held before the fit, the rows included; with the
  programs that it started
- text: the values as pandas' own text (str) or as Python objects (object): whichever was faster for this peer
  when tried before the run

`{MODEL}` and the encoder out of fold do not try to keep the information of the training rows: they avoid its
chance part, and the held-out gain is their measure.
"""


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of all workloads that were run, and the plots of one."""
    texts = [
        "# vocabfold compared with what people use today\n",
        *(f"- {fact['fact']}: {fact['is']}" for fact in about),
    ]
    texts += [_INTRODUCTION, "## How each is called\n", _calls(rows)]
    for workload in TITLES:
        chosen = _of(rows, workload)
        if chosen:
            texts += [f"## `{workload}`: {_title(chosen)}\n", table(chosen, _cells(chosen))]
            if workload == PLOTTED:
                texts += [f"![{name} against seconds]({name}.svg)\n" for name in draw(folder, chosen)]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def for_page(rows: Sequence[Row]) -> str:
    """Return compact tables for docs/results.md: of one column, and of several real ones."""
    both = [_of(rows, workload) for workload in (PLOTTED, REAL)]
    return "\n".join(f"**{_title(chosen)}**\n\n" + table(chosen, _compact(chosen)) for chosen in both).strip()


def has_real_rows(rows: Sequence[Row]) -> bool:
    """Say whether the real rows were run, and the workload that is plotted."""
    return {PLOTTED, REAL} <= {row["workload"] for row in rows if "loss" in row}


def _of(rows: Sequence[Row], workload: str) -> list[Row]:
    """Return the rows of a workload, the least loss first, those that were not run last."""
    chosen = [row for row in rows if row["workload"] == workload]
    return sorted(chosen, key=lambda row: ("loss" not in row, row.get("loss", 0)))


def _title(rows: Sequence[Row]) -> str:
    first = rows[0]
    title = TITLES[first["workload"]]
    if "budget" not in first:
        return title
    facts = f"{first['n_values']:,} values, {first['n_rows']:,} rows and {first['n_test']:,} held out"
    known = f"; the true rates would gain {first['best_gain']:.4f}" if "best_gain" in first else ""
    return f"{title}: {facts}, {first['budget']:,} groups, {first['total']:.4f} nats{known}"


def _calls(rows: Sequence[Row]) -> str:
    named = {row["peer"] for row in rows}
    return table(
        [{"peer": name} for name in PEERS if name in named], {"peer": _name, "m groups, or as said": _how}
    )


def _name(row: Row) -> str:
    return f"**{row['peer']}**" if row["peer"].startswith("vocabfold") else str(row["peer"])


def _groups(row: Row) -> str:
    """Show the number of groups, and whether it is the peer's own choice."""
    if "groups" not in row:
        return ""
    return f"{row['groups']:,}" + ("" if PEERS[row["peer"]].is_limited else ", its own choice")


def _how(row: Row) -> str:
    return PEERS[row["peer"]].how


def _ratio(rows: Sequence[Row], field: str, form: str = ".3g") -> Cell:
    """Return what shows a field as a multiple of ours."""
    ours = next((row.get(field) for row in rows if row["peer"] == EXACT), None)
    return lambda row: format(row[field] / ours, form) if ours and field in row else ""


def _cells(rows: Sequence[Row]) -> dict[str, Cell]:
    return {
        "peer": _name,
        "groups": _groups,
        "share lost": share_lost,
        "loss, ratio": _ratio(rows, "loss"),
        "held-out gain": number("gain", ".4f"),
        "held-out information": number("test_information", ".4f"),
        "fit, s": number("fit_seconds", ".3f"),
        "transform, s": number("transform_seconds", ".3f"),
        "both, least": number("seconds", ".3f"),
        "slowest": number("slowest", ".3f"),
        "repeats": number("repeats", ""),
        "time, ratio": _ratio(rows, "seconds"),
        "memory, MB": number("extra_mb", ",.0f"),
        "memory, ratio": _ratio(rows, "extra_mb"),
        "text": number("text", ""),
        "not run": number("not_run", ""),
    }


def _compact(rows: Sequence[Row]) -> dict[str, Cell]:
    def seconds(row: Row) -> str:
        if "seconds" not in row:
            return f"not run: {row['not_run']}"
        return f"{row['seconds']:.2f} s" if row["peer"] == EXACT else f"{_ratio(rows, 'seconds', '.2g')(row)} x"

    def slowest(row: Row) -> str:
        return (
            f"{row['slowest'] / row['seconds']:.2f} x of {row['repeats']}" if row.get("repeats", 1) > 1 else ""
        )

    return {
        "peer": _name,
        "groups": _groups,
        "information lost": share_lost,
        "held-out gain": number("gain", ".4f"),
        "time": seconds,
        "slowest": slowest,
        "memory, MB": number("extra_mb", ",.0f"),
    }


def draw(folder: Path, rows: Sequence[Row]) -> list[str]:
    """Draw what is lost, and what is gained on new rows, against seconds; return the names of the plots."""
    ran = [row | {"share": row["loss"] / row["total"]} for row in rows if "loss" in row]
    if not ran:
        return []
    best = max(ran, key=lambda row: row["gain"])
    lost = [row for row in ran if row["share"] > 1e-12]  # every value apart loses nothing: not on a log axis
    texts = {
        "loss": (
            "share",
            "share of information lost, training rows",
            "What groups lose, and how long it takes",
        ),
        "gain": ("gain", "held-out gain in nats per row", f"On new rows, {best['peer']} has the largest gain"),
    }
    for name, (field, label, title) in texts.items():
        figure, (panel,) = plots.canvas(width=9, height=4.2)
        panel.set_xscale("log")
        if name == "loss":
            panel.set_yscale("log")
        else:
            panel.axhline(0, color="grey", linewidth=0.8)
            if "best_gain" in best:
                panel.axhline(best["best_gain"], color="grey", linewidth=0.8, linestyle=":")
                panel.annotate(
                    "the true rates", (0.5, best["best_gain"]), xycoords=("axes fraction", "data"), **_SMALL
                )
        _points(panel, lost if name == "loss" else ran, field)
        panel.set_xlabel(f"seconds to fit and transform {best['n_rows']:,} rows, on one core")
        panel.set_ylabel(label)
        panel.set_title(f"{title}: {best['n_values']:,} values, {best['budget']:,} groups", loc="left")
        plots.save(figure, folder, name)
    return list(texts)


def _points(panel: Any, rows: Sequence[Row], field: str) -> None:
    """Draw a point for each peer, with a number; the names stand beside the panel, from the top down."""
    in_order = sorted(rows, key=lambda row: (-row[field], row["seconds"]))
    for place, row in enumerate(in_order, start=1):
        is_ours = row["peer"].startswith("vocabfold")
        fill = "black" if is_ours else "white"
        panel.plot(row["seconds"], row[field], "o", color="black", markerfacecolor=fill)
        panel.annotate(
            f"{place}  {row['peer']}",
            (1.04, 1 - place / (len(in_order) + 1)),
            xycoords="axes fraction",
            fontsize=8,
            fontweight="bold" if is_ours else "normal",
            va="center",
            annotation_clip=False,
        )
    panel.margins(x=0.08, y=0.08)
    panel.figure.canvas.draw()  # from here on, points have their places
    labels: list[tuple[Any, list[str]]] = []  # where, and the numbers of the points there, from the left
    for place, row in sorted(enumerate(in_order, start=1), key=lambda point: point[1]["seconds"]):
        point = panel.transData.transform((row["seconds"], row[field]))
        near = next((numbers for where, numbers in labels if all(abs(where - point) < _NEAR)), None)
        if near is None:
            labels.append((point, near := []))
        near.append(str(place))
    for where, numbers in labels:
        panel.annotate(", ".join(numbers), panel.transData.inverted().transform(where), **_SMALL)


if __name__ == "__main__":
    make_report("peers", PAGE, write_report, for_page, has_real_rows)
