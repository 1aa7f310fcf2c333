"""Codebook -> the contents of its ids, column by column: rates, rows, values and the most frequent values.

A column may have more ids and more values than fit into a page. Then neighbouring ids by rate are combined,
each group with about as many rows, and the search finds only the most frequent values.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.queries import groups_of
from vocabfold.counts.units import sql_at_least, sql_rows
from vocabfold.errors import printable
from vocabfold.evaluation.chance import ByLabel
from vocabfold.folding.allocation import share
from vocabfold.folding.methods import BY_VALUE
from vocabfold.io.engines.duckdb import Engine
from vocabfold.support.progress import track

MOST_SEGMENTS, MOST_SEGMENTS_OF_ONE = 12_000, 1_000
MOST_VALUES = 30_000  # that the search finds
MOST_CHARACTERS = 60  # of a value that the search finds,
_EXAMPLE_CHARACTERS, _N_EXAMPLES = 40, 3  # and of an example of an id
MISSING, EMPTY = "(missing)", "(empty text)"

Json = dict[str, Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contents:
    """The contents of a column: ids or groups of them, values that the search finds, and shares of the rows."""

    segments: Json
    values: Json
    other: int  # segment of the id `other`
    n_shared: int  # shared ids that have values
    infrequent: float  # share of the rows at fit whose value has fewer than `dedicated_min` rows
    missing: float | None  # share; unknown if missing values may be among the rare ones
    expected_unseen: float  # share of new rows, if they are like those at fit


def contents(book: Codebook) -> dict[str, Contents]:
    """Return the contents of every column of a codebook."""
    sizes = [min(column.size, MOST_SEGMENTS_OF_ONE) for column in book.columns.values()]
    segments = share(sizes, [], max(MOST_SEGMENTS, len(book)), "uniform")
    n_values = [max(1, column.n_values) for column in book.columns.values()]
    values = share(n_values, [], max(MOST_VALUES, len(book)), "uniform")
    found = {}
    with Engine(book.memory_limit) as engine:
        for i, name in enumerate(track(book.features, "reading ids of", engine.progress)):
            found[name] = _contents(engine, book, name, segments[i], values[i])
    return found


def shown(value: Any, most: int = MOST_CHARACTERS) -> str:
    """Return a value in one line: control characters are spelled out, long values cut in the middle."""
    if value is None or value == "":
        return MISSING if value is None else EMPTY
    raw = str(value)
    text = printable(raw) if len(raw) <= most else ""
    if text and len(text) <= most:
        return text
    end = (most - 1) // 3  # long values, such as addresses, often differ at the end
    return printable(raw[:most])[: most - 1 - end] + "…" + printable(raw[-most:])[-end:]


def _contents(engine: Engine, book: Codebook, name: str, n_segments: int, n_values: int) -> Contents:
    column, upr = book.columns[name], book.units_per_row
    sql = book.store.sql(engine, name)
    groups = engine.run(groups_of(sql, _N_EXAMPLES, book.sums))
    frequent = engine.run(
        f"SELECT value, id, pos, neg + pos AS units FROM ({sql}) ORDER BY units DESC, value NULLS FIRST "
        f"LIMIT {n_values}"
    )
    conditions = {
        "infrequent": f"NOT {sql_at_least(book.sums, upr, book.settings['dedicated_min'])}",
        "once": f"{sql_rows(book.sums, upr)} <= 1",
        "missing": "value IS NULL",
    }
    sums = (
        f"coalesce(sum(neg + pos) FILTER ({condition}), 0)::BIGINT AS {name}"
        for name, condition in conditions.items()
    )
    shares = engine.run(f"SELECT {', '.join(sums)} FROM ({sql})").to_pylist()[0]
    of_ids = {name: np.zeros(column.size, np.int64) for name in book.sums}
    ids = groups["id"].to_numpy()
    for name, of_id in of_ids.items():
        of_id[ids] = groups[name].to_numpy()
    n_rare = book.neg + book.pos - int(of_ids["neg"].sum() + of_ids["pos"].sum())
    for name, of_id in of_ids.items():
        of_id[column.other] += book.of_all[name] - of_id.sum()
    counts = np.zeros(column.size, np.int64)
    counts[ids] = groups["n_values"].to_numpy()
    examples: list[list[Any]] = [[] for _ in range(column.size)]
    for id, of_id in zip(ids, groups["examples"].to_pylist(), strict=True):
        examples[id] = of_id
    is_by_rate = book.settings["method"] not in BY_VALUE
    places, segments = _segments(column, is_by_rate, ByLabel.of(of_ids, book), counts, examples, n_segments)
    values = frequent["value"].to_pylist()
    of_values, units_of_values = frequent["id"].to_numpy(), frequent["units"].to_numpy()
    n_units = book.neg + book.pos
    return Contents(
        segments=segments,
        other=int(places[column.other]),
        n_shared=int(np.count_nonzero(counts)) - column.n_dedicated,
        values={
            "text": [shown(value) for value in values],
            "special": [i for i, value in enumerate(values) if value is None or value == ""],
            "id": of_values.tolist(),
            "segment": places[of_values].tolist(),
            "rows": (units_of_values / upr).tolist(),
            "rate": (frequent["pos"].to_numpy() / np.maximum(units_of_values, 1)).tolist(),
            "of": column.n_values,
            "share_of_rows": float(units_of_values.sum() / n_units),
        },
        infrequent=(shares["infrequent"] + n_rare) / n_units,
        missing=None if n_rare and not shares["missing"] else shares["missing"] / n_units,
        expected_unseen=(shares["once"] + n_rare) / n_units,
    )


def _segments(
    column: BookColumn,
    is_by_rate: bool,
    rows: ByLabel,
    n_values: NDArray[np.int64],
    examples: list[list[Any]],
    most: int,
) -> tuple[NDArray[np.int64], Json]:
    """Return the segment of each id, and the contents of each segment, by rising rate."""
    by_rate = np.argsort(column.rates, kind="stable")
    rows_of_id = rows.rows
    of_ids = rows_of_id[by_rate]
    if column.size > most:
        middles = (np.cumsum(of_ids) - of_ids / 2) / max(of_ids.sum(), 1)
        starts = np.flatnonzero(np.diff(np.floor(middles * most), prepend=-1))
    else:
        starts = np.arange(column.size)
    of_segment = np.repeat(np.arange(starts.size), np.diff(starts, append=column.size))
    places = np.empty(column.size, np.int64)
    places[by_rate] = of_segment
    borders = (0.0, *column.borders, 1.0)
    # Neither a single id for all rates nor an id of a method by value is an interval.
    shared, has_intervals = set(column.shared), is_by_rate and column.borders
    intervals = {id: borders[i : i + 2] for i, id in enumerate(column.shared)} if has_intervals else {}
    rates = np.asarray(column.rates)[by_rate]
    segments = rows.grouped(places, starts.size)
    low, high = segments.interval
    found: dict[str, list[Any]] = {
        name: [] for name in ("id", "last", "n_ids", "role", "from", "to", "examples")
    }
    for ids in np.split(by_rate, starts[1:]):
        one = int(ids[0])
        found["id"].append(int(ids.min()))
        found["last"].append(int(ids.max()))
        found["n_ids"].append(ids.size)
        found["role"].append(
            _role(column, one in shared, n_values[one], is_by_rate) if ids.size == 1 else "several"
        )
        bounds = intervals.get(one, (None, None)) if ids.size == 1 else (None, None)
        found["from"].append(bounds[0])
        found["to"].append(bounds[1])
        most_rows = ids[np.argsort(-rows_of_id[ids], kind="stable")]
        members = (value for id in most_rows[:_N_EXAMPLES] for value in examples[id])
        found["examples"].append([shown(value, _EXAMPLE_CHARACTERS) for value in islice(members, _N_EXAMPLES)])
    n_rows = segments.rows
    weighted = np.bincount(of_segment, rates * of_ids, starts.size)
    return places, found | {
        "rows": n_rows.tolist(),
        "rate": np.where(n_rows > 0, weighted / np.maximum(n_rows, 1e-300), rates[starts]).tolist(),
        "observed": [rate if n else None for rate, n in zip(segments.rates.tolist(), n_rows, strict=True)],
        "low": low.tolist(),
        "high": high.tolist(),
        "n_values": np.bincount(of_segment, n_values[by_rate], starts.size).astype(int).tolist(),
    }


def _role(column: BookColumn, is_shared: bool, n_values: int, is_by_rate: bool) -> str:
    """Return what an id stands for: similar rates, one value, the rest, a hash, or rare and unseen values."""
    if is_shared:
        return "rates" if is_by_rate else "rest"
    if not n_values:
        return "other"
    if not (is_by_rate or column.n_dedicated):
        return "hash"
    return "value" if n_values == 1 else "joined"
