"""Rows of a Spark frame -> their counts, in one shuffle, when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from vocabfold.cluster.tables import ClusterPart
from vocabfold.engines.rows import Rows
from vocabfold.engines.spark import Cluster, Kept, spelled
from vocabfold.survey import Target


def count_rows(cluster: Cluster, rows: Rows, features: Sequence[str], target: Target) -> ClusterPart:
    """Return the counts of all columns as one query: a row for every value of a row, grouped once."""
    kinds = {name: str(rows.columns[name].kind) for name in features}
    values = ", ".join(
        f"{i}, {spelled(kinds[name], rows.columns[name].sql)}" for i, name in enumerate(features)
    )
    units, all_units = target.units or "CAST(1 AS BIGINT)", "sum(n)" if target.units else "count(*)"
    fold = f", {target.fold} AS fold" if target.fold else ""
    carried = f"{units} AS n, CASE WHEN {target.is_positive} THEN {units} ELSE CAST(0 AS BIGINT) END AS p{fold}"
    keys = "feature, value, fold" if target.fold else "feature, value"
    rows_of_all = f"SELECT *, {carried} FROM {rows.scan}{target.where}"
    stacked = f"SELECT *, stack({len(features)}, {values}) AS (feature, value) FROM ({rows_of_all})"
    sums = f"{all_units} - sum(p) AS neg, sum(p) AS pos"
    frame = cluster.frame(f"SELECT {keys}, {sums} FROM ({stacked}) GROUP BY {keys}")
    return ClusterPart(Kept(frame), kinds, target.units_per_row, target.fold is not None, cluster.session)
