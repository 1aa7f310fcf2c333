"""What an out-of-fold id is worth where other columns identify its value.

    python -m benchmarks.leakage.identified            five seeds, a minute
    python -m benchmarks.leakage.identified --small    one seed of a small table, only printed
    python -m benchmarks.leakage.identified --report   the table in docs/leakage.md, of the newest run

Out of fold, a training row has the id of the rate of its value in the other folds, which is low where its own
fold has many positive rows. Across values that tells nothing. Within a value it tells labels, inverted, and a
model can learn that if other columns show which value it is. Here supplier and shop together make the product.
The id from an older log is that of as many earlier rows. The loss is that of LightGBM with its defaults.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

import vocabfold as vf
from benchmarks.leakage.data import LABEL
from tools.journal import run as run_tasks
from tools.record import Row
from tools.tables import README, Cell, make_report, number, table

PACKAGES = ["vocabfold", "numpy", "pandas", "scikit-learn", "lightgbm"]
PAGE = README.parent / "docs" / "leakage.md"
FEATURES = ["product", "supplier", "shop"]
WITHOUT, OUT_OF_FOLD, OLDER = "supplier and shop", "product out of fold, too", "product by an older log, too"
SEEDS, FOLDS = 5, (2, 5, 20)
_INTRODUCTION = """
Log-losses of LightGBM on new rows, the mean of {seeds} tables of {products} products with 25 rows each. In
brackets is the mean difference to `supplier and shop` with its standard error over the tables. `within` is the
correlation of id and label among the training rows of a product.
"""


def rows_of(rng: np.random.Generator, odds: np.ndarray) -> pd.DataFrame:
    """Generate rows of products with these log-odds."""
    side = round(odds.size**0.5)
    product = rng.integers(0, odds.size, 25 * odds.size)
    label = (rng.random(product.size) < 1 / (1 + np.exp(-odds[product]))).astype(int)
    columns = {"product": product, "supplier": product // side, "shop": product % side}
    texts = {name: np.char.add(name[:2], values.astype(str)) for name, values in columns.items()}
    return pd.DataFrame(texts | {LABEL: label})


def worth(n_products: int, folds: int, seeds: int) -> Iterator[Row]:
    """Train on the ids of supplier and shop, and on those of the product beside them."""
    tests: dict[str, list[float]] = {}
    within = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        odds = rng.normal(-0.8, 0.5, n_products)
        older, train, test = (rows_of(rng, odds) for _ in range(3))
        book, ids = vf.fit_transform(
            train, LABEL, n_products // 9, features=FEATURES, folds=folds, only_ids=True
        )
        old_book = vf.fit(vf.count(older, LABEL, FEATURES, folds=folds), n_products // 9)
        of = (
            book.transform(test[FEATURES]),
            old_book.transform(train[FEATURES]),
            old_book.transform(test[FEATURES]),
        )
        new_ids, old_ids, old_new_ids = of
        for way, columns, parts in (
            (WITHOUT, FEATURES[1:], (ids, new_ids)),
            (OUT_OF_FOLD, FEATURES, (ids, new_ids)),
            (
                OLDER,
                FEATURES,
                (
                    ids.assign(product=old_ids["product"]),
                    new_ids.assign(product=old_new_ids["product"]),
                ),
            ),
        ):
            model = lightgbm.LGBMClassifier(verbosity=-1, n_jobs=1).fit(parts[0][columns], train[LABEL])
            tests.setdefault(way, []).append(
                float(log_loss(test[LABEL], model.predict_proba(parts[1][columns])[:, 1]))
            )
        by_product = [
            side - side.groupby(train["product"]).transform("mean") for side in (ids["product"], train[LABEL])
        ]
        within.append(np.corrcoef(*by_product)[0, 1])
    for way, losses in tests.items():
        differences = np.array(losses) - np.array(tests[WITHOUT])
        yield {
            "folds": folds,
            "seeds": seeds,
            "products": n_products,
            "ids": way,
            "test": float(np.mean(losses)),
            "difference": float(differences.mean()),
            "standard_error": float(differences.std(ddof=1) / seeds**0.5) if seeds > 1 else 0.0,
            "within": float(np.mean(within)),
        }


def losses(rows: Sequence[Row]) -> str:
    """Return the table: a line for each number of folds."""
    lines = [
        {"folds": folds, "within": next(row["within"] for row in rows if row["folds"] == folds)}
        | {row["ids"]: _cell(row) for row in rows if row["folds"] == folds}
        for folds in dict.fromkeys(row["folds"] for row in rows)
    ]
    heads: dict[str, Cell] = {"folds": number("folds", "d"), "within": number("within", ".2f")}
    heads |= {way: number(way, "") for way in (WITHOUT, OUT_OF_FOLD, OLDER)}
    return _INTRODUCTION.format(**rows[0]) + "\n" + table(lines, heads)


def _cell(row: Row) -> str:
    if row["ids"] == WITHOUT:
        return f"{row['test']:.4f}"
    return f"{row['test']:.4f} ({row['difference']:+.4f} ± {row['standard_error']:.4f})"


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the table of a run."""
    facts = [f"- {fact['fact']}: {fact['is']}" for fact in about]
    text = "\n".join(["# Out-of-fold ids where other columns identify the value\n", *facts, losses(rows)])
    (folder / "README.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def main() -> None:
    """Run all numbers of folds, and keep their rows; or make the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="one seed of a small table")
    parser.add_argument("--report", action="store_true", help="only make the table of the newest run")
    options = parser.parse_args()
    if options.report:
        make_report("identified", PAGE, write_report, lambda rows: losses(rows).strip(), lambda rows: True)
        return
    warnings.simplefilter("ignore", vf.VocabfoldWarning)
    n_products, seeds = (100, 1) if options.small else (900, SEEDS)
    tasks = {f"{folds} folds": partial(worth, n_products, folds, seeds) for folds in FOLDS}
    run_tasks("identified", tasks, PACKAGES, "python -m benchmarks.leakage.identified", small=options.small)


if __name__ == "__main__":
    main()
