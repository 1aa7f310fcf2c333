"""Leaks: what the label of one row does to the id of its value.

`order`: a row whose value has a dedicated id gets the other label, all rows are fitted again, and the id is
looked for among all others of its column. If the value has fewer rows than the order by rate takes, it has to
stay where it was among all values like it, and these have to stay side by side: the trial failed if not. So all
of them move past another id at once, which `together` counts, or none. Under `over` is a value that has enough
rows after the flip, because the prior moved. Of values with enough rows, `followed` says how many ids moved
with the label: that is known, and no failure.
"""

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
BUDGET = 250
_SPREADS = (0.15, 0.3, 0.6)  # of the log-odds
_BASE = -1.0  # log-odds
_N_VALUES, _N_ROWS = 300, 20_000


def run(small: bool) -> Iterator[Row]:
    """Try all leaks."""
    yield from order(30 if small else 1500)


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
        value, turned = values[row], labels.copy()
        turned[row] = 1 - turned[row]
        after = Ids.of(values, turned)
        if value in before.few:
            with few.case(f"trial {i}: {value}"):
                _stays(few, value, before, after)
        else:
            with many.case(f"trial {i}: {value}"):
                moved = len(after.below(value)) - len(before.below(value))
                many.figures["followed"] += moved * (1 if turned[row] else -1) > 0
    yield from (few.row, many.row)


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

    @classmethod
    def of(cls, values: Any, labels: Any) -> "Ids":
        """Fit rows of one column."""
        table = pa.table({"value": values, "label": labels})
        book = vf.fit(vf.count(table, "label"), BUDGET, min_count=1)
        column, found = book.columns["value"], book["value"].to_pylist()
        least = book.settings["dedicated_from"]
        rows = {one["value"]: one["neg"] + one["pos"] for one in found}
        dedicated = {one["value"]: one["id"] for one in found if rows[one["value"]] >= least}
        return cls(dedicated, rows, Prior(column.mean, column.strength).rows_to_order)

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


if __name__ == "__main__":
    harness.main("leaks", __doc__, run)
