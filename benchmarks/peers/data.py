"""Workloads for the peers: training rows, and held-out rows that nobody fits on, as text and a 0/1 label.

One column: values of power-law frequency, at least one row each, with beta-distributed true rates, as in
`criteo_shaped`; a quarter as many held-out rows are drawn from the same frequencies and rates, 2 % of them with
values that no training row has. 26 columns: Criteo-shaped rows, shuffled, or the real sample in the order of
time; the first 80 % are for training, the others are held out. A missing value is the text "missing", as not
every peer takes missing ones.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import vocabfold as vf
from benchmarks.criteo_rows import write_rows
from benchmarks.criteo_shaped import CARDINALITIES, CLICK_RATE

LABEL = "label"
SAMPLE = "criteo_100k.tsv.zst"
_MISSING = "missing"
_HELD_OUT, _UNSEEN, _TRAIN = 0.25, 0.02, 0.8

Array = NDArray[Any]


@dataclass(frozen=True)
class About:
    """What is known of a workload.

    `size` is the most groups per column that spends the budget uniformly. Of peers that look at rates alone,
    small columns leave more to the others: `size_of_rates`.
    """

    budget: int
    size: int
    size_of_rates: int
    n_values: int
    n_rows: int  # for training
    n_test: int
    total: float  # I(X;C) of the training rows in nats, summed over the columns
    best_gain: float | None = None  # of the true rates on the held-out rows, if they are known


@dataclass(frozen=True, eq=False)
class Rows:
    """A workload in memory."""

    train: pd.DataFrame
    test: pd.DataFrame
    about: About

    @property
    def features(self) -> list[str]:
        """Return the names of the columns to encode."""
        return [name for name in self.train.columns if name != LABEL]

    @property
    def labels(self) -> Array:
        """Return the labels of the training rows."""
        return self.train[LABEL].to_numpy()

    def head(self, n_rows: int) -> "Rows":
        """Return the first rows only, to warm up with."""
        parts = (part.head(n_rows).reset_index(drop=True) for part in (self.train, self.test))
        return Rows(*parts, self.about)


def information(neg: Array, pos: Array) -> float:
    """Return the mutual information of groups and label, in nats."""
    return float(vf.fold(neg, pos, 1).total)


def log_loss(label: Array, rate: Array | float) -> float:
    """Return the mean log-loss of rates, in nats."""
    return float(-np.log(np.where(label == 1, rate, 1 - np.asarray(rate))).mean())


def column(folder: Path, n_values: int, n_rows: int, budget: int) -> None:
    """Write the rows of one column."""
    rng = np.random.default_rng(0)
    n_new, n_test = max(1, round(_UNSEEN * n_values)), round(_HELD_OUT * n_rows)
    rates = rng.beta(8 * CLICK_RATE, 8 * (1 - CLICK_RATE), n_values + n_new)
    weights = np.arange(1, n_values + 1) ** -1.2
    count = 1 + rng.poisson(weights * ((n_rows - n_values) / weights.sum()))
    count[0] += n_rows - count.sum()
    train = rng.permutation(np.repeat(np.arange(n_values), count))
    seen = train[rng.integers(0, n_rows, n_test)]  # in proportion to the rows of each value
    test = np.where(rng.random(n_test) < _UNSEEN, n_values + rng.integers(0, n_new, n_test), seen)
    names = np.char.mod("%08x", rng.permutation(4 * rates.size)[: rates.size] * 1_021)  # in no order
    parts = []
    for values in (train, test):
        label = (rng.random(values.size) < rates[values]).astype(np.int64)
        parts.append(pa.table({LABEL: label, "value": pa.array(names).take(pa.array(values))}))
    truth, label = rates[test].clip(1e-9, 1 - 1e-9), parts[1][LABEL].to_numpy()
    best = log_loss(label, float(parts[0][LABEL].to_numpy().mean())) - log_loss(label, truth)
    _write(folder, *parts, budget, best_gain=best)


def shaped(folder: Path, n_rows: int, budget: int) -> None:
    """Write Criteo-shaped rows."""
    with tempfile.TemporaryDirectory() as other:
        file = Path(other) / "rows.parquet"
        write_rows(file, n_rows)
        rows = duckdb.read_parquet(str(file)).to_arrow_table()
    # shuffled, as those that make the number of clicks equal in all columns are the last ones of the file
    _split(folder, rows.take(np.random.default_rng(0).permutation(n_rows)), budget)


def real(folder: Path, data: Path, budget: int) -> None:
    """Write the real Criteo sample, in the order of time."""
    names = [LABEL, *(f"I{i}" for i in range(1, 14)), *CARDINALITIES]
    relation = duckdb.read_csv(str(data / SAMPLE), sep="\t", header=False, names=names, all_varchar=True)
    _split(folder, relation.to_arrow_table(), budget)


def _split(folder: Path, rows: pa.Table, budget: int) -> None:
    columns = {name: pc.fill_null(rows[name], _MISSING) for name in CARDINALITIES}
    rows = pa.table({LABEL: pc.cast(rows[LABEL], pa.int64()), **columns})
    first = round(_TRAIN * len(rows))
    _write(folder, rows[:first], rows[first:], budget)


def _write(folder: Path, train: pa.Table, test: pa.Table, budget: int, best_gain: float | None = None) -> None:
    """Write both parts, and what is known of them."""
    for name, part in (("train", train), ("test", test)):
        pq.write_table(part, folder / f"{name}.parquet")
    counts = vf.count(train, LABEL, [name for name in train.column_names if name != LABEL])
    tables = [counts[name] for name in counts.features]
    apart = [vf.fold(table["neg"], table["pos"], len(table)) for table in tables]  # an id for every rate
    n_values, n_rates = (np.array([getattr(fold, what) for fold in apart]) for what in ("n_values", "size"))
    about = About(
        budget,
        uniform(n_values, budget),
        uniform(n_rates, budget),
        int(n_values.sum()),
        len(train),
        len(test),
        sum(fold.total for fold in apart),
        best_gain,
    )
    (folder / "about.json").write_text(json.dumps(asdict(about)), encoding="utf-8")


def uniform(distinct: Array, budget: int) -> int:
    """Return the most groups per column for which all columns stay within the budget.

    Columns with fewer values than that leave the rest to the others.
    """
    size = budget // distinct.size
    while size < distinct.max() and np.minimum(distinct, size + 1).sum() <= budget:
        size += 1
    return size


def read(folder: Path, kind: str) -> Rows:
    """Read a workload, its values as pandas' own text ("str") or as Python objects ("object")."""
    about = About(**json.loads((folder / "about.json").read_text(encoding="utf-8")))
    parts = []
    for name in ("train", "test"):
        frame = pq.read_table(folder / f"{name}.parquet").to_pandas()
        features = [column for column in frame.columns if column != LABEL]
        parts.append(frame.astype(dict.fromkeys(features, kind)))
    return Rows(*parts, about)


def workloads(small: bool, data: Path | None) -> Mapping[str, Callable[[Path], None] | None]:
    """Return what writes each workload to a folder, or None where its data was not given."""
    if small:
        return {
            "a": lambda folder: column(folder, 300, 4_000, 16),
            "d": lambda folder: shaped(folder, 2_000, 200),
        }
    return {
        "a": lambda folder: column(folder, 15_000, 200_000, 16),
        "b": lambda folder: column(folder, 220_000, 2_000_000, 256),
        "c": lambda folder: column(folder, 1_000_000, 8_000_000, 256),
        "d": lambda folder: shaped(folder, 500_000, 2_000),
        "real": (lambda folder: real(folder, data, 2_000)) if data else None,
    }
