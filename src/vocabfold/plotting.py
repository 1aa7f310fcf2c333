"""Comparison -> a plot in a file: legible without colours, the same bytes for the same figures."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabfold import checks
from vocabfold.engines.writing import check_place, place, replacing
from vocabfold.errors import InputError, MissingDependency

if TYPE_CHECKING:
    from vocabfold.comparison import Comparison

FORMATS = (".svg", ".png", ".pdf")
_MARKERS = "os^vDPX<>*hd"
_DASHES = ("-", "--", "-.", ":", (0, (1, 4)))
_SHADES = ("black", "dimgrey", "grey", "darkgrey", "black", "dimgrey", "grey")


def check_plot(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Refuse a plot that cannot be drawn or written, before anything is computed."""
    file = place(path)
    if file.suffix.lower() not in FORMATS:
        raise InputError(f"{file} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]} to be a plot.")
    check_place(file, file, overwrite=overwrite)
    _matplotlib()
    return file


def plot_comparison(found: Comparison, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Draw the share of information lost, and the seconds, against the budget; a line for each method."""
    file = check_plot(path, overwrite=overwrite)
    settings = {"svg.hashsalt": "vocabfold", "svg.fonttype": "none", "font.family": "sans-serif"}
    with _matplotlib().rc_context(settings), replacing(file, overwrite=overwrite) as partial:
        kind = file.suffix.lower()[1:]
        about = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[f".{kind}"]
        _draw(found).savefig(partial, format=kind, dpi=150, metadata=about)


def _draw(found: Comparison) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    losses, times = figure.subplots(1, 2)
    shares = [found.lost(trial) for trial in found if trial.loss]
    # A logarithmic axis has no 0: where nothing is lost, the mark lies on a line of its own below all others.
    nothing = 10.0 ** (math.floor(math.log10(min(shares))) - 1) if shares else 1.0
    for i, name in enumerate(dict.fromkeys(trial.name for trial in found)):
        shade = _SHADES[i % len(_SHADES)]
        style: dict[str, Any] = {
            "color": shade,
            "marker": _MARKERS[i % len(_MARKERS)],
            "linestyle": _DASHES[i % len(_DASHES)],
            "markerfacecolor": shade if i % 2 == 0 else "white",
        }
        trials = [trial for trial in found if trial.name == name and trial.loss is not None]
        trials.sort(key=lambda trial: trial.budget)
        budgets = [trial.budget for trial in trials]
        losses.plot(budgets, [found.lost(trial) or nothing for trial in trials], label=name, **style)
        times.plot(budgets, [trial.seconds for trial in trials], **style)
    if any(trial.loss == 0 for trial in found):
        losses.axhline(nothing, color="grey", linewidth=0.8)
        losses.annotate(
            "nothing lost", (1, nothing), xycoords=("axes fraction", "data"), ha="right", va="bottom"
        )
    budgets = sorted({trial.budget for trial in found})
    for panel, what in ((losses, "share of information lost"), (times, "seconds")):
        panel.set_xscale("log")
        if any(trial.loss is not None for trial in found):
            panel.set_yscale("log")
        panel.set_xticks(budgets, [f"{budget:,}" for budget in budgets], rotation=45)
        panel.minorticks_off()
        panel.set_xlabel("ids in all")
        panel.set_ylabel(what)
        panel.spines[["top", "right"]].set_visible(False)
    seconds = [trial.seconds for trial in found if trial.seconds]
    if seconds:  # whole decades, so that there is something to read them by
        times.set_ylim(
            *(10.0 ** edge(math.log10(of(seconds))) for edge, of in ((math.floor, min), (math.ceil, max)))
        )
    values, columns = checks.number(found.n_values, "value"), checks.number(found.n_columns, "column")
    figure.suptitle(f"{values} in {columns}, {found.total:.4g} nats per row")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependency("a plot needs matplotlib: pip install 'vocabfold[report]'") from error
    return matplotlib
