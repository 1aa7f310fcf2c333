"""Raw rows of the benchmark of leakage -> tables, claims and a plot; nothing in them is typed by hand.

`python -m benchmarks.leakage.report` makes those of the newest run, `... report FOLDER` those of another.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.leakage.models import LIGHTGBM, LOGISTIC, NETWORK
from benchmarks.leakage.recipes import ALL_VALUES, FILTERED, FREQUENCY, HASHING, MODEL, PAPER
from tools.record import read_csv
from tools.tables import README, Cell, Row, figures, newest, number, table, update_page, update_readme

PAGE = README.parent / "docs" / "leakage.md"
MODELS = (LOGISTIC, NETWORK, LIGHTGBM)
_LEAK_BUDGET = 500
_TITLES = {
    "criteo": "Criteo: 26 categorical columns, in the order of time",
    "amazon": "Amazon access: 9 columns, shuffled",
    "flights": "Flights: 5 columns, with hour and distance beside, in the order of time",
    "generated": "Generated rows with known rates: 5 columns",
    "noise": "A nearly unique column of noise, added for our recipe",
    "older": "The later half of the training rows, with ids out of fold, or from the earlier half",
    "order": "Month and hour of flights, shuffled: as they are, or as ids",
    "sensitivity": "One option changed at a time (defaults: dedicated_min=30, shared_ids=8, folds=5)",
}
_RENAMED = {"private_min": "dedicated_min", "tail": "shared_ids"}  # options since the older runs
_INTRODUCTION = """
The figures are log-losses of the test rows, which neither codebook nor model has seen. In brackets is the
difference to `model` at the same budget with its paired standard error over the test rows (above 0: worse than
`model`). `*` marks more than two standard errors. The standard error does not cover the luck of a training run;
the network is the mean of two.

`model` is `vf.fit_transform`. `model, naive` is `vf.fit` and then `transform` of the same rows. `paper` keeps
the most information about the training rows. `no compression` (values seen five times), `TargetEncoder` (one
number per column) and `Khiops` have no budget. Hashing splits its buckets by the logarithm of the distinct
values. Validation rows choose what a model leaves open, separately for each recipe: the L2 strength, the weight
decay of the network, when to stop, and whether LightGBM takes unordered ids as numbers or as categories.
All else is the same for every recipe.
"""


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables and the plot of a run."""
    texts = ["# What ids are worth to a model\n", *(f"- {fact['fact']}: {fact['is']}" for fact in about)]
    texts.append(tables(rows))
    leak = [row for row in rows if row["part"] in ("criteo", "generated") and row.get("budget") == _LEAK_BUDGET]
    if leak:
        _plot(folder, leak)
        texts.append("## The leak in one picture\n\n![training and held-out log-loss](leak.svg)\n")
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def tables(rows: Sequence[Row]) -> str:
    """Return the tables of all parts that were run, and which of our claims hold."""
    rows = [row | {"recipe": _renamed(str(row["recipe"]))} for row in rows]
    texts = [_INTRODUCTION, *_claims(rows)]
    for part, title in _TITLES.items():
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            texts += [f"## {title}\n", *_truth(chosen), *_tables(chosen, with_valid=part == "sensitivity")]
    return "\n".join(texts)


def _renamed(recipe: str) -> str:
    option, found, value = recipe.partition("=")
    return f"{_RENAMED.get(option, option)}{found}{value}"


def for_page(rows: Sequence[Row]) -> str:
    """Return the same tables for a page, one heading level lower."""
    return re.sub(r"^##", "###", tables(rows), flags=re.MULTILINE).strip()


def headlines(rows: Sequence[Row]) -> str:
    """Return the table for the project's README: log-losses on Criteo, with few ids and without a limit."""
    chosen = [row for row in rows if row["part"] == "criteo" and row.get("budget") == _LEAK_BUDGET]
    lines = []
    for recipe in (MODEL, FILTERED, FREQUENCY, HASHING, PAPER, ALL_VALUES):
        found = {row["model"]: row for row in chosen if row["recipe"] == recipe}
        losses = " / ".join(f"{found[model]['test']:.4f}" for model in MODELS)
        lines.append((f"{recipe}, {found[MODELS[0]]['ids']:,} ids", losses))
    return figures(lines)


def _truth(rows: Sequence[Row]) -> list[str]:
    """State the score of the true rates, if they are known."""
    return [f"The true rates score {row['test']:.4f}.\n" for row in rows if "budget" not in row]


def _tables(rows: Sequence[Row], *, with_valid: bool) -> Iterator[str]:
    """Return a table for each budget: a line per recipe, a column per model."""

    def cell(row: Row) -> str:
        valid = f"{row['valid']:.4f} / " if with_valid else ""
        return valid + f"{row['test']:.4f}" + (f" ({_difference(row)})" if row["standard_error"] else "")

    heads: dict[str, Cell] = {
        "recipe": number("recipe", ""),
        "ids": lambda row: f"{row['ids']:,}" if row["ids"] else "",
    }
    cells = heads | {model: number(model, "") for model in MODELS}
    for budget in sorted({row["budget"] for row in rows if "budget" in row}):
        lines: dict[str, Row] = {}
        for row in rows:
            if row.get("budget") == budget:
                line = lines.setdefault(row["recipe"], {"recipe": row["recipe"], "ids": row.get("ids")})
                line |= {row["model"]: cell(row)} if "model" in row else {MODELS[0]: row["note"]}
        title = f"### {budget:,} ids" + (", validation / test" if with_valid else "")
        yield f"{title}\n\n" + table(list(lines.values()), cells)


def _difference(row: Row) -> str:
    is_clear = abs(row["difference"]) > 2 * row["standard_error"]
    return f"{row['difference']:+.4f} ± {row['standard_error']:.4f}{' *' if is_clear else ''}"


def _claims(rows: Sequence[Row]) -> list[str]:
    """Say which claims hold, on the Criteo rows: differences in standard errors of the paired rows."""
    found = {
        (row["recipe"], row["budget"], row["model"]): row
        for row in rows
        if row["part"] == "criteo" and "model" in row
    }
    claims = [(ALL_VALUES, 2_000, "no worse than", -2.0)]
    claims += [(recipe, 500, "better than", 2.0) for recipe in (FREQUENCY, HASHING, FILTERED)]
    lines = []
    for recipe, budget, words, least in claims:
        for model in MODELS:
            row = found.get((recipe, budget, model))
            if row:
                errors = row["difference"] / row["standard_error"]
                verdict = "holds" if errors > least else "**fails**"
                what = f"`{MODEL}` at {budget:,} ids is {words} {recipe}"
                lines.append(f"| {what} | {model} | {_difference(row)} | {errors:+.1f} | {verdict} |")
    head = "| claim | model | the other minus `model` | in standard errors | |\n|---|---|---|---|---|"
    return ["## Claims, by two standard errors, on Criteo\n", "\n".join([head, *lines]) + "\n"] if lines else []


def _plot(folder: Path, rows: Sequence[Row]) -> None:
    """Draw training against held-out log-loss of the logistic regression."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "vocabfold", "svg.fonttype": "none", "font.family": "sans-serif"}
    from matplotlib import pyplot as plt

    found = {row["recipe"]: row for row in rows if row.get("model") == LOGISTIC}
    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
    recipes = [MODEL, FILTERED, PAPER]
    for height, recipe in enumerate(recipes):
        train, test = found[recipe]["train"], found[recipe]["test"]
        axes.plot([train, test], [height, height], color="grey", zorder=1)
        axes.scatter(train, height, facecolor="white", edgecolor="black", label="training rows", zorder=2)
        axes.scatter(test, height, color="black", label="test rows", zorder=2)
        is_wide = test - train > 0.1
        shown = (train, test) if is_wide else (test,)
        for loss in shown:
            text = f"{loss:.3f}" if is_wide else f"{train:.3f} → {loss:.3f}"
            axes.annotate(text, (loss, height), textcoords="offset points", xytext=(0, 7), ha="center")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[:2], labels[:2], frameon=False, loc="lower left")
    axes.set_yticks(range(len(recipes)), recipes)
    axes.set_ylim(-0.5, len(recipes) - 0.4)
    axes.set_xlabel(f"log-loss of a logistic regression, {_LEAK_BUDGET} ids")
    axes.set_title("Ids that leak the labels of their rows fail on new ones", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "leak.svg", metadata={"Date": None})


if __name__ == "__main__":
    run = Path(sys.argv[1]) if len(sys.argv) > 1 else newest("leakage")
    raw = read_csv(run / "raw.csv")
    write_report(run, raw, read_csv(run / "about.csv"))
    if run == newest("leakage"):
        update_page(PAGE, "leakage", run.name, for_page(raw))
        update_readme("leakage", run.name, headlines(raw))
