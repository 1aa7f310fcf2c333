"""Frames in memory -> Arrow tables, one column at a time so that an error can name it."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.errors import InputError, WrongType


def is_frame(data: Any) -> bool:
    """Tell whether this is a table in memory: Arrow, pandas or polars (lazy or not)."""
    return isinstance(data, pa.Table | pa.RecordBatch) or _library(data) in ("pandas", "polars")


def stream(data: Any) -> pa.RecordBatchReader | None:
    """Return the rows of any object with Arrow's stream protocol."""
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (TypeError, pa.ArrowException):  # it does not, or it holds one column instead of a table
        return None


def described(data: Any) -> str:
    """Return the name of a frame in messages."""
    return f"the {_library(data).replace('pyarrow', 'Arrow')} {type(data).__name__}"


def is_lazy(data: Any) -> bool:
    """Tell whether a frame is a query that has not been run."""
    return _library(data) == "polars" and type(data).__name__ == "LazyFrame"


def names(data: Any) -> list[str]:
    """Return the names of the columns."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return list(data.schema.names)
    if _library(data) != "polars":
        return list(data.columns)
    with reading(described(data)):
        return list(data.collect_schema().names())


def n_rows(data: Any) -> int | None:
    """Return the number of rows; None, if a query would have to be run for it."""
    if is_lazy(data):
        return None
    return int(data.num_rows if isinstance(data, pa.Table | pa.RecordBatch) else len(data))


def ends(data: Any, n: int) -> tuple[Any, Any]:
    """Return the first and the last so many rows of a frame, as frames."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.slice(0, n), data.slice(max(0, data.num_rows - n))
    return data.head(n), data.tail(n)


def check_names(names: Iterable[str]) -> None:
    """Refuse names with lone surrogates, which pandas takes, and neither Arrow nor a file can hold."""
    wrong = [name for name in names if name.encode(errors="ignore").decode() != name]
    if wrong:
        raise InputError(
            f"column names must be UTF-8, got {', '.join(map(repr, wrong))}; rename the columns first."
        )


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise an `InputError` when the caller's own query fails, whatever the cause."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be read: {str(error).splitlines()[0]}") from error


def to_arrow(data: Any, names: Sequence[str]) -> pa.Table:
    """Return the named columns as an Arrow table; NaN in a pandas frame is missing."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.select(list(names))
    if _library(data) == "polars":
        objects = [name for name in names if str(data.collect_schema()[name]) == "Object"]
        if objects:
            raise _mixed(objects[0], data.lazy().select(objects[0]).collect()[objects[0]].to_list())
        with reading(described(data)):
            frame = data.lazy().select(list(names)).collect()
            # Numbered on the way: polars hands no name with NUL in it over, and panics.
            frame.columns = [f"c{i}" for i in range(len(names))]
            return frame.to_arrow().rename_columns(list(names))
    check_names(names)
    return pa.table([column(name, data[name]) for name in names], list(names))


def replaced(data: Any, columns: Mapping[str, NDArray[Any]], only: bool) -> Any:
    """Return a frame of the same kind with some columns replaced, and without all others, if so asked."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        for name, values in columns.items():
            data = data.set_column(data.schema.get_field_index(name), name, pa.array(values))
        data = data.select(list(columns)) if only else data
        return data.replace_schema_metadata(metadata_of_ids(data.schema.metadata, columns))
    if _library(data) == "polars":
        import polars  # which the caller has

        series = [polars.Series(name, values) for name, values in columns.items()]
        return data.select(series) if only else data.with_columns(series)
    frame = (data[list(columns)] if only else data).copy(deep=False)
    for name, values in columns.items():
        frame[name] = values
    return frame


def metadata_of_ids(metadata: Mapping[bytes, bytes] | None, names: Container[str]) -> dict[bytes, bytes]:
    """Return the metadata of a table after some columns became int32: pandas notes the types of all of them."""
    known = dict(metadata or {})
    if b"pandas" in known:
        try:
            about = json.loads(known[b"pandas"])
            types = {"pandas_type": "int32", "numpy_type": "int32", "metadata": None}
            about["columns"] = [
                column | types if column["name"] in names else column for column in about["columns"]
            ]
            known[b"pandas"] = json.dumps(about).encode()
        except (ValueError, TypeError, KeyError):
            del known[b"pandas"]
    return known


def column(name: str, series: Any) -> pa.Array | pa.ChunkedArray:
    """Return a pandas series or a flat NumPy array as an Arrow array; NaN is missing."""
    try:
        try:
            array = pa.array(series, from_pandas=True)
        except OverflowError:  # large numbers are not tried as unsigned
            array = pa.array(series, pa.uint64(), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise _mixed(name, series.astype(object).tolist()) from error
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    # Arrow makes 1.0 of 1 beside 1.5, and a date of an instant beside a date; with text it mixes nothing.
    if (
        series.dtype == object
        and not pa.types.is_string(array.type)
        and len(_types(values := series.tolist())) > 1
    ):
        raise _mixed(name, values)
    return array


def _types(values: Sequence[Any]) -> list[str]:
    """Return the names of the types in a column of Python objects, but for those of what is missing."""
    found = set(map(type, values)) - {type(None)}
    if float in found and not any(isinstance(value, float) and value == value for value in values):
        found -= {float}  # only NaN
    wide = {np.integer: "int", np.floating: "float", np.bool_: "bool", np.str_: "str"}
    names = {next((name for base, name in wide.items() if issubclass(t, base)), t.__name__) for t in found}
    return sorted(names - {"NAType", "NaTType"})


def _mixed(name: str, values: Sequence[Any]) -> WrongType:
    """Name the types that a column of Python objects mixes, or the one that cannot be read."""
    types = _types(values)
    if len(types) > 1:
        return WrongType(
            f"column {name!r} mixes {' and '.join(types[:3])}, so 1 and '1' would be two values; convert it "
            "to one type first: the argument must be all strings, all numbers or all dates."
        )
    return WrongType(
        f"column {name!r} holds values of type {''.join(types)}, which cannot be read; convert it first."
    )


def _library(data: Any) -> str:
    for base in type(data).__mro__:
        if base.__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch"):
            return base.__module__.partition(".")[0]
    return ""
