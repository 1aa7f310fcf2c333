"""How a fold, a table of folds or a codebook prints: in lines, and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from vocabfold.errors import printable
from vocabfold.support.checks import number

_ROUNDING = 1e-15  # of the total: smaller losses are shown as nearly none
_ROUNDING_OF_BOUND = 1e-14  # of the total: smaller gaps are shown as 0
_MAX_SHOWN = 40  # columns in a repr
_BAR = 160  # pixels of the longest bar in a notebook

Result = Any  # a column, table or codebook: n_values, size, information, total, loss, gap


def summaries(noun: str, columns: Mapping[str, Result], whole: Result) -> str:
    """Describe several columns: a line for the whole, and one for each."""
    names = [str(name) for name in columns]
    width = max(map(len, names))
    lines = [
        f"{name:<{width}}  {summary(column)}" for name, column in zip(names, columns.values(), strict=True)
    ]
    if len(lines) > _MAX_SHOWN:
        lines[_MAX_SHOWN:] = [f"... and {number(len(lines) - _MAX_SHOWN, 'more column')}"]
    head = f"{noun}({number(len(columns), 'column')}, budget {whole.budget:,}: {summary(whole)})"
    return "\n  ".join([head, *lines])


def summary(result: Result) -> str:
    """Describe a result in one line."""
    # Only a codebook has rare values, dedicated ids and a cross-validated gain.
    n_rare, n_dedicated = getattr(result, "n_rare", 0), getattr(result, "n_dedicated", 0)
    values = number(result.n_values, "value") + (f" and {n_rare:,} rare" if n_rare else "")
    ids = number(result.size, "id") + (f", {n_dedicated:,} dedicated" if n_dedicated else "")
    gain = getattr(result, "gain", None)
    shown = [f"{share_kept(result)} of {result.total:.4g} nats kept", f"loss {result.loss:.2g}"]
    shown += [f"gap {shown_gap(result)}"] if result.gap is not None else []
    shown += [f"CV gain {gain:.4g}"] if gain is not None else []
    return f"{values} -> {ids}: {', '.join(shown)}"


def shown_gap(result: Result) -> str:
    """Return a gap as text: 0 if it is only rounding, nothing if there is none."""
    if result.gap is None:
        return ""
    return f"{0 if result.gap <= _ROUNDING_OF_BOUND * result.total else result.gap:.2g}"


def share_kept(result: Result) -> str:
    """Return the share of information kept, with enough digits to show the loss."""
    if result.loss == 0 or not result.total:
        return "100 %"
    lost = result.loss / result.total
    if lost < _ROUNDING:
        return "nearly 100 %"
    if lost > 1 - _ROUNDING:
        return "0 %"
    return f"{100 * (1 - lost):.{max(1, -math.floor(math.log10(lost)) - 1)}f} %"


def html_summary(noun: str, columns: Mapping[str, Result], whole: Result) -> str:
    """Describe a result in a notebook: a sentence, and a table with a row and a bar for each column."""
    heads = ["", "values", "ids", "kept", "MI (nats)", "loss (nats)"]
    heads += ["gap (nats)"] if whole.gap is not None else []
    has_gain = getattr(whole, "gain", None) is not None
    heads += ["CV gain (nats)"] if has_gain else []
    rows = [(escape(printable(str(name))), result) for name, result in columns.items()]
    most = max((result.size for _, result in rows), default=0)
    cells = [
        [
            name,
            f"{result.n_values + getattr(result, 'n_rare', 0):,}",
            f"{result.size:,}",
            share_kept(result),
            f"{result.information:.6g}",
            f"{result.loss:.2g}",
            *([shown_gap(result)] if whole.gap is not None else []),
            *([f"{result.gain:.4g}"] if has_gain else []),
            _bar(result, most) if result is not whole else "",
        ]
        for name, result in [*rows[:_MAX_SHOWN], ("<b>all</b>", whole)]
    ]
    if len(rows) > _MAX_SHOWN:
        cells.insert(
            _MAX_SHOWN, [f"... and {number(len(rows) - _MAX_SHOWN, 'more column')}", *[""] * len(heads)]
        )
    of_bars = "ids, dedicated ones dark" if getattr(whole, "n_dedicated", 0) else ""
    head = "".join(f"<th>{text}</th>" for text in [*heads, of_bars])
    body = "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in cells)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p><b>{noun}</b>: {escape(summary(whole))}</p>{table}"


def _bar(result: Result, most: int) -> str:
    """Return the ids of a column as a bar: dedicated ids dark, all others light."""
    n_dedicated = getattr(result, "n_dedicated", 0)
    parts = ((n_dedicated, "#0b6bcb"), (result.size - n_dedicated, "#8fbce6"))
    block = "display:inline-block;height:.8em"
    spans = (
        f'<span style="{block};width:{_BAR * n / most:.1f}px;background:{colour}"></span>'
        for n, colour in parts
    )
    return f'<span style="white-space:nowrap;display:block;text-align:left">{"".join(spans)}</span>'
