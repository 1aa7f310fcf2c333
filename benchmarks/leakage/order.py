"""How dedicated ids are numbered: what each order is worth to trees, and whether a row's id follows its label.

    python -m benchmarks.leakage.order --data FOLDER   generated and real tables
    python -m benchmarks.leakage.order                 the generated tables alone
    python -m benchmarks.leakage.order --small         the same in seconds, only printed

One codebook is fitted to each table, and its ids are numbered anew by each order, so that only the order
differs. Shared ids keep their order by rate. LightGBM has its defaults, with and without an L2 penalty, and
takes ids as numbers. A seed makes another generated table. For a real one, whose rows keep their split, it
makes other folds and another random order; Amazon's rows, which have no order of time, are also shuffled by it.

A difference is that of the test loss to the order that the library has. Its standard error is that of the mean
of the paired differences per row; that of all seeds, where the seeds share their test rows, is of the means per
row over the seeds.

`flips` flips the label of one row whose value has a dedicated id, fits again, and looks at where the id is
among the ids of all other such values of the column: `followed` says how often it moved with the label.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import vocabfold as vf
from benchmarks.leakage.data import LABEL, amazon, criteo, flights
from benchmarks.leakage.models import losses
from tools.journal import run as run_tasks
from tools.record import Row

PACKAGES = ["vocabfold", "numpy", "pandas", "lightgbm"]
SEEDS = 5
PENALTIES = (0.0, 10.0)  # lambda_l2 of LightGBM
BUDGET = "auto"
BASE = 0.3  # rate of the generated tables
OF_RARER = 8.0  # rows of the rarer label that the library expects of a value that goes by rate
OURS = "vocabfold"
ABOVE, BELOW = "above", "below"

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to fit and to test."""

    train: pd.DataFrame
    test: pd.DataFrame
    features: list[str]
    numbers: list[str]
    is_new: bool  # every seed has other test rows


@dataclass(frozen=True, eq=False)
class Ids:
    """The ids of a column: which are dedicated, and what an order may go by."""

    values: NDArray[np.object_]  # of dedicated ids
    rates: Array
    rows: Ints
    is_dedicated: NDArray[np.bool_]
    mean: float
    strength: float

    def by(self, *keys: NDArray[np.generic]) -> Ints:
        """Return the new number of each id, by the first key, then by the others."""
        places = np.empty(self.rates.size, np.int64)
        places[np.lexsort(keys[::-1])] = np.arange(self.rates.size)
        return places

    def is_below(self, factor: float = 1, rarer: float = OF_RARER) -> NDArray[np.bool_]:
        """Tell which values have fewer rows than the strength, times a factor, or few of the rarer label."""
        expected = self.rows * min(self.mean, 1 - self.mean)
        return self.is_dedicated & ((self.rows < factor * self.strength) | (expected < rarer))


Order = Callable[[Ids, np.random.Generator], Ints]


def as_numbered(ids: Ids, rng: np.random.Generator) -> Ints:
    """Leave the ids as they are."""
    return np.arange(ids.rates.size)


def by_rate(ids: Ids, rng: np.random.Generator) -> Ints:
    """Return the order of all ids by rate."""
    return ids.by(ids.rates, ids.is_dedicated, ids.values)


def at_random(ids: Ids, rng: np.random.Generator) -> Ints:
    """Return a random order of dedicated ids, after all others."""
    drawn = rng.random(ids.rates.size)[ids.by(ids.values, ids.rates)]
    return ids.by(ids.is_dedicated, np.where(ids.is_dedicated, drawn, ids.rates))


def by_rows(ids: Ids, rng: np.random.Generator) -> Ints:
    """Return the order of dedicated ids by their rows, after all others."""
    return ids.by(ids.is_dedicated, np.where(ids.is_dedicated, ids.rows, ids.rates), ids.values)


def above_by_rate(ids: Ids, rng: np.random.Generator, factor: float, rarer: float, by: str) -> Ints:
    """Return the order by rate, with values of few rows, as `is_below` says, at the place of the mean."""
    below = ids.is_below(factor, rarer)
    rates = np.where(below, ids.mean, ids.rates)
    rows = np.where(below, ids.rows if by == "rows" else 0, 0)
    return ids.by(rates, ids.is_dedicated, below, rows, ids.values)


OTHERS: Mapping[str, Order] = {"by rate": by_rate, "at random": at_random, "by rows": by_rows}
VARIANTS: Mapping[str, Order] = {
    "the strength alone": partial(above_by_rate, factor=1, rarer=0, by="value"),
    "4 x the strength alone": partial(above_by_rate, factor=4, rarer=0, by="value"),
    "20 rows of the rarer label": partial(above_by_rate, factor=1, rarer=20, by="value"),
    "few rows by their number": partial(above_by_rate, factor=1, rarer=OF_RARER, by="rows"),
}
ORDERS: Mapping[str, Order] = {OURS: as_numbered} | OTHERS | VARIANTS


def ids_of(book: vf.Codebook, encoded: pd.DataFrame, rows: pd.DataFrame, name: str) -> Ids:
    """Return what is known of the ids of a column; a dedicated id has the rows of its value alone."""
    column = book.columns[name]
    ids = encoded[name].to_numpy(np.int64)
    is_dedicated = np.ones(column.size, np.bool_)
    is_dedicated[list(column.shared)] = False
    if column.n_dedicated < column.size - len(column.shared):
        is_dedicated[column.other] = False
    values = np.full(column.size, "", object)
    values[ids] = rows[name].fillna("").astype(str)
    values[~is_dedicated] = ""
    counted = np.bincount(ids, minlength=column.size)
    return Ids(values, np.array(column.rates), counted, is_dedicated, column.mean, column.strength)


def scattered(
    seed: int, spread: float, n_columns: int, n_values: int, n_rows: int, decay: float | None
) -> Table:
    """Generate columns whose log-odds add up, with values of equal rows, or ever fewer rows by their rank."""
    rng = np.random.default_rng([seed, round(1000 * spread), n_columns])
    n_test = n_rows // 2
    odds = np.full(n_rows + n_test, np.log(BASE / (1 - BASE)))
    columns = {}
    for i in range(n_columns):
        if decay is None:
            drawn = rng.permuted(np.resize(np.arange(n_values), n_rows))
            values = np.append(drawn, rng.integers(0, n_values, n_test))
        else:
            shares = 1 / (np.arange(n_values) + decay)
            values = rng.choice(n_values, n_rows + n_test, p=shares / shares.sum())
        odds += rng.normal(0, spread, n_values)[values]
        names = rng.permutation(n_values)  # so that the order of values says nothing
        columns[f"c{i}"] = np.char.add("v", names[values].astype(str))
    frame = pd.DataFrame(columns)
    frame[LABEL] = (rng.random(odds.size) < 1 / (1 + np.exp(-odds))).astype(int)
    return Table(frame[:n_rows], frame[n_rows:].reset_index(drop=True), list(columns), [], is_new=True)


def real(seed: int, name: str, folder: Path) -> Table:
    """Read a real table: all but the last fifth of the rows are to fit."""
    rows = {"criteo": criteo, "amazon": amazon, "flights": flights}[name](folder)
    frame = pd.concat(rows.parts, ignore_index=True)
    if name == "amazon":
        frame = frame.sample(frac=1, random_state=seed, ignore_index=True)
    n_train = round(0.8 * len(frame))
    test = frame[n_train:].reset_index(drop=True)
    return Table(frame[:n_train], test, rows.features, rows.numbers, is_new=name == "amazon")


def fitted(table: Table, seed: int) -> tuple[vf.Codebook, pd.DataFrame]:
    """Fit a codebook; the folds of the rows depend on the seed."""
    folds = np.random.default_rng([seed, 5]).integers(0, 5, len(table.train))
    book, encoded = vf.fit_transform(
        table.train.assign(fold=folds), LABEL, BUDGET, features=table.features, fold_column="fold"
    )
    return book, encoded


def trained(parts: list[Array], labels: list[Array], penalty: float) -> tuple[float, Array]:
    """Train LightGBM, and return the loss of the training rows, and that of each test row."""
    import lightgbm as lgb

    options = {"objective": "binary", "lambda_l2": penalty, "num_threads": 1, "verbosity": -1, "seed": 0}
    booster = lgb.train(options, lgb.Dataset(parts[0], labels[0], params={"verbosity": -1}), 100)
    found = [
        losses(*both) for both in zip(labels, (booster.predict(x, raw_score=True) for x in parts), strict=True)
    ]
    return float(found[0].mean()), found[1]


def worth(case: str, table_of: Callable[[int], Table], seeds: int) -> Iterator[Row]:
    """Train on the ids of a table in each order."""
    kept: dict[tuple[str, float], list[Array]] = {}
    is_new = True
    for seed in range(seeds):
        table = table_of(seed)
        is_new = table.is_new
        book, encoded = fitted(table, seed)
        frames = encoded, book.transform(table.test)
        labels = [part[LABEL].to_numpy(np.float64) for part in (table.train, table.test)]
        of_columns = {name: ids_of(book, encoded, table.train, name) for name in table.features}
        shares = {
            "n_dedicated": sum(int(ids.is_dedicated.sum()) for ids in of_columns.values()),
            "n_below": sum(int(ids.is_below().sum()) for ids in of_columns.values()),
        }
        for order, number in ORDERS.items():
            rng = np.random.default_rng([seed, 7])
            places = {name: number(ids, rng) for name, ids in of_columns.items()}
            parts = [
                np.column_stack(
                    [
                        *(places[name][frame[name].to_numpy(np.int64)] for name in table.features),
                        *(given[number_].to_numpy(np.float64) for number_ in table.numbers),
                    ]
                ).astype(np.float64)
                for frame, given in zip(frames, (table.train, table.test), strict=True)
            ]
            for penalty in PENALTIES:
                train, test = trained(parts, labels, penalty)
                kept.setdefault((order, penalty), []).append(test)
                difference = test - kept[OURS, penalty][seed]
                yield {
                    "case": case,
                    "seed": seed,
                    "order": order,
                    "lambda_l2": penalty,
                    "train": train,
                    "test": float(test.mean()),
                    **compared([difference], is_new),
                    **shares,
                }
    for (order, penalty), tests in kept.items():
        differences = [test - ours for test, ours in zip(tests, kept[OURS, penalty], strict=True)]
        yield {
            "case": case,
            "seeds": seeds,
            "order": order,
            "lambda_l2": penalty,
            "test": float(np.mean([test.mean() for test in tests])),
            **compared(differences, is_new),
        }


def compared(differences: list[Array], is_new: bool) -> Row:
    """Return the mean of paired differences, and its standard error; the same rows count once."""
    rows = np.concatenate(differences) if is_new else np.mean(differences, axis=0)
    error = float(rows.std(ddof=1) / np.sqrt(rows.size))
    return {"difference": float(rows.mean()), "standard_error": error}


def flips(case: str, table_of: Callable[[int], Table], trials: int) -> Iterator[Row]:
    """Turn single labels, and see which ids move among those of all other values."""
    table, rng = table_of(0), np.random.default_rng(0)
    book, encoded = fitted(table, 0)
    sides: dict[str, list[tuple[str, int]]] = {BELOW: [], ABOVE: []}
    for name in table.features:
        ids = ids_of(book, encoded, table.train, name)
        own = encoded[name].to_numpy(np.int64)
        for side, chosen in ((BELOW, ids.is_below()), (ABOVE, ids.is_dedicated & ~ids.is_below())):
            sides[side] += [(name, int(row)) for row in np.flatnonzero(chosen[own])]
    for side, rows in sides.items():
        tried = [rows[i] for i in rng.choice(len(rows), min(trials, len(rows)), replace=False)] if rows else []
        moves: dict[str, list[int]] = {order: [] for order in ORDERS}
        for name, row in tried:
            flipped = table.train.copy()
            flipped.loc[row, LABEL] = 1 - flipped.loc[row, LABEL]
            other = fitted(Table(flipped, table.test, table.features, [], is_new=True), 0)
            up = 1 if flipped.loc[row, LABEL] else -1
            before = ids_of(book, encoded, table.train, name)
            after = ids_of(*other, flipped, name)
            value = str(table.train.loc[row, name])
            for order, number in ORDERS.items():
                was, now = (
                    _below(ids, number(ids, np.random.default_rng(7)), value) for ids in (before, after)
                )
                moves[order].append(up * (len(now - was) - len(was - now)))
        for order, moved in moves.items():
            yield {
                "case": case,
                "order": order,
                "side": side,
                "tried": len(moved),
                "followed": sum(by > 0 for by in moved),
                "moved": sum(by != 0 for by in moved),
            }


def _below(ids: Ids, places: Ints, value: str) -> set[str]:
    """Return the values with dedicated ids below that of one of them."""
    place = places[np.flatnonzero(ids.is_dedicated & (ids.values == value))[0]]
    return set(ids.values[ids.is_dedicated & (places < place)])


def main() -> None:
    """Run all cases, and keep their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="the folder of the real tables; without it, generated ones alone"
    )
    parser.add_argument("--cases", help="run the cases whose names hold this, and only print them")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--small", action="store_true", help="two seeds of small tables, and a few flips")
    options = parser.parse_args()
    warnings.simplefilter("ignore", vf.VocabfoldWarning)
    scale = 20 if options.small else 1
    seeds, trials = (2, 3) if options.small else (options.seeds, 25)
    generated = {
        "3,000 values of 32 rows, sd 0.15": partial(
            scattered, spread=0.15, n_columns=1, n_values=3000 // scale, n_rows=96_000 // scale, decay=None
        )
    } | {
        f"eight columns, sd {spread:.2f}": partial(
            scattered, spread=spread, n_columns=8, n_values=1000 // scale, n_rows=60_000 // scale, decay=10.0
        )
        for spread in (0.3, 0.15)
    }
    of_data = {
        name: partial(real, name=name, folder=options.data)
        for name in ("criteo", "amazon", "flights")
        if options.data
    }
    tasks = {case: partial(worth, case, table_of, seeds) for case, table_of in (generated | of_data).items()}
    tasks |= {
        f"flips: {case}": partial(flips, f"flips: {case}", table_of, trials)
        for case, table_of in generated.items()
    }
    if options.cases:
        tasks = {case: task for case, task in tasks.items() if options.cases in case}
    run_tasks(
        "order",
        tasks,
        PACKAGES,
        "python -m benchmarks.leakage.order" + " --data FOLDER" * bool(options.data),
        small=options.small or bool(options.cases),
    )


if __name__ == "__main__":
    main()
