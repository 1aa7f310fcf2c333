"""Tables for the benchmark of leakage: rows to fit, to choose with, and to test, none of them twice.

The first 72 % of the rows are for the codebook and the model, the next 8 % for early stopping and choices, the
last 20 % for the figures. Real tables are read from a folder that the caller names; the generated one needs no
folder, and its true rates are known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

LABEL = "label"
_SHARES = (0.72, 0.80)
_FLIGHT = ["carrier", "flight", "tailnum", "origin", "dest"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table in three parts: categories (text or missing), numbers that stay as they are, and the label."""

    name: str
    parts: tuple[pd.DataFrame, ...]  # train, valid, test
    features: list[str]
    numbers: list[str]
    truth: Array | None = None  # the true probabilities of the test rows, if known
    earlier: pd.DataFrame | None = None  # rows before those of the training, for a codebook alone

    @property
    def labels(self) -> list[Array]:
        """Return the labels of the three parts."""
        return [part[LABEL].to_numpy(np.float64) for part in self.parts]

    def with_noise(self, seed: int = 0) -> "Rows":
        """Return the same rows with a nearly unique column that says nothing."""
        rng = np.random.default_rng(seed)
        n_values = 10 * sum(map(len, self.parts))
        parts = tuple(
            part.assign(noise=rng.integers(0, n_values, len(part)).astype(str)) for part in self.parts
        )
        return Rows(f"{self.name} + noise", parts, [*self.features, "noise"], self.numbers)

    def halves(self) -> tuple["Rows", "Rows"]:
        """Return the same table with the earlier, and with the later half of its training rows."""
        middle = len(self.parts[0]) // 2
        halves = self.parts[0][:middle], self.parts[0][middle:].reset_index(drop=True)
        early, late = (replace(self, parts=(half, *self.parts[1:])) for half in halves)
        return early, late

    def after(self, early: "Rows") -> "Rows":
        """Return the same table with the training rows of another one as its earlier rows."""
        return replace(self, earlier=early.parts[0])

    def with_ids(self, kind: type) -> "Rows":
        """Return the same rows with the numbers as categories, of integers or of text."""
        parts = tuple(part.astype(dict.fromkeys(self.numbers, kind)) for part in self.parts)
        return Rows(f"{self.name} as {kind.__name__}", parts, [*self.features, *self.numbers], [])


def in_parts(name: str, frame: pd.DataFrame, numbers: Sequence[str] = (), truth: Array | None = None) -> Rows:
    """Cut a table into its three parts, in the order of its rows."""
    first, second = (round(share * len(frame)) for share in _SHARES)
    parts = tuple(part.reset_index(drop=True) for part in (frame[:first], frame[first:second], frame[second:]))
    features = [column for column in frame if column not in (LABEL, *numbers)]
    return Rows(name, parts, features, list(numbers), None if truth is None else truth[second:])


def criteo(folder: Path) -> Rows:
    """Read the 26 categorical columns of the Criteo sample, in the order of time."""
    names = [LABEL, *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    relation = duckdb.read_csv(
        str(folder / "criteo_100k.tsv.zst"), sep="\t", header=False, names=names, all_varchar=True
    )
    frame = relation.df().drop(columns=names[1:14])
    return in_parts("criteo", frame.astype({LABEL: int}))


def amazon(folder: Path, seed: int = 0) -> Rows:
    """Read the access requests, shuffled: their order is not that of time."""
    frame = duckdb.read_csv(str(folder / "amazon_access.csv.zst"), all_varchar=True).df()
    frame = frame.rename(columns={"ACTION": LABEL}).astype({LABEL: int})
    return in_parts("amazon", frame.sample(frac=1, random_state=seed))


def flights(folder: Path) -> Rows:
    """Read the flights in the order of time; the hour and the distance stay numbers.

    Without the month: the test rows are of months that no model has seen.
    """
    frame = _flights(folder).sort_values("time_hour", kind="stable")
    return in_parts("flights", frame[[LABEL, *_FLIGHT, "hour", "distance"]], ["hour", "distance"])


def shuffled_flights(folder: Path) -> Rows:
    """Read the flights in any order, with month and hour as numbers."""
    frame = _flights(folder).sample(frac=1, random_state=0)
    return in_parts("shuffled flights", frame[[LABEL, *_FLIGHT, "month", "hour"]], ["month", "hour"])


def _flights(folder: Path) -> pd.DataFrame:
    frame = duckdb.read_csv(str(folder / "flights_nyc13.csv.zst"), all_varchar=True).df()
    return frame.astype({LABEL: int, "month": int, "hour": int, "distance": float})


def generated(n_rows: int = 60_000, seed: int = 0) -> Rows:
    """Return rows whose truth is known.

    Values follow Zipf's law and have beta-distributed rates, whose log-odds add up; two columns with few values
    interact: each pair of their values shifts the log-odds.
    """
    rng = np.random.default_rng(seed)
    sizes = {"user": n_rows, "page": n_rows // 3, "site": n_rows // 20, "device": 40, "country": 25}
    columns = {name: (rng.zipf(1.4, n_rows) - 1) % size for name, size in sizes.items()}
    base = 0.25
    odds = np.full(n_rows, np.log(base / (1 - base)))
    for name, values in columns.items():
        rates = rng.beta(8 * base, 8 * (1 - base), sizes[name]).clip(0.01, 0.99)
        odds += 0.6 * np.log(rates / (1 - rates) * (1 - base) / base)[values]
    odds += rng.normal(0, 0.8, (sizes["device"], sizes["country"]))[columns["device"], columns["country"]]
    truth = 1 / (1 + np.exp(-odds))
    frame = pd.DataFrame({name: values.astype(str) for name, values in columns.items()})
    return in_parts("generated", frame.assign(**{LABEL: (rng.random(n_rows) < truth).astype(int)}), truth=truth)


TABLES: dict[str, Callable[[Path], Rows]] = {"criteo": criteo, "amazon": amazon, "flights": flights}
