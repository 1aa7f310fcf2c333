"""Summary -> its findings in words: the title of each plot states what the plot shows."""

from __future__ import annotations

from typing import Any

from vocabfold.support.checks import number

Json = dict[str, Any]
SOME_DRIFT = 0.1  # of the population stability index, that is worth a look
_MOST_NAMED = 8  # columns in a sentence
FIGURES = {"held_out": "test gain", "gain": "CV gain", "information": "train MI"}  # the most reliable one first


def findings(summary: Json) -> dict[str, str]:
    """Return a sentence for each section that has figures."""
    about = summary["about"]
    found = {
        "got": _got(about),
        "columns": _columns(summary),
        "information": _information(summary),
    }
    if idle := _idle(summary):
        found["idle"] = idle
    found["strip"] = _strip(summary["ids"][most_informative(summary)])
    if summary["budgets"]:
        found["budgets"] = _budgets(summary["budgets"])
    if summary["trust"]:
        found |= _trust(summary["trust"])
    if summary["comparison"]:
        found["comparison"] = _comparison(summary["comparison"])
    return found


def _got(about: Json) -> str:
    values = number(about["n_values"] + about["n_rare"], "value")
    became = f"{values} in {number(about['n_columns'], 'column')} became {number(about['size'], 'id')}"
    label = f"{about['label']} = {about['positive']}"
    for fact in ("held_out", "gain"):
        if about[fact] is not None:
            summed = ", summed over the columns" if about["n_columns"] > 1 else ""
            return f"{became}, with a {FIGURES[fact]} of {about[fact]:.3g} nats/row for {label}{summed}"
    return f"{became}, which keep {percent(about['kept'])} of the information about {label}"


def percent(share: float) -> str:
    """Format a share with enough digits to show both what there is and what is missing."""
    if share >= 1 or share <= 0:
        return f"{100 * share:.3g} %"
    if share < 0.01:
        return f"{100 * share:.2g} %"
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
        return f"{columns[0]['name']} has {'the only id' if size == 1 else f'all {size:,} ids'}"
    first = max(columns, key=lambda column: column["size"])
    n_dedicated = summary["about"]["n_dedicated"]
    dedicated = f"; {percent(n_dedicated / size)} of all ids are dedicated" if n_dedicated else ""
    return f"{first['name']} gets the most ids, {first['size']:,} of {size:,}{dedicated}"


def _information(summary: Json) -> str:
    fact = _most_reliable(summary)
    first = summary["columns"][most_informative(summary)]
    total = sum(max(0.0, column[fact]) for column in summary["columns"])
    share = f", {percent(first[fact] / total)} of the sum" if total > 0 and len(summary["columns"]) > 1 else ""
    return f"{first['name']} has the largest {FIGURES[fact]}: {first[fact]:.3g} nats/row{share}"


def most_informative(summary: Json) -> int:
    """Return the column with the largest gain or, without gains, the largest mutual information."""
    fact, columns = _most_reliable(summary), summary["columns"]
    return max(range(len(columns)), key=lambda i: columns[i][fact])


def _strip(ids: Json) -> str:
    rates = ids["segments"]["rate"]
    span = f"{percent(min(rates))} to {percent(max(rates))}"
    return f"{ids['name']}: {number(ids['size'], 'id')}, with rates from {span}"


def _most_reliable(summary: Json) -> str:
    """Return the most reliable figure that there is."""
    return next(fact for fact in FIGURES if summary["columns"][0][fact] is not None)


def _budgets(budgets: Json) -> str:
    figure, levels = FIGURES[budgets["by"]], budgets["level"]
    best = levels[budgets["best"]]
    first, last, chosen = (budgets["budget"][budgets[name]] for name in ("enough", "last_alike", "chosen"))
    if best <= 0:
        return f"No budget has a positive {figure}"
    share, less = budgets["tolerance"] / best, 1 - levels[budgets["chosen"]] / best
    plateau = f"the {figure} is largest there"
    own = "this is the codebook's budget"
    if first < last:
        plateau = f"from {first:,} to {last:,} ids, the {figure} is within {percent(share)} of the best"
        own = f"the codebook's budget of {chosen:,} is in this range"
    if less > share:
        own = f"at the codebook's budget of {chosen:,} it is {percent(less)} lower"
    return f"About {number(first, 'id')} {'is' if first == 1 else 'are'} enough: {plateau}; {own}"


def _trust(trust: Json) -> dict[str, str]:
    fact, expected = "train MI", trust["kept"]
    if trust["out_of_fold"] is not None:
        fact, expected = "CV gain", trust["out_of_fold"]
    columns = trust["columns"]
    if trust["is_fitted"]:
        result = "The codebook was fitted on these rows, so they cannot show whether it generalises"
    elif expected <= 0:
        result = f"The test gain is {trust['gain']:.3g} nats/row; the {fact} was {expected:.3g}"
    elif trust["gain"] > expected:
        result = f"The test gain exceeds the {fact}: {trust['gain']:.3g} against {expected:.3g} nats/row"
    else:
        share = percent(max(0.0, trust["gain"]) / expected)
        figures = f"{trust['gain']:.3g} of {expected:.3g} nats/row"
        result = f"{share} of the {fact} generalises to the held-out rows: {figures}"
    drifted = max(columns, key=lambda column: column["drift"])
    few = sum(column["drift"] > SOME_DRIFT for column in columns)
    return {
        "trust": result,
        "calibration": _calibration(trust),
        "drift": f"{few} of {number(len(columns), 'column')} drifted noticeably (index above {SOME_DRIFT}), "
        f"{drifted['name']} the most: {drifted['drift']:.2g}",
    }


def _calibration(trust: Json) -> str:
    miss, shift = trust["miscalibration"], trust["rate"] - trust["rate_at_fit"]
    rates = f"{percent(trust['rate'])} of these rows are positive, {percent(trust['rate_at_fit'])} were at fit"
    why = f": {rates}" if abs(shift) > miss / 2 else ""
    return f"The rates of the ids are off by {100 * miss:.2g} percentage points on average{why}"


def _comparison(comparison: Json) -> str:
    done = [trial for trial in comparison["trials"] if trial["lost"] is not None]
    if not done:
        return "No method finished"
    budget = max(trial["budget"] for trial in done)
    there = sorted((trial for trial in done if trial["budget"] == budget), key=lambda trial: trial["lost"])
    first, last = there[0], there[-1]
    best = f"At {number(budget, 'id')}, {first['name']} loses {100 * first['lost']:.2g} % of the information"
    return best if len(there) == 1 else f"{best}; {last['name']} loses {100 * last['lost']:.2g} %"


def _idle(summary: Json) -> str:
    """Name the columns that have no gain on rows that did not fit them."""
    fact = _most_reliable(summary)
    if fact == "information":
        return ""
    idle = [column for column in summary["columns"] if column[fact] <= 0]
    if not idle:
        return ""
    names = ", ".join(column["name"] for column in idle[:_MOST_NAMED]) + ", ..." * (len(idle) > _MOST_NAMED)
    ids = number(sum(column["size"] for column in idle), "id")
    have, them = ("has", "it") if len(idle) == 1 else ("have", "them")
    return f"{names} {have} no {FIGURES[fact]}, but {ids}: consider dropping {them}"
