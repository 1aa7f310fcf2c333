"""Overflow and rounding: totals, sums and weights up to what is counted exactly, and just beyond.

Every way numbers come in: bare counts, shards that are added, weights of every size and type, options that are
absurdly large. The judge counts with Python's integers and fractions, which have no limits, and computes
informations with 60 digits. Each answer must be right, or refused with `InputError`; all else is a failure:
another number, another exception, a warning of numpy, or a refusal of what the documentation allows. Counts are
compared exactly. Informations may be 1e-12 of I(X;C) off up to 2^52 units, where they are exact, and beyond,
where `fit` rounds units off as it says, 1e-13 nats more. `refused` says how often that was the answer;
a case may ask several times.
"""

import math
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import vocabfold as vf
from harden.lib import harness
from harden.lib.tally import Tally
from harden.lib.tests import reference
from tools.record import Row

TOLERANCE = 1e-12  # of I(X;C)
ROUNDED = 1e-13  # nats, beyond 2**52 units
UNITS = 2**20  # per row, if a weight is not whole
MOST_ROWS, MOST_UNITS = 2**53, 2**62
ABSURD = [2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400]
METHODS = ("exact", "dynamic", "greedy", "stochastic", "threshold", "divisive", "agglomerative")
METHODS += ("bucketing", "frequency", "selection", "hashing")

Sums = dict[Any, list[int]]  # the units of each value, by label


def run(small: bool) -> Iterator[Row]:
    """Try all of them; a small run takes a part of the seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(seems to be what|rows weigh up to|shards are more than)")
        yield _bare_counts(6 if small else 600)
        yield _weights(4 if small else 400)
        yield _shards(1 if small else 10)
        yield _codebooks(1 if small else 60)
        yield _rows_of_training(1 if small else 24)
        yield _estimator(1 if small else 40)
        yield _options(ABSURD[-1:] if small else ABSURD, every=12 if small else 1)


def _bare_counts(n: int) -> Row:
    """Fold bare counts whose total is 2**53, a little less or more, or far more."""
    tally = Tally("bare counts around 2**53: fold, fold_table, curve, compare")
    for seed in range(n):
        rng = random.Random(f"bare {seed}")
        totals = [(MOST_ROWS, MOST_ROWS - 1), (MOST_ROWS + 1, MOST_ROWS + 2, 2**54, 2**63, 2**64, 10**30)]
        total = rng.choice(totals[seed % 3 == 2])
        neg, pos = _table(rng, total)
        method, is_allowed = METHODS[seed % len(METHODS)], total <= MOST_ROWS
        with tally.case(f"seed {seed}, {method}, total {total}: {neg} {pos}"):
            size = rng.randint(1, 6)
            fold = _tried(tally, is_allowed, vf.fold, neg, pos, size, method=method)
            split = {} if method in ("exact", "dynamic", "greedy") else {"allocation": "uniform"}
            columns = {"a": (neg, pos), "b": (pos, neg)}
            table = _tried(tally, is_allowed, vf.fold_table, columns, 9, method=method, **split)
            sizes = _tried(tally, is_allowed, vf.curve, neg, pos)
            whole = reference.total(neg, pos)
            told = _tried(tally, is_allowed and whole > 0, vf.compare, columns, 9, "exact")
            if not is_allowed:
                continue
            for found, sides in ((fold, (neg, pos)), (table["a"], (neg, pos)), (table["b"], (pos, neg))):
                kept, lost = reference.information(*sides, found.ids), reference.loss(*sides, found.ids)
                for what, is_said, judged in (
                    ("total", found.total, whole),
                    ("information", found.information, kept),
                    ("loss", found.loss, lost),
                ):
                    _close(is_said, judged, TOLERANCE * whole, what)
            best = reference.best_by_programme(neg, pos, sizes[0].size)
            for information, judged in zip(sizes[1], best, strict=True):
                _close(information, judged, TOLERANCE * whole, "curve")
            if whole and method in ("exact", "dynamic"):
                _close(told[0].information, table.information, 2 * TOLERANCE * whole, "compare")
    return tally.row


def _weights(n: int) -> Row:
    """Count rows with weights of every size and type."""
    tally = Tally("weights: fractions, huge, tiny, mixed, that round to 0")
    for seed in range(n):
        rng = random.Random(f"weights {seed}")
        kind, weights = _weights_of(rng)
        rows = _rows(rng, weights)
        with tally.case(f"seed {seed}, {kind}: {rows.to_pylist()}"):
            judged = _judged(rows)
            counts = _tried(tally, judged is not None, vf.count, rows, "y", ["x"], weight="w")
            if judged is not None:
                _same_counts(counts, *judged)
    return tally.row


def _shards(n: int) -> Row:
    """Add shards, in any order and grouping, until they are too many units."""
    tally = Tally("sums of shards up to 2**62 units and beyond, saved and loaded")
    for seed in range(n):
        rng = random.Random(f"shards {seed}")
        with tally.case(f"seed {seed}"), tempfile.TemporaryDirectory() as folder:
            shards = [_shard(rng) for _ in range(rng.randint(2, 12))]
            of_all: Any = (0, {})
            whole = None
            for counts, units, sums in shards:
                is_allowed = _added(of_all, (units, sums)) is not None
                added = (
                    counts if whole is None else _tried(tally, is_allowed, lambda a, b: a + b, whole, counts)
                )
                if is_allowed:
                    of_all, whole = _added(of_all, (units, sums)), added
                    whole = whole.compacted() if rng.random() < 0.3 else whole
            assert whole is not None
            _same_counts(whole, *of_all)
            while _added(of_all, of_all) is not None:  # up to the limit, by doubling
                of_all, whole = _added(of_all, of_all), whole + whole
                whole = whole.compacted() if len(whole.parts) > 50 else whole
            _same_counts(whole, *of_all)
            _tried(tally, False, lambda a: a + a, whole)
            whole.save(folder)
            _same_counts(vf.load_counts(folder), *of_all)
    return tally.row


def _codebooks(n: int) -> Row:
    """Fit counts of 2**52 units and of far more, and judge the codebooks on the same rows."""
    tally = Tally("codebooks of up to 2**62 units: fit, compare, evaluate, save, load")
    for seed in range(n):
        rng = random.Random(f"codebooks {seed}")
        total = rng.choice(
            (2**40, 2**52 - 1, 2**52, MOST_ROWS, MOST_ROWS + 1, 2**57, 2**61, MOST_UNITS - 2**12)
        )
        rows, units, sums = _heavy(rng, total)
        aim = rng.choice(("information", "information", "model"))
        options: dict[str, Any] = {"aim": aim, "min_count": rng.choice((1, 1, 2, 20))}
        options["smoothing"] = rng.choice((None, 0, 3.5, 1e9, "auto"))
        with (
            tally.case(f"seed {seed}, {total} units, {options}: {sums}"),
            tempfile.TemporaryDirectory() as folder,
        ):
            counts = vf.count(rows, "y", ["x"], weight="w")
            _same_counts(counts, units, sums)
            budget = rng.randint(1, 8)
            book = vf.fit(counts, budget, **options)
            _check_book(book, units, sums)
            if aim == "information" and not options["smoothing"] and options["min_count"] == 1:
                _check_optimum(book, vf.compare(counts, budget, "exact"), sums, budget)
            book.save(folder)
            loaded = vf.load(folder)
            assert loaded.digest == book.digest
            found = loaded.evaluate(rows, weight="w")
            assert found.rows == sum(map(sum, sums.values())) / units, f"evaluate: {found.rows} rows"
            ids = _ids(book, sums)
            kept = reference.information(*_sides(sums), [ids[value] for value in sums])
            _close(found.columns["x"].information, kept, _allowed(sums), "evaluate: information")
            assert found.columns["x"].unseen == 0 or options["min_count"] > 1, "evaluate: unseen"
            tally.most("largest_units", total)
    return tally.row


def _rows_of_training(n: int) -> Row:
    """Encode the rows that are fitted, and compare the rate of every value in the other folds."""
    tally = Tally("fit_transform with such weights: the id of each row by the other folds")
    for seed in range(n):
        rng = random.Random(f"training {seed}")
        rows, units, sums = _heavy(rng, rng.choice((2**40, MOST_ROWS, 2**60)))
        assert units == UNITS
        rows = rows.append_column("fold", pa.array([rng.randrange(3) for _ in range(rows.num_rows)]))
        options = {"aim": rng.choice(("information", "model")), "smoothing": rng.choice((0, 2.5, "auto"))}
        with tally.case(f"seed {seed}, {options}: {rows.to_pylist()}"):
            book, out = vf.fit_transform(
                rows, "y", 6, features=["x"], weight="w", fold_column="fold", **options
            )
            _check_book(book, units, sums)
            _check_rows(book, rows, out["x"].to_pylist(), units)
    return tally.row


def _estimator(n: int) -> Row:
    """Give the same weights to the scikit-learn door, in every type; it must find the same codebook."""
    tally = Tally("scikit-learn: sample_weight of every size and type")
    for seed in range(n):
        rng = random.Random(f"estimator {seed}")
        kind, weights = _weights_of(rng)
        rows = _rows(rng, weights)
        rows = rows.set_column(1, "y", pa.array([i % 2 for i in range(rows.num_rows)]))
        judged = _judged(rows)
        has_both = judged is not None and all(map(sum, zip(*judged[1].values(), strict=True)))
        with tally.case(f"seed {seed}, {kind}: {rows.to_pylist()}"):
            options: dict[str, Any] = {"aim": rng.choice(("information", "model")), "min_count": 1}
            door = vf.VocabularyCompressor(4, **options)
            X, y = rows.select(["x"]), rows["y"].to_numpy()
            fitted = _tried(tally, has_both, door.fit, X, y, sample_weight=rows["w"].to_numpy())
            if has_both:
                assert judged is not None
                _same_counts(fitted.counts_, *judged)
                book = vf.fit(vf.count(rows, "y", ["x"], weight="w"), 4, **options)
                assert fitted.codebook_.digest == book.digest
    return tally.row


def _options(numbers: list[int], every: int) -> Row:
    """Give absurdly large numbers as options: the same as a million, or refused."""
    tally = Tally("options up to 10**400: as a million of them, or refused")
    rng = np.random.default_rng(0)
    table = {f"x{i}": [f"v{j % (7 + 5 * i)}" for j in range(400)] for i in range(3)}
    rows = pa.table(table | {"y": rng.integers(0, 2, 400), "w": rng.uniform(0, 3, 400)})
    features = list(table)
    plain, weighed = vf.count(rows, "y", features), vf.count(rows, "y", features, weight="w")
    bare = ([1, 2, 3, 9], [3, 2, 9, 4])
    million = 10**6
    book = vf.fit(plain, 30)

    def fitted(name: str, aim: str, counts: vf.Counts) -> Callable[[int], Any]:
        options = {"budget": 30, "aim": aim, "min_count": 1}
        return lambda number: vf.fit(counts, **options | {name: number}).digest  # type: ignore[arg-type]

    def saved(number: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            vf.count(rows, "y", features, folds=3, fold_seed=number).save(folder)
            assert vf.load_counts(folder).fold_seed == number
            return None

    tries: dict[str, Callable[[int], Any]] = {
        f"fit, {name}, {aim}, {'weights' if counts is weighed else 'rows'}": fitted(name, aim, counts)
        for name in ("budget", "min_count", "private_min", "tail", "smoothing")
        for aim in ("model", "information")
        for counts in (plain, weighed)
    }
    tries |= {
        f"fold_table, {method}, {allocation}": lambda number, method=method, allocation=allocation: (
            vf.fold_table({"a": bare, "b": bare}, number, method=method, allocation=allocation).information
        )
        for method in METHODS
        for allocation in ("joint", "uniform", "information")
    }
    tries |= {
        f"fold, {method}": lambda number, method=method: vf.fold(*bare, number, method=method).information
        for method in METHODS
    }
    tries |= {
        "curve": lambda number: vf.curve(*bare, number)[1][-1],
        "compare": lambda number: vf.compare(plain, number, "exact")[0].information,
        "shards": lambda number: vf.fit(plain, 30, method="threshold", shards=number).digest,
        "seed": lambda number: vf.fit(plain, 30, method="stochastic", seed=number) and None,
        "fold_seed": saved,
        "limit": lambda number: book.members("x0", 0, limit=number),
        "examples": lambda number: book.groups("x0", examples=number).to_pylist(),
    }
    for name, call in list(tries.items())[::every]:
        expected = None
        try:
            expected = call(million)
        except vf.InputError:
            expected = vf.InputError
        for number in numbers:
            with tally.case(f"{name}: 2**{math.log2(number):.6g}" if number < 10**300 else f"{name}: 10**400"):
                found = _tried(tally, None, call, number)
                is_strength = "smoothing" in name  # a million rows are not yet infinitely many
                assert found is None or is_strength or found == expected, f"{found} is not {expected}"
    return tally.row


def _tried(tally: Tally, is_allowed: bool | None, call: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Return what a call does, or None if it is refused; whether it is to be, if that is known, is checked."""
    try:
        found = call(*given, **options)
    except vf.InputError:
        assert is_allowed is not True, "refused"
        tally.add("refused")
        return None
    assert is_allowed is not False, f"not refused: {str(found)[:100]}"
    return found


def _close(found: float, judged: float, tolerance: float, what: str) -> None:
    assert abs(found - judged) <= tolerance, f"{what} is {found!r} and should be {judged!r}"


def _table(rng: random.Random, total: int) -> tuple[list[int], list[int]]:
    """Return counts of a few values with such a total."""
    pairs = [
        [int(2 ** rng.uniform(0, 30)) * rng.randint(0, 1) for _ in range(2)] for _ in range(rng.randint(1, 6))
    ]
    spare = total - sum(map(sum, pairs))
    share = rng.choice((0, spare // 3, spare // 2, spare))
    pairs += [[share, spare - share]] if rng.random() < 0.5 else [[share, 0], [0, spare - share]]
    return [neg for neg, _ in pairs], [pos for _, pos in pairs]


def _weights_of(rng: random.Random) -> tuple[str, pa.Array]:
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


def _rows(rng: random.Random, weights: pa.Array) -> pa.Table:
    values = [rng.choice("abcd") for _ in weights]
    return pa.table({"x": values, "y": [rng.randint(0, 1) for _ in weights], "w": weights})


def _judged(rows: pa.Table) -> tuple[int, Sums] | None:
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


def _same_counts(counts: vf.Counts, units: int, sums: Sums) -> None:
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


def _shard(rng: random.Random) -> tuple[vf.Counts, int, Sums]:
    """Return counts of a few rows whose weights are whole or not, and what they are."""
    judged = None
    while judged is None:
        rows = _rows(rng, _weights_of(rng)[1])
        judged = _judged(rows)
    return vf.count(rows, "y", ["x"], weight="w"), *judged


def _added(one: tuple[int, Sums], other: tuple[int, Sums]) -> tuple[int, Sums] | None:
    """Return the sum of two tables of units; nothing, if they are too many."""
    units = max(one[0], other[0])
    sums: Sums = {}
    for scale, table in ((units // max(1, of_row), table) for of_row, table in (one, other)):
        for value, both in table.items():
            mine = sums.setdefault(value, [0, 0])
            sums[value] = [old + scale * more for old, more in zip(mine, both, strict=True)]
    return None if sum(map(sum, sums.values())) > MOST_UNITS else (units, sums)


def _heavy(rng: random.Random, total: int) -> tuple[pa.Table, int, Sums]:
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
    judged = _judged(rows)
    assert judged is not None
    return rows, *judged


def _as_double(number: int) -> int:
    """Return the double next to a number, or the one below if it is larger."""
    return number >> (shift := max(0, number.bit_length() - 53)) << shift


def _sides(sums: Sums) -> tuple[list[int], list[int]]:
    return [neg for neg, _ in sums.values()], [pos for _, pos in sums.values()]


def _allowed(sums: Sums) -> float:
    """Return by how much an information may be off."""
    is_rounded = sum(map(sum, sums.values())) >= 2**52
    return TOLERANCE * reference.total(*_sides(sums)) + ROUNDED * is_rounded


def _ids(book: vf.Codebook, sums: Sums) -> dict[Any, int]:
    return dict(zip(sums, book.ids("x", list(sums)).tolist(), strict=True))


def _check_book(book: vf.Codebook, units: int, sums: Sums) -> None:
    """Compare what a codebook says of itself with its ids, and each id with the interval of its values."""
    column, ids = book.columns["x"], _ids(book, sums)
    sides, groups = _sides(sums), [ids[value] for value in sums]
    assert all(0 <= one < column.size for one in groups), "an id is out of range"
    for what, found, judged in (
        ("total", column.total, reference.total(*sides)),
        ("information", column.information, reference.information(*sides, groups)),
        ("loss", column.loss, reference.loss(*sides, groups)),
    ):
        _close(found, judged, _allowed(sums), what)
    borders = list(column.borders)
    assert borders == sorted(set(borders)), f"borders do not rise: {borders}"
    for value, (neg, pos) in sums.items():
        if ids[value] in column.tail and book["x"]["value"].to_pylist().count(value):
            _check_interval(book, Fraction(neg, units), Fraction(pos, units), ids[value], value)


def _check_interval(book: vf.Codebook, neg: Fraction, pos: Fraction, found: int, value: str) -> None:
    """Check that an id is that of the interval in which the rate of so many rows lies, but for rounding."""
    column = book.columns["x"]
    rate = column.mean
    if math.isfinite(column.strength) and neg + pos + column.strength:
        mean, strength = Fraction(column.mean), Fraction(column.strength)
        rate = float((pos + mean * strength) / (neg + pos + strength))
    place = column.tail.index(found)
    ends = [0.0, *column.borders, 1.0]
    rounding = 1e-12 * min(rate, 1 - rate) + 1e-15
    is_inside = ends[place] - rounding <= rate <= ends[place + 1] + rounding
    assert is_inside, f"{value!r} has the rate {rate} and the id of {ends[place]} to {ends[place + 1]}"


def _check_optimum(book: vf.Codebook, compared: Sequence[Any], sums: Sums, budget: int) -> None:
    """Compare a codebook, and a comparison, with the best fold of its size."""
    sides, ids = _sides(sums), _ids(book, sums)
    kept = reference.information(*sides, [ids[value] for value in sums])
    best = reference.best_by_programme(*sides, min(budget, len(reference.merged(*sides))))[-1]
    _close(kept, best, _allowed(sums), "of the optimum")
    _close(compared[0].information, best, _allowed(sums), "compare")


def _check_rows(book: vf.Codebook, rows: pa.Table, found: list[int], units: int) -> None:
    """Check the id of each row of a tail: that of its value's rate in the other folds."""
    column, known = book.columns["x"], set(book["x"]["value"].to_pylist())
    names = ("x", "y", "w", "fold")
    listed = list(zip(*(rows[name].to_pylist() for name in names), strict=True))
    by_fold: dict[tuple[str, int], list[int]] = {}
    for value, label, weight, fold in listed:
        in_units = math.floor(Fraction(weight) * units + Fraction(1, 2))
        by_fold.setdefault((value, fold), [0, 0])[label] += in_units
    for (value, _, _, fold), one in zip(listed, found, strict=True):
        assert 0 <= one < column.size, "an id is out of range"
        if value in known and one in column.tail:
            rest = [both for (other, place), both in by_fold.items() if other == value and place != fold]
            neg, pos = (Fraction(sum(both[label] for both in rest), units) for label in (0, 1))
            _check_interval(book, neg, pos, one, value)


if __name__ == "__main__":
    harness.main("overflow", __doc__, run)
