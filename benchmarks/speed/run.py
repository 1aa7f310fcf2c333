"""How fast the exact fold is, and how good against what else there is: one run, side by side.

    python -m benchmarks.speed.run            all parts at full size, raw rows kept in benchmarks/runs/
    python -m benchmarks.speed.run --small    the same parts in seconds, only printed

Parts: `size` (a million rates, from 2 to 65,536 ids), `growth` (10,000 to 10 million rates), `rivals`
(scikit-learn's entropy tree and kmeans1d on the same counts), `criteo` (26 columns under one budget), `prior`
(how far their rates are shrunk, beside SciPy) and `start` (import, first and later calls in new processes).
Times are the least of the repeats. Our time is that of the whole public call, from unsorted counts to ids, but
for `prior`; the rivals are given ranks or rates, and only their fit is timed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import vocabfold as vf
from benchmarks import criteo_shaped
from benchmarks.speed import prior
from tools.measure import extra_memory, timed
from tools.record import RUNS, facts, write_run

Row = dict[str, Any]
PACKAGES = ["vocabfold", "numpy", "numba", "scipy", "scikit-learn", "kmeans1d"]


def distinct_rates(n_rates: int, seed: int = 0) -> criteo_shaped.Counts:
    """Return counts of about as many distinct rates as values: large counts, rates from a beta(1, 3)."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(10**6, min(10**9, 2**53 // n_rates), n_rates)
    pos = rng.binomial(rows, rng.beta(1, 3, n_rates))
    return rows - pos, pos


def exact(part: str, counts: criteo_shaped.Counts, size: int, repeats: int) -> Row:
    """Time one exact fold."""
    fold, times = timed(repeats, vf.fold, *counts, size)
    return {
        "part": part,
        "method": "exact",
        "n_values": fold.n_values,
        "size": fold.size,
        **times,
        **answer(fold),
    }


def answer(result: vf.Fold | vf.FoldTable) -> Row:
    """Return what stands beside every time of ours."""
    return {"total": result.total, "loss": result.loss, "gap": result.gap}


def by_size(small: bool) -> Iterator[Row]:
    """One column, many sizes."""
    counts = distinct_rates(10_000 if small else 10**6)
    for size in (2, 16, 256, 4096, 65_536):
        yield exact("size", counts, size, 5)


def by_rates(small: bool) -> Iterator[Row]:
    """One size, many columns."""
    for n_rates in (1_000, 3_000, 10_000) if small else (10**4, 10**5, 10**6, 10**7):
        counts = distinct_rates(n_rates)
        for size in (256, 4096):
            row = exact("growth", counts, min(size, n_rates), 3 if n_rates > 10**6 else 5)
            yield row | {"extra_mb": extra_memory(vf.fold, *counts, size)}


def rivals(small: bool) -> Iterator[Row]:
    """Give the same counts to what else finds groups of neighbouring rates."""
    import kmeans1d
    from sklearn.tree import DecisionTreeClassifier

    for n_values, size in [(3_000, 16)] if small else [(10**5, 256), (10**6, 16), (10**6, 256)]:
        neg, pos = distinct_rates(n_values)
        yield exact("rivals", (neg, pos), size, 9)

        rate = pos / (neg + pos)
        in_order = np.argsort(rate)
        rank = np.empty((n_values, 1), np.float32)
        rank[in_order, 0] = np.arange(n_values)
        for name, places in [
            ("scikit-learn tree", slice(None)),
            ("scikit-learn tree, rows sorted for it", in_order),
        ]:
            tree = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=size)
            label = np.tile([0, 1], n_values)
            weight = np.stack([neg[places], pos[places]], axis=1).ravel()
            _, times = timed(5, tree.fit, np.repeat(rank[places], 2, axis=0), label, weight)
            yield rival(name, neg, pos, tree.apply(rank), size, times)

        result, times = timed(1, kmeans1d.cluster, rate, size)
        yield rival("kmeans1d", neg, pos, np.asarray(result.clusters), size, times)


def rival(method: str, neg: Any, pos: Any, ids: Any, size: int, times: Row) -> Row:
    """Describe a rival's groups by the same measure."""
    groups = np.unique(ids, return_inverse=True)[1]
    group_neg, group_pos = (np.bincount(groups, side).astype(np.int64) for side in (neg, pos))
    total = vf.fold(neg, pos, neg.size).total
    loss = total - vf.fold(group_neg, group_pos, group_neg.size).total
    row = {"part": "rivals", "method": method, "n_values": neg.size, "size": size}
    return row | times | {"total": total, "loss": loss}


def criteo(small: bool) -> Iterator[Row]:
    """Order, split and fold all columns under one budget."""
    scale = 0.001 if small else 1.0
    columns = criteo_shaped.columns(scale)
    n_values = sum(neg.size for neg, _ in columns.values())
    for thousands in (0.1, 0.3, 1, 3, 10, 20, 40, 80, 120, 160):
        budget = max(26, int(thousands * 1000 * scale))
        table, times = timed(3, vf.fold_table, columns, budget)
        memory = {"extra_mb": extra_memory(vf.fold_table, columns, budget)}
        row = {"part": "criteo", "method": "exact", "n_values": n_values, "size": table.size, "budget": budget}
        yield row | times | answer(table) | memory
        table, times = timed(1, vf.fold_table, columns, budget, allocation="uniform")
        yield row | {"method": "exact, uniform split", "size": table.size} | times | answer(table)


def start(small: bool) -> Iterator[Row]:
    """Import and fold in new processes: without compiled kernels, and with them."""
    fold = "import vocabfold as vf; vf.fold([90, 45, 10, 70, 20], [10, 5, 30, 30, 80], 3)"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for what, code, repeats in [
            ("python alone", "pass", 5),
            ("import vocabfold", "import vocabfold", 5),
            ("first fold ever, compiles", fold, 1),
            ("fold in a new process", fold, 2 if small else 7),
        ]:
            command = [sys.executable, "-c", code]
            _, times = timed(repeats, subprocess.run, command, env=environment, check=True)
            yield {"part": "start", "method": what, **times}


PARTS = {
    "size": by_size,
    "growth": by_rates,
    "rivals": rivals,
    "criteo": criteo,
    "prior": prior.rows,
    "start": start,
}


def main() -> None:
    """Run the parts asked for and keep the raw rows, from which `report` makes tables and a plot."""
    parser = argparse.ArgumentParser(description="Measure the exact fold.")
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes; only prints")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (default: all)")
    options = parser.parse_args()
    vf.fold_table({"a": distinct_rates(5_000)}, 300)  # compile first; `start` times that
    rows = []
    for part in options.parts.split(","):
        for row in PARTS[part](options.small):
            rows.append(row)
            print(
                "  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()),
                flush=True,
            )
    if not options.small:
        about = facts(PACKAGES) | {"command": " ".join(["python -m benchmarks.speed.run", *sys.argv[1:]])}
        folder = RUNS / f"{about['date']}-speed"
        write_run(folder, rows, about)
        print(f"kept in {folder.name}")


if __name__ == "__main__":
    main()
