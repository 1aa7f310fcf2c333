"""Queries on the values of a column: value, id and the sums, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence

from vocabfold.counts.units import UNITS

_ALL = 2**62  # values that no id has: SQL makes infinity of far larger numbers, and takes that for none


def sorted_by_value(sql: str, columns: str = "*") -> str:
    """Return the query for a column of a codebook in the order of the values, missing first."""
    return f"SELECT {columns} FROM ({sql}) ORDER BY value NULLS FIRST"


def groups_of(sql: str, n_examples: int, sums: Sequence[str] = UNITS) -> str:
    """Return the query for the ids of a column: their values, sums, and so many values with most rows."""
    of_ids = ", ".join(f"sum({name})::BIGINT AS {name}" for name in sums)
    rank = "row_number() OVER (PARTITION BY id ORDER BY neg + pos DESC, value NULLS FIRST)"
    return (
        f"SELECT id, count(*) AS n_values, {of_ids}, "
        f"coalesce(list(value ORDER BY rank) FILTER (rank <= {min(n_examples, _ALL)}), []) AS examples "
        f"FROM (SELECT *, {rank} AS rank FROM ({sql})) GROUP BY id ORDER BY id"
    )


def members_of(sql: str, id: int, limit: int | None) -> str:
    """Return the query for the values of an id, those with most rows first."""
    end = "" if limit is None else f" LIMIT {min(limit, _ALL)}"
    return f"SELECT value FROM ({sql}) WHERE id = {id} ORDER BY neg + pos DESC, value NULLS FIRST{end}"


def most_frequent_of(sql: str) -> str:
    """Return the query for the value with most rows of each id; of equally many, missing or the lowest."""
    return (
        f"WITH v AS ({sql}) SELECT id, bool_or(value IS NULL) AS is_missing, min(value) AS value FROM v JOIN "
        "(SELECT id, max(neg + pos) AS n FROM v GROUP BY id) USING (id) WHERE neg + pos = n GROUP BY id"
    )


def alike_in_folds(values: str, by_fold: str, sums: Sequence[str], *, by_id: bool = True) -> str:
    """Return the query for how many values have the same id (if that matters), sums, fold and sums there.

    `by_fold` is the query for the counts of the column by fold.
    """
    both = ", ".join(f"b.{name} AS all_{name}, f.{name}" for name in sums)
    return (
        f"SELECT {'b.id, ' * by_id}{both}, f.fold, count(*) AS n "
        f"FROM ({by_fold}) f LEFT JOIN ({values}) b ON f.value IS NOT DISTINCT FROM b.value GROUP BY ALL"
    )
