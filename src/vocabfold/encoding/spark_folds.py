"""Codebook + counts by fold, on a cluster -> ids out of fold; see `out_of_fold`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.out_of_fold import ids_by_rate, one_fold, other_counts, others
from vocabfold.codebook.spark import same
from vocabfold.counts.counts import Counts
from vocabfold.counts.spark import on_spark, two_sessions
from vocabfold.io.engines.spark import Cluster, Kept, hint


class FoldedValues:
    """The values of a codebook on the cluster with their counts in each fold of the rows it was fitted on."""

    def __init__(self, cluster: Cluster, book: Codebook, values: str, counts: Counts) -> None:
        self._cluster, self._book, self._counts = cluster, book, counts
        self._table = on_spark(counts, cluster.session)
        if self._table.session is not cluster.session:
            raise two_sessions()
        numbers = [book.features.index(name) if name in book.columns else -1 for name in counts.features]
        feature = f"element_at(array({', '.join(map(str, numbers))}), feature + 1)"
        frame = cluster.table(self._table.frame(by_fold=True))
        self._by_fold = f"(SELECT {feature} AS feature, value, fold, {', '.join(counts.sums)} FROM {frame})"
        self._values = values

    def kept(self) -> Kept:
        """Return feature, value, id, the sums, and the ids in the folds where a value has rows.

        In a fold, an infrequent value has the id of its rows in all others. Values with equal counts there are
        alike, so only these counts come to the driver.
        """
        known = self._table.in_folds.get(self._book)
        if known is None:
            self._check()
            known = self._table.in_folds[self._book] = Kept(self._cluster.frame(self._sql()))
        return known

    def _check(self) -> None:
        """Refuse counts all of whose rows are in one fold."""
        found = self._cluster.run(f"SELECT count(DISTINCT fold) AS n FROM {self._by_fold} WHERE feature = 0")
        if found["n"][0].as_py() < 2:
            raise one_fold()

    def _sql(self) -> str:
        book, cluster = self._book, self._cluster
        shared = [(i, id) for i, column in enumerate(book.columns.values()) for id in column.shared]
        with_interval = pa.table({"feature": _ints(i for i, _ in shared), "id": _ints(id for _, id in shared)})
        names = self._counts.sums
        elsewhere, by = (", ".join(f"b.{name} - f.{name} AS {name}" for name in names)), ", ".join(names)
        rest = (
            f"(SELECT {hint(t=with_interval)} f.feature, f.value, f.fold, {elsewhere} "
            f"FROM {self._by_fold} f JOIN {self._values} b "
            f"ON f.feature = b.feature AND f.value <=> b.value "
            f"JOIN {cluster.table(with_interval)} t ON b.feature = t.feature AND b.id = t.id)"
        )
        found = cluster.run(f"SELECT DISTINCT feature, {by} FROM {rest}")
        features, sums = found["feature"].to_numpy(), {name: found[name].to_numpy() for name in names}
        if min(side.min(initial=0) for side in sums.values()) < 0:
            raise other_counts()
        ids = np.zeros(features.size, np.int32)
        for i, column in enumerate(book.columns.values()):
            mine = features == i
            ids[mine] = ids_by_rate(column, {name: side[mine] for name, side in sums.items()}, book)
        pairs = found.append_column("id", pa.array(ids))
        folds = (
            f"(SELECT {hint(p=pairs)} r.feature, r.value, map_from_entries(collect_list(struct(r.fold, p.id))) "
            f"AS folds FROM {rest} r JOIN {cluster.table(pairs)} p "
            f"ON r.feature = p.feature AND {same('r', 'p', names)} GROUP BY r.feature, r.value)"
        )
        return (
            f"SELECT b.*, f.folds FROM {self._values} b LEFT JOIN {folds} f "
            "ON b.feature = f.feature AND b.value <=> f.value SORT BY b.feature"
        )

    def others(self) -> dict[str, NDArray[np.int32]]:
        """Return the ids of rare values of each column in each fold, and last in none."""
        book, names = self._book, self._counts.sums
        rare = {
            name: {side: np.zeros(self._counts.folds, np.int64) for side in names} for name in book.features
        }
        if any(column.n_rare and column.other in column.shared for column in book.columns.values()):
            sums = ", ".join(f"CAST(sum({side}) AS BIGINT) AS {side}" for side in names)
            found = self._cluster.run(
                f"SELECT feature, fold, {sums} FROM {self._by_fold} f ANTI JOIN {self._values} b "
                "ON f.feature = b.feature AND f.value <=> b.value WHERE feature >= 0 GROUP BY feature, fold"
            )
            for row in found.to_pylist():
                for side, units in rare[book.features[row["feature"]]].items():
                    units[row["fold"]] = row[side]
        return {name: others(book.columns[name], units, book) for name, units in rare.items()}


def _ints(numbers: Iterable[int]) -> pa.Array:
    return pa.array(list(numbers), pa.int32())
