"""Vega-Lite specification -> picture. No other module depends on the library that draws."""

from __future__ import annotations

from functools import cache
from typing import Any

from vocabfold.errors import MissingDependency

_SCALE = 2  # pixels of a picture for each of its points


def check_library() -> None:
    """Refuse to begin without the library that draws."""
    _library()


def as_svg(spec: dict[str, Any]) -> str:
    """Return a plot as the text of an SVG file; its own texts remain texts."""
    return str(_library().vegalite_to_svg(spec))


def as_png(svg: str) -> bytes:
    """Return a drawn plot in pixels."""
    return bytes(_library().svg_to_png(svg, scale=_SCALE))


def as_pdf(svg: str) -> bytes:
    """Return a drawn plot as a page."""
    return bytes(_library().svg_to_pdf(svg))


@cache
def for_browser() -> str:
    """Return the script that draws in a page; two seconds the first time."""
    return str(_library().javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;"))


def _library() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependency.of("a plot", "vl-convert-python", "report") from error
    return vl_convert
