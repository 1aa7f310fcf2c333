"""Leaks: what the label of one row does to the id of its value, and folds that depend on the label.

`order`: a row whose value has a dedicated id gets the other label, all rows are fitted again, and the id is
looked for among all others of its column. If the value has fewer rows than the order by rate takes, it has to
stay where it was among all values like it, and these have to stay side by side: the trial failed if not. So all
of them move past another id at once, which `together` counts, or none. Under `over` is a value that has enough
rows after the flip, because the prior moved. Of values with enough rows, `followed` says how many ids moved
with the label: that is known, and no failure.

`weights`: the same for values with few rows, where a negative row weighs 20 times as much as a positive one. So
the label of a row also decides its weight, and the flip may not decide either who has a dedicated id: these are
the values with enough rows, each counted once.

`folds`: rows are assigned to folds, and fitted. Honest folds may not raise a warning: at random, by a hash of
a group of users, in time order, where label rates drift and differ between groups. Dishonest folds have to: by
the position of rows that are sorted by label, all of them, in each of two parts, or one half of them among the
others. In two thirds of the trials, the rows of one label weigh 20 times as much.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import vocabfold as vf
from harden.lib import harness
from harden.lib.tally import Tally
from tools.record import Row
from vocabfold.folding.prior import Prior

FEW = "order: one label of a value with fewer rows than the order by rate takes"
MANY = "order: one label of a value with enough rows for it"
WEIGHTS = "weights: one label, and with it the weight, of a value with few rows"
HONEST = "folds: honest ones warn of nothing"
DISHONEST = "folds: those that go with the label warn"
BUDGET = 250
_SPREADS = (0.15, 0.3, 0.6)  # of the log-odds
_WEAK = _SPREADS[:2]  # with which some frequent values have few rows for the order
_BASE = -1.0  # log-odds
_N_VALUES, _N_ROWS = 300, 20_000
_HEAVY = (20.0, 1.0)  # of a row, by label
_DRIFT = 0.1  # of the log-odds over time, and between groups


def run(small: bool) -> Iterator[Row]:
    """Try all leaks."""
    if harness.is_wanted("order"):
        yield from order(30 if small else 1000)
    if harness.is_wanted("weights"):
        yield from weights(30 if small else 300)
    if harness.is_wanted("folds"):
        yield from folds(30 if small else 1000)


def order(trials: int) -> Iterator[Row]:
    """Turn one label after the other, and see which ids move."""
    rng = np.random.default_rng(3)
    few, many = Tally(FEW), Tally(MANY, figures={"followed": 0})
    for i in range(trials):
        if i % 30 == 0:
            values, labels = generated(rng, _SPREADS[i // 30 % len(_SPREADS)])
            before = Ids.of(values, labels)
        row = rng.integers(labels.size)
        while values[row] not in before.dedicated:
            row = rng.integers(labels.size)
        value, flipped = values[row], labels.copy()
        flipped[row] = 1 - flipped[row]
        after = Ids.of(values, flipped)
        if value in before.few:
            with few.case(f"trial {i}: {value}"):
                _stays(few, value, before, after)
        else:
            with many.case(f"trial {i}: {value}"):
                moved = len(after.below(value)) - len(before.below(value))
                many.figures["followed"] += moved * (1 if flipped[row] else -1) > 0
    yield from (few.row, many.row)


def weights(trials: int) -> Iterator[Row]:
    """Turn one label after the other, where weights go with labels, and see which ids move."""
    rng = np.random.default_rng(4)
    tally = Tally(WEIGHTS)
    for i in range(trials):
        if i % 30 == 0:
            values, labels = generated(rng, _WEAK[i // 30 % len(_WEAK)])
            before = Ids.of(values, labels, _HEAVY)
            of_few = np.flatnonzero(np.isin(values, list(before.few)))
        row = rng.choice(of_few)
        value, flipped = values[row], labels.copy()
        flipped[row] = 1 - flipped[row]
        after = Ids.of(values, flipped, _HEAVY)
        with tally.case(f"trial {i}: {value}"):
            for ids in (before, after):
                assert set(ids.dedicated) == ids.frequent, "not the values with enough rows"
            assert before.frequent == after.frequent, "the flip decided who is frequent"
            _stays(tally, value, before, after)
    yield tally.row


def folds(trials: int) -> Iterator[Row]:
    """Assign rows to folds of all kinds, and see which warn."""
    rng = np.random.default_rng(5)
    honest, dishonest = Tally(HONEST), Tally(DISHONEST)
    for i in range(trials):
        n_rows = int(10 ** rng.uniform(3, 4.7))
        values, groups, labels = drifting(rng, n_rows, _SPREADS[i % len(_SPREADS)])
        heavy = np.take([(1.0, 1.0), _HEAVY, (1.0, 20.0)][i % 3], labels)
        options = {"aim": ("model", "information")[i // 3 % 2], "min_count": (1, 20)[i // 6 % 2]}
        place, by_label = np.arange(n_rows), np.argsort(labels, kind="stable")
        n_folds = int(rng.choice([2, 3, 5, 10]))
        kinds = {
            "at random": rng.integers(0, n_folds * 10 ** rng.integers(0, 3), n_rows),
            "by group": groups * 48271 % 65537 % n_folds,
            "in time order": place * int(rng.choice([5, 10, 50])) // n_rows,
        }
        kind = list(kinds)[int(rng.integers(3))]
        with honest.case(f"trial {i}: {kind}, {n_rows} rows"):
            assert not (said := _warnings(values, labels, heavy, kinds[kind], options)), said
        half = np.sort(rng.permutation(n_rows)[: n_rows // 2])
        partly = place.copy()
        partly[half] = half[np.argsort(labels[half], kind="stable")]
        kinds = {
            "sorted by label": by_label,
            "sorted in two parts": np.lexsort((labels, place * 2 // n_rows)),
            "half of them sorted": partly,
        }
        kind = list(kinds)[int(rng.integers(3))]
        n_folds += kind == "sorted in two parts" and n_folds < 4  # two parts alike make two folds alike
        positions = np.empty(n_rows, np.int64)
        positions[kinds[kind]] = place * n_folds // n_rows
        with dishonest.case(f"trial {i}: {kind}, {n_rows} rows, {n_folds} folds"):
            assert _warnings(values, labels, heavy, positions, options), "no warning"
    yield from (honest.row, dishonest.row)


def _warnings(values: Any, labels: Any, heavy: Any, fold: Any, options: dict[str, Any]) -> list[str]:
    """Fit rows with these folds, and return what is said of the folds."""
    table = pa.table({"value": values, "label": labels, "heavy": heavy, "fold": fold})
    weight = None if (heavy == 1).all() else "heavy"
    counts = vf.count(table, "label", "value", fold_column="fold", weight=weight)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", vf.AdviceWarning)
        vf.fit(counts, BUDGET, **options)
    return [str(one.message) for one in caught]


def _stays(tally: Tally, value: str, before: "Ids", after: "Ids") -> None:
    """Fail if a value with few rows is elsewhere among its like, or these are apart."""
    alike = before.few & after.few
    assert alike >= {one for one in before.few if before.rows[one] < after.rows_to_order}
    assert before.below(value) & alike == after.below(value) & alike, "it moved"
    for ids in (before, after):
        places = sorted(ids.dedicated[one] for one in ids.few)
        assert places == list(range(places[0], places[0] + len(places))), "another id is between"
    if value not in after.few:
        tally.add("over")
    elif before.below(value) != after.below(value):
        tally.add("together")


@dataclass(frozen=True)
class Ids:
    """The dedicated ids of a column, and which of their values have few rows."""

    dedicated: dict[str, int]
    rows: dict[str, int]
    rows_to_order: float
    least: float  # rows of a value with a dedicated id

    @classmethod
    def of(cls, values: Any, labels: Any, weights: tuple[float, float] | None = None) -> "Ids":
        """Fit rows of one column, which may have a weight by label."""
        table = pa.table({"value": values, "label": labels, "weight": np.take(weights or (1.0, 1.0), labels)})
        counts = vf.count(table, "label", "value", weight="weight" if weights else None)
        book = vf.fit(counts, BUDGET, min_count=1)
        column, found = book.columns["value"], book["value"].to_pylist()
        rows = dict(zip(*np.unique(values, return_counts=True), strict=True))
        dedicated = {one["value"]: one["id"] for one in found if one["id"] not in column.shared}
        order = Prior(column.mean, column.strength).rows_to_order
        return cls(dedicated, rows, order, book.settings["dedicated_from"])

    @property
    def frequent(self) -> set[str]:
        """The values with enough rows for a dedicated id."""
        return {value for value, n_rows in self.rows.items() if n_rows >= self.least}

    @property
    def few(self) -> set[str]:
        """The values with fewer rows than the order by rate takes."""
        return {value for value in self.dedicated if self.rows[value] < self.rows_to_order}

    def below(self, value: str) -> set[str]:
        """Return the values whose dedicated ids are below that of one of them."""
        return {one for one, id in self.dedicated.items() if id < self.dedicated[value]}


def generated(rng: np.random.Generator, spread: float) -> tuple[Any, Any]:
    """Return values from few rows to many, and labels that depend on them."""
    shares = 1 / (np.arange(_N_VALUES) + 3)
    ranks = rng.choice(_N_VALUES, _N_ROWS, p=shares / shares.sum())
    names = np.char.add("v", rng.permutation(_N_VALUES).astype(str))
    odds = _BASE + rng.normal(0, spread, _N_VALUES)[ranks]
    return names[ranks], (rng.random(ranks.size) < 1 / (1 + np.exp(-odds))).astype(int)


def drifting(rng: np.random.Generator, n_rows: int, spread: float) -> tuple[Any, Any, Any]:
    """Return values, groups and labels that depend on them and, a little, on time."""
    shares = 1 / (np.arange(_N_VALUES) + 3)
    ranks = rng.choice(_N_VALUES, n_rows, p=shares / shares.sum())
    groups = rng.integers(0, 200, n_rows)
    odds = rng.choice([0.0, -1.0, -2.0]) + rng.normal(0, spread, _N_VALUES)[ranks]
    odds += _DRIFT * np.sin(np.arange(n_rows) / n_rows * 6) + rng.normal(0, _DRIFT, 200)[groups]
    return ranks.astype(str), groups, (rng.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(int)


if __name__ == "__main__":
    harness.main("leaks", __doc__, run)
