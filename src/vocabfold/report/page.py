"""Summary -> one HTML file that needs nothing else: no network, no server, no fonts.

`page.html` is its text and order, `page.js` what moves: the slider of budgets, the search, the sorting.

Everything from data is escaped by the template engine, or stands in a block of JSON that the script only shows
as text. A policy in the page forbids loading anything, and running any script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from importlib.resources import files
from typing import Any

from vocabfold.errors import MissingDependency
from vocabfold.report.findings import FIGURES, findings, most_informative, percent
from vocabfold.report.plots import MOST_BARS, name_of_chosen, plots, series
from vocabfold.support import vega
from vocabfold.support.palette import LIGHT

_DIGITS = 9  # of numbers in the page

Json = dict[str, Any]


def check_libraries() -> None:
    """Refuse to start without the template engine and the drawing library."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingDependency.of("the report", "jinja2", "report") from error
    vega.check_library()


def page(summary: Json) -> str:
    """Return the page."""
    import jinja2

    of_package = jinja2.PackageLoader("vocabfold", "report")
    environment = jinja2.Environment(loader=of_package, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters |= {"whole": whole, "number": short, "percent": maybe_percent}
    library, script = vega.for_browser(), files("vocabfold.report").joinpath("page.js").read_text("utf-8")
    assert "</script" not in library + script
    found, specs = findings(summary), plots(summary)
    for name, spec in specs.items():
        spec["description"] = found[name]  # for screen readers
    return environment.get_template("page.html").render(
        summary,
        findings=found,
        facts=series(summary["budgets"]) if summary["budgets"] else [],
        figures=FIGURES,
        name_of_chosen=name_of_chosen,
        picked=most_informative(summary),
        most_bars=MOST_BARS,
        colours=LIGHT,
        style=files("vocabfold.report").joinpath("page.css").read_text("utf-8"),
        data=embedded({"summary": summary, "plots": specs}),
        library=library,
        script=script,
        hashes=[_hash(library), _hash(script)],
    )


def embedded(data: Any) -> str:
    """Return data as JSON that cannot end its HTML element."""
    text = json.dumps(_rounded(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def whole(number: float | None) -> str:
    """Format a number of rows, values or ids."""
    return "–" if number is None else f"{number:,.0f}"


def short(number: float | None) -> str:
    """Format a number with three digits, as the script of the page does."""
    if number is None:
        return "–"
    if abs(number) >= 999.5:
        return f"{number:,.0f}"
    return re.sub(r"e([+-])0", r"e\1", f"{number + 0.0:.3g}")


def maybe_percent(share: float | None) -> str:
    """Format a share; None is a dash."""
    return "–" if share is None else percent(share)


def _rounded(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_rounded(value) for value in data]
    if isinstance(data, float):
        if not math.isfinite(data):
            return None
        return int(data) if data.is_integer() and abs(data) < 2**53 else float(f"{data:.{_DIGITS}g}")
    return data


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
