"""The doors: every form that rows may come in, and what each of them cannot hold."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXT_DOORS = ("CSV", "CSV.gz", "TSV", "JSON lines")
Door = Callable[[pa.Table, Path], Any]


def _parquet(table: pa.Table, folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(table, path)
    return path


def _separated(end: str, separator: str) -> Door:
    def write(table: pa.Table, folder: Path) -> Path:
        path = folder / f"rows{end}"
        lines = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
        text = "".join(separator.join(map(_field, line)) + "\r\n" for line in lines)
        content = text.encode("utf-8", "surrogatepass")
        path.write_bytes(gzip.compress(content) if end.endswith(".gz") else content)
        return path

    return write


def _field(value: Any) -> str:
    """Return a field of CSV: texts in quotes, nothing for what is missing."""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else spelled(value)


def spelled(value: Any) -> str:
    """Return how a value is spelled in a text file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(table: pa.Table, folder: Path) -> Path:
    path = folder / "rows.jsonl"
    lines = [json.dumps(row, default=str, ensure_ascii=i % 2 == 0) for i, row in enumerate(table.to_pylist())]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return path


def _polars(table: pa.Table, _: Path) -> Any:
    import polars

    frame = polars.from_arrow(table)
    frame.columns = table.column_names  # of "" it made column_0
    return frame


def _dataset(table: pa.Table, folder: Path) -> Any:
    from pyarrow.dataset import dataset

    return dataset(_parquet(table, folder))


def _relation(table: pa.Table, folder: Path) -> Any:
    import duckdb

    return duckdb.from_parquet(str(_parquet(table, folder)))


DOORS: dict[str, Door] = {
    "pandas": lambda table, _: table.to_pandas(),
    "polars": _polars,
    "Arrow table": lambda table, _: table,
    "Arrow reader": lambda table, _: table.to_reader(),
    "Arrow dataset": _dataset,
    "DuckDB relation": _relation,
    "Parquet": _parquet,
    "CSV": _separated(".csv", ","),
    "CSV.gz": _separated(".csv.gz", ";"),
    "TSV": _separated(".tsv", "\t"),
    "JSON lines": _json,
}
_NO_IDENTIFIERS = ["", "\0", "nul \0 inside"]  # of SQL, by which these doors are read
REFUSED: dict[tuple[str, str], list[Any]] = {  # by door and type, or role: what it cannot hold
    ("Arrow dataset", "name"): [*_NO_IDENTIFIERS, "__fragment_index"],  # a column that Arrow adds itself
    ("DuckDB relation", "name"): _NO_IDENTIFIERS,
    ("Parquet", "name"): _NO_IDENTIFIERS,
    ("JSON lines", "name"): _NO_IDENTIFIERS,
    ("JSON lines", "uint64"): [2**63, 2**64 - 1],  # as integers of JSON are read as signed ones
    ("JSON lines", "double"): [2.0**53, 1e22],  # as from here on two whole numbers of JSON may be one double
}
