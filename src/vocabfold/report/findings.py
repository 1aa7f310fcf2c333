"""Summary -> what it says in words: the title of each plot, which states what there is to see."""

from __future__ import annotations

from typing import Any

from vocabfold.support.checks import number

Json = dict[str, Any]
SOME_DRIFT = 0.1  # of the population stability index, that is worth a look
_MOST_NAMED = 8  # columns in a sentence
OF = {"held_out": "on held-out rows", "gain": "on rows of other folds", "information": "of the rows at fit"}


def findings(summary: Json) -> dict[str, str]:
    """Return a sentence for each section that has figures."""
    about = summary["about"]
    found = {
        "got": _got(about),
        "columns": _columns(summary),
        "information": _information(summary),
    }
    if said := _idle(summary):
        found["idle"] = said
    found["strip"] = _strip(summary["ids"][told_most(summary)])
    if summary["budgets"]:
        found["budgets"] = _budgets(summary["budgets"])
    if summary["trust"]:
        found |= _trust(summary["trust"])
    if summary["comparison"]:
        found["comparison"] = _comparison(summary["comparison"])
    return found


def _got(about: Json) -> str:
    values = number(about["n_values"] + about["n_rare"], "value")
    became = f"{values} of {number(about['n_columns'], 'column')} became {number(about['size'], 'id')}"
    label = f"{about['label']} = {about['positive']}"
    for fact in ("held_out", "gain"):
        if about[fact] is not None:
            summed = " (summed over the columns)" if about["n_columns"] > 1 else ""
            return f"{became}, which gain {about[fact]:.3g} bits per row{summed} about {label} {OF[fact]}"
    return f"{became}, which keep {percent(about['kept'])} of what the values tell about {label}"


def percent(share: float) -> str:
    """Return a share with so many digits that what there is, and what is missing, shows."""
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
        return f"{columns[0]['name']} has all {number(size, 'id')}"
    first = max(columns, key=lambda column: column["size"])
    private = summary["about"]["n_dedicated"]
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
    by, levels = budgets["by"], budgets["level"]
    best, what = levels[budgets["best"]], "keep" if by == "information" else "gain"
    first, last, chosen = (budgets["budget"][budgets[name]] for name in ("enough", "last_alike", "chosen"))
    if best <= 0:
        return f"No budget {what}s anything {OF[by]}"
    share = budgets["tolerance"] / best
    alike = f"{first:,} to {last:,} ids {what} the same" if first < last else f"{first:,} ids {what} the most"
    less = 1 - levels[budgets["chosen"]] / best
    own = f"the codebook's budget of {chosen:,} is among them"
    if less > share:
        own = f"the codebook's budget of {chosen:,} {what}s {percent(less)} less"
    elif first == last == chosen:
        own = "the codebook's own budget"
    return f"About {number(first, 'id')} are enough: {alike} {OF[by]}, up to {percent(share)}; {own}"


def _trust(trust: Json) -> dict[str, str]:
    promised, what = trust["kept"], "what the ids tell about the rows at fit"
    if trust["out_of_fold"] is not None:
        promised, what = trust["out_of_fold"], "what the folds at fit promised"
    columns = trust["columns"]
    figures = f"{trust['gain']:.3g} against {promised:.3g} bits per row"
    if trust["is_fitted"]:
        held = "These are the rows that the codebook was fitted on, so they cannot tell what holds"
    elif promised <= 0:
        held = f"The held-out rows gain {trust['gain']:.3g} bits per row; {what}: {promised:.3g}"
    elif trust["gain"] > promised:
        held = f"The held-out rows gain more than {what}: {figures}"
    else:
        held = f"{percent(max(0.0, trust['gain']) / promised)} of {what} holds on the held-out rows: {figures}"
    drifted = max(columns, key=lambda column: column["drift"])
    few = sum(column["drift"] > SOME_DRIFT for column in columns)
    return {
        "trust": held,
        "calibration": _calibration(trust),
        "drift": f"{few} of {number(len(columns), 'column')} drifted noticeably (index above {SOME_DRIFT}), "
        f"{drifted['name']} the most: {drifted['drift']:.2g}",
    }


def _calibration(trust: Json) -> str:
    miss, shift = trust["miscalibration"], trust["rate"] - trust["rate_at_fit"]
    rates = f"{percent(trust['rate'])} of these rows are positive, and {percent(trust['rate_at_fit'])} at fit"
    why = f", as {rates}" if abs(shift) > miss / 2 else ""
    return f"The rates of the ids are off by {100 * miss:.2g} percentage points on average{why}"


def _comparison(comparison: Json) -> str:
    done = [trial for trial in comparison["trials"] if trial["lost"] is not None]
    if not done:
        return "No method came to its end"
    budget = max(trial["budget"] for trial in done)
    there = sorted((trial for trial in done if trial["budget"] == budget), key=lambda trial: trial["lost"])
    first, last = there[0], there[-1]
    least = f"At {budget:,} ids, {first['name']} loses {100 * first['lost']:.2g} % of the information"
    return least if len(there) == 1 else f"{least}, and {last['name']} {100 * last['lost']:.2g} %"


def _idle(summary: Json) -> str:
    """Name the columns that gain nothing on rows that did not fit them."""
    fact = _best_fact(summary)
    if fact == "information":
        return ""
    idle = [column for column in summary["columns"] if column[fact] <= 0]
    if not idle:
        return ""
    names = ", ".join(column["name"] for column in idle[:_MOST_NAMED]) + ", ..." * (len(idle) > _MOST_NAMED)
    ids = number(sum(column["size"] for column in idle), "id")
    return f"Nothing is gained {OF[fact]} by {names} ({ids} in all): such columns may be left out"
