"""Counts that stay on a cluster: one table of all columns, (feature, value, fold, neg, pos).

Features are numbers, and values the texts that the digest spells. What the driver asks for is small: the table
{(neg, pos): how many values}, values with an id of their own, one column if somebody wants to see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from vocabfold.engines.spark import SPELLINGS, Cluster, Frame, Kept, from_texts, read_parquet, spelled, to_texts
from vocabfold.errors import InputError
from vocabfold.kinds import KINDS
from vocabfold.unpacking import gone, read

_SENT_BYTES = 2**20  # of files that the driver reads and sends; larger ones are read by the workers


@dataclass(frozen=True, eq=False)
class ClusterPart:
    """The counts of one reading of a Spark frame: feature, value, (fold,) neg, pos."""

    kept: Kept
    kinds: Mapping[str, str]  # of the features, in the order of their numbers
    units_per_row: int
    is_by_fold: bool
    session: Any
    folder: ClassVar[None] = None  # of temporary files

    def __getstate__(self) -> NoReturn:
        raise _not_pickled()


class ClusterTable:
    """All parts of some counts as one table on the cluster."""

    def __getstate__(self) -> NoReturn:
        raise _not_pickled()

    def __init__(
        self,
        parts: Sequence[Any],
        kinds: Mapping[str, str],
        units_per_row: int,
        folds: int,
        session: Any = None,
    ) -> None:
        self._parts = parts
        self.kinds = kinds
        self._units_per_row = units_per_row
        self._folds = folds
        sessions = [part.session for part in parts if part.session is not None] + [session] * bool(session)
        if any(other is not sessions[0] for other in sessions):
            raise two_sessions()
        self.session = sessions[0]
        self.in_folds: WeakKeyDictionary[Any, Kept] = WeakKeyDictionary()  # codebooks with their ids by fold

    def frame(self, *, by_fold: bool = False) -> Frame:
        """Return the counts of all columns: feature, value, (fold,) neg, pos in units."""
        by_fold = by_fold and self._folds > 0
        part = self._parts[0]
        is_whole = len(self._parts) == 1 and isinstance(part, ClusterPart) and part.is_by_fold == by_fold
        if is_whole and tuple(part.kinds) == tuple(self.kinds):
            return part.kept.frame
        return (self._by_fold if by_fold else self._totals).frame

    @cached_property
    def _totals(self) -> Kept:
        return Kept(self._sums("feature, value"))

    @cached_property
    def _by_fold(self) -> Kept:
        return Kept(self._sums("feature, value, fold"))

    def _sums(self, keys: str) -> Frame:
        with Cluster(self.session) as cluster:
            parts = " UNION ALL ".join(self._part(cluster, part, keys) for part in self._parts)
            sums = "CAST(sum(neg) AS BIGINT) AS neg, CAST(sum(pos) AS BIGINT) AS pos"
            return cluster.frame(f"SELECT {keys}, {sums} FROM ({parts}) GROUP BY {keys}")

    def _part(self, cluster: Cluster, part: Any, keys: str) -> str:
        """Return the query for one part, with the features numbered and the units scaled as those of all."""
        scale = self._units_per_row // part.units_per_row
        if isinstance(part, ClusterPart):
            numbers = ", ".join(str(list(self.kinds).index(name)) for name in part.kinds)
            table, feature = cluster.table(part.kept.frame), f"element_at(array({numbers}), feature + 1)"
        else:
            table, feature = self._sent(cluster, part, "fold" in keys), "feature"
        chosen = keys.replace("feature", f"{feature} AS feature", 1)
        return f"SELECT {chosen}, neg * {scale} AS neg, pos * {scale} AS pos FROM {table}"

    def _sent(self, cluster: Cluster, part: Any, by_fold: bool) -> str:
        """Return the query for a part that is on the driver, or in files."""
        part.check()
        names = ["value", *(["fold"] if by_fold else []), "neg", "pos"]
        queries = []
        for i, (name, kind) in enumerate(self.kinds.items()):
            table = part.tables[name]
            found = stored(cluster, table, kind, names)
            queries.append(f"SELECT {i} AS feature, {', '.join(names)} FROM {found}")
        return f"({' UNION ALL '.join(queries)})"

    def pairs(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each column its distinct (neg, pos), in order, and how many values have each."""
        with Cluster(self.session) as cluster:
            table = cluster.table(self.frame())
            found = cluster.run(
                f"SELECT feature, neg, pos, count(*) AS n FROM {table} GROUP BY feature, neg, pos"
            )
        yield from self.by_feature(found.sort_by([(key, "ascending") for key in ("feature", "neg", "pos")]))

    def frequent(self, least: int) -> dict[str, pa.Table]:
        """Return for each column its values with at least so many units, in their order, and their counts."""
        with Cluster(self.session) as cluster:
            found = cluster.run(
                f"SELECT feature, value, neg, pos FROM {cluster.table(self.frame())} WHERE neg + pos >= {least}"
            )
        return {name: sorted_by_value(typed(part, self.kinds[name])) for name, part in self.by_feature(found)}

    def by_feature(self, found: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each column, in their order, without its number."""
        features = found["feature"].to_numpy()
        order = np.argsort(features, kind="stable")
        found, ends = found.take(order), np.searchsorted(features[order], np.arange(len(self.kinds) + 1))
        for i, name in enumerate(self.kinds):
            yield name, found.slice(ends[i], ends[i + 1] - ends[i]).drop_columns(["feature"]).combine_chunks()

    def column(self, name: str, *, by_fold: bool = False) -> pa.Table:
        """Return the counts of one column, which come to the driver."""
        keys = "value, fold" if by_fold and self._folds else "value"
        with Cluster(self.session) as cluster:
            table = cluster.table(self.frame(by_fold=by_fold))
            number = list(self.kinds).index(name)
            found = cluster.run(f"SELECT {keys}, neg, pos FROM {table} WHERE feature = {number}")
        return typed(found, self.kinds[name])

    def n_values(self) -> dict[str, int]:
        """Return how many values each column has."""
        return n_rows(self.session, self.frame(), self.kinds)


def n_rows(session: Any, frame: Frame, names: Iterable[str]) -> dict[str, int]:
    """Return how many rows each column has in a table of all."""
    with Cluster(session) as cluster:
        found = cluster.run(f"SELECT feature, count(*) AS n FROM {cluster.table(frame)} GROUP BY feature")
    numbers = dict(zip(found["feature"].to_pylist(), found["n"].to_pylist(), strict=True))
    return {name: numbers.get(i, 0) for i, name in enumerate(names)}


def two_sessions() -> InputError:
    """Say that frames of two sessions cannot meet."""
    return InputError("these are on two Spark sessions; save one of them, and load it on the other.")


def _not_pickled() -> InputError:
    return InputError("what is on a Spark cluster cannot be pickled; save it to a folder, and load that.")


def stored(cluster: Cluster, table: pa.Table | list[Path], kind: str, names: Sequence[str]) -> str:
    """Return the query for a table of values of a kind, spelled; `names` are the columns that are wanted."""
    for path in table if isinstance(table, list) else []:
        if not path.exists():
            raise gone(path)
    if isinstance(table, list) and sum(path.stat().st_size for path in table) > _SENT_BYTES:
        types = {"value": SPELLINGS[kind].sql, "fold": "INT", "id": "INT", "neg": "BIGINT", "pos": "BIGINT"}
        schema = ", ".join(f"{name} {types[name]}" for name in names)
        chosen = [spelled(kind, "value") + " AS value" if name == "value" else name for name in names]
        return (
            f"(SELECT {', '.join(chosen)} FROM {cluster.table(read_parquet(cluster.session, table, schema))})"
        )
    held = read(table, names) if isinstance(table, list) else table.select(list(names))
    return cluster.table(held.set_column(0, "value", to_texts(held["value"], kind)))


def typed(table: pa.Table, kind: str) -> pa.Table:
    """Return a table whose values have the type of their kind instead of being texts."""
    values = from_texts(table["value"], kind, KINDS[kind].arrow)
    return table.set_column(table.schema.get_field_index("value"), "value", values)


def sorted_by_value(table: pa.Table) -> pa.Table:
    """Return a table in the order of its values, missing first."""
    import pyarrow.compute as pc

    order = np.asarray(pc.sort_indices(table["value"]))  # missing, which is there at most once, comes last
    return table.take(np.roll(order, table["value"].null_count)).combine_chunks()
