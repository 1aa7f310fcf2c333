"""What ids are worth to a model: log-loss on rows that nobody has seen, ours and all others side by side.

    python -m benchmarks.leakage.run --data FOLDER     real tables, about half an hour on two cores
    python -m benchmarks.leakage.run                   a generated table with known rates, some minutes
    python -m benchmarks.leakage.run --small           the same in seconds, only printed

Every recipe encodes the same training rows for the same three models. Parts: one per table; `noise` adds a
nearly unique column of noise for our recipe; `older` trains models on the later half of the training rows, with
ids from the earlier half; `sensitivity` changes one option at a time; `order` takes the month and hour of
flights as they are, or as ids numbered by rate. A difference is that of the mean log-loss of the test rows to
our recipe at the same budget; its standard error is that of the mean of the paired differences per row, and
does not cover the luck of a training run.
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import distributions
from pathlib import Path

import numpy as np

from benchmarks.leakage.data import TABLES, Rows, generated, shuffled_flights
from benchmarks.leakage.models import MODELS, Scores, losses, score
from benchmarks.leakage.recipes import FREE, MODEL, OLDER, RECIPES, NotRun, encode
from tools.record import RUNS, Row, facts, show, write_run

PACKAGES = ["vocabfold", "numpy", "pandas", "scikit-learn", "lightgbm", "torch", "khiops"]
BUDGETS = {
    "criteo": (500, 2_000, 10_000),
    "amazon": (200, 1_000),
    "flights": (200, 1_000),
    "generated": (500, 2_000),
}
SENSITIVE = (500, 2_000)  # the budgets of the parts `noise` and `sensitivity`
DEFAULTS = {"dedicated_min": 30, "shared_ids": 8, "folds": 5}
OTHERS = {"dedicated_min": (10, 100), "shared_ids": (2, 4, 16), "folds": (2, 10)}
TRUTH = "true rates"

Options = tuple[tuple[str, int], ...]


@dataclass(eq=False)
class Trial:
    """What one recipe gave: how many ids, in what time, and the scores of each model."""

    ids: int
    seconds: float
    models: dict[str, Future[Scores]]

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """The scores of each model, once it is trained."""
        return {name: found.result() for name, found in self.models.items()}


@cache
def workers() -> ProcessPoolExecutor:
    """Return what trains models, one on each core."""
    return ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"))


@cache
def trial(rows: Rows, recipe: str, budget: int, options: Options = ()) -> Trial | NotRun:
    """Encode the rows once, and have each model trained on them."""
    try:
        encoded = encode(rows, recipe, budget, **dict(options))
    except NotRun as why:
        return why
    models = {name: workers().submit(score, name, rows, encoded) for name in MODELS}
    return Trial(sum(encoded.sizes), encoded.seconds, models)


def compared(found: Trial, reference: Trial) -> Iterator[Row]:
    """Return what is kept of a trial: one row per model, with the paired difference to the reference."""
    for model, scores in found.scores.items():
        difference = scores.test - reference.scores[model].test
        yield {
            "model": model,
            "ids": found.ids,
            "train": scores.train,
            "valid": scores.valid,
            "test": float(scores.test.mean()),
            "difference": float(difference.mean()),
            "standard_error": float(difference.std(ddof=1) / np.sqrt(len(difference))),
            "n_test": len(difference),
            "setting": scores.setting,
            "encode_seconds": found.seconds,
            "train_seconds": scores.seconds,
        }


def recipes(rows: Rows, budgets: Sequence[int]) -> Iterator[Row]:
    """Compare all recipes at all budgets."""
    if rows.truth is not None:
        truth = losses(rows.labels[2], np.log(rows.truth / (1 - rows.truth)))
        yield {"part": rows.name, "recipe": TRUTH, "test": float(truth.mean()), "n_test": len(truth)}
    found = {
        (b, recipe): trial(rows, recipe, 0 if recipe in FREE else b) for b in budgets for recipe in RECIPES
    }
    for (budget, recipe), of_recipe in found.items():
        row = {"part": rows.name, "budget": budget, "recipe": recipe}
        if isinstance(of_recipe, NotRun):
            yield {**row, "note": f"not run: {of_recipe}"}
        else:
            yield from ({**row, **of_model} for of_model in compared(of_recipe, found[budget, MODEL]))


def noise(rows: Rows, budgets: Sequence[int]) -> Iterator[Row]:
    """Add a column of noise."""
    noisy = rows.with_noise()
    for budget in budgets:
        row = {"part": "noise", "budget": budget, "recipe": f"{MODEL}, noise column added"}
        found = compared(trial(noisy, MODEL, budget), trial(rows, MODEL, budget))
        yield from ({**row, **of_model} for of_model in found)


def older(rows: Rows, budgets: Sequence[int]) -> Iterator[Row]:
    """Train on the later half of the rows, with a codebook of the same half, or of the earlier one."""
    early, late = rows.halves()
    for budget in budgets:
        own, other = trial(late, MODEL, budget), trial(late.after(early), OLDER, budget)
        for recipe, found in (("out of fold", own), ("with an older codebook", other)):
            row = {"part": "older", "budget": budget, "recipe": f"{MODEL}, later half {recipe}"}
            yield from ({**row, **of_model} for of_model in compared(found, own))


def sensitivity(rows: Rows, budgets: Sequence[int]) -> Iterator[Row]:
    """Change one option of our recipe at a time."""
    for budget in budgets:
        default = trial(rows, MODEL, budget)
        for option, values in OTHERS.items():
            for value in sorted((DEFAULTS[option], *values)):
                row = {"part": "sensitivity", "budget": budget, "recipe": f"{option}={value}"}
                is_default = value == DEFAULTS[option]
                found = default if is_default else trial(rows, MODEL, budget, ((option, value),))
                yield from ({**row, **of_model} for of_model in compared(found, default))


def order(rows: Rows, budgets: Sequence[int]) -> Iterator[Row]:
    """Take columns with few values and an order as numbers, as ids by value, and as ids by rate."""
    given = {"as they are": rows, "ids by value": rows.with_ids(int), "ids by rate": rows.with_ids(str)}
    for budget in budgets:
        found = {way: trial(of_way, MODEL, budget) for way, of_way in given.items()}
        for way, of_way in found.items():
            row = {"part": "order", "budget": budget, "recipe": f"month and hour {way}"}
            yield from ({**row, **of_model} for of_model in compared(of_way, found["as they are"]))


VARIATIONS = {"noise": noise, "older": older, "sensitivity": sensitivity}


def main() -> None:
    """Run the parts, print the rows as they come, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the real tables; without it, a generated one")
    parser.add_argument(
        "--parts", help="of criteo,amazon,flights,noise,older,sensitivity,order; all by default"
    )
    parser.add_argument("--budgets", help="for all parts, such as 500,2000")
    parser.add_argument("--small", action="store_true", help="a small generated table, one budget")
    parser.add_argument("--out", type=Path, help="where the rows are kept, instead of a new folder of runs/")
    options = parser.parse_args()
    tables = list(TABLES) if options.data else ["generated"]
    parts = (
        options.parts.split(",") if options.parts else [*tables, *VARIATIONS, *["order"] * bool(options.data)]
    )

    @cache
    def table(name: str) -> Rows:
        return TABLES[name](options.data) if options.data else generated(2_000 if options.small else 60_000)

    def rows_of(part: str) -> Iterator[Row]:
        given = [int(budget) for budget in options.budgets.split(",")] if options.budgets else None
        given = given or ([100] if options.small else None)
        if part == "order":
            yield from order(shuffled_flights(options.data), given or BUDGETS["flights"][:1])
        elif part in VARIATIONS:
            yield from VARIATIONS[part](table(tables[0]), given or SENSITIVE)
        else:
            yield from recipes(table(part), given or BUDGETS[part])

    kept = []
    for part in parts:
        for row in rows_of(part):
            show([row])
            kept.append(row)
    if not options.small:
        installed = {found.name for found in distributions()}
        about = facts([name for name in PACKAGES if name in installed])
        given = {"data": options.data and "FOLDER", "parts": options.parts, "budgets": options.budgets}
        words = [f"--{option} {value}" for option, value in given.items() if value]
        about["command"] = " ".join(["python -m benchmarks.leakage.run", *words])
        write_run(options.out or RUNS / f"{about['date']}-leakage", kept, about)


if __name__ == "__main__":
    main()
