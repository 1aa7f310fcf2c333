"""Summary -> Vega-Lite specifications, for the page and for pictures.

Data that the script of the page replaces has a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vocabfold.evaluation.chart import panel
from vocabfold.evaluation.results import MUCH_DRIFT
from vocabfold.report.findings import FIGURES, most_informative
from vocabfold.support.palette import CSS, LIGHT, framed

Json = dict[str, Any]

MOST_BARS = 40  # columns in a plot; the tables have all
_SERIES = {fact: FIGURES[fact] for fact in ("information", "gain", "held_out")}
_COLOURS = {"information": "kept", "gain": "gain", "held_out": "held_out"}
_DASHES = {"information": [2, 2], "gain": [7, 3], "held_out": [1, 0]}  # legible without colours


def plots(summary: Json, colours: Mapping[str, str] = CSS) -> dict[str, Json]:
    """Return the specification of each plot that there are figures for."""
    found = {"columns": _ids_of_columns(summary, colours), "information": _points(summary["columns"], colours)}
    found["strip"] = _strip(summary["ids"][most_informative(summary)])
    if summary["budgets"]:
        found["budgets"] = _budgets(summary["budgets"], colours)
    if summary["trust"]:
        found["trust"] = _trust(summary["trust"], colours)
        found["calibration"] = _calibration(summary["trust"], colours)
        found["drift"] = _drift(summary["trust"], colours)
    if summary["comparison"] and any(trial["lost"] is not None for trial in summary["comparison"]["trials"]):
        trials, own = summary["comparison"]["trials"], summary["comparison"]["own"]
        found["comparison"] = panel(trials, "lost", colours, own) | {"height": 320}
    return {name: framed({"width": "container"} | spec, colours) for name, spec in found.items()}


def pictures(summary: Json, titles: Mapping[str, str]) -> dict[str, Json]:
    """Return the plots as pictures: with a title, a width and a white background."""
    specs = plots(summary, LIGHT)
    if "budgets" in specs:
        specs["budgets"]["layer"].pop()  # the position of the slider
    return {
        name: spec | {"width": 620, "background": "white", "title": {"text": titles[name], "anchor": "start"}}
        for name, spec in specs.items()
    }


def series(budgets: Json) -> list[str]:
    """Return the figures that every budget has."""
    return [fact for fact in _SERIES if budgets[fact][0] is not None]


def _scale(colours: Mapping[str, str], names: Mapping[str, str]) -> Json:
    """Return the colour scale of several series; `names` maps each to the name of its colour."""
    return {"domain": list(names), "range": [colours[colour] for colour in names.values()]}


def _budgets(budgets: Json, colours: Mapping[str, str]) -> Json:
    facts = series(budgets)
    rows = [
        {"budget": budget, "series": _SERIES[fact], "nats": figure}
        for fact in facts
        for budget, figure in zip(budgets["budget"], budgets[fact], strict=True)
    ]
    chosen = budgets["budget"][budgets["chosen"]]
    x = {
        "field": "budget",
        "type": "quantitative",
        "title": "budget (ids in total)",
        "scale": {"type": "log", "nice": False},
        "axis": {"format": "~s", "tickCount": 6},
    }
    names = {_SERIES[fact]: _COLOURS[fact] for fact in facts}
    colour = {"field": "series", "type": "nominal", "scale": _scale(colours, names)}
    dash = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(names), "range": [_DASHES[fact] for fact in facts]},
    }
    tip = [
        {"field": "budget", "format": ","},
        {"field": "series", "title": "figure"},
        {"field": "nats", "title": "nats/row", "format": ".4~g"},
    ]
    y = {"field": "nats", "type": "quantitative", "title": "nats/row"}
    return {
        "height": 300,
        "layer": [
            {
                "data": {"name": "curve", "values": rows},
                "mark": {"type": "line", "strokeWidth": 2.5, "clip": True},
                "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
            },
            {
                "data": {"name": "points", "values": rows},
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0},
                "encoding": {"x": x, "y": y, "tooltip": tip},
            },
            {
                "data": {"name": "chosen", "values": [{"budget": chosen, "text": name_of_chosen(budgets)}]},
                "layer": [
                    {"mark": {"type": "rule", "strokeDash": [5, 4], "stroke": colours["ink"]}},
                    {
                        "mark": {
                            "type": "text",
                            "align": "right" if _is_right(budgets) else "left",
                            "dx": -5 if _is_right(budgets) else 5,
                            "baseline": "top",
                            "fill": colours["ink"],
                        },
                        "encoding": {"text": {"field": "text"}, "y": {"value": 2}},
                    },
                ],
                "encoding": {"x": x},
            },
            {
                "data": {"name": "at", "values": [{"budget": chosen}]},
                "mark": {"type": "rule", "strokeWidth": 2, "stroke": colours["mark"], "opacity": 0.8},
                "encoding": {"x": x},
            },
        ],
    }


def name_of_chosen(budgets: Json) -> str:
    """Return the label of the codebook's own budget."""
    chosen = f"codebook: {budgets['budget'][budgets['chosen']]:,}"
    return f"{chosen} (auto)" if budgets["is_auto"] else chosen


def _is_right(budgets: Json) -> bool:
    """Tell whether the chosen budget is in the right half of a logarithmic axis."""
    first, last = budgets["budget"][0], budgets["budget"][-1]
    return bool(budgets["budget"][budgets["chosen"]] ** 2 > first * last)


def _by_column(rows: list[Json], names: list[str]) -> tuple[Json, Json]:
    """Return the start of a plot with one line per column, and the axis of columns."""
    axis = {"ticks": False, "offset": 6, "domain": False}
    y = {"field": "column", "type": "nominal", "sort": names, "title": None, "axis": axis}
    return {"data": {"values": rows}, "height": 20 * len(names) + 4}, y


def _ids_of_columns(summary: Json, colours: Mapping[str, str]) -> Json:
    columns = sorted(summary["columns"], key=lambda column: -column["size"])[:MOST_BARS]
    kinds = {"dedicated": "dedicated", "shared": "shared_ids", "other": "other"}
    rows = []
    for column in columns:
        left = column["size"] - column["n_dedicated"] - column["n_shared"]
        sizes = dict(zip(kinds, (column["n_dedicated"], column["n_shared"], left), strict=True))
        rows += [
            {"column": column["name"], "kind": kind, "ids": n, "place": place}
            for place, (kind, n) in enumerate(sizes.items())
            if n
        ]
    spec, y = _by_column(rows, [column["name"] for column in columns])
    spec["mark"] = {"type": "bar"}
    spec["encoding"] = {
        "y": y,
        "x": {"field": "ids", "type": "quantitative", "title": "ids"},
        "color": {"field": "kind", "type": "nominal", "scale": _scale(colours, kinds)},
        "order": {"field": "place"},
        "tooltip": [{"field": "column"}, {"field": "kind"}, {"field": "ids", "format": ","}],
    }
    return spec


def _points(columns: list[Json], colours: Mapping[str, str]) -> Json:
    """Plot the figures of every column, with two standard errors around the test gain."""
    there = [fact for fact in _SERIES if columns[0][fact] is not None]
    ranked = sorted(columns, key=lambda column: -column[there[-1]])[:MOST_BARS]
    rows = [
        {"column": column["name"], "series": _SERIES[fact], "nats": column[fact]}
        for column in ranked
        for fact in there
    ]
    spec, y = _by_column(rows, [column["name"] for column in ranked])
    y["axis"]["grid"] = True
    names = {_SERIES[fact]: _COLOURS[fact] for fact in there}
    points = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            "x": {"field": "nats", "type": "quantitative", "title": "nats/row"},
            "y": y,
            "color": {"field": "series", "type": "nominal", "scale": _scale(colours, names)},
            "shape": {"field": "series", "scale": {"domain": list(names)}},
            "tooltip": [
                {"field": "column"},
                {"field": "series", "title": "figure"},
                {"field": "nats", "format": ".3~g", "title": "nats/row"},
            ],
        },
    }
    if "error" not in columns[0]:
        return spec | points
    around = [
        {
            "column": column["name"],
            "low": column["held_out"] - 2 * column["error"],
            "high": column["held_out"] + 2 * column["error"],
        }
        for column in ranked
    ]
    errors = {
        "data": {"values": around},
        "mark": {"type": "rule", "strokeWidth": 2, "stroke": colours["held_out"]},
        "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}, "y": y},
    }
    return spec | {"layer": [errors, points]}


def _strip(ids: Json) -> Json:
    return {
        "height": 70,
        "data": {"name": "strip", "values": _strip_rows(ids)},
        "layer": [
            {
                "mark": {"type": "rect", "cursor": "pointer"},
                "encoding": {
                    "x": {
                        "field": "start",
                        "type": "quantitative",
                        "title": "training rows, by rising rate of their id",
                        "axis": {"format": ".0%", "grid": False},
                        "scale": {"domain": [0, 1], "nice": False},
                    },
                    "x2": {"field": "end"},
                    "color": {
                        "field": "rate",
                        "type": "quantitative",
                        "scale": {"scheme": "viridis"},
                        "legend": {"title": "rate", "format": ".3~%", "gradientLength": 200, "orient": "top"},
                    },
                    "tooltip": [
                        {"field": "name", "title": "id"},
                        {"field": "rate", "format": ".3%"},
                        {"field": "rows", "format": ",.0f"},
                        {"field": "values", "format": ","},
                    ],
                },
            },
            {
                "data": {"name": "picked", "values": [{"start": 0, "end": 0}]},
                "mark": {"type": "rect", "fillOpacity": 0, "stroke": "#e4002b", "strokeWidth": 3},
                "encoding": {"x": {"field": "start", "type": "quantitative"}, "x2": {"field": "end"}},
            },
        ],
    }


def _strip_rows(ids: Json) -> list[Json]:
    """Return the segments of a column, each with its position among all rows."""
    segments, rows, end = ids["segments"], [], 0.0
    total = sum(segments["rows"]) or 1
    for i, n in enumerate(segments["rows"]):
        first, last = segments["id"][i], segments["last"][i]
        start, end = end, end + n / total
        rows.append(
            {
                "i": i,
                "name": f"{first}"
                if segments["n_ids"][i] == 1
                else f"{segments['n_ids'][i]:,} ids from {first} to {last}",
                "start": start,
                "end": end,
                "rate": segments["rate"][i],
                "rows": n,
                "values": segments["n_values"][i],
            }
        )
    return rows


def _trust(trust: Json, colours: Mapping[str, str]) -> Json:
    columns = [
        column | {"information": column["kept"], "gain": column["out_of_fold"], "held_out": column["gain"]}
        for column in trust["columns"]
    ]
    return _points(columns, colours)


def _calibration_rows(calibration: Json) -> list[Json]:
    """Return the bins of a calibration."""
    return [dict(zip(calibration, figures, strict=True)) for figures in zip(*calibration.values(), strict=True)]


def _calibration(trust: Json, colours: Mapping[str, str]) -> Json:
    of_rates = {"type": "quantitative", "axis": {"format": ".3~%"}, "scale": {"zero": False}}
    x = of_rates | {"field": "rate_at_fit", "title": "rate of the ids at fit"}
    y = of_rates | {"field": "rate", "title": "rate on held-out rows"}
    return {
        "height": 300,
        "data": {"name": "bins", "values": _calibration_rows(trust["calibration"])},
        "layer": [
            {
                "mark": {"type": "line", "stroke": colours["kept"], "strokeDash": [4, 4]},
                "encoding": {"x": x, "y": y | {"field": "rate_at_fit"}},
            },
            {
                "mark": {"type": "rule", "stroke": colours["held_out"], "strokeWidth": 2},
                "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 70,
                    "fill": colours["held_out"],
                    "opacity": 1,
                },
                "encoding": {
                    "x": x,
                    "y": y,
                    "tooltip": [
                        {"field": "rate_at_fit", "title": "at fit", "format": ".2%"},
                        {"field": "rate", "title": "now", "format": ".2%"},
                        {"field": "low", "title": "from", "format": ".2%"},
                        {"field": "high", "title": "to", "format": ".2%"},
                        {"field": "rows", "format": ",.0f"},
                        {"field": "n_ids", "title": "ids", "format": ","},
                    ],
                },
            },
        ],
    }


def _drift(trust: Json, colours: Mapping[str, str]) -> Json:
    columns = sorted(trust["columns"], key=lambda column: -column["drift"])[:MOST_BARS]
    rows = [{"column": column["name"], "drift": column["drift"]} for column in columns]
    spec, y = _by_column(rows, [column["name"] for column in columns])
    bars = {
        "mark": {"type": "bar", "fill": colours["held_out"]},
        "encoding": {
            "x": {"field": "drift", "type": "quantitative", "title": "population stability index of the ids"},
            "y": y,
            "tooltip": [{"field": "column"}, {"field": "drift", "format": ".3~g"}],
        },
    }
    much = {
        "mark": {"type": "rule", "stroke": colours["mark"], "strokeDash": [4, 4]},
        "encoding": {"x": {"datum": MUCH_DRIFT}},
    }
    return spec | {"layer": [bars, much]}
