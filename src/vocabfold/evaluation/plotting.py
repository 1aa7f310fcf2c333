"""Comparison -> a plot in a file: legible without colours, the same bytes for the same figures."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabfold.errors import InputError, MissingDependency
from vocabfold.io.rows.writing import check_place, place, replacing
from vocabfold.support import checks

if TYPE_CHECKING:
    from vocabfold.evaluation.comparison import Comparison

FORMATS = (".svg", ".png", ".pdf")
_MARKERS = "os^vDPX<>*h"  # one for each method, with a colour
_COLOURS = ("black", *(f"C{i}" for i in range(10)))
_DASHES = {"joint": "-", "uniform": "--", "information": ":"}
_MOST_TICKS = 8


def check_plot(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Refuse a plot that cannot be drawn or written, before anything is computed."""
    file = place(path or ".")
    if file.suffix.lower() not in FORMATS:
        name = str(path) or "the name"
        raise InputError(f"{name} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]} to be a plot.")
    check_place(file, file, overwrite=overwrite)
    _matplotlib()
    return file


def plot_comparison(found: Comparison, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Draw the share of information lost, and the seconds, against the budget; a line for each method."""
    file = check_plot(path, overwrite=overwrite)
    if found.is_empty:
        raise InputError("no method came to its end, so there is nothing to draw.")
    settings = {"svg.hashsalt": "vocabfold", "svg.fonttype": "none", "font.family": "sans-serif"}
    with _matplotlib().rc_context(settings), replacing(file, overwrite=overwrite) as partial:
        kind = file.suffix.lower()[1:]
        about = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
        _draw(found).savefig(partial, format=kind, dpi=150, metadata=about)


def _draw(found: Comparison) -> Any:
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(trial.name for trial in found))
    methods = list(dict.fromkeys(trial.method for trial in found))
    figure = Figure(figsize=(10, max(4.2, 0.25 * len(names) + 0.8)), layout="constrained")
    losses, times = figure.subplots(1, 2)
    decades = [math.floor(math.log10(found.lost(trial))) for trial in found if trial.loss]
    nothing = min(decades, default=0) - 1  # the decade where 0 is drawn, as a logarithmic axis has none
    for name in names:
        trials = [trial for trial in found if trial.name == name and trial.loss is not None]
        trials.sort(key=lambda trial: trial.budget)
        i = methods.index(next(trial.method for trial in found if trial.name == name))
        style: dict[str, Any] = {
            "color": _COLOURS[i % len(_COLOURS)],
            "marker": _MARKERS[i % len(_MARKERS)],
            "markerfacecolor": _COLOURS[i % len(_COLOURS)] if i % 2 == 0 else "white",
            "zorder": 3 - i / len(methods),  # the first is not hidden
            "linestyle": next(_DASHES[trial.allocation] for trial in found if trial.name == name),
        }
        budgets = [trial.budget for trial in trials]
        shares = [found.lost(trial) or 10.0**nothing for trial in trials]
        losses.plot(budgets, shares, label=name if trials else f"{name}: no figures", clip_on=False, **style)
        times.plot(budgets, [trial.seconds for trial in trials], **style)
    budgets = sorted({trial.budget for trial in found})
    shown = budgets[:: math.ceil(len(budgets) / _MOST_TICKS)]
    for panel, what in ((losses, "share of information lost"), (times, "seconds")):
        panel.set(xscale="log", yscale="log", xlabel="ids in all", ylabel=what)
        panel.set_xticks(shown, [f"{budget:,}" for budget in shown], rotation=45)
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
    _tick(losses, decades, nothing if any(trial.loss == 0 for trial in found) else None)
    seconds = [math.log10(trial.seconds) for trial in found if trial.seconds]
    times.set_ylim(
        10.0 ** math.floor(min(seconds)), 10.0 ** math.ceil(max(seconds))
    )  # whole decades to read by
    values, columns = checks.number(found.n_values, "value"), checks.number(found.n_columns, "column")
    figure.suptitle(f"{values} in {columns}, {found.total:.4g} nats per row")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _tick(panel: Any, decades: list[int], nothing: int | None) -> None:
    """Mark some decades, and the line where nothing is lost."""
    first, last = min(decades, default=-1), max(decades, default=-1) + 1
    marked = range(last, first - 1, -math.ceil((last - first) / _MOST_TICKS))
    ticks = {10.0**decade: f"$10^{{{decade}}}$" for decade in marked}
    if nothing is not None:
        ticks |= {10.0**nothing: "0"}
        panel.axhline(10.0**nothing, color="grey", linewidth=0.8)
    panel.set_yticks(list(ticks), list(ticks.values()))


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependency("a plot needs matplotlib: pip install 'vocabfold[report]'") from error
    return matplotlib
