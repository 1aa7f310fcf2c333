"""Overflow and rounding: totals, sums and weights up to what is counted exactly, and just beyond.

Numbers enter in every possible way: bare counts, shards that are added, weights of every size and type, options
that are absurdly large. The judge counts with Python's integers and fractions, which have no limits, and
computes information with 60 digits. Each answer must be right, or refused with `InputError`. Everything else is
a failure: another number, another exception, a numpy warning, or a refusal of what the documentation allows.
Counts are compared exactly. Information may be off by 1e-12 of I(X;C) up to 2^52 units, which are exact;
beyond, where `fit` rounds units as documented, by another 1e-13 nats. `refused` counts refusals; a case may ask
several times.
"""

import math
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import vocabfold as vf
from harden.lib import harness
from harden.lib.overflow.judge import (
    MOST_ROWS,
    MOST_UNITS,
    TOLERANCE,
    UNITS,
    allowed_error,
    assert_close,
    assert_counts,
    bare_table,
    check_book,
    check_optimum,
    check_rows,
    heavy_rows,
    ids_of,
    judgement,
    make_rows,
    make_shard,
    make_weights,
    sides_of,
    sum_of,
)
from harden.lib.tally import Tally
from harden.lib.tests import reference
from tools.record import Row

ABSURD = [2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400]
METHODS = ("exact", "dynamic", "greedy", "stochastic", "threshold", "divisive", "agglomerative")
METHODS += ("bucketing", "frequency", "selection", "hashing")


def run(small: bool) -> Iterator[Row]:
    """Try all of them; a small run takes a part of the seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", vf.AdviceWarning)
        warnings.filterwarnings(
            "ignore", message=".*(looks like the training data|rows weigh up to|shards are more than)"
        )
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
        neg, pos = bare_table(rng, total)
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
                    assert_close(is_said, judged, TOLERANCE * whole, what)
            best = reference.best_by_programme(neg, pos, sizes[0].size)
            for information, judged in zip(sizes[1], best, strict=True):
                assert_close(information, judged, TOLERANCE * whole, "curve")
            if whole and method in ("exact", "dynamic"):
                assert_close(told[0].information, table.information, 2 * TOLERANCE * whole, "compare")
    return tally.row


def _weights(n: int) -> Row:
    """Count rows with weights of every size and type."""
    tally = Tally("weights: fractions, huge, tiny, mixed, that round to 0")
    for seed in range(n):
        rng = random.Random(f"weights {seed}")
        kind, weights = make_weights(rng)
        rows = make_rows(rng, weights)
        with tally.case(f"seed {seed}, {kind}: {rows.to_pylist()}"):
            judged = judgement(rows)
            counts = _tried(tally, judged is not None, vf.count, rows, "y", ["x"], weight="w")
            if judged is not None:
                assert_counts(counts, *judged)
    return tally.row


def _shards(n: int) -> Row:
    """Add shards, in any order and grouping, until they are too many units."""
    tally = Tally("sums of shards up to 2**62 units and beyond, saved and loaded")
    for seed in range(n):
        rng = random.Random(f"shards {seed}")
        with tally.case(f"seed {seed}"), tempfile.TemporaryDirectory() as folder:
            shards = [make_shard(rng) for _ in range(rng.randint(2, 12))]
            of_all: Any = (0, {})
            whole = None
            for counts, units, sums in shards:
                is_allowed = sum_of(of_all, (units, sums)) is not None
                added = (
                    counts if whole is None else _tried(tally, is_allowed, lambda a, b: a + b, whole, counts)
                )
                if is_allowed:
                    of_all, whole = sum_of(of_all, (units, sums)), added
                    whole = whole.compacted() if rng.random() < 0.3 else whole
            assert whole is not None
            assert_counts(whole, *of_all)
            while sum_of(of_all, of_all) is not None:  # up to the limit, by doubling
                of_all, whole = sum_of(of_all, of_all), whole + whole
                whole = whole.compacted() if len(whole.parts) > 50 else whole
            assert_counts(whole, *of_all)
            _tried(tally, False, lambda a: a + a, whole)
            whole.save(folder)
            assert_counts(vf.load_counts(folder), *of_all)
    return tally.row


def _codebooks(n: int) -> Row:
    """Fit counts of 2**52 units and of far more, and judge the codebooks on the same rows."""
    tally = Tally("codebooks of up to 2**62 units: fit, compare, evaluate, save, load")
    for seed in range(n):
        rng = random.Random(f"codebooks {seed}")
        total = rng.choice(
            (2**40, 2**52 - 1, 2**52, MOST_ROWS, MOST_ROWS + 1, 2**57, 2**61, MOST_UNITS - 2**12)
        )
        rows, units, sums = heavy_rows(rng, total)
        aim = rng.choice(("information", "information", "model"))
        options: dict[str, Any] = {"aim": aim, "min_count": rng.choice((1, 1, 2, 20))}
        options["smoothing"] = rng.choice((None, 0, 3.5, 1e9, "auto"))
        with (
            tally.case(f"seed {seed}, {total} units, {options}: {sums}"),
            tempfile.TemporaryDirectory() as folder,
        ):
            counts = vf.count(rows, "y", ["x"], weight="w")
            assert_counts(counts, units, sums)
            budget = rng.randint(1, 8)
            book = vf.fit(counts, budget, **options)
            check_book(book, rows, units, sums)
            if aim == "information" and not options["smoothing"] and options["min_count"] == 1:
                check_optimum(book, vf.compare(counts, budget, "exact"), sums, budget)
            book.save(folder)
            loaded = vf.load(folder)
            assert loaded.digest == book.digest
            found = loaded.evaluate(rows, weight="w")
            assert found.rows == sum(map(sum, sums.values())) / units, f"evaluate: {found.rows} rows"
            ids = ids_of(book, sums)
            kept = reference.information(*sides_of(sums), [ids[value] for value in sums])
            assert_close(found.columns["x"].information, kept, allowed_error(sums), "evaluate: information")
            assert found.columns["x"].unseen == 0 or options["min_count"] > 1, "evaluate: unseen"
            tally.most("largest_units", total)
    return tally.row


def _rows_of_training(n: int) -> Row:
    """Encode the rows that are fitted, and compare the rate of every value in the other folds."""
    tally = Tally("fit_transform with such weights: the id of each row by the other folds")
    for seed in range(n):
        rng = random.Random(f"training {seed}")
        rows, units, sums = heavy_rows(rng, rng.choice((2**40, MOST_ROWS, 2**60)))
        assert units == UNITS
        rows = rows.append_column("fold", pa.array([rng.randrange(3) for _ in range(rows.num_rows)]))
        options = {"aim": rng.choice(("information", "model")), "smoothing": rng.choice((0, 2.5, "auto"))}
        with tally.case(f"seed {seed}, {options}: {rows.to_pylist()}"):
            book, out = vf.fit_transform(
                rows, "y", 6, features=["x"], weight="w", fold_column="fold", **options
            )
            check_book(book, rows, units, sums)
            check_rows(book, rows, out["x"].to_pylist(), units)
    return tally.row


def _estimator(n: int) -> Row:
    """Give the same weights to the scikit-learn door, in every type; it must find the same codebook."""
    tally = Tally("scikit-learn: sample_weight of every size and type")
    for seed in range(n):
        rng = random.Random(f"estimator {seed}")
        kind, weights = make_weights(rng)
        rows = make_rows(rng, weights)
        rows = rows.set_column(1, "y", pa.array([i % 2 for i in range(rows.num_rows)]))
        judged = judgement(rows)
        has_both = judged is not None and all(map(sum, zip(*judged[1].values(), strict=True)))
        with tally.case(f"seed {seed}, {kind}: {rows.to_pylist()}"):
            options: dict[str, Any] = {"aim": rng.choice(("information", "model")), "min_count": 1}
            door = vf.VocabularyCompressor(4, **options)
            X, y = rows.select(["x"]), rows["y"].to_numpy()
            fitted = _tried(tally, has_both, door.fit, X, y, sample_weight=rows["w"].to_numpy())
            if has_both:
                assert judged is not None
                assert_counts(fitted.counts_, *judged)
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
        for name in ("budget", "min_count", "dedicated_min", "shared_ids", "smoothing")
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


if __name__ == "__main__":
    harness.main("overflow", __doc__, run)
