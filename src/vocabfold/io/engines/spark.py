"""SQL text -> frames and tables, on the caller's Spark session.

A cluster lives for one task, as an engine of DuckDB does, and has the same few methods. Columns of frames are
numbered (c0, c1, ...), so that no name from outside enters a query; tables are found by placeholders that Spark
itself fills in. Values travel as texts, spelled as in the digest of a codebook: all columns of a frame,
whatever they hold, are then counted in one query. Workers run Spark alone; only `mapped` needs Python there.
"""

from __future__ import annotations

import datetime
import re
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from vocabfold.errors import InputError, MissingDependency

SPARK = "spark"
NAME = "the Spark frame"
_LEAST_VERSION = 4
_SENT_ROWS = 2**22  # of a table that is sent to all workers
_MAX_MESSAGE = 300  # characters of an error of Spark
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_KINDS = {
    "string": "text",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "float",
    "double": "float",
    "boolean": "boolean",
    "date": "date",
    "timestamp_ntz": "timestamp",
    "void": "missing",
}
_TYPES = {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}

Frame = Any  # a DataFrame of Spark, classic or Connect


@dataclass(frozen=True)
class Spelling:
    """How Spark reads a kind of value, spells it as text, and reads that text."""

    sql: str  # the type
    read: str  # from a column of any width; what is missing becomes NULL
    spell: str  # from the type to text
    parse: str  # and back


_BITS = "CAST(reflect('java.lang.Double', 'doubleToLongBits', {0}) AS BIGINT)"
_SINCE = f"CAST({{0}} - {_EPOCH} AS INTERVAL SECOND)"
SPELLINGS = {
    # Whatever collation the column has, texts are compared by their bytes.
    "text": Spelling("STRING", "collate({0}, 'UTF8_BINARY')", "{0}", "{0}"),
    "integer": Spelling("BIGINT", "CAST({0} AS BIGINT)", "CAST({0} AS STRING)", "CAST({0} AS BIGINT)"),
    "unsigned": Spelling(
        "DECIMAL(20, 0)", "CAST({0} AS DECIMAL(20, 0))", "CAST({0} AS STRING)", "CAST({0} AS DECIMAL(20, 0))"
    ),
    "float": Spelling(
        "DOUBLE",
        "CASE WHEN isnan({0}) THEN NULL ELSE CAST({0} AS DOUBLE) + 0 END",
        f"CASE WHEN {{0}} IS NOT NULL THEN lpad(bin({_BITS}), 64, '0') END",
        "CASE WHEN {0} IS NOT NULL THEN CAST(reflect('java.lang.Double', 'longBitsToDouble', "
        "CAST(conv({0}, 2, -10) AS BIGINT)) AS DOUBLE) END",
    ),
    "boolean": Spelling("BOOLEAN", "{0}", "CAST({0} AS STRING)", "CAST({0} AS BOOLEAN)"),
    "date": Spelling("DATE", "{0}", "CAST(unix_date({0}) AS STRING)", "date_from_unix_date(CAST({0} AS INT))"),
    "timestamp": Spelling(
        "TIMESTAMP_NTZ",
        "{0}",
        f"CAST(CAST(1000000 * CAST({_SINCE} AS DECIMAL(26, 6)) AS BIGINT) AS STRING)",
        f"timestampadd(MICROSECOND, CAST({{0}} AS BIGINT), {_EPOCH})",
    ),
    "missing": Spelling("STRING", "CAST(NULL AS STRING)", "{0}", "{0}"),
}


def is_frame(data: Any) -> bool:
    """Tell whether this is a frame of Spark, without importing Spark."""
    kind = type(data)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def session_of(given: Any) -> Any:
    """Return the session of a frame, or a session as it is, after checking that it can be used."""
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependency.of("working on Spark", "pyspark", "spark") from error
    session = given.sparkSession if is_frame(given) else given
    is_connect = type(session).__module__.startswith("pyspark.sql.connect")
    if not (isinstance(session, SparkSession) or is_connect):
        raise InputError(f"spark must be a SparkSession, got {type(session).__name__}.")
    with explained():
        if session.client.is_closed if is_connect else session.sparkContext._jsc is None:
            raise InputError("the Spark session has been stopped; start a new one, and read the rows with it.")
        version = session.version
    if int(version.split(".")[0]) < _LEAST_VERSION:
        raise InputError(
            f"the session runs Spark {version} (pyspark {pyspark.__version__}); vocabfold needs Spark "
            f"{_LEAST_VERSION} or newer."
        )
    return session


class Cluster:
    """A Spark session, and the tables of one task."""

    name = SPARK
    huge, text = "DECIMAL(38, 0)", "STRING"  # SQL types

    def __init__(self, session: Any) -> None:
        Kept.release()
        self.session = session_of(session)
        self.subject = NAME
        self._frames: dict[str, Frame] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._frames.clear()

    def frame(self, sql: str) -> Frame:
        """Return a query as a frame; nothing is run."""
        used = {name: self._frames[name] for name in re.findall(r"{(\w+)}", sql)}
        with explained():
            return self.session.sql(sql, **used)

    def run(self, sql: str) -> pa.Table:
        """Return the result of a query, which has to be small."""
        return self.collect(self.frame(sql))

    def collect(self, frame: Frame) -> pa.Table:
        """Return the rows of a frame, which have to be few."""
        with explained():
            return frame.toArrow()

    def table(self, data: Any) -> str:
        """Return the placeholder by which queries find a frame or an Arrow table."""
        if isinstance(data, pa.Table):
            data = self._sent(data)
        name = f"table_{len(self._frames)}"
        # Spark makes a view of it for the query, drops the view, and with it what is kept of the same query, be
        # that ours or the caller's; with a condition it is another query.
        self._frames[name] = data.where("true")
        return f"{{{name}}}"

    def _sent(self, table: pa.Table) -> Frame:
        with explained():
            if table.num_rows:
                return self.session.createDataFrame(table.combine_chunks())  # an empty chunk would end it
            nulls = [f"CAST(NULL AS {_TYPES[field.type]}) AS {field.name}" for field in table.schema]
            return self.session.sql(f"SELECT {', '.join(nulls)} FROM range(0)")

    def variable(self, name: str, value: object) -> str:
        """Return the expression of a value."""
        return literal(value)

    def progress(self) -> float:
        """Return how much of the running query is done, which is unknown."""
        return 0.0


class Kept:
    """A frame whose rows stay on the cluster, once they are computed, for as long as this object lives."""

    _holders: ClassVar[Counter[tuple[int, int]]] = Counter()
    _left: ClassVar[deque[tuple[Frame, tuple[int, int]]]] = deque()

    def __init__(self, frame: Frame) -> None:
        with explained():
            self.frame = frame.persist()
            query = (id(frame.sparkSession), frame.semanticHash())
        self._holders[query] += 1
        # Objects end at any moment, and Spark must not be called in the middle of another call.
        weakref.finalize(self, self._left.append, (self.frame, query)).atexit = False

    @classmethod
    def release(cls) -> None:
        """Release frames that are no longer in use; Spark keeps a query once, however many frames have it."""
        while cls._left:
            frame, query = cls._left.popleft()
            cls._holders[query] -= 1
            if not cls._holders[query]:
                del cls._holders[query]
                with suppress(Exception):  # the session may be gone, and its frames with it
                    frame.unpersist()


def literal(value: object) -> str:
    """Return a value as SQL; a text as its bytes, in which nothing can be quoted wrongly."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return f"CAST('{value}' AS BIGINT)"
    if isinstance(value, float | np.floating):
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE'{value.isoformat()}'"
    return f"CAST(X'{str(value).encode().hex()}' AS STRING)"


def numbered(frame: Frame) -> Frame:
    """Return a frame with the columns c0, c1, ...: names may be anything, and resolve to nothing else."""
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])


def kind_of(type: str) -> str | None:
    """Return the kind of a type of Spark, or None for types that are not values."""
    return "text" if re.match(r"(string|varchar|char)\b", type) else _KINDS.get(type)


def fingerprint(frame: Frame) -> str:
    """Return the fingerprint of a frame in its session: equal for equal queries."""
    with explained():
        return f"spark {frame.semanticHash()}"


def spelled(kind: str, value: str) -> str:
    """Return the SQL that turns a value of a kind into text; NULL stays."""
    return SPELLINGS[kind].spell.format(value)


def to_texts(values: pa.Array | pa.ChunkedArray, kind: str) -> pa.Array:
    """Return values of a kind as texts, spelled as Spark does."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if kind == "float":
        bits = [None if x is None else f"{np.float64(x).view(np.uint64):064b}" for x in array.to_pylist()]
        return pa.array(bits, pa.string())
    if kind == "date":
        array = array.cast(pa.int32())
    if kind == "timestamp":
        array = array.cast(pa.int64())
    return array.cast(pa.string())


def from_texts(texts: pa.Array | pa.ChunkedArray, kind: str, type: pa.DataType) -> pa.Array:
    """Return what Spark spelled as values of a kind, in their type."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if kind == "float":
        bits = [None if text is None else int(text, 2) for text in array.to_pylist()]
        numbers = pa.array(bits, pa.uint64())
        return pa.Array.from_buffers(type, len(numbers), numbers.buffers(), numbers.null_count)
    if kind == "date":
        array = array.cast(pa.int32())
    if kind == "timestamp":
        array = array.cast(pa.int64())
    return array.cast(type)


def mapped(
    frame: Frame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Frame:
    """Apply a function to the batches of each partition, in Python on the workers."""
    with explained():
        return frame.mapInArrow(function, _schema(schema))


def in_groups(
    frame: Frame, keys: Sequence[str], function: Callable[[pa.Table], pa.Table], schema: pa.Schema
) -> Frame:
    """Apply a function to the rows of each group, in Python on the workers."""

    def of_group(rows: pa.Table) -> pa.Table:  # Spark reads the signature, which a `partial` has not
        return function(rows)

    with explained():
        return frame.groupBy(*keys).applyInArrow(of_group, _schema(schema))


def _schema(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_TYPES[field.type]}" for field in schema)


@contextmanager
def explained() -> Iterator[None]:
    """Word an error of Spark in one sentence."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise InputError(f"Spark could not do this: {_first_line(error)}.") from error
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("py4j", "grpc"):
            raise
        raise InputError(f"Spark could not do this: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    if "No module named" in text:
        return (
            "this step runs Python on the workers, where vocabfold or a package that it needs is missing; "
            "install vocabfold there, and set PYSPARK_PYTHON to that Python before the session starts"
        )
    raised = re.search(r"\[USER_RAISED_EXCEPTION\] ([^\n]*?)\.? SQLSTATE", text)
    cause = re.search(r"^: (?:[\w.$]+: )?(.*)", text, re.MULTILINE)  # below what py4j says
    line = raised[1] if raised else cause[1] if cause else text.split("\n")[0]
    return line[:_MAX_MESSAGE].rstrip(".; ") or type(error).__name__


def hint(**tables: pa.Table) -> str:
    """Return the hint to send tables to all workers, given their names in a query, if they are small."""
    small = [name for name, table in tables.items() if table.num_rows <= _SENT_ROWS]
    return f"/*+ BROADCAST({', '.join(small)}) */" if small else ""


def named(frame: Frame, names: Sequence[str], about: Mapping[int, dict[str, str]]) -> Frame:
    """Return a frame with other names for its columns, and with metadata of some of them, by their place."""
    columns = [frame[name] for name in frame.columns]
    return frame.select(
        *(
            column.alias(name, metadata=about[i]) if i in about else column.alias(name)
            for i, (column, name) in enumerate(zip(columns, names, strict=True))
        )
    )


def read_parquet(session: Any, paths: Iterable[Path], schema: str) -> Frame:
    """Return Parquet files as a frame; the workers must have them under the same paths."""
    escaped = [re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path.absolute())) for path in paths]  # none is a pattern
    with explained():
        return session.read.schema(schema).parquet(*(f"file://{path}" for path in escaped))


def write_parquet(frame: Frame, folder: Path, by: str, file_rows: int, page_bytes: int) -> None:
    """Write a frame to Parquet files in a folder, one folder inside it for each number in a column."""
    options = {
        "compression": "zstd",
        "maxRecordsPerFile": file_rows,
        "parquet.page.size": page_bytes,
        "parquet.writer.version": "v1",  # whatever the cluster is set to: pages show the lengths of texts
    }
    with explained():
        frame.write.partitionBy(by).options(**options).parquet(f"file://{folder.absolute()}")
