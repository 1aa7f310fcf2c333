"""Pairs on a cluster -> cuts by falling thresholds, each shard on its own: the paper's distributed algorithm.

A column's pairs are assigned by rate to shards with as many rates each, up to one. The borders are exact: the
driver has the table of pairs, and sends the rates with which shards begin. A worker has the pairs of one shard
at a time. Round one finds the largest gain in any shard (w0), round two lowers the threshold inside each; the
cuts that are made come back, and the caller merges them. All arithmetic is that of one process, so that the
cuts are the same.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.counts.counts import Counts
from vocabfold.counts.evidence import Evidence
from vocabfold.counts.spark import SparkTable, on_spark
from vocabfold.counts.units import ROWS, UNITS, sql_rows
from vocabfold.fitting.pairs import Pairs, Units
from vocabfold.fitting.split import Split
from vocabfold.folding.curve import Curve
from vocabfold.folding.prior import Prior
from vocabfold.folding.solve.cut_tree import Gains
from vocabfold.folding.solve.threshold import borders, largest_gain, sweep
from vocabfold.io.engines.spark import Cluster, Frame, Kept, in_groups, mapped

_LOG = logging.getLogger("vocabfold")
_NONE = float(np.iinfo(np.int64).max)
_KEYS = ("feature", "shard")
_OF_SHARD = [("feature", pa.int32()), ("shard", pa.int32())]
_LARGEST = pa.schema([*_OF_SHARD, ("gain", pa.float64()), ("n_pairs", pa.int64())])
_CUTS = pa.schema([*_OF_SHARD, ("made", pa.int64()), ("cut", pa.int64()), ("gain", pa.float64())])


@dataclass(frozen=True)
class Column:
    """What a worker has to know of a column: its prior, its borders, and which pairs are folded."""

    prior: Prior
    evidence: Evidence
    units_per_row: int
    n_units: int
    low: float  # the fewest and the most rows of a value that is folded
    high: float
    starts: tuple[Fraction | float, ...]  # the rate with which each shard but the first begins
    rare: Mapping[str, int] | None  # the sums of rare values, if they are folded as one more value,
    rare_shard: int  # and where

    def shards(self, sums: Mapping[str, Units], n_values: Units) -> NDArray[np.int32]:
        """Return the shard of each pair."""
        pairs = self._pairs(sums, n_values)
        starts = np.array([float(start) for start in self.starts])
        if not pairs.is_exact:
            return np.asarray(np.searchsorted(starts, pairs.rates, side="right"), np.int32)
        # Rates are compared exactly: those with the double of a border are looked at more closely.
        rates = pairs.pos / pairs.units
        shards = np.asarray(np.searchsorted(starts, rates, side="right"), np.int32)
        for i in np.flatnonzero(np.isin(rates, starts)):
            shards[i] = bisect_right(self.starts, Fraction(int(pairs.pos[i]), int(pairs.units[i])))
        return shards

    def curve(self, shard: int, sums: Mapping[str, Units], n_values: Units) -> Curve:
        """Return a shard, sorted by rate."""
        with_rare = self.rare is not None and shard == self.rare_shard
        if self.rare is not None and with_rare:
            sums = {name: np.append(side, self.rare[name]) for name, side in sums.items()}
            n_values = np.append(n_values, 1)
        pairs = self._pairs(sums, n_values)
        pairs.is_rare[n_values.size - with_rare :] = True
        return pairs.curve(~pairs.is_rare, with_rare)

    def _pairs(self, sums: Mapping[str, Units], n_values: Units) -> Pairs:
        is_rare = np.zeros(n_values.size, np.bool_)
        return Pairs(sums, n_values, is_rare, self.units_per_row, self.n_units, self.prior, self.evidence)


@dataclass(frozen=True, eq=False)
class SparkShards:
    """What `solve.threshold.threshold` does, with the shards on a cluster."""

    counts: Counts
    pairs: Mapping[str, Pairs]
    ids: Split
    curves: Mapping[str, Curve]

    @property
    def table(self) -> SparkTable:
        """The counts on their cluster."""
        return on_spark(self.counts)

    def __call__(
        self, curves: Sequence[Curve], rows: Sequence[float], n_cuts: int, epsilon: float, shards: int
    ) -> list[Gains]:
        """Return for each curve the cuts that were made, and their gains, in nats times rows."""
        names = [next(name for name, mine in self.curves.items() if mine is curve) for curve in curves]
        numbers = [list(self.table.kinds).index(name) for name in names]
        ends = [borders(curve, shards) for curve in curves]
        columns = {i: self._column(name, of) for i, name, of in zip(numbers, names, ends, strict=True)}
        of_rows = dict(zip(numbers, rows, strict=True))
        with Cluster(self.table.session) as cluster:
            kept = Kept(self._assigned(cluster, columns))
            largest = cluster.collect(in_groups(kept.frame, _KEYS, partial(_largest, columns), _LARGEST))
            first = max(row["gain"] / of_rows[row["feature"]] for row in largest.to_pylist())
            firsts = {number: first * of_rows[number] for number in numbers}
            cut = partial(_sweep, columns, firsts, epsilon, n_cuts)
            found = cluster.collect(in_groups(kept.frame, _KEYS, cut, _CUTS))
        peak = max(largest["n_pairs"].to_pylist())
        _LOG.info("threshold: %d shards, at most %d pairs in one of them", largest.num_rows, peak)
        return [_merged(number, of, found) for number, of in zip(numbers, ends, strict=True)]

    def _column(self, name: str, ends: NDArray[np.int64]) -> Column:
        pairs, curve = self.pairs[name], self.curves[name]
        shared = self.ids.shared(pairs)
        rows, with_rare = pairs.rows[shared], self.ids.folds_rare(pairs)
        starts: list[Fraction | float]
        if pairs.is_exact:
            sides = [np.diff(side)[ends[1:-1]].tolist() for side in (curve.cum_neg, curve.cum_pos)]
            starts = [Fraction(pos, neg + pos) for neg, pos in zip(*sides, strict=True)]
        else:
            rates = np.append(pairs.rates[shared], pairs.rare_rate) if with_rare else pairs.rates[shared]
            starts = np.unique(rates)[ends[1:-1]].tolist()
        return Column(
            pairs.prior,
            pairs.evidence,
            pairs.units_per_row,
            pairs.n_units,
            float(rows.min(initial=_NONE)),
            float(rows.max(initial=0)),
            tuple(starts),
            {name: pairs.rare(name) for name in pairs.sums} if with_rare else None,
            int(np.searchsorted(ends[1:-1], curve.position[-1], side="right")),
        )

    def _assigned(self, cluster: Cluster, columns: Mapping[int, Column]) -> Frame:
        """Return the pairs of all columns, each with its shard."""
        sums = self.table.sums
        rows = sql_rows(sums, self.counts.units_per_row)
        which = " OR ".join(
            f"feature = {number} AND {rows} BETWEEN {column.low!r}D AND {column.high!r}D"
            for number, column in columns.items()
        )
        counts, by = cluster.table(self.table.frame()), ", ".join(("feature", *sums))
        pairs = f"SELECT {by}, count(*) AS n FROM {counts} WHERE {which} GROUP BY {by}"
        schema = pa.schema([*_OF_SHARD, *((name, pa.int64()) for name in (*sums, "n"))])
        assigned = cluster.table(mapped(cluster.frame(pairs), partial(_assign, columns, schema), schema))
        # Rare values may be alone in their shard: a row that stands for no value makes sure that it exists.
        rare = [
            f"SELECT {number}, {column.rare_shard}{', 0' * (len(sums) + 1)}"
            for number, column in columns.items()
            if column.rare is not None
        ]
        return cluster.frame(" UNION ALL ".join([f"SELECT * FROM {assigned}", *rare]))


# These run on the workers. They are sent there by name, with what they have to know: of a function inside a
# function Spark would send the body, and with it kernels, which every worker would compile again.


def _assign(
    columns: Mapping[int, Column], schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Assign every pair to its shard."""
    for batch in batches:
        features, n_values, sums = batch["feature"].to_numpy(), batch["n"].to_numpy(), _sums(batch)
        shards = np.zeros(features.size, np.int32)
        for number in np.unique(features):
            mine = features == number
            of_column = {name: side[mine] for name, side in sums.items()}
            shards[mine] = columns[number].shards(of_column, n_values[mine])
        yield pa.record_batch([features, shards, *sums.values(), n_values], schema=schema)


def _sums(table: pa.Table | pa.RecordBatch) -> dict[str, Units]:
    """Return the sums of each pair."""
    return {name: table[name].to_numpy() for name in (*UNITS, *ROWS) if name in table.schema.names}


def _curve(columns: Mapping[int, Column], table: pa.Table) -> tuple[int, int, Curve]:
    """Return the column, the shard and the curve of a table of pairs."""
    number, shard = table["feature"][0].as_py(), table["shard"][0].as_py()
    n_values = table["n"].to_numpy()
    is_value = n_values > 0
    sums = {name: side[is_value] for name, side in _sums(table).items()}
    return number, shard, columns[number].curve(shard, sums, n_values[is_value])


def _largest(columns: Mapping[int, Column], table: pa.Table) -> pa.Table:
    """Find the largest gain of a cut in a shard."""
    number, shard, curve = _curve(columns, table)
    gain = largest_gain(curve.cum_neg, curve.cum_pos)
    row = {"feature": number, "shard": shard, "gain": gain, "n_pairs": table.num_rows}
    return pa.Table.from_pylist([row], schema=_LARGEST)


def _sweep(
    columns: Mapping[int, Column], firsts: Mapping[int, float], epsilon: float, n_cuts: int, table: pa.Table
) -> pa.Table:
    """Cut a shard."""
    number, shard, curve = _curve(columns, table)
    cuts, gains = sweep(curve.cum_neg, curve.cum_pos, firsts[number], epsilon, min(n_cuts, curve.n_rates))
    of_shard = [np.full(cuts.size, value, np.int32) for value in (number, shard)]
    return pa.table([*of_shard, np.arange(cuts.size), cuts, gains], schema=_CUTS)


def _merged(number: int, ends: NDArray[np.int64], found: pa.Table) -> Gains:
    """Return the cuts of one curve: the borders first, then those of each shard in the order they were made."""
    mine = found["feature"].to_numpy() == number
    shards, made, cuts, gains = (found[name].to_numpy()[mine] for name in ("shard", "made", "cut", "gain"))
    order = np.lexsort((made, shards))
    cuts = (cuts + ends[shards])[order]
    return np.concatenate([ends[1:-1], cuts]), np.concatenate([np.full(ends.size - 2, np.inf), gains[order]])
