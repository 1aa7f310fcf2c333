"""The paper's second figure (fig:logloss), remade: what compressed vocabularies are worth to a model.

    python -m benchmarks.figures.fig_logloss --data FOLDER       100,000 Criteo clicks, half an hour on a core
    python -m benchmarks.figures.fig_logloss --criteo train.txt  the first --rows of the challenge's file
    python -m benchmarks.figures.fig_logloss                     a generated table
    python -m benchmarks.figures.fig_logloss --small             a small one in seconds, only printed
    python -m benchmarks.figures.fig_logloss --report            tables and plot of the newest run

For each recipe and budget: the log-loss and the area under the ROC curve of the test rows, by the network of
the paper's supplement, a logistic regression and LightGBM on the same ids and numbers. A difference is that to
`model` at the same budget, of the paper's methods also that to Exact and to Frequency with the same filter,
with the paired standard error over the test rows.

Recipes that give the same ids share one training. What a training gives for each test row is kept, while the
run lasts, in build/unfinished; the raw rows hold only means over rows. Times are of the processor.
"""

import argparse
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.figures import clicks, fig_logloss_report, network, paired
from benchmarks.figures.recipes import ALL, EXACT, FREQUENCY, REFERENCE, Recipe
from benchmarks.leakage.data import Array, Rows
from benchmarks.leakage.models import LIGHTGBM, LOGISTIC, NETWORK, Scores, lightgbm, logistic, losses
from benchmarks.leakage.recipes import Encoded
from tools import journal
from tools.record import Row

NAME = "fig-logloss"
PACKAGES = ["vocabfold", "numpy", "pandas", "scikit-learn", "lightgbm", "torch", "optuna"]
BUDGETS = (500, 2_000, 10_000)
TRIALS = 10
NEEDS = {NETWORK: ("torch", "optuna"), LOGISTIC: ("sklearn",), LIGHTGBM: ("lightgbm",)}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model gives: loss and placement of each test row, and what there is to say of the training."""

    losses: Array
    placements: Array
    about: Row

    def save(self, path: Path) -> None:
        """Write the outcome, under another name first: a file of this name is whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez(unfinished, losses=self.losses, placements=self.placements, about=json.dumps(self.about))
        unfinished.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Outcome":
        """Read what `save` has written."""
        with np.load(path) as found:
            return cls(found["losses"], found["placements"], json.loads(str(found["about"])))


def by_network(rows: Rows, encoded: Encoded, trials: int) -> Outcome:
    """Search the setting of the network; means over its trainings."""
    found = network.search(rows, encoded, trials)
    labels = rows.labels[2]
    by_seed = [losses(labels, odds) for odds in found.test]
    return Outcome(
        np.mean(by_seed, axis=0),
        np.mean([paired.placements(labels, odds) for odds in found.test], axis=0),
        {
            "valid": float(np.mean(found.valid)),
            "setting": str(found.setting),
            "trials": trials,
            "pruned": found.n_pruned,
            "spread": float(np.ptp([of_seed.mean() for of_seed in by_seed])),
            "passes": " and ".join(f"{passes:.2g}" for passes in found.passes),
        },
    )


def by_other(fit: Callable[[Rows, Encoded], Scores], rows: Rows, encoded: Encoded, trials: int) -> Outcome:
    """Fit a logistic regression or LightGBM, which need no search."""
    scores = fit(rows, encoded)
    labels = rows.labels[2]
    placements = paired.placements(labels, paired.odds_of(labels, scores.test))
    return Outcome(scores.test, placements, {"valid": scores.valid, "setting": scores.setting})


MODELS: Mapping[str, Callable[[Rows, Encoded, int], Outcome]] = {
    NETWORK: by_network,
    LOGISTIC: partial(by_other, logistic),
    LIGHTGBM: partial(by_other, lightgbm),
}


def outcome(model: str, rows: Rows, encoded: Encoded, trials: int, folder: Path) -> Outcome:
    """Train a model on ids, unless that was done before, and keep what it gives."""
    path = folder / f"{digest(encoded)}-{model}-{trials}.npz"
    if not path.exists():
        start = time.process_time()
        with threadpool_limits(1):  # threads wait for each other where cores are shared: many times slower
            found = MODELS[model](rows, encoded, trials)
        found.about["train_seconds"] = time.process_time() - start
        found.save(path)
    return Outcome.load(path)


def digest(encoded: Encoded) -> str:
    """Return a digest of ids."""
    found = hashlib.sha256(json.dumps([encoded.sizes, encoded.is_ordered]).encode())
    for part in encoded.parts:
        found.update(np.ascontiguousarray(part, np.int64))
    return found.hexdigest()[:12]


@lru_cache(maxsize=4)  # a recipe and its references
def ids_of(recipe: Recipe, rows: Rows, budget: int) -> tuple[Encoded, float]:
    """Encode the rows once, and note the time."""
    start = time.process_time()
    encoded = recipe.encode(rows, budget)
    return encoded, time.process_time() - start


def evaluated(recipe: Recipe, rows: Rows, budget: int, trials: int, folder: Path) -> Iterator[Row]:
    """Return a row for each model."""
    encoded, seconds = ids_of(recipe, rows, budget)
    head = {"table": rows.name, "budget": budget, "recipe": recipe.name}
    head |= {"min_count": recipe.min_count} if recipe.min_count else {}
    labels = rows.labels[2]
    for model, packages in NEEDS.items():
        missing = [package for package in packages if not find_spec(package)]
        if missing:
            yield head | {"model": model, "not_run": f"{' and '.join(missing)} not installed"}
            continue
        found, reference, *others = (
            outcome(model, rows, ids_of(other, rows, budget)[0], trials, folder)
            for other in (recipe, REFERENCE, *_rivals(recipe))
        )
        placed = found.placements - reference.placements
        row = head | {
            "model": model,
            "ids": sum(encoded.sizes),
            "ids_digest": digest(encoded),
            "n_train": len(rows.parts[0]),
            "n_test": labels.size,
            "test": float(found.losses.mean()),
            "auc": paired.area(labels, found.placements),
            "auc_to_model": paired.area(labels, placed),
            "auc_to_model_error": paired.area_error(labels, placed),
            **found.about,
            "encode_seconds": seconds,
        }
        for other, of_other in zip((REFERENCE, *_rivals(recipe)), (reference, *others), strict=True):
            row |= _difference(other, found, of_other)
        yield row


def _rivals(recipe: Recipe) -> list[Recipe]:
    """Return what the paper compares a method of its own with."""
    return [Recipe(name, recipe.min_count) for name in (EXACT, FREQUENCY)] if recipe.min_count else []


def _difference(other: Recipe, found: Outcome, reference: Outcome) -> Row:
    """Return the difference of the mean losses, and its standard error."""
    differences = found.losses - reference.losses
    name = f"to_{other.name.lower()}"
    return {name: float(differences.mean()), f"{name}_error": paired.mean_error(differences)}


def tasks(
    rows: Rows, recipes: Sequence[Recipe], budgets: Sequence[int], trials: int, folder: Path
) -> dict[str, journal.Task]:
    """Return one task for each budget and recipe; their names say all that their rows depend on."""
    size = sum(map(len, rows.parts))
    return {
        f"{rows.name}, {size:,} rows, {trials} trials, {budget:,} ids, {recipe}": partial(
            evaluated, recipe, rows, budget, trials, folder
        )
        for budget in budgets
        for recipe in recipes
    }


def main() -> None:
    """Run all recipes at all budgets, or make the report of the newest run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help=f"the file {clicks.SAMPLE}, or its folder")
    parser.add_argument("--criteo", type=Path, help="train.txt of the Criteo challenge")
    parser.add_argument("--rows", type=int, default=2_000_000, help="how many rows of --criteo are taken")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="such as 500,2000")
    parser.add_argument("--trials", type=int, default=TRIALS, help="settings of the network; the paper: 2,000")
    parser.add_argument("--recipes", help=f"of {'; '.join(map(str, ALL))}; all by default")
    parser.add_argument("--small", action="store_true", help="a small generated table, one budget, two trials")
    parser.add_argument("--report", action="store_true", help="only make tables and plot of the newest run")
    options = parser.parse_args()
    if options.report:
        fig_logloss_report.report()
        return
    chosen = [recipe for recipe in ALL if not options.recipes or str(recipe) in options.recipes.split("; ")]
    if options.small:
        with tempfile.TemporaryDirectory() as place:
            few = [recipe for recipe in chosen if recipe.min_count != 1 or recipe.name in (EXACT, FREQUENCY)]
            small = tasks(clicks.generated(2_000), few, [100], 2, Path(place))
            journal.run(NAME, small, PACKAGES, "", small=True)
        return
    _warm_up(chosen)
    if options.criteo:
        rows = clicks.challenge(options.criteo, options.rows)
    else:
        rows = clicks.sample(options.data) if options.data else clicks.generated()
    data = options.criteo or (options.data and clicks.file_of(options.data))
    folder = journal.scratch(NAME, PACKAGES, _command(options), data)
    budgets = [int(budget) for budget in options.budgets.split(",")]
    found = tasks(rows, chosen, budgets, options.trials, folder)
    journal.run(NAME, found, PACKAGES, _command(options), small=False, data=data)
    shutil.rmtree(folder, ignore_errors=True)


def _warm_up(recipes: Sequence[Recipe]) -> None:
    """Import and compile all that is needed, so that no time has a part of it."""
    with tempfile.TemporaryDirectory() as place:
        for task in tasks(clicks.generated(500), recipes, [50], 1, Path(place)).values():
            list(task())


def _command(options: argparse.Namespace) -> str:
    """Return the command of this run, without the places of files."""
    given = {
        "data": options.data and "FOLDER",
        "criteo": options.criteo and "train.txt",
        "rows": options.criteo and options.rows,
        "budgets": options.budgets,
        "trials": options.trials,
        "recipes": options.recipes and f"'{options.recipes}'",
    }
    words = [f"--{option} {value}" for option, value in given.items() if value]
    return " ".join(["python -m benchmarks.figures.fig_logloss", *words])


if __name__ == "__main__":
    main()
