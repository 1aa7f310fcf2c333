"""What an id of their own is worth for unseen values, trained on rows whose value has no rows in other folds.

    python -m benchmarks.leakage.unseen --data FOLDER   generated and real tables
    python -m benchmarks.leakage.unseen                 the generated tables alone
    python -m benchmarks.leakage.unseen --small         the same in seconds, only printed

Each table is encoded with unseen="other" and with unseen="own", and all else is the same: the budget, the
folds, the models. The generated tables have four columns with many values, most of them rare. In one the rate
of a value does not depend on how frequent it is; in the other, rare values have lower rates, and new ones too.

A seed makes other folds, and another generated table; Amazon's rows, which have no order of time, are also
shuffled by it. Those of Criteo and flights keep their split, and have one seed. A difference is that of the
test loss to unseen="other"; its standard error is that of the mean of the paired differences per row.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import vocabfold as vf
from benchmarks.leakage.data import LABEL, Array, Rows, amazon, criteo, flights, in_parts
from benchmarks.leakage.models import MODELS, score
from benchmarks.leakage.order import compared
from benchmarks.leakage.recipes import MODEL, encode
from tools.journal import run as run_tasks
from tools.record import Row

PACKAGES = ["vocabfold", "numpy", "pandas", "scikit-learn", "lightgbm", "torch"]
SEEDS = 2
BUDGETS = {"criteo": 2_000, "amazon": 1_000, "flights": 1_000}
OTHER, OWN = "other", "own"
_EVERY = 4  # of so many flights, one: their order of time stays

Tables = Callable[[int], Rows]


def new_values(seed: int, slope: float, n_rows: int) -> Rows:
    """Generate columns in which many test rows have a new value; rates may rise with the values' shares."""
    rng = np.random.default_rng([seed, round(10 * slope)])
    n_values = 2 * n_rows
    shares = 1 / (np.arange(n_values) + 20.0)
    logs = np.log(shares)
    odds = np.full(n_rows, -1.0)
    columns = {}
    for i in range(4):
        values = rng.choice(n_values, n_rows, p=shares / shares.sum())
        rises = slope * (logs - logs[values].mean())
        odds += (rng.normal(0, 0.5, n_values) + rises)[values]
        columns[f"c{i}"] = np.char.add("v", rng.permutation(n_values)[values].astype(str))
    label = (rng.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(int)
    return in_parts("generated", pd.DataFrame(columns | {LABEL: label}))


def real(seed: int, name: str, folder: Path) -> Rows:
    """Read a real table."""
    if name == "amazon":
        return amazon(folder, seed)
    rows = {"criteo": criteo, "flights": flights}[name](folder)
    if name == "flights":
        parts = tuple(part[::_EVERY].reset_index(drop=True) for part in rows.parts)
        return replace(rows, parts=parts)
    return rows


def worth(case: str, table_of: Tables, budget: int, seeds: int) -> Iterator[Row]:
    """Train all models on both encodings of a table, of which every seed has other test rows."""
    kept: dict[tuple[str, str], list[Array]] = {}
    marks: list[Array] = []
    for seed in range(seeds):
        rows = table_of(seed)
        known = {name: set(rows.parts[0][name]) for name in rows.features}
        unseen = np.column_stack([~rows.parts[2][name].isin(known[name]) for name in rows.features])
        marks.append(unseen.any(axis=1))
        for way in (OTHER, OWN):
            encoded = encode(rows, MODEL, budget, unseen=way, fold_seed=seed)
            for model in MODELS:
                scores = score(model, rows, encoded)
                kept.setdefault((model, way), []).append(scores.test)
                yield {
                    "case": case,
                    "seed": seed,
                    "model": model,
                    "unseen": way,
                    "ids": sum(encoded.sizes),
                    "new": float(unseen.mean()),
                    "valid": scores.valid,
                    "test": float(scores.test.mean()),
                    **compared([scores.test - kept[model, OTHER][seed]], is_new=True),
                    "setting": scores.setting,
                }
    for (model, way), tests in kept.items():
        differences = [test - other for test, other in zip(tests, kept[model, OTHER], strict=True)]
        with_new = compared([d[mark] for d, mark in zip(differences, marks, strict=True)], is_new=True)
        yield {
            "case": case,
            "seeds": seeds,
            "model": model,
            "unseen": way,
            "with_new": float(np.mean([mark.mean() for mark in marks])),
            "test": float(np.mean([test.mean() for test in tests])),
            **compared(differences, is_new=True),
            **{f"{name}_with_new": number for name, number in with_new.items()},
        }


def main() -> None:
    """Run all cases, and keep their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="the folder of the real tables; without it, generated ones alone"
    )
    parser.add_argument("--cases", help="run the cases whose names hold this, and only print them")
    parser.add_argument("--small", action="store_true", help="one seed of small tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore", vf.VocabfoldWarning)
    n_rows, seeds = (2_000, 1) if options.small else (40_000, SEEDS)
    slopes = {"many new values": 0.0, "many new values, rare ones with lower rates": 0.3}
    tasks: dict[str, Callable[[], Iterator[Row]]] = {
        case: partial(worth, case, partial(new_values, slope=slope, n_rows=n_rows), 500, seeds)
        for case, slope in slopes.items()
    }
    for name, budget in BUDGETS.items() if options.data else ():
        table_of = partial(real, name=name, folder=options.data)
        tasks[name] = partial(worth, name, table_of, budget, seeds if name == "amazon" else 1)
    if options.cases:
        tasks = {case: task for case, task in tasks.items() if options.cases in case}
    run_tasks(
        "unseen",
        tasks,
        PACKAGES,
        "python -m benchmarks.leakage.unseen" + " --data FOLDER" * bool(options.data),
        small=options.small or bool(options.cases),
    )


if __name__ == "__main__":
    main()
