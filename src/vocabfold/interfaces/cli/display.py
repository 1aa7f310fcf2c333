"""Results -> the output of the command line: aligned tables for people, or JSON for programs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vocabfold.codebook.codebook import Codebook, grouped
from vocabfold.counts.counts import Counts
from vocabfold.errors import InputError, printable
from vocabfold.fitting.advice import cannot_be_spent
from vocabfold.folding.printing import share_kept, shown_gap
from vocabfold.io.engines.kinds import KINDS, from_text
from vocabfold.support.checks import number, shown_rows
from vocabfold.support.wording import aligned

if TYPE_CHECKING:  # printing alone does not load these steps
    from vocabfold.encoding.files import Transformed
    from vocabfold.evaluation.comparison import Comparison
    from vocabfold.evaluation.results import Evaluation

_MAX_NAMED = 20  # columns in a note
_MAX_WIDTH = 60  # characters of a cell
_TEXTS = ("column", "kind", "examples", "method", "allocation", "note")  # heads of columns without numbers


def line(text: str) -> None:
    """Print a line of a result; escape characters that the terminal lacks, and ignore a closed pipe."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)  # noqa: T201
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table: texts to the left, numbers to the right."""
    for text in aligned(heads, rows, _TEXTS):
        line(text)


def shown(text: str) -> str:
    """Make a name or value safe for a terminal: one line, not too long, control characters escaped."""
    plain = printable(text)
    return plain if len(plain) <= _MAX_WIDTH else plain[: _MAX_WIDTH - 1] + "…"


def machine(result: dict[str, Any]) -> None:
    """Print JSON; escape characters that a terminal would obey."""
    is_ascii = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(_in_json(result), indent=2, ensure_ascii=is_ascii, allow_nan=False, default=str)
    line("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def left_out(names: Sequence[str]) -> None:
    """Say which columns were not folded because they are not text and were not named."""
    if names:
        listed = ", ".join(shown(name) for name in names[:_MAX_NAMED]) + ", ..." * (len(names) > _MAX_NAMED)
        sys.stderr.write(
            f"note: columns that are not text were left out: {listed} (--also NAME,... adds numbers and "
            "dates, but no lists)\n"
        )


def counts(path: str, counted: Counts, as_json: bool) -> None:
    """Print the counts of rows and of the values of each column."""
    n_values = counted.n_values
    if as_json:
        columns = {name: {"kind": kind, "values": n_values[name]} for name, kind in counted.kinds.items()}
        about = {"label": counted.label, "positive": counted.positive, "folds": counted.folds}
        rows = {"rows": counted.rows, "positive_rows": counted.positive_rows}
        machine({"counts": path, **rows, **about, "columns": columns})
        return
    table(
        ["column", "kind", "values"],
        [[shown(name), kind, f"{n_values[name]:,}"] for name, kind in counted.kinds.items()],
    )
    share = f"{100 * counted.positive_rows / counted.rows:.1f} % with {counted.label} = {counted.positive}"
    n_rows = shown_rows(counted.rows, counted.n_rows)
    line(f"\nwrote the counts of {n_rows} ({shown(share)}) to {printable(path)}")


def book(path: str, found: Codebook, as_json: bool, written: Transformed | None = None) -> None:
    """Print what a codebook keeps, by column and in total, and which training rows were encoded."""
    left_out(found.left_out)
    if as_json:
        paths = {} if written is None else {"train_out": [str(file) for file in written.paths]}
        machine({"codebook": path, **_facts(found), **paths})
        return
    is_model = found.settings["aim"] == "model"
    heads: dict[str, Callable[[Any], str]] = {"values": lambda column: f"{column.n_values:,}"}
    if found.n_rare:
        heads["rare"] = lambda column: f"{column.n_rare:,}"
    if is_model or found.n_dedicated:
        heads["dedicated"] = lambda column: f"{column.n_dedicated:,}"
    if not is_model:
        heads["rates"] = lambda column: f"{column.n_rates:,}"
    heads |= {
        "ids": lambda column: f"{column.size:,}",
        "train MI": lambda column: f"{column.information:.4g}",
        "kept": share_kept,
    }
    if not is_model:
        heads["loss"] = lambda column: f"{column.loss:.2g}"
    if found.gain is not None:
        heads["CV gain"] = lambda column: f"{column.gain:.4g}"
    results: list[tuple[str, Any]] = [*found.columns.items(), ("all", found)]
    table(
        ["column", *heads],
        [[shown(name), *(cell(column) for cell in heads.values())] for name, column in results],
    )
    gap = "" if found.gap is None else f", gap {shown_gap(found)}{_times_optimum(found)}"
    kept = f"{share_kept(found)} of {found.total:.4g} nats/row kept{gap}"
    line(f"\n{found.size:,} of {number(found.budget, 'id')} used{_unused(found)}, {kept}")
    if found.settings["dedicated_from"] is not None and found.n_dedicated:
        rows = number(found.settings["dedicated_from"], "row")
        line(f"values with at least {rows} have dedicated ids")
    for text in grouped(found):
        line(text)
    _few_rows(found)
    label = shown(f"{found.label} = {found.positive}")
    method = "" if found.settings["method"] == "exact" else f", method {found.settings['method']}"
    line(f"{printable(path)}: fitted on {shown_rows(found.rows, found.n_rows)}, label {label}{method}")
    if written is not None:
        is_leaking = found.settings["method"] == "selection"  # it chooses values by their labels
        line(_written(written) + ("" if is_leaking else " (encoded out of fold)"))
    line(f"digest {found.digest}")


def _few_rows(found: Codebook) -> None:
    """Name the ids that few training rows have, and the columns whose unseen values have no id of their own."""
    if found.settings["aim"] != "model" or found.gain is None:
        return
    least = found.settings["dedicated_min"]
    for name, column in found.columns.items():
        few = [(id, rows) for id, rows in enumerate(column.training_rows) if rows < least]
        if few:
            ids = ", ".join(f"{id} ({rows:,})" for id, rows in few[:_MAX_NAMED]) + ", ..." * (
                len(few) > _MAX_NAMED
            )
            line(f"ids of {shown(name)} with fewer than {number(least, 'training row')}: {ids}")
    joined = [name for name, column in found.columns.items() if not column.is_other_trained]
    if joined and found.settings["unseen"] == "own":
        names = ", ".join(map(shown, joined[:_MAX_NAMED])) + ", ..." * (len(joined) > _MAX_NAMED)
        line(f"too few training rows for an id of unseen values, which share another: {names}")


def _times_optimum(found: Codebook) -> str:
    """Return the loss relative to the optimal loss, if that is known and noticeably larger."""
    is_plain = not found.n_rare and found.settings["smoothing"] == 0
    optimum = found.loss - (found.gap or 0.0)
    if not is_plain or optimum <= 0 or found.loss < 1.001 * optimum:
        return ""
    times = found.loss / optimum
    return f" (loss {times:,.0f} × optimum)" if times >= 100 else f" (loss {times:.3g} × optimum)"


def _unused(found: Codebook) -> str:
    """Say why ids are unused, if no warning did."""
    if found.size >= found.budget or cannot_be_spent(found):
        return ""
    if found.settings["aim"] == "information":
        is_best = found.settings["method"] in ("exact", "dynamic") or shown_gap(found) == "0"
        return " (more would not help)" if is_best else " (the method did not make more)"
    least, option = max((found.settings[name], name) for name in ("dedicated_min", "min_count"))
    if found.settings["dedicated_from"] == least:
        other = " other" if found.n_dedicated else ""
        return f" (no{other} value has {number(least, 'row')}: lower --{option.replace('_', '-')})"
    return " (the shared ids need no more, or the next values, tied in rows, do not all fit)"


def _written(written: Transformed) -> str:
    more = f" and {len(written.paths) - 1:,} more" if len(written.paths) > 1 else ""
    return f"wrote {number(written.rows, 'row')} to {printable(str(written.paths[0]))}{more}"


def evaluation(found: Evaluation, fail_below: float | None, as_json: bool) -> bool:
    """Print an evaluation, by column and in total; return whether the check passed."""
    problem = ""
    if fail_below is not None and found.is_fitted:
        problem = "the rows look like the training data, which cannot show whether the codebook generalises"
    elif fail_below is not None and not found.gain >= fail_below:
        problem = f"the test gain of {found.gain:.4g} nats/row is below {fail_below:.4g}"
    names = ("kept", "out_of_fold", "information", "gain")
    if as_json:
        columns = {
            name: {key: fact for key, fact in vars(column).items() if key != "ids"}
            | {"calibration": column.ids.to_pylist()}
            for name, column in found.items()
        }
        about = {name: getattr(found, name) for name in ("rows", "rate", "rate_at_fit", *names)}
        verdict = {"passed": not problem, "problem": problem or None, "is_fitted": found.is_fitted}
        machine({**verdict, **about, "warnings": found.warnings, "columns": columns})
        return not problem
    has_folds = found.out_of_fold is not None
    heads = ["column", "train MI", *(["CV gain"] if has_folds else []), "test MI", "test gain", "±"]
    heads += ["unseen", "infrequent", "missing", "drift", "miscalibrated"]
    rows = [
        [
            shown(name),
            f"{column.kept:.4g}",
            *([f"{column.out_of_fold:.4g}"] if has_folds else []),
            f"{column.information:.4g}",
            f"{column.gain:.4g}",
            f"{column.error:.1g}",
            *(f"{100 * share:.1f} %" for share in (column.unseen, column.infrequent, column.missing)),
            f"{column.drift:.2f}",
            f"{column.n_miscalibrated:,} of {len(column.ids):,}",
        ]
        for name, column in found.items()
    ]
    figures = [f"{getattr(found, name):.4g}" for name in names if getattr(found, name) is not None]
    rows.append(["all", *figures, *[""] * (len(heads) - len(figures) - 1)])
    table(heads, rows)
    rates = f"{100 * found.rate:.1f} % positive ({100 * found.rate_at_fit:.1f} % at fit)"
    line(f"\n{shown_rows(found.rows, found.n_rows)}, {rates}; MI and gain in nats/row, summed in the last line")
    for text in found.warnings:
        sys.stderr.write(f"warning: {printable(text)}\n")
    if problem:
        sys.stderr.write(f"failed: {problem}.\n")
    return not problem


def comparison(found: Comparison, plot: str | None, as_json: bool) -> None:
    """Print the loss and the time of every method."""
    if as_json:
        about = {name: getattr(found, name) for name in ("n_columns", "n_values", "total")}
        machine(about | {"trials": found.to_arrow().to_pylist(), "plot": plot})
        return
    table(*found.cells())
    values = f"{number(found.n_values, 'value')} in {number(found.n_columns, 'column')}"
    zero = " (inf: that is 0)" if any(math.isinf(found.times_optimum(trial)) for trial in found) else ""
    line(f"\nlost: share of the mutual information lost ({found.total:.4g} nats/row, {values})")
    line(f"× optimum: loss / smallest loss of any fold of that budget{zero}; gap: their difference in nats/row")
    line("seconds: one run of the method, without counting, sorting the rates or proving the gap")
    if plot is not None:
        line(f"wrote the plot to {printable(plot)}")


def report(path: str, pictures: str | None, summary: dict[str, Any], as_json: bool) -> None:
    """Print the main findings of a report, or all of its figures as JSON."""
    if as_json:
        machine({"report": path, "pictures": pictures, **summary})
        return
    from vocabfold.report.findings import findings

    found = findings(summary)
    for name in ("got", "budgets", "trust", "comparison"):
        if name in found:
            line(printable(f"{found[name]}."))
    for text in summary["trust"]["warnings"] if summary["trust"] else ():
        sys.stderr.write(f"warning: {printable(text)}\n")
    if pictures is not None:
        line(f"wrote the plots to {printable(pictures)}")
    line(f"wrote the report to {printable(path)} (open it in a browser)")


def transformed(written: Transformed, digest: str, as_json: bool) -> None:
    """Print what was written, and how many rows have unseen values."""
    for name, n_unseen in written.unseen.items():
        if n_unseen == written.rows > 0:
            sys.stderr.write(
                f"warning: no value of column {name!r} is in the codebook. Check that it is the same column.\n"
            )
    if as_json:
        paths = [str(path) for path in written.paths]
        machine({"paths": paths, "rows": written.rows, "unseen": written.unseen, "digest": digest})
        return
    unseen = [
        [shown(name), f"{n:,}", f"{100 * n / written.rows:.2f} %"] for name, n in written.unseen.items() if n
    ]
    if unseen:
        table(["column", "unseen rows", "share"], unseen)
        line("")
    line(_written(written))
    line(f"digest {digest}")


def ids(found: Codebook, name: str, limit: int, as_json: bool) -> None:
    """Print the ids of a column with their rates, rows and most frequent values."""
    groups, column = found.groups(name).to_pylist(), found.columns[name]
    if as_json:
        machine({"feature": name, **asdict(column), "ids": groups[:limit]})
        return
    trained, rows = column.training_rows, []
    # Out of fold, rows of infrequent values may have other ids.
    has_other_rows = bool(trained) and any(
        trained[group["id"]] != group["neg"] + group["pos"] for group in groups
    )
    for group in groups[:limit]:
        n_rows = group["neg"] + group["pos"]
        examples = ", ".join(shown(_text(value)) for value in group["examples"])
        more = ", ..." if group["n_values"] > len(group["examples"]) else ""
        rows.append(
            [
                f"{group['id']}",
                f"{column.rates[group['id']]:.4f}",
                f"{n_rows:,}",
                *([f"{trained[group['id']]:,}"] if has_other_rows else []),
                f"{group['n_values']:,}",
                examples + more,
            ]
        )
    of_rows = "rows" if found.n_rows in (None, found.rows) else "weight"
    table(["id", "rate", of_rows, *(["training"] if has_other_rows else []), "values", "examples"], rows)
    if len(groups) > limit:
        line(f"... and {number(len(groups) - limit, 'more id')} (--limit)")
    get = "are refused" if found.settings["unseen"] == "error" else f"get the id {column.other}"
    of_other = f" ({number(trained[column.other], 'training row')})" if trained else ""
    line(f"\nValues that are not in the codebook {get}{of_other}.")


def members(found: Codebook, name: str, id: int, limit: int, as_json: bool) -> None:
    """Print the values of an id, one per line, the most frequent first."""
    values = found.members(name, id, limit + 1)
    if as_json:
        machine({"feature": name, "id": id, "values": values[:limit], "is_all": len(values) <= limit})
        return
    for value in values[:limit]:
        line(shown(_text(value)))
    if len(values) > limit:
        sys.stderr.write("... and more (--limit)\n")
    if not values:
        line(f"No value in the codebook has the id {id}: it is for rare and unseen values.")


def value(found: Codebook, name: str, text: str | None, as_json: bool) -> None:
    """Print the id of a value; None is a missing one."""
    kind = found.column(name).kind
    try:
        wanted = None if text is None else from_text(kind, text)
        wanted = None if wanted != wanted else wanted  # NaN is missing
        id = int(found.index(name).find(pa.array([wanted], KINDS[kind].arrow))[0])
    except (ValueError, OverflowError, pa.ArrowException):
        raise InputError(f"column {name!r} has {kind} values, and {text!r} is not one.") from None
    is_known, is_refused = id >= 0, id < 0 and found.settings["unseen"] == "error"
    given = id if is_known else None if is_refused else found.columns[name].other
    if as_json:
        machine({"feature": name, "value": wanted, "id": given, "is_known": is_known})
        return
    note = "" if is_known else ", not in the codebook" + (" and refused" if is_refused else "")
    line(f"{shown(name)} {shown(_text(text))}: " + (f"id {given}" if given is not None else "no id") + note)


def _facts(found: Codebook) -> dict[str, Any]:
    """Return the figures and settings of a codebook, without its values."""
    columns = {
        name: {
            key: fact
            for key, fact in asdict(column).items()
            if key not in ("shared_ids", "borders", "rates", "training_rows")
        }
        for name, column in found.columns.items()
    }
    names = (
        "digest",
        "label",
        "positive",
        "rows",
        "size",
        "budget",
        "information",
        "total",
        "loss",
        "gap",
        "gain",
    )
    about = {name: getattr(found, name) for name in names}
    return about | {"settings": dict(found.settings), "offsets": found.offsets, "columns": columns}


def _in_json(value: Any) -> Any:
    """Replace numbers that JSON lacks by text."""
    if isinstance(value, dict):
        return {key: _in_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    return "(missing)" if value is None else str(value)
