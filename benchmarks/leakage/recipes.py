"""Rows + budget -> ids for training, validation and test rows: ours, the paper's, and what people use.

A recipe sees the labels of the training rows only. Those without a budget use as many ids as they like.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import vocabfold as vf
from benchmarks.leakage.data import LABEL, Rows

MODEL, NAIVE, PAPER, FILTERED = "model", "model, naive", "paper", "paper, 100-row filter"
FREQUENCY, HASHING, ALL_VALUES = "frequency", "hashing", "no compression"
TARGET, KHIOPS = "TargetEncoder", "Khiops"
OLDER = "model, older codebook"  # for rows that have earlier ones
_MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Encoded:
    """The three parts as matrices: ids below the sizes of their columns, or, without sizes, numbers."""

    parts: list[NDArray[Any]]  # train, valid, test
    sizes: list[int]
    is_ordered: bool  # the numbering of the ids means something
    seconds: float = 0.0


class NotRun(Exception):
    """A recipe cannot be run here; the text says why."""


def model(rows: Rows, budget: int, **options: Any) -> Encoded:
    """Fold for a model, training rows out of fold."""
    book, train = vf.fit_transform(rows.parts[0], LABEL, budget, features=rows.features, **options)
    return _of_book(book, train, rows)


def older(rows: Rows, budget: int) -> Encoded:
    """Fit a codebook on rows before those of the model, which it encodes like any others."""
    book = vf.fit(vf.count(rows.earlier, LABEL, rows.features), budget, min_count=1)
    return _of_book(book, book.transform(rows.parts[0][rows.features]), rows)


def naive(rows: Rows, budget: int, **options: Any) -> Encoded:
    """Fit a codebook, and encode the rows it was fitted on like any others."""
    book = vf.fit(vf.count(rows.parts[0], LABEL, rows.features), budget, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # vocabfold warns of exactly this
        train = book.transform(rows.parts[0][rows.features])
    return _of_book(book, train, rows)


def paper(rows: Rows, budget: int) -> Encoded:
    """Keep the most information of the training rows, and encode the same rows."""
    return naive(rows, budget, aim="information", min_count=1)


def filtered(rows: Rows, budget: int) -> Encoded:
    """Do the same, with the values seen fewer than 100 times grouped as one."""
    return naive(rows, budget, aim="information", min_count=100)


def _of_book(book: Any, train: pd.DataFrame, rows: Rows) -> Encoded:
    others = (book.transform(part[rows.features]) for part in rows.parts[1:])
    parts = [frame[rows.features].to_numpy(np.int64) for frame in (train, *others)]
    return Encoded(parts, [book.sizes[name] for name in rows.features], is_ordered=True)


def frequency(rows: Rows, budget: int) -> Encoded:
    """Give ids to the most frequent pairs of column and value; all others of a column share one."""
    return _of_values(rows, _counts(rows).nlargest(budget - len(rows.features)))


def all_values(rows: Rows, budget: int) -> Encoded:
    """Give ids to all values seen five times; all others of a column share one."""
    counts = _counts(rows)
    return _of_values(rows, counts[counts >= 5])


def _counts(rows: Rows) -> pd.Series:
    """Return how often each (column, value) occurs in the training rows."""
    return pd.concat({name: rows.parts[0][name].fillna(_MISSING).value_counts() for name in rows.features})


def _of_values(rows: Rows, kept: pd.Series) -> Encoded:
    """Give ids to the values that are kept, by their frequency; the last id of a column is for all others."""
    values = {name: kept[name].index if name in kept.index else pd.Index([]) for name in rows.features}

    def ids(name: str, part: pd.DataFrame) -> NDArray[np.int64]:
        found = values[name].get_indexer(part[name].fillna(_MISSING))
        return np.where(found < 0, len(values[name]), found)

    parts = [np.column_stack([ids(name, part) for name in rows.features]) for part in rows.parts]
    return Encoded(parts, [len(values[name]) + 1 for name in rows.features], is_ordered=False)


def hashing(rows: Rows, budget: int) -> Encoded:
    """Hash values into buckets, shared out by the logarithm of a column's distinct values, at most one each."""
    distinct = np.array([rows.parts[0][name].nunique(dropna=False) for name in rows.features])
    low, high = 0.0, float(budget)
    for _ in range(60):
        middle = (low + high) / 2
        shares = np.maximum(1, np.minimum(distinct, (middle * np.log1p(distinct)).astype(int)))
        low, high = (middle, high) if shares.sum() <= budget else (low, middle)
    sizes = np.maximum(1, np.minimum(distinct, (low * np.log1p(distinct)).astype(int)))

    def ids(name: str, part: pd.DataFrame, size: int) -> NDArray[np.int64]:
        values = part[name].fillna(_MISSING).to_numpy(object)
        return (pd.util.hash_array(values, categorize=True) % np.uint64(size)).astype(np.int64)

    parts = [
        np.column_stack([ids(name, part, size) for name, size in zip(rows.features, sizes, strict=True)])
        for part in rows.parts
    ]
    return Encoded(parts, sizes.tolist(), is_ordered=False)


def target(rows: Rows, budget: int) -> Encoded:
    """Replace each value by its rate, training rows out of fold: one number per column, no ids."""
    from sklearn.preprocessing import TargetEncoder

    frames = [part[rows.features].fillna(_MISSING) for part in rows.parts]
    encoder = TargetEncoder(cv=5, target_type="binary", random_state=0)
    train = encoder.fit_transform(frames[0], rows.labels[0])
    return Encoded([train, *map(encoder.transform, frames[1:])], [], is_ordered=True)


def khiops(rows: Rows, budget: int) -> Encoded:
    """Group the values of each column with Khiops, which chooses the number of groups itself."""
    if not find_spec("khiops"):
        raise NotRun("khiops is not installed")
    from khiops.core.exceptions import KhiopsEnvironmentError
    from khiops.sklearn import KhiopsEncoder

    # its programs lie beside Python, and it looks for them on the path only
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    frames = [part[rows.features].fillna(_MISSING).astype(object) for part in rows.parts]
    encoder = KhiopsEncoder(n_trees=0, n_pairs=0, n_features=0, n_text_features=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sample datasets", UserWarning)
        try:
            encoder.fit(frames[0], rows.labels[0].astype(int))
        except KhiopsEnvironmentError:
            raise NotRun("the programs of Khiops are not installed") from None
    groups = [pd.DataFrame(encoder.transform(frame)).astype(str) for frame in frames]
    names = {column: pd.Index(sorted(groups[0][column].unique())) for column in groups[0]}
    parts = [
        np.column_stack([values.get_indexer(group[column]).clip(0) for column, values in names.items()])
        for group in groups
    ]
    return Encoded(parts, [len(values) for values in names.values()], is_ordered=False)


RECIPES: Mapping[str, Callable[..., Encoded]] = {
    MODEL: model,
    NAIVE: naive,
    PAPER: paper,
    FILTERED: filtered,
    FREQUENCY: frequency,
    HASHING: hashing,
    ALL_VALUES: all_values,
    TARGET: target,
    KHIOPS: khiops,
}
FREE = (ALL_VALUES, TARGET, KHIOPS)  # of the budget


def encode(rows: Rows, recipe: str, budget: int, **options: Any) -> Encoded:
    """Encode the rows, and note the time."""
    start = time.perf_counter()
    encoded = (older if recipe == OLDER else RECIPES[recipe])(rows, budget, **options)
    return Encoded(encoded.parts, encoded.sizes, encoded.is_ordered, time.perf_counter() - start)
