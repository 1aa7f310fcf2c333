"""Every method on the same counts: what it loses against the optimum, and how long it takes.

    python -m benchmarks.methods.run [--data FOLDER]     all parts, raw rows kept in benchmarks/runs/
    python -m benchmarks.methods.run --small             the same parts in seconds, only printed

Parts: `column` (one column of 100,000 rates), `shaped` (26 columns with the shape of the Criteo challenge),
`real` (the 100,000 Criteo rows in FOLDER/criteo_100k.tsv.zst) and `growth` (the paper's algorithms on 10,000
to 10 million values, against what it states: O(n log n) and O(n log^2 n)).

Times are of the whole public call, which always proves its bound with the exact solver, and the least of the
repeats. Only `growth` times the algorithms alone, on values that are not merged, as the paper states them.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import vocabfold as vf
from benchmarks import criteo_shaped
from benchmarks.speed.run import distinct_rates
from tools.measure import timed
from tools.record import RUNS, facts, show, write_run
from vocabfold.folding import information
from vocabfold.folding.curve import Curve, order
from vocabfold.folding.methods import METHODS, NOT_JOINT
from vocabfold.folding.solve.cut_tree import Gains
from vocabfold.folding.solve.greedy import greedy, stochastic
from vocabfold.folding.solve.threshold import threshold

Row = dict[str, Any]
_SEEDS = 5
_MAX_CELLS = 10**8  # of the table of `dynamic`: half a minute


def column(small: bool, data: Path | None) -> Iterator[Row]:
    """One column, several sizes."""
    counts = distinct_rates(2_000 if small else 100_000)
    for size in (16, 256) if small else (16, 256, 4096, 32_768):
        for method in METHODS:
            row = {"part": "column", "method": method, "n_values": counts[0].size, "budget": size}
            if method == "dynamic" and size * counts[0].size > _MAX_CELLS:
                yield row | {"not_run": "its table would have 400 million cells or more"}
                continue
            yield row | measured(5, vf.fold, *counts, size, method=method)
        shards = size // 10
        if shards > 1:
            row |= {"method": f"threshold, {shards:,} shards"}
            yield row | measured(5, vf.fold, *counts, size, method="threshold", shards=shards)


def shaped(small: bool, data: Path | None) -> Iterator[Row]:
    """All columns of the Criteo challenge, as generated."""
    scale = 0.001 if small else 1.0
    columns = criteo_shaped.columns(scale)
    budgets = (100,) if small else (10_000, 40_000, 80_000)
    yield from over_budgets("shaped", columns, budgets, 2)


def real(small: bool, data: Path | None) -> Iterator[Row]:
    """All columns of real rows."""
    if data is None:
        yield {"part": "real", "method": "all", "not_run": "no --data"}
        return
    counts = vf.count(data / "criteo_100k.tsv.zst", "label", preset="criteo")
    columns = {
        name: tuple(counts[name][side].to_numpy() for side in ("neg", "pos")) for name in counts.features
    }
    yield from over_budgets("real", columns, (500, 2_000, 4_000), 5)


def over_budgets(part: str, columns: Any, budgets: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """Every method and allocation on the same columns."""
    n_values = sum(neg.size for neg, _ in columns.values())
    for budget in budgets:
        for method in METHODS:
            for allocation in ("joint", "uniform", "information"):
                row = {"part": part, "method": method, "allocation": allocation}
                row |= {"n_values": n_values, "budget": budget}
                if method in NOT_JOINT and allocation == "joint":
                    continue
                if method not in (*NOT_JOINT, "exact") and allocation != "joint":
                    continue
                if method == "dynamic" and part == "shaped" and n_values > 10**6:
                    yield row | {"not_run": "its tables would take minutes"}
                    continue
                yield row | measured(
                    repeats, vf.fold_table, columns, budget, method=method, allocation=allocation
                )


def measured(repeats: int, call: Callable[..., Any], *args: Any, **options: Any) -> Row:
    """Time a fold, and describe it; one that draws samples by the mean of several seeds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fold, times = timed(repeats, call, *args, **options)
    losses = [fold.loss]
    if options["method"] == "stochastic":
        losses += [call(*args, **options, seed=seed).loss for seed in range(1, _SEEDS)]
    said = {"said": str(caught[0].message)} if caught else {}
    spread = {"least_loss": min(losses), "most_loss": max(losses)} if len(losses) > 1 else {}
    return {"size": fold.size, **times, "total": fold.total, "loss": float(np.mean(losses)), **spread, **said}


def growth(small: bool, data: Path | None) -> Iterator[Row]:
    """Time the paper's algorithms alone, on values as they are."""
    algorithms: dict[str, Callable[[Curve, int], Gains]] = {
        "greedy": greedy,
        "stochastic": lambda curve, n_cuts: stochastic(curve, n_cuts, 0.1, np.random.default_rng(0)),
        "threshold": lambda curve, n_cuts: threshold([curve], [1.0], n_cuts, 0.1, 1)[0],
    }
    shapes = {
        "distinct": distinct_rates,
        "shaped": lambda n_values: criteo_shaped.column(n_values, 4 * n_values, np.random.default_rng(0)),
    }
    for shape, counts in shapes.items():
        for n_values in (1_000, 3_000) if small else (10**4, 10**5, 10**6, 10**7):
            curve = order(*counts(n_values), merge=False)
            for method, algorithm in algorithms.items():
                for size in (256, 4096):
                    size = min(size, n_values // 2)
                    (cuts, _), times = timed(3, algorithm, curve, size - 1)
                    loss = information.loss(curve.cum_neg, curve.cum_pos, np.sort(cuts))
                    row = {"part": "growth", "method": method, "rates": shape}
                    row |= {"n_values": curve.n_rates, "budget": size, "size": cuts.size + 1}
                    yield row | times | {"total": curve.total, "loss": loss}


PARTS = {"column": column, "shaped": shaped, "real": real, "growth": growth}


def main() -> None:
    """Run the parts asked for and keep the raw rows, from which `report` makes tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with criteo_100k.tsv.zst")
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes; only prints")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (default: all)")
    options = parser.parse_args()
    for method in METHODS:  # compile first
        columns = {"a": distinct_rates(2_000), "b": distinct_rates(1_000)}
        vf.fold_table(columns, 50, method=method, allocation="uniform" if method in NOT_JOINT else "joint")
    rows = []
    for part in options.parts.split(","):
        for row in PARTS[part](options.small, options.data):
            rows.append(row)
            show([row])
            sys.stdout.flush()
    if not options.small:
        about = facts(["vocabfold", "numpy", "numba"])
        about["command"] = "python -m benchmarks.methods.run" + (" --data FOLDER" if options.data else "")
        folder = RUNS / f"{about['date']}-methods"
        write_run(folder, rows, about)
        print(f"kept in {folder.name}")


if __name__ == "__main__":
    main()
