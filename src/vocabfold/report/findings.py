"""Summary -> what it says in words: the title of each plot, which states what there is to see."""

from __future__ import annotations

from typing import Any

from vocabfold.checks import number

Json = dict[str, Any]
OF = {"held_out": "on held-out rows", "gain": "on rows of other folds", "information": "of the rows at fit"}


def findings(summary: Json) -> dict[str, str]:
    """Return a sentence for each section that has figures."""
    about = summary["about"]
    found = {
        "got": _got(about),
        "columns": _columns(summary),
        "information": _information(summary),
    }
    found["strip"] = _strip(summary["ids"][told_most(summary)])
    if summary["budgets"]:
        found["budgets"] = _budgets(summary["budgets"])
    if summary["trust"]:
        found |= _trust(summary["trust"])
    if summary["comparison"]:
        found["comparison"] = _comparison(summary["comparison"])
    return found


def _got(about: Json) -> str:
    values = number(about["n_values"] + about["n_pooled"], "value")
    became = f"{values} of {number(about['n_columns'], 'column')} became {number(about['size'], 'id')}"
    label = f"{about['label']} = {about['positive']}"
    for fact in ("held_out", "gain"):
        if about[fact] is not None:
            return f"{became}, which gain {about[fact]:.3g} bits per row about {label} {OF[fact]}"
    return f"{became}, which keep {percent(about['kept'])} of what the values tell about {label}"


def percent(share: float) -> str:
    """Return a share with so many digits that what is missing shows."""
    if share >= 1:
        return "100 %"
    return (
        f"{100 * share:.1f} %"
        if share < 0.999
        else f"{100 * share:.3f} %"
        if share < 0.99999
        else "nearly 100 %"
    )


def _columns(summary: Json) -> str:
    columns, size = summary["columns"], summary["about"]["size"]
    if len(columns) == 1:
        return f"{columns[0]['name']} has all {number(size, 'id')}"
    first = max(columns, key=lambda column: column["size"])
    private = summary["about"]["n_private"]
    of_own = f"; {percent(private / size)} of all ids stand for one value" if private else ""
    return f"{first['name']} gets the most ids, {first['size']:,} of {size:,}{of_own}"


def _information(summary: Json) -> str:
    fact = _best_fact(summary)
    first = summary["columns"][told_most(summary)]
    told = sum(max(0.0, column[fact]) for column in summary["columns"])
    share = f", {percent(first[fact] / told)} of the sum" if told > 0 and len(summary["columns"]) > 1 else ""
    return f"{first['name']} tells the most {OF[fact]}: {first[fact]:.3g} bits per row{share}"


def told_most(summary: Json) -> int:
    """Return the column that tells the most."""
    fact, columns = _best_fact(summary), summary["columns"]
    return max(range(len(columns)), key=lambda i: columns[i][fact])


def _strip(ids: Json) -> str:
    rates = ids["segments"]["rate"]
    span = f"{percent(min(rates))} to {percent(max(rates))}"
    return f"{ids['name']}: {number(ids['size'], 'id')}, with rates from {span}"


def _best_fact(summary: Json) -> str:
    """Return the most honest figure that there is."""
    return next(fact for fact in OF if summary["columns"][0][fact] is not None)


def _budgets(budgets: Json) -> str:
    by, enough, best, chosen = (budgets[name] for name in ("by", "enough", "best", "chosen"))
    figures = budgets[by]
    what = "information" if by == "information" else "gain"
    is_enough = f"{number(budgets['budget'][enough], 'id')} reach 99 % of the best {what} {OF[by]}"
    own = f"the codebook's {budgets['budget'][chosen]:,}"
    if figures[best] <= 0:
        return f"No budget gains anything {OF[by]}"
    if budgets["budget"][enough] == budgets["budget"][chosen]:
        return f"{is_enough}: just as many as the codebook has"
    return f"{is_enough}; {own} reach {percent(max(0.0, figures[chosen] / figures[best]))}"


def _trust(trust: Json) -> dict[str, str]:
    promised, what = trust["kept"], "what the ids tell about the rows at fit"
    if trust["out_of_fold"] is not None:
        promised, what = trust["out_of_fold"], "what the folds at fit promised"
    columns = trust["columns"]
    figures = f"{trust['gain']:.3g} against {promised:.3g} bits per row"
    share = max(0.0, trust["gain"]) / promised if promised > 0 else 0.0
    held = (
        f"{percent(share)} of {what} holds on the held-out rows: {figures}"
        if share <= 1
        else f"The held-out rows gain more than {what}: {figures}"
    )
    drifted = max(columns, key=lambda column: column["drift"])
    off = sum(abs(now - then) * n for now, then, n in zip(*_of(trust["calibration"]), strict=True))
    miss = off / sum(trust["calibration"]["rows"])
    few = sum(column["drift"] > 0.1 for column in columns)
    return {
        "trust": held,
        "calibration": f"The rates of the ids are off by {100 * miss:.2g} percentage points on average",
        "drift": f"{few} of {number(len(columns), 'column')} drifted noticeably (index above 0.1), "
        f"{drifted['name']} the most: {drifted['drift']:.2g}",
    }


def _of(calibration: Json) -> tuple[list[float], list[float], list[float]]:
    return calibration["rate"], calibration["rate_at_fit"], calibration["rows"]


def _comparison(comparison: Json) -> str:
    done = [trial for trial in comparison["trials"] if trial["lost"] is not None]
    if not done:
        return "No method came to its end"
    budget = max(trial["budget"] for trial in done)
    there = sorted((trial for trial in done if trial["budget"] == budget), key=lambda trial: trial["lost"])
    first, last = there[0], there[-1]
    if len(there) == 1:
        return f"At {budget:,} ids, {first['name']} loses {percent(first['lost'])}"
    return (
        f"At {budget:,} ids, {first['name']} loses {first['lost']:.2g} of the information, and {last['name']} "
        f"{last['lost']:.2g}"
    )
