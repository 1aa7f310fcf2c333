"""Codebook + Spark frame -> the frame with ids, as joins that run when the rows are asked for.

Every column is joined with its values. Those of small columns are sent to all workers; of a large column, only
the values that many rows have, and the rows that are then left have no heavy key, whichever machine they meet
their value on. Missing, which is often the heaviest, is among those that are sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.spark import SparkStore
from vocabfold.codebook.stores import SavedStore
from vocabfold.counts.spark_files import stored
from vocabfold.encoding.crossfit import Folds
from vocabfold.encoding.encoder import DIGEST, check_found, holds_ids
from vocabfold.encoding.plan import Plan
from vocabfold.encoding.spark_folds import FoldedValues
from vocabfold.errors import InputError
from vocabfold.io.engines import spark
from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.spark import Cluster, Frame, literal, spelled
from vocabfold.support import checks

_SENT = 2**20  # values of all columns that are sent to every worker,
_HEAVY = 2**-13  # and of each column beyond, those that have such a share of the rows
_SALTS = 4096  # keys over which rows are spread that have found their id, or that have no value
_NO_FOLDS = "CAST(NULL AS MAP<INT, INT>) AS folds"
_FOREIGN = "'-'"  # the key of a number that the kind of a column cannot hold


def encode_spark_frame(plan: Plan, frame: Frame) -> Frame:
    """Return a frame with ids in the place of the values; nothing runs until its rows are asked for."""
    spark.session_of(frame)
    if plan.folds is None:
        plan.of_rows((spark.fingerprint(frame),), spark.NAME)
    elif plan.fold_column is None:
        raise InputError(
            "rows of a Spark frame have no numbers, by which rows were assigned to folds when they were "
            "counted; count them with a fold_column."
        )
    return encode_plainly(plan, frame)


def encode_plainly(plan: Plan, frame: Frame) -> Frame:
    """Encode a frame without checking whether the codebook was fitted on its rows."""
    book, folds = plan.book, plan.folds
    names, types = zip(*frame.dtypes, strict=True) if frame.columns else ((), ())
    place = dict(zip(names, range(len(names)), strict=True))
    _check(book, frame, names, types, folds)
    keys = {
        name: _key(types[place[name]], column.kind, f"c{place[name]}") for name, column in book.columns.items()
    }
    with Cluster(frame) as cluster:
        values, others = _values(cluster, book, folds)
        carried = [f"c{i}" for i, type in enumerate(types) if spark.kind_of(type)]
        expressions = {
            "fold": _fold(folds, place) if folds else "CAST(NULL AS INT)",
            "salt": f"pmod(xxhash64({', '.join(carried)}), {_SALTS})",
            **{f"k{i}": key for i, key in enumerate(keys.values())},
        }
        rows = ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())
        rows = f"SELECT *, {rows} FROM {cluster.table(spark.numbered(frame))}"
        rows = _looked_up(book, rows, values)
        ids = {
            place[
                name
            ]: f"CAST({_id(book, name, i, place[name], others.get(name))} + {plan.offsets[name]} AS INT)"
            for i, name in enumerate(book.features)
        }
        wanted = list(ids) if plan.only_ids else list(range(len(names)))
        chosen = ", ".join(f"{ids.get(i, f'c{i}')} AS c{i}" for i in wanted)
        encoded = cluster.frame(f"SELECT {chosen} FROM ({rows})")
    about = {DIGEST.decode(): book.digest}
    return spark.named(
        encoded, [names[i] for i in wanted], {j: about for j, i in enumerate(wanted) if i in ids}
    )


def _fold(folds: Folds, place: Mapping[str, int]) -> str:
    """Return the expression of a row's fold; a row without one was not counted."""
    assert folds.column is not None
    column, last = f"c{place[folds.column]}", folds.store.counts.folds - 1
    problem = literal(f"fold_column {folds.column!r} must hold whole numbers from 0 to {last:,}, got ")
    error = f"CAST(raise_error(concat({problem}, {column})) AS INT)"
    return f"CASE WHEN {column} > {last} THEN {error} WHEN {column} >= 0 THEN CAST({column} AS INT) END"


def _looked_up(book: Codebook, rows: str, values: Mapping[str, str]) -> str:
    """Return the query for rows with the id of the value in each column, and its ids in folds."""
    sent, heavy = _sent(book), f"WHERE neg + pos >= {(book.neg + book.pos) * _HEAVY} OR value IS NULL"
    numbers = range(len(book.features))
    tables = [f"(SELECT * FROM {values[name]} {'' if name in sent else heavy})" for name in book.features]
    found = ", ".join(f"m{i}.id AS id{i}, m{i}.folds AS folds{i}" for i in numbers)
    hints = ", ".join(f"m{i}" for i in numbers)
    joins = " ".join(f"LEFT JOIN {tables[i]} m{i} ON r.k{i} <=> m{i}.value" for i in numbers)
    rows = f"SELECT /*+ BROADCAST({hints}) */ r.*, {found} FROM ({rows}) r {joins}"
    # Only now, when texts of all columns that were sent are gone, do rows have to move.
    for i in numbers:
        if book.features[i] not in sent:
            rows = _met(rows, values[book.features[i]], i)
    return rows


def _met(rows: str, column: str, i: int) -> str:
    """Join the rows that have no id yet with the values of a column, wherever they meet; spread all others."""
    is_left = f"id{i} IS NULL AND k{i} IS NOT NULL"
    keys = f"{is_left} AS is_left, CASE WHEN {is_left} THEN k{i} ELSE concat('-', salt) END AS spread"
    return (
        f"SELECT r.* EXCEPT (id{i}, folds{i}, is_left, spread), coalesce(r.id{i}, m.id) AS id{i}, "
        f"coalesce(r.folds{i}, m.folds) AS folds{i} FROM (SELECT *, {keys} FROM ({rows})) r "
        f"LEFT JOIN {column} m ON r.spread = m.value AND r.is_left"
    )


def _id(book: Codebook, name: str, i: int, place: int, others: NDArray[np.int32] | None) -> str:
    """Return the expression of the id of a row: its value's, in its fold if folds count, or `other`."""
    found, other = f"id{i}", str(book.columns[name].other)
    if others is not None:
        found = f"CASE WHEN id{i} IS NOT NULL THEN coalesce(try_element_at(folds{i}, fold), id{i}) END"
        other = f"coalesce(try_element_at(array({', '.join(map(str, others[:-1]))}), fold + 1), {others[-1]})"
    if book.settings["unseen"] == "error":
        start = literal(f"column {name!r}: the value ")
        end = literal(" is not in the codebook, which was fitted with unseen='error'")
        value = f"coalesce(CAST(c{place} AS STRING), 'None')"
        return f"coalesce({found}, CAST(raise_error(concat({start}, {value}, {end})) AS INT))"
    return f"coalesce({found}, {other})"


def _key(type: str, kind: str, column: str) -> str:
    """Return the expression of a value as the text that stands for it in a column of some kind."""
    found = spark.kind_of(type) or ""
    value = spark.SPELLINGS[found].read.format(column)
    if found in (kind, "missing") or {found, kind} <= {"integer", "unsigned"}:
        return spelled(found, value)
    # A number is the same value, whatever kind of number, if it can be one of the other kind at all.
    same = f"TRY_CAST({value} AS {spark.SPELLINGS[kind].sql})"
    # The largest integers have no double of their own, and would meet the next one.
    is_same = f"abs(CAST({value} AS DOUBLE)) < {2.0**63}D AND CAST({same} AS DOUBLE) = {value}"
    if kind == "float":
        is_same = f"{is_same} AND TRY_CAST({same} AS BIGINT) = {value}"
    return f"CASE WHEN {value} IS NULL THEN NULL WHEN {is_same} THEN {spelled(kind, same)} ELSE {_FOREIGN} END"


def _values(
    cluster: Cluster, book: Codebook, folds: Folds | None
) -> tuple[dict[str, str], dict[str, NDArray[np.int32]]]:
    """Return for each column the query for value, id, the sums and folds, and the ids of its rare values."""
    if isinstance(book.store, SparkStore) and book.store.table.session is cluster.session:
        book.store.check()
        whole = cluster.table(book.store.kept.frame)
        values = _of_columns(whole, book.features)
    else:
        values = _sent_values(cluster, book)
        parts = (f"SELECT {i} AS feature, * FROM {part}" for i, part in enumerate(values.values()))
        whole = f"({' UNION ALL '.join(parts)})"
    if folds is None:
        return {name: f"(SELECT *, {_NO_FOLDS} FROM {column})" for name, column in values.items()}, {}
    in_folds = FoldedValues(cluster, book, whole, folds.store.counts)
    return _of_columns(cluster.table(in_folds.kept().frame), book.features), in_folds.others()


def _sent_values(cluster: Cluster, book: Codebook) -> dict[str, str]:
    """Return for each column the query for its values, if they are not on the cluster."""
    names, kinds = ["value", "id", *book.sums], {name: column.kind for name, column in book.columns.items()}
    if isinstance(book.store, SavedStore):
        return {name: stored(cluster, book.store.files[name], kind, names) for name, kind in kinds.items()}
    with Engine(book.memory_limit) as engine:
        return {
            name: stored(cluster, engine.run(book.store.sql(engine, name)), kind, names)
            for name, kind in kinds.items()
        }


def _of_columns(table: str, names: Sequence[str]) -> dict[str, str]:
    """Return the query for each column of a table of all."""
    return {name: f"(SELECT * FROM {table} WHERE feature = {i})" for i, name in enumerate(names)}


def _sent(book: Codebook) -> set[str]:
    """Return the columns all of whose values are sent to every worker: the smallest ones."""
    by_size = sorted(book.features, key=lambda name: book.columns[name].n_values)
    room = np.cumsum([book.columns[name].n_values for name in by_size]) <= _SENT
    return {name for name, fits in zip(by_size, room, strict=True) if fits}


def _check(
    book: Codebook, frame: Frame, names: Sequence[str], types: Sequence[str], folds: Folds | None
) -> None:
    """Refuse a frame without each column of the codebook once, with its kind, and with values, not ids."""
    needed = [*book.features, *([folds.column] if folds and folds.column is not None else [])]
    checks.known("column", needed, names, spark.NAME)
    for name in needed:
        if names.count(name) > 1:
            raise InputError(f"{spark.NAME} has the column {name!r} twice; rename one of them.")
    if folds and folds.column is not None:
        type = types[names.index(folds.column)]
        if spark.kind_of(type) != "integer":
            raise InputError(f"fold_column {folds.column!r} must hold whole numbers, got {type}.")
    for name in book.features:
        if DIGEST.decode() in frame.schema.fields[names.index(name)].metadata:
            raise holds_ids(name, spark.NAME)
    of_names = dict(zip(names, types, strict=True))
    check_found(
        book, {name: (spark.kind_of(of_names[name]), of_names[name]) for name in book.features}, spark.NAME
    )
