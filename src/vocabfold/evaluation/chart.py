"""Comparison -> Vega-Lite specification -> picture: legible without colours, the same for the same figures.

The report page shows the first panel. A method has a colour and a shape, an allocation a dash and a fill.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabfold.errors import InputError, printable
from vocabfold.io.rows.writing import check_place, place, replacing
from vocabfold.support import checks, vega
from vocabfold.support.palette import LIGHT, framed

if TYPE_CHECKING:
    from vocabfold.evaluation.comparison import Comparison, Trial

Json = dict[str, Any]

FORMATS = (".svg", ".png", ".pdf")
TITLES = {"lost": "share of information lost", "seconds": "seconds"}  # of the panels
_COLOURS = (
    *("#0b6bcb", "#c4661f", "#2e8b57", "#8e44ad", "#b3261e", "#7a8794"),
    *("#d4a017", "#1aa6a6", "#d16ba5", "#5c4033", "#3f51b5"),
)
_SHAPES = (
    *("circle", "square", "triangle-up", "triangle-down", "diamond", "cross"),
    "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z",  # a diagonal cross
    *("triangle-left", "triangle-right"),
    "M0,-1L.29,-.4L.95,-.31L.48,.15L.59,.81L0,.5L-.59,.81L-.48,.15L-.95,-.31L-.29,-.4Z",  # a star
    "M0,-1L.87,-.5L.87,.5L0,1L-.87,.5L-.87,-.5Z",  # a hexagon
)
_DASHES = {"joint": [1, 0], "uniform": [6, 4], "information": [2, 3]}
_MOST_TICKS = 8
_FEW_DECADES = 2  # decades with ticks between them
_LEAST, _MOST_DECADES = 1e-300, 300  # smaller figures are drawn as 0; the range of a logarithmic axis
_WIDTH, _HEIGHT, _LINE = 380, 320, 18  # of a panel, and of a name in the legend
_LONGEST = 60  # characters of a name


def check_plot(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Refuse a plot that cannot be drawn or written, before anything is computed."""
    file = place(path or ".")
    if file.suffix.lower() not in FORMATS:
        name = str(path) or "the name"
        raise InputError(f"{name} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]} to be a plot.")
    check_place(file, file, overwrite=overwrite)
    vega.check_library()
    return file


def plot_comparison(found: Comparison, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Plot the share of information lost and the seconds against the budget, with a line per method."""
    file = check_plot(path, overwrite=overwrite)
    if found.is_empty:
        raise InputError("no method finished, so there is nothing to plot.")
    svg = vega.as_svg(specification(found))
    draw: dict[str, Callable[[str], bytes]] = {".svg": str.encode, ".png": vega.as_png, ".pdf": vega.as_pdf}
    with replacing(file, overwrite=overwrite) as partial:
        partial.write_bytes(draw[file.suffix.lower()](svg))


def specification(found: Comparison) -> Json:
    """Return both panels side by side, as in a file."""
    trials = [_facts(found, trial) for trial in found]
    n_names = len({trial["name"] for trial in trials})
    size = {"width": _WIDTH, "height": max(_HEIGHT, _LINE * n_names)}
    values, columns = checks.number(found.n_values, "value"), checks.number(found.n_columns, "column")
    title = f"{values} in {columns}, {found.total:.4g} nats per row"
    spec: Json = {
        "hconcat": [size | panel(trials, fact, LIGHT) for fact in TITLES],
        "spacing": 30,
        "padding": 14,
        "title": {"text": title, "anchor": "start", "offset": 16},
        "background": "white",
    }
    spec = framed(spec, LIGHT)
    spec["config"]["legend"] |= {"orient": "right", "columns": 1, "offset": 24}
    spec["config"]["title"]["fontWeight"] = "normal"  # the order of two fonts in a PDF is not determined
    return spec


def _facts(found: Comparison, trial: Trial) -> Json:
    """Return the figures of a trial as JSON can represent them."""
    texts = {fact: printable(getattr(trial, fact)[:_LONGEST]) for fact in ("name", "method", "allocation")}
    figures = {"seconds": trial.seconds, "lost": found.lost(trial), "times_optimum": found.times_optimum(trial)}
    finite = {
        fact: None if figure is None or not math.isfinite(figure) else figure
        for fact, figure in figures.items()
    }
    return texts | {"budget": trial.budget} | finite


def panel(trials: Sequence[Json], fact: str, colours: Mapping[str, str], own: Json | None = None) -> Json:
    """Plot one figure of every trial against its budget, and that of the codebook if it is given."""
    done = [trial for trial in trials if trial["lost"] is not None and trial[fact] is not None]
    marked = [] if own is None else [own | {"text": "this codebook"}]
    x = _budgets({trial["budget"] for trial in [*trials, *marked]})
    y, zero = _heights([trial[fact] for trial in [*done, *marked]], TITLES[fact])
    layers: list[Json] = [{"layer": _lines(trials, done, fact, zero, colours), "encoding": {"x": x, "y": y}}]
    if any(trial[fact] < _LEAST for trial in [*done, *marked]):
        line = {"mark": {"type": "rule", "stroke": colours["kept"]}, "encoding": {"y": {"datum": zero}}}
        layers.insert(0, {"data": {"values": [{}]}} | line)
    if own is not None:
        rows = [one | {"height": max(one[fact], zero)} for one in marked]
        layers.append(_mark(rows, colours) | {"encoding": {"x": x, "y": y}})
    return {"layer": layers}


def _lines(
    trials: Sequence[Json], done: Sequence[Json], fact: str, zero: float, colours: Mapping[str, str]
) -> list[Json]:
    """Return a line and points for each name; a name without figures appears in the legend only."""
    methods = list(dict.fromkeys(trial["method"] for trial in trials))
    kinds = {trial["name"]: (methods.index(trial["method"]), trial["allocation"]) for trial in trials}
    there = {trial["name"] for trial in done}
    domain = [name if name in there else f"{name}: no figures" for name in kinds]

    def by_name(looks: list[Any]) -> Json:
        scale = {"type": "ordinal", "domain": domain, "range": looks}
        return {"field": "name", "type": "nominal", "scale": scale}

    facts = ("name", "allocation", "budget", "lost", "seconds", "times_optimum")
    rows = [{name: trial[name] for name in facts} | {"height": max(trial[fact], zero)} for trial in done]
    palette = [_COLOURS[i % len(_COLOURS)] for i, _ in kinds.values()]
    colour = by_name(palette)
    dashes = {"domain": list(_DASHES), "range": list(_DASHES.values())}
    dash = {"field": "allocation", "type": "nominal", "scale": dashes, "legend": None}
    shape = by_name([_SHAPES[i % len(_SHAPES)] for i, _ in kinds.values()])
    filling = {"uniform": "transparent", "information": colours["faint"]}
    fill = by_name([filling.get(kinds[name][1], own) for name, own in zip(kinds, palette, strict=True)])
    tip = [
        {"field": "name", "title": "method"},
        {"field": "budget", "format": ",d"},
        {"field": "lost", "format": ".3~g"},
        {"field": "times_optimum", "title": "× optimum", "format": ".4~g"},
        {"field": "seconds", "format": ".3~g"},
    ]
    data = {"values": rows[::-1]}  # the first method is drawn last, on top
    return [
        {
            "data": data,
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"stroke": colour, "strokeDash": dash},
        },
        {
            "data": data,
            "mark": {"type": "point", "size": 70, "strokeWidth": 1.5, "opacity": 1},
            "encoding": {"stroke": colour, "fill": fill, "shape": shape, "tooltip": tip},
        },
    ]


def _mark(rows: list[Json], colours: Mapping[str, str]) -> Json:
    cross = {"type": "point", "shape": "cross", "size": 180, "filled": True, "fill": colours["ink"]}
    tip = [{"field": "text"}, {"field": "lost", "format": ".3~g"}]
    return {
        "data": {"values": rows},
        "layer": [
            {"mark": cross, "encoding": {"tooltip": tip}},
            {
                "mark": {"type": "text", "dy": 16, "fill": colours["ink"]},
                "encoding": {"text": {"field": "text"}},
            },
        ],
    }


def _budgets(budgets: Collection[int]) -> Json:
    """Return the axis of budgets, with a tick for those that were tried."""
    tried = sorted(budgets)
    margin = (tried[-1] / tried[0]) ** 0.04 if len(tried) > 1 else 2.0
    shown = tried[:: math.ceil(len(tried) / _MOST_TICKS)]
    return {
        "field": "budget",
        "type": "quantitative",
        "title": "budget (ids in total)",
        "scale": {"type": "log", "nice": False, "domain": [tried[0] / margin, tried[-1] * margin]},
        "axis": {"values": shown, "format": ",d", "grid": False, "labelOverlap": "greedy"},
    }


def _heights(figures: Sequence[float], title: str) -> tuple[Json, float]:
    """Return an axis of whole decades, and where to draw 0, which a logarithmic axis lacks."""
    there = [math.log10(figure) for figure in figures if figure >= _LEAST]
    last = min(math.ceil(max(there, default=0)), _MOST_DECADES)
    first = min(math.floor(min(there, default=0)), last - 1)
    zero = 10.0 ** (first - 1)
    has_zero = len(there) < len(figures)
    marked = range(last, first - 1, -math.ceil((last - first) / _MOST_TICKS))
    ticks = [10.0**decade for decade in marked]
    if last - first <= _FEW_DECADES:
        ticks += [digit * 10.0**decade for decade in range(first, last) for digit in (2, 5)]
    label = "datum.value < 1e-4 ? format(datum.value, '~e') : format(datum.value, ',~g')"
    axis = {
        "field": "height",
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "nice": False, "domain": [zero if has_zero else 10.0**first, 10.0**last]},
        "axis": {
            "values": [*([zero] if has_zero else []), *sorted(ticks)],
            "grid": True,
            "labelExpr": f"datum.value < {2 * zero!r} ? '0' : {label}",
        },
    }
    return axis, zero
