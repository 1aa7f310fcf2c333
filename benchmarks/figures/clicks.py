"""Clicks with their numbers, in the order of time: rows to train, to choose with, and to test.

Numbers are put on a logarithmic scale and standardised by the training rows; where one is missing it counts as
the mean, and a column of its own says so.
"""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from benchmarks.leakage import data
from benchmarks.leakage.data import LABEL, Rows

NUMBERS = [f"I{i}" for i in range(1, 14)]
CATEGORIES = [f"C{i}" for i in range(1, 27)]
SAMPLE = "criteo_100k.tsv.zst"
CRITEO_SAMPLE, CHALLENGE = "criteo sample", "criteo challenge"  # the names of their rows
NOT_RUN = "- not run: the challenge's own file, which nobody may redistribute; `--criteo train.txt` takes it"
PAPER_TRAIN, PAPER_TEST = 37_000_000, 4_400_000

_SHARES = (0.72, 0.80)  # where the validation, and where the test rows begin
_PAPER_SHARES = (0.9 * PAPER_TRAIN / (PAPER_TRAIN + PAPER_TEST), PAPER_TRAIN / (PAPER_TRAIN + PAPER_TEST))


def file_of(path: Path) -> Path:
    """Return the file of the sample, given that or the folder it lies in."""
    return path / SAMPLE if path.is_dir() else path


def sample(path: Path) -> Rows:
    """Read the sample of 100,000 Criteo clicks, from its file or from the folder it lies in."""
    return _split(CRITEO_SAMPLE, _read(file_of(path)), NUMBERS, _SHARES)


def challenge(path: Path, limit: int) -> Rows:
    """Read the first rows of the challenge's train.txt, split as the paper does.

    The paper trains on 37 million rows and holds 4.4 million out. Of fewer rows, the same shares; and the last
    tenth of the training rows are validation rows, which the paper has not.
    """
    limit = min(limit, PAPER_TRAIN + PAPER_TEST)
    return _split(CHALLENGE, _read(path, limit), NUMBERS, _PAPER_SHARES)


def generated(n_rows: int = 60_000, seed: int = 0) -> Rows:
    """Return generated rows with two numbers that are a little informative, one of them with gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.concat(data.generated(n_rows, seed).parts, ignore_index=True)
    visits = rng.lognormal(1 + 0.3 * frame[LABEL], 1.0)
    frame["visits"] = np.where(rng.random(n_rows) < 0.2, np.nan, np.floor(visits))
    frame["depth"] = rng.poisson(3 - 0.5 * frame[LABEL]) - 1.0
    return _split("generated", frame, ["visits", "depth"], _SHARES)


def _read(path: Path, limit: int | None = None) -> pd.DataFrame:
    names = [LABEL, *NUMBERS, *CATEGORIES]
    relation = duckdb.read_csv(str(path), sep="\t", header=False, names=names, all_varchar=True)
    frame = (relation.limit(limit) if limit else relation).df()
    return frame.astype({LABEL: int} | dict.fromkeys(NUMBERS, np.float64))


def _split(name: str, frame: pd.DataFrame, numbers: list[str], shares: tuple[float, float]) -> Rows:
    """Cut a table into its three parts, in the order of its rows."""
    first, second = (round(share * len(frame)) for share in shares)
    scaled = _scaled(frame[numbers], first)
    frame = pd.concat([frame.drop(columns=numbers), scaled], axis=1)
    parts = tuple(part.reset_index(drop=True) for part in (frame[:first], frame[first:second], frame[second:]))
    features = [column for column in frame if column not in (LABEL, *scaled)]
    return Rows(name, parts, features, list(scaled))


def _scaled(numbers: pd.DataFrame, n_train: int) -> pd.DataFrame:
    """Return the numbers on a logarithmic scale that keeps signs, and which of them are missing."""
    gaps = numbers.isna()
    scaled = np.sign(numbers) * np.log1p(numbers.abs())
    train = scaled[:n_train]
    scaled = ((scaled - train.mean()) / train.std().clip(lower=1e-9)).fillna(0.0)
    return pd.concat([scaled, gaps.loc[:, gaps.any()].add_suffix(" missing").astype(np.float64)], axis=1)
