"""Numbers at their limits, made by chance, and their judge: Python's own integers and fractions."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

import vocabfold as vf
from harden.lib.tests import reference

TOLERANCE = 1e-12  # of I(X;C)
ROUNDED = 1e-13  # nats, beyond 2**52 units
UNITS = 2**20  # per row, if a weight is not whole
MOST_ROWS, MOST_UNITS = 2**53, 2**62
Sums = dict[Any, list[int]]  # the units of each value, by label


def assert_close(found: float, judged: float, tolerance: float, what: str) -> None:
    """Fail if a number is too far from the judge's."""
    assert abs(found - judged) <= tolerance, f"{what} is {found!r} and should be {judged!r}"


def bare_table(rng: random.Random, total: int) -> tuple[list[int], list[int]]:
    """Return counts of a few values with such a total."""
    pairs = [
        [int(2 ** rng.uniform(0, 30)) * rng.randint(0, 1) for _ in range(2)] for _ in range(rng.randint(1, 6))
    ]
    spare = total - sum(map(sum, pairs))
    share = rng.choice((0, spare // 3, spare // 2, spare))
    pairs += [[share, spare - share]] if rng.random() < 0.5 else [[share, 0], [0, spare - share]]
    return [neg for neg, _ in pairs], [pos for _, pos in pairs]


def make_weights(rng: random.Random) -> tuple[str, pa.Array]:
    """Return weights of some kind for some rows, some of which cannot be counted."""
    n = rng.randint(2, 12)
    kind = rng.choice(("whole", "unsigned", "fractions", "floats", "tiny", "huge", "mixed", "limit"))
    of_kind: Mapping[str, Callable[[], pa.Array]] = {
        "whole": lambda: pa.array([int(2 ** rng.uniform(0, rng.choice((10, 41, 62)))) for _ in range(n)]),
        "unsigned": lambda: pa.array(
            [int(2 ** rng.uniform(0, rng.choice((30, 64)))) for _ in range(n)], "uint64"
        ),
        "fractions": lambda: pa.array([rng.uniform(0, 3) for _ in range(n)]),
        "floats": lambda: pa.array([rng.uniform(0, 3) for _ in range(n)], pa.float32()),
        "tiny": lambda: pa.array([2.0 ** rng.uniform(-24, -18) for _ in range(n - 1)] + [5e-324]),
        "huge": lambda: pa.array([rng.choice((2.0**41, 1e300, 2.0**42, 1e12 + 0.5, 0.0)) for _ in range(n)]),
        "mixed": lambda: pa.array(
            [rng.choice((1.0, 2.0**32, 0.5**21, 0.3, 2.0**-20, 1e9 + 0.1)) for _ in range(n)]
        ),
        "limit": lambda: pa.array([2.0**42 - n * 2**10, *[rng.choice((0.5, 1.0, 1024.0))] * (n - 1)]),
    }
    return kind, of_kind[kind]()


def make_rows(rng: random.Random, weights: pa.Array) -> pa.Table:
    """Return rows of a few values and labels, with these weights."""
    values = [rng.choice("abcd") for _ in weights]
    return pa.table({"x": values, "y": [rng.randint(0, 1) for _ in weights], "w": weights})


def judgement(rows: pa.Table) -> tuple[int, Sums] | None:
    """Return the units per row and the units of each value; nothing, if they are to be refused."""
    weights = [Fraction(weight) for weight in rows["w"].to_pylist()]
    if sum(weights) > MOST_UNITS // UNITS:
        return None
    units = 1 if all(weight.denominator == 1 for weight in weights) else UNITS
    sums: Sums = {}
    for value, label, weight in zip(rows["x"].to_pylist(), rows["y"].to_pylist(), weights, strict=True):
        # Half units are rounded up, as every engine does; as doubles are exact, nothing else is.
        in_units = math.floor(Fraction(float(weight)) * units + Fraction(1, 2))
        if in_units:
            sums.setdefault(value, [0, 0])[label] += in_units
    return (units, sums) if sums else None


def assert_counts(counts: vf.Counts, units: int, sums: Sums) -> None:
    """Compare counts with the judge's, exactly."""
    assert counts.units_per_row == units, f"{counts.units_per_row} units per row"
    assert (counts.neg, counts.pos) == tuple(sum(side) for side in zip(*sums.values(), strict=True)), "totals"
    table = counts["x"]
    found = dict(
        zip(table["value"].to_pylist(), zip(*map(_column(table), ("neg", "pos")), strict=True), strict=True)
    )
    in_rows = {
        value: tuple(side if units == 1 else side / units for side in both) for value, both in sums.items()
    }
    assert found == in_rows, f"{found} is not {in_rows}"


def _column(table: pa.Table) -> Callable[[str], list[Any]]:
    return lambda name: table[name].to_pylist()


def make_shard(rng: random.Random) -> tuple[vf.Counts, int, Sums]:
    """Return counts of a few rows whose weights are whole or not, and what they are."""
    judged = None
    while judged is None:
        rows = make_rows(rng, make_weights(rng)[1])
        judged = judgement(rows)
    return vf.count(rows, "y", ["x"], weight="w"), *judged


def sum_of(one: tuple[int, Sums], other: tuple[int, Sums]) -> tuple[int, Sums] | None:
    """Return the sum of two tables of units; nothing, if they are too many."""
    units = max(one[0], other[0])
    sums: Sums = {}
    for scale, table in ((units // max(1, of_row), table) for of_row, table in (one, other)):
        for value, both in table.items():
            mine = sums.setdefault(value, [0, 0])
            sums[value] = [old + scale * more for old, more in zip(mine, both, strict=True)]
    return None if sum(map(sum, sums.values())) > MOST_UNITS else (units, sums)


def heavy_rows(rng: random.Random, total: int) -> tuple[pa.Table, int, Sums]:
    """Return rows of so many units, most of them in a few values, many in values of a few units."""
    values: list[str] = []
    labels: list[int] = []
    units: list[int] = []

    def add(value: str, label: int, n: int) -> None:
        if n > 0:
            values.append(value)
            labels.append(label)
            units.append(n)

    for i in range(rng.randint(3, 12)):
        largest = rng.choice((2, 6, 20, 34))
        for label in (0, 1):
            add(f"small {i}", label, int(2 ** rng.uniform(0, largest)) * rng.randint(0, 2))
    n_giants = rng.randint(2, 4)
    spare = (total - sum(units)) // n_giants
    for i in range(n_giants):
        share = spare * rng.choice((1, 2, 4, 5, 7)) // 8
        add(f"giant {i}", 0, _as_double(spare - share))
        add(f"giant {i}", 1, _as_double(share))
    if all(n % UNITS == 0 for n in units):
        add("small", 0, 1)
    rows = pa.table({"x": values, "y": labels, "w": [n / UNITS for n in units]})
    judged = judgement(rows)
    assert judged is not None
    return rows, *judged


def _as_double(number: int) -> int:
    """Return the double next to a number, or the one below if it is larger."""
    return number >> (shift := max(0, number.bit_length() - 53)) << shift


def sides_of(sums: Sums) -> tuple[list[int], list[int]]:
    """Return the units of all values, by label."""
    return [neg for neg, _ in sums.values()], [pos for _, pos in sums.values()]


def allowed_error(sums: Sums) -> float:
    """Return by how much an information may be off."""
    is_rounded = sum(map(sum, sums.values())) >= 2**52
    return TOLERANCE * reference.total(*sides_of(sums)) + ROUNDED * is_rounded


def ids_of(book: vf.Codebook, sums: Sums) -> dict[Any, int]:
    """Return the id of each value."""
    return dict(zip(sums, book.ids("x", list(sums)).tolist(), strict=True))


def check_book(book: vf.Codebook, rows: pa.Table, units: int, sums: Sums) -> None:
    """Compare what a codebook says of itself with its ids, and each id with the interval of its values."""
    column, ids = book.columns["x"], ids_of(book, sums)
    sides, groups = sides_of(sums), [ids[value] for value in sums]
    assert all(0 <= one < column.size for one in groups), "an id is out of range"
    for what, found, judged in (
        ("total", column.total, reference.total(*sides)),
        ("information", column.information, reference.information(*sides, groups)),
        ("loss", column.loss, reference.loss(*sides, groups)),
    ):
        assert_close(found, judged, allowed_error(sums), what)
    borders = list(column.borders)
    assert borders == sorted(set(borders)), f"borders do not rise: {borders}"
    evidence = _evidence(book, rows, units)
    for value in sums:
        if ids[value] in column.shared and book["x"]["value"].to_pylist().count(value):
            of_value = [both for (other, _), both in evidence.items() if other == value]
            _check_interval(book, of_value, ids[value], value)


def _evidence(book: vf.Codebook, rows: pa.Table, units: int) -> dict[tuple[str, int], list[Fraction]]:
    """Return what rates are read from, by value, fold and label: rows with a prior, weights without one."""
    found: dict[tuple[str, int], list[Fraction]] = {}
    folds = rows["fold"].to_pylist() if "fold" in rows.column_names else [0] * rows.num_rows
    for value, label, weight, fold in zip(
        *(rows[name].to_pylist() for name in ("x", "y", "w")), folds, strict=True
    ):
        in_units = math.floor(Fraction(weight) * units + Fraction(1, 2))
        of_row = Fraction(in_units > 0) if book.columns["x"].strength else Fraction(in_units, units)
        found.setdefault((value, fold), [Fraction(0), Fraction(0)])[label] += of_row
    return found


def _check_interval(book: vf.Codebook, rest: list[list[Fraction]], found: int, value: str) -> None:
    """Check that an id is that of the interval in which the rate of such rows lies, but for rounding."""
    column = book.columns["x"]
    neg, pos = (sum((both[label] for both in rest), Fraction(0)) for label in (0, 1))
    rate = column.mean
    if math.isfinite(column.strength) and neg + pos + column.strength:
        mean, strength = Fraction(column.mean), Fraction(column.strength)
        rate = float((pos + mean * strength) / (neg + pos + strength))
    place = column.shared.index(found)
    ends = [0.0, *column.borders, 1.0]
    rounding = 1e-12 * min(rate, 1 - rate) + 1e-15
    is_inside = ends[place] - rounding <= rate <= ends[place + 1] + rounding
    assert is_inside, f"{value!r} has the rate {rate} and the id of {ends[place]} to {ends[place + 1]}"


def check_optimum(book: vf.Codebook, compared: Sequence[Any], sums: Sums, budget: int) -> None:
    """Compare a codebook, and a comparison, with the best fold of its size."""
    sides, ids = sides_of(sums), ids_of(book, sums)
    kept = reference.information(*sides, [ids[value] for value in sums])
    best = reference.best_by_programme(*sides, min(budget, len(reference.merged(*sides))))[-1]
    assert_close(kept, best, allowed_error(sums), "of the optimum")
    assert_close(compared[0].information, best, allowed_error(sums), "compare")


def check_rows(book: vf.Codebook, rows: pa.Table, found: list[int], units: int) -> None:
    """Check the id of each row of an infrequent value: that of the value's rate in the other folds."""
    column, known = book.columns["x"], set(book["x"]["value"].to_pylist())
    evidence = _evidence(book, rows, units)
    for value, fold, one in zip(rows["x"].to_pylist(), rows["fold"].to_pylist(), found, strict=True):
        assert 0 <= one < column.size, "an id is out of range"
        if value in known and one in column.shared:
            rest = [both for (other, place), both in evidence.items() if other == value and place != fold]
            _check_interval(book, rest, one, value)
