"""Raw rows of the learning evaluation -> tables, what the paper says beside them, and the plot.

`python -m benchmarks.figures.fig_logloss --report` makes those of the newest run; nothing is typed by hand.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures.clicks import CHALLENGE, CRITEO_SAMPLE, NOT_RUN
from benchmarks.figures.recipes import ALL, BUCKETING, DIVISIVE, EXACT, FILTER, FREQUENCY, SUBMODULAR, Recipe
from benchmarks.leakage.models import LIGHTGBM, LOGISTIC, NETWORK
from benchmarks.leakage.recipes import ALL_VALUES, HASHING, MODEL
from tools.tables import README, Cell, Row, make_report, number, table

NAME = "fig-logloss"
PAGE = README.parent / "docs" / "results.md"
MODELS = (NETWORK, LOGISTIC, LIGHTGBM)
BY_INFORMATION = (EXACT, SUBMODULAR, DIVISIVE, BUCKETING)
_OTHERS = (MODEL, HASHING, ALL_VALUES)
_INTRODUCTION = """
The test rows are the last ones in time; neither ids nor models have seen them. In brackets is the difference to
`model` at the same budget with its paired standard error over the test rows (log-loss: above 0 is worse than
`model`; AUC, by DeLong's method: below 0 is worse). `*` marks more than two standard errors. They do not cover
the luck of a training run; the network is the mean of two trainings with the setting that its search found.

`model` is `vf.fit_transform`, training rows out of fold. The paper's methods keep information about the
training rows (`aim="information"`) and encode the same rows, as the paper did. The filter groups values with
fewer than 100 rows, as in the paper (`min_count` in the raw rows; 1 is no filter). Submodular is
`method="stochastic"`. Divisive and Bucketing split the budget by information; the paper's uniform
allocation was not run. `no compression` gives an id to every value seen five times, and has no budget.
Recipes with the same ids share one training: where fewer values pass the filter than there are ids, a larger
budget changes nothing.
"""
_DIFFERENCES = """
The paper and this run differ in the number of rows (the paper has 37 million for training, 4.4 million held
out, and 28 million values), so that 100 rows are a larger share of ours; in the budgets (the paper has 10,000
to 160,000 ids in its first figure, and does not say those of this one); in the trials of the search (the paper:
2,000), each limited in passes and in multiplications. Our search uses validation rows; the paper's looked at
the very rows that it reports. We use PyTorch instead of TensorFlow. What the paper does not specify is ours:
embeddings of 8 numbers, batches of 1,024 rows, logarithms of the numeric columns.
"""


def report() -> None:
    """Make the report of the newest run."""
    make_report(NAME, PAGE, write_report, for_page, lambda rows: rows[0]["table"] == CRITEO_SAMPLE)


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables and the plot of a run."""
    texts = ["# Held-out log-loss with compressed vocabularies (fig:logloss)\n"]
    texts += [f"- {fact['fact']}: {fact['is']}" for fact in about]
    is_whole = any(row["table"] == CHALLENGE for row in rows)
    texts += [f"- rows: {_data(rows)}", *([] if is_whole else [NOT_RUN]), _INTRODUCTION]
    if _plot(folder, rows):
        texts.append("![log-loss against the budget](fig_logloss.svg)\n")
    texts += ["## What the paper says, and what these rows say\n", _claims(rows), _DIFFERENCES]
    for budget in _budgets(rows):
        chosen = [row for row in rows if row["budget"] == budget]
        texts += [f"## {budget:,} ids\n", "Log-loss of the test rows:\n", _by_model(chosen, "test", "to_model")]
        texts += ["Area under the ROC curve:\n", _by_model(chosen, "auc", "auc_to_model")]
        searched = [row for row in chosen if row["model"] == NETWORK and "test" in row]
        texts += ["The search for the network:\n", table(searched, _search_cells())] if searched else []
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def for_page(rows: Sequence[Row]) -> str:
    """Return a compact table: log-loss and AUC of the network, log-loss of LightGBM, for each budget."""
    budgets = _budgets(rows)
    found = _found(rows)
    shown = [
        (NETWORK, "test", "log-loss"),
        (NETWORK, "auc", "AUC"),
        (LIGHTGBM, "test", "log-loss"),
    ]
    heads = [f"{model} {what}, {budget:,}" for model, _, what in shown for budget in budgets]
    lines = [["recipe", *heads], ["---"] * (1 + len(heads))]
    for recipe in ALL:
        cells = [
            _short(found.get((str(recipe), b, model)), field) for model, field, _ in shown for b in budgets
        ]
        lines.append([str(recipe), *cells])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines if any(line[1:]))
    return f"{text}\n\n{_data(rows)}. `*`: differs from `model` by more than two paired standard errors."


def _short(row: Row | None, field: str) -> str:
    if row is None or field not in row:
        return ""
    other = "to_model" if field == "test" else "auc_to_model"
    return f"{row[field]:.4f}{_star(row, other)}"


def _star(row: Row, field: str) -> str:
    return " *" if abs(row[field]) > 2 * row[f"{field}_error"] else ""


def _difference(row: Row, field: str) -> str:
    return f"{row[field]:+.4f} ± {row[f'{field}_error']:.4f}{_star(row, field)}"


def _label(row: Row) -> str:
    return str(Recipe(row["recipe"], row.get("min_count")))


def _found(rows: Sequence[Row]) -> dict[tuple[str, int, str], Row]:
    return {(_label(row), row["budget"], row["model"]): row for row in rows if "test" in row}


def _budgets(rows: Sequence[Row]) -> list[int]:
    return sorted({row["budget"] for row in rows})


def _data(rows: Sequence[Row]) -> str:
    row = next(row for row in rows if "n_train" in row)
    return f"{row['table']}, {row['n_train']:,} training rows, {row['n_test']:,} test rows, the last in time"


def _by_model(rows: Sequence[Row], field: str, difference: str) -> str:
    """Return a line per recipe, with a column per model."""

    def cell(row: Row) -> str:
        if "not_run" in row:
            return f"not run: {row['not_run']}"
        return f"{row[field]:.4f}" + (f" ({_difference(row, difference)})" if row["recipe"] != MODEL else "")

    lines: dict[str, Row] = {}
    for row in rows:
        line = lines.setdefault(_label(row), {"recipe": _label(row)})
        line |= {row["model"]: cell(row)} | ({"ids": row["ids"]} if "ids" in row else {})
    cells: dict[str, Cell] = {"recipe": number("recipe", ""), "ids": number("ids", ",")}
    return table(list(lines.values()), cells | {model: number(model, "") for model in MODELS})


def _search_cells() -> dict[str, Cell]:
    return {
        "recipe": _label,
        "ids, in short": number("ids_digest", ""),
        "trials": number("trials", ""),
        "ended early": number("pruned", ""),
        "setting": number("setting", ""),
        "passes": number("passes", ""),
        "validation": number("valid", ".4f"),
        "test": number("test", ".4f"),
        "test, seed to seed": number("spread", ".4f"),
        "CPU seconds to encode": number("encode_seconds", ".1f"),
        "CPU seconds to train": number("train_seconds", ".0f"),
    }


def _claims(rows: Sequence[Row]) -> str:
    """Set the two statements of the paper beside paired differences, by filter, budget and model."""
    found = _found(rows)
    parts = [
        "The paper prints no numbers of this figure. Its text says that, with the filter, the methods based on "
        "information (a) perform comparably to each other and (b) significantly better than Frequency.\n"
    ]
    for other, title in (
        (EXACT, "(a) log-loss minus that of Exact"),
        (FREQUENCY, "(b) minus that of Frequency"),
    ):
        lines = [
            [f"{budget:,}", filtered, model, *cells]
            for filtered, min_count in ((f"{FILTER} rows", FILTER), ("none", 1))
            for budget in _budgets(rows)
            for model in MODELS
            if any(cells := list(_against(found, other, min_count, budget, model)))
        ]
        heads = ["budget", "filter", "model", *BY_INFORMATION]
        text = [heads, ["---"] * len(heads), *lines]
        parts.append(f"{title}:\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in text) + "\n")
    return "\n".join(parts)


def _against(found: dict[Any, Row], other: str, min_count: int, budget: int, model: str) -> Iterator[str]:
    """Return the difference of each method to another one of the same filter; equal ids say so."""
    of_other = found.get((str(Recipe(other, min_count)), budget, model))
    for name in BY_INFORMATION:
        row = found.get((str(Recipe(name, min_count)), budget, model))
        if row is None or name == other:
            yield ""
        elif of_other and row["ids_digest"] == of_other["ids_digest"]:
            yield "the same ids"
        else:
            yield _difference(row, f"to_{other.lower()}")


def _plot(folder: Path, rows: Sequence[Row]) -> bool:
    """Draw log-loss against the budget: the network with and without the filter, and LightGBM."""
    from tools import plots

    found = _found(rows)
    panels = [(NETWORK, FILTER), (NETWORK, 1), (LIGHTGBM, FILTER)]
    panels = [panel for panel in panels if any(row["model"] == panel[0] for row in found.values())]
    if not panels:
        return False
    figure, axes = plots.canvas(len(panels), width=4 * len(panels), height=4.6)
    names = [*_OTHERS, *BY_INFORMATION, FREQUENCY]
    for panel, (model, min_count) in zip(axes, panels, strict=True):
        for i, name in enumerate(names):
            recipe = Recipe(name, None if name in _OTHERS else min_count)
            points = [
                (budget, found[str(recipe), budget, model])
                for budget in _budgets(rows)
                if (str(recipe), budget, model) in found
            ]
            if points:
                # beside each other, as several recipes have the same ids and one would hide the others
                places = [budget * 1.04 ** (i - len(names) // 2) for budget, _ in points]
                panel.plot(places, [row["test"] for _, row in points], label=name, **plots.STYLES[i])
        panel.set_xscale("log")
        panel.set_xticks(_budgets(rows), [f"{budget:,}" for budget in _budgets(rows)])
        panel.minorticks_off()
        panel.set_xlabel("budget, ids (points set apart)")
        panel.set_ylabel("held-out log-loss, nats per row")
        panel.set_title(f"{model}, {'no' if min_count == 1 else f'{min_count}-row'} filter", loc="left")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels) // 2 + 1, frameon=False)
    figure.suptitle(_finding(found, _budgets(rows)), x=0.01, ha="left")
    plots.save(figure, folder, "fig_logloss")
    return True


def _finding(found: dict[tuple[str, int, str], Row], budgets: Sequence[int]) -> str:
    """Say at how many budgets our recipe has the least loss, with the network if it was run."""
    model, name = (
        (NETWORK, f"the {NETWORK}") if any(key[2] == NETWORK for key in found) else (LIGHTGBM, LIGHTGBM)
    )
    wins = clear = 0
    for budget in budgets:
        others = [row for key, row in found.items() if key[1:] == (budget, model) and key[0] != MODEL]
        wins += all(row["to_model"] > 0 for row in others)
        clear += all(row["to_model"] > 2 * row["to_model_error"] for row in others)
    return (
        f"With {name}, ids folded for a model have the least held-out log-loss at {wins} of "
        f"{len(budgets)} budgets, by more than two standard errors at {clear}"
    )
