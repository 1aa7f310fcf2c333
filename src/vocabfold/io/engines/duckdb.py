"""SQL text -> tables and files, in this process.

An engine lives for one task; the instance of DuckDB that it runs on is kept for the next one. It keeps to its
memory limit by spilling into a temporary folder, which is removed when the task ends. Names and texts that come
from outside enter a query through `identifier` and `literal` alone.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType

import duckdb
import pyarrow as pa

from vocabfold.errors import InputError, argument
from vocabfold.io.engines import instances
from vocabfold.io.folders.temporary import TemporaryFolder

DUCKDB = "duckdb"
_PYTHON = 150 * 2**20  # bytes that Python and Arrow need themselves,
_DUCKDB_SHARE = 0.8  # and of what is left, DuckDB's part: it does not count everything;
_LEAST_SHARE = 0.5  # of a small limit, as it cannot sort millions of texts with less
_BATCH = 2**14  # rows that are streamed at a time
_FAILURES = (duckdb.Error, pa.ArrowException, OSError, RuntimeError)
_LEAST_MEMORY, _MOST_MEMORY = 200 * 2**20, 2**50
_GROUP_BYTES = 2**24  # of a row group that is written here, about
_MAX_MESSAGE = 300  # characters of an error of the engine, which may quote a whole line
_INTERRUPTED = re.compile(r"(?:[A-Za-z ]+: )?(?:INTERRUPT Error: Interrupted!|Query interrupted)")
_OUT_OF_MEMORY = re.compile(r"(?:[A-Za-z ]+: )?Out of Memory Error: ")
_MEMORY_PER_THREAD = 512 * 2**20
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}


class Engine:
    """A connection to DuckDB, and the temporary folder of one task."""

    name = DUCKDB
    huge, text = "HUGEINT", "VARCHAR"  # SQL types

    def __init__(self, memory_limit: int | None = None) -> None:
        self.subject = "the table"  # what messages say cannot be read
        self._n_tables = 0
        self._n_open = 0  # results that somebody may still read
        self._has_failed = False
        self.memory_limit = memory_limit or _machine_memory() // 2

    @cached_property
    def _temporary(self) -> TemporaryFolder:
        return TemporaryFolder()

    @property
    def folder(self) -> Path:
        """The temporary folder of the task."""
        return self._temporary.path

    @cached_property
    def _instance(self) -> instances.Instance:
        threads = max(1, min(os.cpu_count() or 1, self.memory_limit // _MEMORY_PER_THREAD))
        return instances.take(_duckdb_memory(self.memory_limit) >> 20, threads)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, which is made when it is first needed: a task on few rows may do without."""
        folder = literal(str(self.folder / "spill"))
        connection = self._instance.database.cursor()
        connection.execute(
            f"SET temp_directory = {folder};"
            "SET preserve_insertion_order = false;"
            # Without these two, `progress` knows nothing, or DuckDB prints a bar of its own.
            "SET enable_progress_bar_print = false;"
            "SET enable_progress_bar = true"
        )
        return connection

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "_connection" in vars(self):
            self._connection.close()
        if "_instance" in vars(self):
            if error is None and not self._n_open and not self._has_failed:
                instances.give_back(self._instance)
            else:  # a query may still be running
                self._instance.database.close()
        if "_temporary" in vars(self):
            self._temporary.remove()

    def run(self, sql: str) -> pa.Table:
        """Return the result of a query."""
        try:
            return self._connection.sql(sql).to_arrow_table()
        except _FAILURES as error:
            raise self._explained(error) from error

    def run_in_order(self, sql: str) -> pa.Table:
        """Return the result of a query on a table, with its rows in the order of the table."""
        try:
            self._connection.execute("SET preserve_insertion_order = true")
            found = self._connection.sql(sql).to_arrow_table()
            self._connection.execute("SET preserve_insertion_order = false")
            return found
        except _FAILURES as error:
            raise self._explained(error) from error

    def run_within(self, sql: str, room: float) -> pa.Table | None:
        """Return the result of a query, or None if it has more bytes than there is room for."""
        batches = []
        for batch in self.stream(sql):
            room -= batch.nbytes
            if room < 0:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches) if batches else self.run(sql)

    def stream(self, sql: str) -> Iterable[pa.RecordBatch]:
        """Yield the result of a query in batches, of any number of rows."""
        self._n_open += 1
        try:
            yield from self._connection.sql(sql).to_arrow_reader(_BATCH)
        except _FAILURES as error:
            raise self._explained(error) from error
        finally:
            self._n_open -= 1

    def write(self, sql: str, path: Path, *, ordered: bool = False, distinct: bool = False) -> None:
        """Write the result of a query to a Parquet file.

        `ordered` keeps the order of the rows; `distinct` says that values hardly repeat, so that no time is
        lost on dictionaries and compression.
        """
        plain = ", DICTIONARY_SIZE_LIMIT 1, COMPRESSION uncompressed" if distinct else ""
        # A column of a row group is one page, which is read as a whole: long texts must not make it huge.
        bounded = "" if ordered else f", ROW_GROUP_SIZE_BYTES {_GROUP_BYTES}"
        options = f"FORMAT parquet{plain}{bounded}"
        try:
            self._connection.execute(f"SET preserve_insertion_order = {ordered}")
            self._connection.execute(f"COPY ({sql}) TO {literal(str(path))} ({options})")
        except _FAILURES as error:
            raise self._explained(error) from error

    def write_csv(
        self, reader: pa.RecordBatchReader, heads: Sequence[str], path: Path, separator: str, compression: str
    ) -> None:
        """Write batches with the columns c0, c1, ... to a text file, in their order, below a line of heads."""
        # As a row: a head may be empty, or differ from another by case alone, and names must not.
        head = ", ".join(f"{literal(text)} AS c{i}" for i, text in enumerate(heads))
        texts = ", ".join(f"c{i}::VARCHAR" for i in range(len(heads)))
        rows = f"SELECT {head} UNION ALL SELECT {texts} FROM {self.table(reader)}"
        options = f"FORMAT csv, HEADER false, DELIMITER {literal(separator)}, COMPRESSION {compression}"
        try:
            self._connection.execute("SET preserve_insertion_order = true")
            self._connection.execute(f"COPY ({rows}) TO {literal(str(path))} ({options}, USE_TMP_FILE false)")
        except _FAILURES as error:
            if "no space left" in str(error).lower():
                raise OSError(errno.ENOSPC, "No space left on device") from error
            raise self._explained(error) from error

    def table(self, data: object) -> str:
        """Return the name under which queries find an Arrow table, reader or dataset."""
        name = f"table_{self._n_tables}"
        self._n_tables += 1
        self._connection.register(name, data)
        return name

    def variable(self, name: str, value: object) -> str:
        """Return the expression under which queries find a value."""
        self._connection.execute(f"SET VARIABLE {name} = ?", [value])
        return f"getvariable('{name}')"

    def progress(self) -> float:
        """Return how much of the running query is done, 0 to 1."""
        is_idle = "_connection" not in vars(self)
        return 0.0 if is_idle else max(0.0, self._connection.query_progress()) / 100

    def _explained(self, error: Exception) -> BaseException:
        """Word an error of the engine in one sentence."""
        self._has_failed = True
        text = str(error)
        # From a stream, both come as errors of Arrow; the rest of a message may quote anything.
        if isinstance(error, duckdb.InterruptException) or _INTERRUPTED.match(text):  # Ctrl-C
            return KeyboardInterrupt()
        if isinstance(error, duckdb.OutOfMemoryException) or _OUT_OF_MEMORY.match(text):
            return InputError(
                f"this needs more memory than the limit of {self.memory_limit / 1e9:.3g} GB, or more room for "
                f"temporary files than {tempfile.gettempdir()} has; raise "
                f"{argument('memory_limit')}, or set TMPDIR."
            )
        if "no space left" in text.lower():
            return InputError(
                f"the disk is full: temporary files go to {tempfile.gettempdir()}; free some space, or set "
                "TMPDIR."
            )
        first = re.sub(r"^[A-Za-z ]+ Error: ", "", text.strip().split("\n")[0])[:_MAX_MESSAGE]
        return InputError(f"{self.subject} cannot be read: {first.rstrip('.')}.")


def identifier(name: str) -> str:
    """Return a name as SQL."""
    if not name or "\0" in name:
        raise InputError(
            f"the column name {name!r} cannot be used: names need at least one character, none of them NUL."
        )
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def file_list(paths: Iterable[Path]) -> str:
    """Return a list of paths as SQL; no path is read as a pattern."""
    return f"[{', '.join(literal(glob.escape(str(path))) for path in paths)}]"


def parquet(paths: Iterable[Path], *, union_by_name: bool = False) -> str:
    """Return the scan of Parquet files; names of folders do not become columns."""
    return f"read_parquet({file_list(paths)}, hive_partitioning = false, union_by_name = {union_by_name})"


def parse_memory(given: int | str | None) -> int | None:
    """Return a memory limit in bytes: None for the default, a number of bytes, or a text such as '4GB'."""
    if given is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", str(given).strip().upper())
    if isinstance(given, bool) or not match or match[2] not in _UNITS:
        raise InputError(
            f"must be a number of bytes or a text such as '4GB', got {given!r}.", argument="memory_limit"
        )
    limit = min(int(float(match[1]) * _UNITS[match[2]]), _MOST_MEMORY)
    if limit < _LEAST_MEMORY:
        raise InputError(f"must be at least 200 MiB, got {given!r}.", argument="memory_limit")
    return limit


def _duckdb_memory(limit: int) -> int:
    """Return how many bytes of a memory limit DuckDB gets."""
    return int(max(limit * _LEAST_SHARE, (limit - _PYTHON) * _DUCKDB_SHARE))


def _machine_memory() -> int:
    """Return the memory of the machine, or of the container, in bytes."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    with suppress(OSError, ValueError):  # a system without control groups
        sizes += map(int, _group_limits(Path("/proc/self/cgroup").read_text(), Path("/sys/fs/cgroup")))
    return min(sizes, default=8 * 2**30)


def _group_limits(groups: str, mounted: Path) -> Iterator[str]:
    """Yield the limits of the control groups of this process, of version 1 and 2, and of all above them."""
    for line in groups.splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        root, name = (mounted / "memory", "memory.limit_in_bytes") if kinds else (mounted, "memory.max")
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):  # in a container, the path may be that of its host
            if folder.is_relative_to(root) and (folder / name).is_file():
                limit = (folder / name).read_text().strip()
                if limit.isdigit():  # and not "max"
                    yield limit
