"""Colours and fonts that all plots share.

In a page, colours are CSS variables, so that one drawing serves light, dark and paper; in a picture they are
those of the light page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIGHT = {
    "ink": "#1c2733",
    "faint": "#d5dbe1",
    "kept": "#7a8794",
    "gain": "#c4661f",
    "held_out": "#0b6bcb",
    "mark": "#b3261e",
    "dedicated": "#0b6bcb",
    "shared_ids": "#8fbce6",
    "other": "#c9ced4",
}
CSS = {name: f"var(--{name.replace('_', '-')})" for name in LIGHT}


def framed(spec: dict[str, Any], colours: Mapping[str, str]) -> dict[str, Any]:
    """Add the configuration that all plots share."""
    axis = {
        "labelColor": colours["ink"],
        "titleColor": colours["ink"],
        "gridColor": colours["faint"],
        "domainColor": colours["faint"],
        "tickColor": colours["faint"],
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 130,
        "labelOverlap": True,
    }
    legend = {
        "labelColor": colours["ink"],
        "titleColor": colours["ink"],
        "labelFontSize": 12,
        "labelLimit": 300,
    }
    config = {
        "font": "system-ui, sans-serif",
        "axis": axis,
        "legend": legend | {"orient": "top", "title": None, "columns": 3},
        "view": {"stroke": None},
        "title": {"color": colours["ink"], "fontSize": 14, "fontWeight": "bold", "limit": 800},
    }
    return {"background": "transparent", "config": config} | spec
