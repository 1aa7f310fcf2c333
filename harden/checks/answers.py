"""Wrong answers: folds against the definition, and the laws of the tests with far more examples.

More than ten thousand random tables of counts are awkward on purpose: ties, zeros, one class, copies, mirror
images, proportional counts, rates that differ in their last digit, counts up to 10^12, totals of 2^53. `exact`
and `dynamic` fold each of them at sizes inside and at the ends of the possible range, and compute its curve;
several columns are folded within one budget. The judge is `tests/support/reference.py`: the dynamic programme
as defined, with 60 digits, and all splits of a budget. It compares the objective, which it computes from the
returned ids, never the cuts. `largest` is the largest difference found, as a share of I(X;C). A difference
above 1e-12 is a failure, and so are a `gap` above 1e-12 nats, a size other than the requested one, an id out of
range, and ids that do not rise with the rate.

The laws are the tests in `tests/` for which hypothesis searches counterexamples. Those of the numeric core run
with enough times their own number of examples to reach 100,000 in total.
"""

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import vocabfold as vf
from harden.lib import harness
from harden.lib.tally import Tally
from harden.lib.tests import reference
from tools.record import ROOT, Row

TOLERANCE = 1e-12  # of I(X;C), and nats of a gap
MOST = 2**53
LAWS = [  # of the numeric core, whose examples take a millisecond or so each
    "tests/folding",
    "tests/fitting/test_split.py",
    "tests/laws/test_paper.py",
]
EXAMPLES = 100_000

Pairs = list[tuple[int, int]]


def ties_and_zeros(rng: random.Random) -> Pairs:
    """Return small counts: most rates occur twice, and many values lack a class, or have no rows at all."""
    return [(rng.choice((0, 0, 1, 1, 2, 3)), rng.choice((0, 0, 1, 1, 2, 3))) for _ in range(rng.randint(1, 14))]


def one_class(rng: random.Random) -> Pairs:
    """Return rows of one class only, or with one row of the other."""
    pairs = [(rng.randint(0, 9), 0) for _ in range(rng.randint(1, 10))]
    if rng.random() < 0.5:
        pairs.append((rng.randint(0, 3), 1))
    return [pair[::-1] for pair in pairs] if rng.random() < 0.5 else pairs


def copies(rng: random.Random) -> Pairs:
    """Return a few pairs, many times each."""
    few = [(rng.randint(0, 30), rng.randint(0, 30)) for _ in range(rng.randint(1, 7))]
    return [rng.choice(few) for _ in range(rng.randint(1, 60))]


def proportional(rng: random.Random) -> Pairs:
    """Return equal rates with different counts."""
    few = [(rng.randint(0, 12), rng.randint(0, 12)) for _ in range(rng.randint(1, 8))]
    return [(k * neg, k * pos) for neg, pos in few for k in rng.choices((1, 2, 3, 7, 10**6, 10**11), k=3)]


def near_rates(rng: random.Random) -> Pairs:
    """Return rates that differ in their last digit, or beyond the precision of a double."""
    scale = rng.choice((10**4, 10**8, 10**12, 2**48))
    neg, pos = rng.randint(scale // 2, scale), rng.randint(scale // 2, scale)
    pairs = [(neg + rng.randint(-2, 2), pos + rng.randint(-2, 2)) for _ in range(rng.randint(2, 10))]
    return [*pairs, (neg // 7, pos // 7)]


def large(rng: random.Random) -> Pairs:
    """Return counts of every size up to 10**12."""
    return [(_of_any_size(rng, 10**12), _of_any_size(rng, 10**12)) for _ in range(rng.randint(1, 12))]


def full(rng: random.Random) -> Pairs:
    """Return a total of 2**53, or a little less, most of it in one value or spread over all."""
    pairs = [(_of_any_size(rng, 2**48), _of_any_size(rng, 2**48)) for _ in range(rng.randint(1, 10))]
    spare = MOST - sum(map(sum, pairs)) - rng.choice((0, 0, 1, rng.randint(0, 1000)))
    share = rng.choice((0, 1, rng.randint(0, spare), spare // 2, spare - 1, spare))
    return [*pairs, (share, 0), (0, spare - share)] if rng.random() < 0.5 else [*pairs, (share, spare - share)]


def mirrored(rng: random.Random) -> Pairs:
    """Return each pair and its mirror image: cuts gain alike, and sizes lie inside edges of the convex hull."""
    half = [(_of_any_size(rng, 10**6) + 1, _of_any_size(rng, 10**6)) for _ in range(rng.randint(1, 6))]
    return [*half, *((pos, neg) for neg, pos in half)]


def many(rng: random.Random) -> Pairs:
    """Return tens of distinct rates."""
    largest = rng.choice((20, 1000, 10**6))
    return [(rng.randint(0, largest), rng.randint(0, largest)) for _ in range(rng.randint(20, 45))]


FAMILIES: dict[Callable[[random.Random], Pairs], int] = {  # and how many tables of each
    ties_and_zeros: 2500,
    one_class: 500,
    copies: 1200,
    proportional: 1000,
    near_rates: 1200,
    large: 1200,
    full: 1200,
    mirrored: 1000,
    many: 200,
}
N_TABLES = 1000


def run(small: bool) -> Iterator[Row]:
    """Try every kind of counts, tables of several columns, and the laws."""
    for family, n in FAMILIES.items():
        tally = Tally(f"fold and curve: {family.__name__.replace('_', ' ')}")
        if not harness.is_wanted(tally.what):
            continue
        for seed in range(n // (200 if small else 1)):
            rng = random.Random(f"{family.__name__} {seed}")
            pairs = _with_rows(family, rng)
            with tally.case(f"seed {seed}, {pairs}"):
                _check_column(tally, pairs, rng)
        yield tally.row
    tally = Tally("fold_table: one budget for several columns")
    n_tables = N_TABLES // (100 if small else 1) if harness.is_wanted(tally.what) else 0
    for seed in range(n_tables):
        rng = random.Random(f"table {seed}")
        kinds = [family for family in FAMILIES if family is not many]
        columns = [_with_rows(rng.choice(kinds), rng)[:6] for _ in range(rng.randint(1, 4))]
        columns = [pairs if any(map(any, pairs)) else [(1, 2)] for pairs in columns]
        with tally.case(f"seed {seed}, {columns}"):
            _check_table(tally, columns, rng)
    yield tally.row
    yield _laws(LAWS, EXAMPLES) if not small else _laws(["tests/folding/test_allocation.py"], 200)


def _with_rows(family: Callable[[random.Random], Pairs], rng: random.Random) -> Pairs:
    while not any(map(any, pairs := family(rng))):
        pass
    rng.shuffle(pairs)
    return pairs


def _of_any_size(rng: random.Random, most: int) -> int:
    return rng.choice((0, rng.randint(0, 3), int(most ** rng.random())))


def _check_column(tally: Tally, pairs: Pairs, rng: random.Random) -> None:
    """Fold a column at several sizes, and compare with the programme of all sizes."""
    neg, pos = [n for n, _ in pairs], [p for _, p in pairs]
    n_rates = len(reference.merged(neg, pos))
    best, total = reference.best_by_programme(neg, pos, n_rates), reference.total(neg, pos)
    sizes = {1, min(2, n_rates), rng.randint(1, n_rates), n_rates, n_rates + rng.randint(1, 3)}
    for size in sorted(sizes):
        for method in ("exact", "dynamic"):
            fold = vf.fold(*_given(neg, pos, rng), size, method=method)
            used = min(size, n_rates)
            where = f"{method}, size {size}"
            assert fold.size == used, f"{where}: {fold.size} ids"
            _check_ids(neg, pos, fold.ids, used, where)
            kept = reference.information(neg, pos, fold.ids.tolist())
            _compare(tally, best[used - 1] - kept, total, f"{where}: of the optimum")
            _compare(tally, fold.information - kept, total, f"{where}: information")
            _compare(tally, fold.total - total, total, f"{where}: total")
            _compare(tally, fold.loss - reference.loss(neg, pos, fold.ids.tolist()), total, f"{where}: loss")
            tally.most("largest_gap", fold.gap)
            assert 0 <= fold.gap <= TOLERANCE, f"{where}: gap {fold.gap}"
            assert fold.bound >= best[used - 1] - TOLERANCE * total, f"{where}: bound {fold.bound}"
    last = rng.choice((None, rng.randint(1, n_rates + 2)))
    found, informations = vf.curve(*_given(neg, pos, rng), last)
    assert found.tolist() == list(range(1, (last or n_rates) + 1)), "curve: sizes"
    for size, information in zip(found.tolist(), informations.tolist(), strict=True):
        _compare(tally, information - best[min(size, n_rates) - 1], total, f"curve, size {size}")


def _check_ids(neg: Sequence[int], pos: Sequence[int], ids: Any, size: int, where: str) -> None:
    """Ids are 0 to size - 1, each has a value with rows, and they rise with the rate; equal rates share one."""
    assert ids.dtype == np.int32
    assert ids.size == len(neg), where
    assert 0 <= ids.min() <= ids.max() < size, f"{where}: ids from {ids.min()} to {ids.max()}"
    by_rate: dict[Fraction, set[int]] = {}
    for n, p, one in zip(neg, pos, ids.tolist(), strict=True):
        if n + p:
            by_rate.setdefault(Fraction(p, n + p), set()).add(one)
    in_order = [by_rate[rate] for rate in sorted(by_rate)]
    assert all(len(shared) == 1 for shared in in_order), f"{where}: equal rates have several ids"
    rising = [shared.pop() for shared in in_order]
    assert rising == sorted(rising), f"{where}: ids do not rise with the rate"
    assert set(rising) == set(range(size)), f"{where}: an id is empty"


def _check_table(tally: Tally, columns: list[Pairs], rng: random.Random) -> None:
    """Fold columns within one budget, and compare with the best of all splits."""
    counts = {f"c{i}": ([n for n, _ in pairs], [p for _, p in pairs]) for i, pairs in enumerate(columns)}
    n_rates = sum(len(reference.merged(*pair)) for pair in counts.values())
    budget = rng.randint(len(columns), n_rates + 1)
    best = reference.best_split(list(counts.values()), budget)
    total = sum(reference.total(*pair) for pair in counts.values())
    for method in ("exact", "dynamic"):
        table = vf.fold_table(
            {name: _given(*pair, rng) for name, pair in counts.items()}, budget, method=method
        )
        where = f"{method}, budget {budget}"
        assert sum(table.sizes.values()) == min(budget, n_rates), f"{where}: sizes {table.sizes}"
        kept = 0.0
        for name, pair in counts.items():
            _check_ids(*pair, table[name].ids, table[name].size, f"{where}, {name}")
            kept += reference.information(*pair, table[name].ids.tolist())
        _compare(tally, best - kept, total, f"{where}: of the optimum")
        _compare(tally, table.information - kept, total, f"{where}: information")
        tally.most("largest_gap", table.gap)
        assert 0 <= table.gap <= TOLERANCE, f"{where}: gap {table.gap}"
        assert table.bound >= best - TOLERANCE * total, f"{where}: bound {table.bound}"


def _given(neg: list[int], pos: list[int], rng: random.Random) -> tuple[Any, Any]:
    """Return counts in one of the forms in which people hand them over."""
    forms: list[Callable[[list[int]], Any]] = [
        list,
        np.array,
        lambda side: np.array(side, np.float64),
        lambda side: np.array(side, np.uint64),
        lambda side: np.array([Decimal(count) for count in side], object),
        lambda side: np.repeat(np.array(side), 2)[::2],
    ]
    form = rng.choice(forms)
    return form(neg), form(pos)


def _compare(tally: Tally, difference: float, total: float, what: str) -> None:
    difference = abs(difference)
    if total:
        tally.most("largest", difference / total)
    assert difference <= TOLERANCE * total, f"{what} off by {difference} of {total} nats"


def _laws(files: list[str], examples: int) -> Row:
    """Run the tests that have examples, and return how many there were."""
    # Of all plugins, hypothesis' own is enough: others would take longer to load than a small run takes.
    options = ["-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider", "--quiet", "--tb=short"]
    examples_of = ["--examples", str(examples), "--hypothesis-show-statistics", "--hypothesis-seed=0"]
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *examples_of, *files],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    counted = re.findall(r"generate phase.*\n(?:.*\n)*?\s+- (\d+) passing, (\d+) failing", result.stdout)
    tests = re.search(r"(?:(\d+) failed, )?(\d+) passed", result.stdout)
    row = {
        "what": "laws: examples of the tests of the numeric core",
        "tried": sum(int(passing) + int(failing) for passing, failing in counted),
        "failed": sum(int(failing) for _, failing in counted),
        "laws": int(tests[2]) if tests else 0,
    }
    if result.returncode:
        row["failed"] = max(1, row["failed"])
        failures = [line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
        row["first_failure"] = (failures or (result.stdout + result.stderr).splitlines()[-3:] or [""])[0]
    return row


if __name__ == "__main__":
    harness.main("answers", __doc__, run)
