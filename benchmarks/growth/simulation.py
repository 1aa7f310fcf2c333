"""What docs/scale.md says on paper, checked by simulation up to a billion rows.

    python -m benchmarks.growth.simulation            all parts, raw rows kept in benchmarks/runs/
    python -m benchmarks.growth.simulation --small    up to 100,000 rows in seconds, only printed

Parts: `laws` (values, distinct (neg, pos) and distinct rates of columns with several laws of frequency),
`worst` (as many of them as so many rows can have, counted exactly), `largest` (where that is most against
N^(2/3)), `drawn` and `shuffle` (how many values a partition of rows holds, in drawn partitions and by formula)
and `bytes` (what a value takes in saved counts, and a pair in memory).

Nobody needs rows for the first: each value has a Poisson number of them, and a binomial number of positive ones
at a rate of its own, from a beta distribution around 0.256.
"""

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import vocabfold as vf
from benchmarks.criteo_shaped import CLICK_RATE
from benchmarks.growth.counts import pack, power_law, reduced, unique
from tools import journal
from tools.record import Row

PACKAGES = ["vocabfold", "pyarrow", "numpy"]
UNIFORM, SPREAD = "uniform", "uniform, N^(2/3) values"
EXPONENTS = {f"power {exponent}": exponent for exponent in (1.05, 1.2, 1.5)} | {UNIFORM: 0.0}
LAWS = [*EXPONENTS, SPREAD]
RATES, PAIRS = "most rates", "most pairs"
TRILLION = 10**12
ROWS_PER_VALUE = 10  # expected; N^(2/3) values have N^(1/3) rows each
_CHUNK = 10**7  # values that are drawn at a time: 80 MB an array
_SINGLE = 10**6  # ranks that are summed one by one; beyond, in blocks
_BLOCK = 1e-4  # of the rank, on which the frequency hardly changes
_DRAWN = 3  # partitions


def laws(law: str, n_rows: int) -> Iterator[Row]:
    """Draw the counts of a column, and count what is distinct."""
    n_values = round(n_rows ** (2 / 3)) if law == SPREAD else n_rows // ROWS_PER_VALUE
    exponent = EXPONENTS.get(law, 0.0)
    rank, repeated = ranks(n_values)
    scale = n_rows / (repeated @ rank**-exponent)
    rng = np.random.default_rng([n_rows, LAWS.index(law)])
    pairs, n_drawn, n_seen = np.empty(0, np.int64), 0, 0
    for start in range(1, n_values + 1, _CHUNK):
        expected = scale * np.arange(start, min(start + _CHUNK, n_values + 1)) ** -exponent
        rows = rng.poisson(expected)
        rows = rows[rows > 0]
        pos = rng.binomial(rows, rng.beta(8 * CLICK_RATE, 8 * (1 - CLICK_RATE), rows.size))
        n_drawn, n_seen = n_drawn + int(rows.sum()), n_seen + rows.size
        pairs = unique(np.concatenate([pairs, unique(pack(rows - pos, pos))]))
    found = {"n_values": n_seen, "n_pairs": pairs.size, "n_rates": unique(reduced(pairs)).size}
    yield {"part": "laws", "law": law, "asked": n_rows, "rows": n_drawn, **found}


def ranks(n_values: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ranks of values by frequency, and how many each stands for; the rare ones in blocks."""
    singles = np.arange(1.0, min(n_values, _SINGLE) + 1)
    n_blocks = max(0, int(np.log(n_values / _SINGLE) / _BLOCK)) + 1
    borders = np.geomspace(_SINGLE, n_values, n_blocks + 1) if n_values > _SINGLE else np.empty(0)
    middles = (borders[1:] + borders[:-1]) / 2 + 0.5
    return np.append(singles, middles), np.append(np.ones_like(singles), np.diff(borders))


def worst(n_rows: int) -> Iterator[Row]:
    """Spend the rows on the rates, or on the pairs, that need the fewest, and count them."""
    for law, of_cost in ((RATES, rates_by_rows), (PAIRS, pairs_by_rows)):
        n_found = of_cost(round(2 * n_rows ** (1 / 3)) + 2)
        costs = np.arange(1, n_found.size + 1)
        spent = np.cumsum(n_found * costs)
        n_full = int(np.searchsorted(spent, n_rows, side="right"))  # costs that all fit
        rest = n_rows - (int(spent[n_full - 1]) if n_full else 0)
        most = int(n_found[:n_full].sum()) + rest // int(costs[n_full])
        yield {"part": "worst", "law": law, "rows": n_rows, "n_rates" if law == RATES else "n_pairs": most}


def rates_by_rows(most: int) -> NDArray[np.int64]:
    """Return how many rates need d rows and no fewer, for d from 1 to `most`: Euler's function, but 2 for 1."""
    totient = np.arange(most + 1)
    for prime in range(2, most + 1):
        if totient[prime] == prime:
            totient[prime::prime] -= totient[prime::prime] // prime
    totient[1] = 2
    return totient[1:]


def pairs_by_rows(most: int) -> NDArray[np.int64]:
    """Return how many (neg, pos) have d rows, for d from 1 to `most`."""
    return np.arange(2, most + 2)


def largest(n_rows: int) -> Iterator[Row]:
    """Find where the worst case is largest against N^(2/3), of all N up to a limit."""
    for law, of_cost in ((RATES, rates_by_rows), (PAIRS, pairs_by_rows)):
        n_found = of_cost(round(2 * n_rows ** (1 / 3)) + 2)
        spent = np.cumsum(np.repeat(np.arange(1, n_found.size + 1), n_found))  # by the first, the second, ...
        spent = spent[spent <= n_rows]
        share = np.arange(1, spent.size + 1) / spent ** (2 / 3)
        where = int(np.argmax(share))
        row = {"part": "largest", "law": law, "asked": n_rows, "rows": int(spent[where])}
        yield row | {"share": float(share[where])}


def groups(law: str, n_values: int, n_rows: int) -> float:
    """Return how many distinct values are expected among so many rows: the sum of 1 - (1 - p)^rows."""
    rank, repeated = ranks(n_values)
    weight = rank ** -EXPONENTS[law]
    share = weight / (repeated @ weight)
    return float(repeated @ -np.expm1(n_rows * np.log1p(-share)))


def drawn(law: str, n_values: int, partition: int) -> Iterator[Row]:
    """Compare the formula with the values in drawn partitions."""
    rng = np.random.default_rng([n_values, partition, LAWS.index(law)])
    borders = np.cumsum(np.arange(1.0, n_values + 1) ** -EXPONENTS[law])
    found = []
    for _ in range(_DRAWN):
        rows = np.sort(rng.random(partition)) * borders[-1]  # sorted, lookups stay near each other in memory
        found.append(1 + int(np.count_nonzero(np.diff(np.searchsorted(borders, rows)))))
    row = {"part": "drawn", "law": law, "values": n_values, "partition": partition, "drawn": len(found)}
    row |= {"least": min(found), "most": max(found), "mean": float(np.mean(found))}
    yield row | {"expected": groups(law, n_values, partition)}


def shuffle(law: str, n_values: int) -> Iterator[Row]:
    """Say how many (value, neg, pos) a counting job of a trillion rows sends, by the size of partitions."""
    for partition in (10**6, 10**7, 10**8):
        row = {"part": "shuffle", "law": law, "values": n_values, "partition": partition, "rows": TRILLION}
        sent = groups(law, n_values, partition) * (TRILLION // partition)
        yield row | {"sent": sent, "n_values": groups(law, n_values, TRILLION)}


def sizes(n: int) -> Iterator[Row]:
    """Measure what a value takes in saved counts and in a saved codebook, and a pair in memory."""
    for digits in (8, 32):  # as in the Criteo challenge, and as a UUID has
        text = np.random.default_rng(0).bytes(n * digits // 2).hex()
        texts = np.unique([text[start : start + digits] for start in range(0, len(text), digits)])
        neg, pos = power_law(texts.size)
        values = np.concatenate([np.repeat(texts, neg), np.repeat(texts, pos)])
        label = np.repeat([0, 1], [neg.sum(), pos.sum()])
        with tempfile.TemporaryDirectory() as folder:
            counts = vf.count(pa.table({"label": label, "value": values}), "label")
            counts.save(Path(folder) / "counts")
            vf.fit(counts, 256, aim="information").save(Path(folder) / "book")
            row = {"part": "bytes", "n": texts.size, "digits": digits}
            for what in ("counts", "book"):
                yield row | {"what": what, "bytes": _size(Path(folder) / what) / texts.size}
    pairs, n_values = np.unique(np.stack([neg, pos]), axis=1, return_counts=True)
    n_bytes = (pairs.nbytes + n_values.nbytes) / n_values.size
    yield {"part": "bytes", "n": n_values.size, "what": "pairs", "bytes": n_bytes}


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def tasks(small: bool) -> dict[str, journal.Task]:
    """Return the tasks of all parts."""
    numbers = [10**4, 10**5] if small else [10**6, 10**7, 10**8, 10**9]
    found: dict[str, journal.Task] = {
        f"{law}, {n:,} rows": partial(laws, law, n) for n in numbers for law in LAWS
    }
    found |= {f"worst, {n:,} rows": partial(worst, n) for n in [*numbers, TRILLION]}
    found["largest"] = partial(largest, numbers[-1])
    partitions = [(10**4, 10**4)] if small else [(10**6, 10**6), (10**7, 10**6), (10**7, 10**7)]
    for law in EXPONENTS:
        for n_values, partition in partitions:
            task = partial(drawn, law, n_values, partition)
            found[f"drawn, {law}, {n_values:,} values, {partition:,} rows"] = task
        for n_values in (10**9, 10**10):
            found[f"shuffle, {law}, {n_values:,} values"] = partial(shuffle, law, n_values)
    found["bytes"] = partial(sizes, 10**4 if small else 10**6)
    return found


def main() -> None:
    """Run the tasks and keep the raw rows, from which `report` makes tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="up to 100,000 rows; only prints")
    options = parser.parse_args()
    command = "python -m benchmarks.growth.simulation"
    journal.run("scale", tasks(options.small), PACKAGES, command, small=options.small)


if __name__ == "__main__":
    main()
