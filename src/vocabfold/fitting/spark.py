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
from vocabfold.counts.spark import SparkTable, on_spark
from vocabfold.fitting.pairs import Pairs, Units
from vocabfold.fitting.split import Split
from vocabfold.folding.curve import Curve
from vocabfold.folding.prior import Prior
from vocabfold.folding.solve.cut_tree import Gains
from vocabfold.folding.solve.threshold import borders, largest_gain, sweep
from vocabfold.io.engines.spark import Cluster, Frame, Kept, in_groups, mapped

_LOG = logging.getLogger("vocabfold")
_NONE = np.iinfo(np.int64).max
_KEYS = ("feature", "shard")
_OF_SHARD = [("feature", pa.int32()), ("shard", pa.int32())]
_ASSIGNED = pa.schema([*_OF_SHARD, ("neg", pa.int64()), ("pos", pa.int64()), ("n", pa.int64())])
_LARGEST = pa.schema([*_OF_SHARD, ("gain", pa.float64()), ("n_pairs", pa.int64())])
_CUTS = pa.schema([*_OF_SHARD, ("made", pa.int64()), ("cut", pa.int64()), ("gain", pa.float64())])


@dataclass(frozen=True)
class Column:
    """What a worker has to know of a column: its prior, its borders, and which pairs are folded."""

    prior: Prior
    units_per_row: int
    n_units: int
    low: int  # the fewest and the most units of a value that is folded
    high: int
    starts: tuple[Fraction | float, ...]  # the rate with which each shard but the first begins
    rare: tuple[int, int] | None  # units of rare values, if they are folded as one more value,
    rare_shard: int  # and where

    def shards(self, neg: Units, pos: Units, n_values: Units) -> NDArray[np.int32]:
        """Return the shard of each pair."""
        pairs = self._pairs(neg, pos, n_values)
        starts = np.array([float(start) for start in self.starts])
        if not pairs.is_exact:
            return np.asarray(np.searchsorted(starts, pairs.rates, side="right"), np.int32)
        # Rates are compared exactly: those with the double of a border are looked at more closely.
        rows = neg + pos
        rates = pos / rows
        shards = np.asarray(np.searchsorted(starts, rates, side="right"), np.int32)
        for i in np.flatnonzero(np.isin(rates, starts)):
            shards[i] = bisect_right(self.starts, Fraction(int(pos[i]), int(rows[i])))
        return shards

    def curve(self, shard: int, neg: Units, pos: Units, n_values: Units) -> Curve:
        """Return a shard, sorted by rate."""
        with_rare = self.rare is not None and shard == self.rare_shard
        if self.rare is not None and with_rare:
            neg, pos = np.append(neg, self.rare[0]), np.append(pos, self.rare[1])
            n_values = np.append(n_values, 1)
        pairs = self._pairs(neg, pos, n_values)
        pairs.is_rare[neg.size - with_rare :] = True
        return pairs.curve(~pairs.is_rare, with_rare)

    def _pairs(self, neg: Units, pos: Units, n_values: Units) -> Pairs:
        is_rare = np.zeros(neg.size, np.bool_)
        return Pairs(neg, pos, n_values, is_rare, self.units_per_row, self.n_units, self.prior)


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
        units, with_rare = pairs.units[shared], self.ids.folds_rare(pairs)
        starts: list[Fraction | float]
        if pairs.is_exact:
            sides = [np.diff(side)[ends[1:-1]].tolist() for side in (curve.cum_neg, curve.cum_pos)]
            starts = [Fraction(pos, neg + pos) for neg, pos in zip(*sides, strict=True)]
        else:
            rates = np.append(pairs.rates[shared], pairs.rare_rate) if with_rare else pairs.rates[shared]
            starts = np.unique(rates)[ends[1:-1]].tolist()
        return Column(
            pairs.prior,
            pairs.units_per_row,
            pairs.n_units,
            int(units.min(initial=_NONE)),
            int(units.max(initial=0)),
            tuple(starts),
            pairs.rare if with_rare else None,
            int(np.searchsorted(ends[1:-1], curve.position[-1], side="right")),
        )

    def _assigned(self, cluster: Cluster, columns: Mapping[int, Column]) -> Frame:
        """Return the pairs of all columns, each with its shard."""
        which = " OR ".join(
            f"feature = {number} AND neg + pos BETWEEN {column.low} AND {column.high}"
            for number, column in columns.items()
        )
        counts = cluster.table(self.table.frame())
        pairs = (
            f"SELECT feature, neg, pos, count(*) AS n FROM {counts} WHERE {which} GROUP BY feature, neg, pos"
        )
        assigned = cluster.table(mapped(cluster.frame(pairs), partial(_assign, columns), _ASSIGNED))
        # Rare values may be alone in their shard: a row that stands for no value makes sure that it exists.
        rare = [
            f"SELECT {number}, {column.rare_shard}, 0, 0, 0"
            for number, column in columns.items()
            if column.rare is not None
        ]
        return cluster.frame(" UNION ALL ".join([f"SELECT * FROM {assigned}", *rare]))


# These run on the workers. They are sent there by name, with what they have to know: of a function inside a
# function Spark would send the body, and with it kernels, which every worker would compile again.


def _assign(columns: Mapping[int, Column], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Assign every pair to its shard."""
    for batch in batches:
        features, *sides = (batch[name].to_numpy() for name in ("feature", "neg", "pos", "n"))
        shards = np.zeros(features.size, np.int32)
        for number in np.unique(features):
            mine = features == number
            shards[mine] = columns[number].shards(*(side[mine] for side in sides))
        yield pa.record_batch([batch["feature"], pa.array(shards), *sides], schema=_ASSIGNED)


def _curve(columns: Mapping[int, Column], table: pa.Table) -> tuple[int, int, Curve]:
    """Return the column, the shard and the curve of a table of pairs."""
    number, shard = table["feature"][0].as_py(), table["shard"][0].as_py()
    sides = [table[name].to_numpy() for name in ("neg", "pos", "n")]
    is_value = sides[2] > 0
    return number, shard, columns[number].curve(shard, *(side[is_value] for side in sides))


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
