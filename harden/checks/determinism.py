"""Determinism: the same rows make the same codebook, whatever happens on the way.

The same rows are given fifty times in another order and form: as pandas, polars, Arrow, CSV, Parquet or a
DuckDB relation; in other chunks (record batches, row groups, files), with other numbers of threads and other
memory limits; as shards that are counted separately, saved, loaded and added in any order; in new processes
with another PYTHONHASHSEED; and, five times, because each takes a minute, on Spark. They are fitted in settings
of either aim, with and without weights and folds.

`digests` is the largest number of different results of a setting, digest and figures: 1 if all agree.
`files` is the same for the bytes of the saved folders of counts and codebook. On Spark, whose workers
write files of their own, only the results have to agree. A repeat that differs from the result of an
Arrow table in one piece is a failure.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib import harness
from harden.lib.tally import Tally
from harden.lib.tests import java, session
from tools.record import ROOT, Row

FEATURES = ["site", "user", "number"]
COUNTED: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights and folds": {"weight": "weight", "fold_column": "fold"},
}
FITTED: dict[str, dict[str, Any]] = {
    "model": {"min_count": 1, "dedicated_min": 5},
    "information": {"aim": "information", "min_count": 3, "unseen": "own"},
}
BUDGET = 80
_TELL = "from harden.checks.determinism import tell; tell()"

Rows = pa.Table
Found = dict[
    tuple[str, str], tuple[str, str]
]  # of each setting, a digest of what is said, and one of the bytes
Counted = Callable[[dict[str, Any]], Any]
Way = Callable[[Rows, random.Random, Path, dict[str, Any]], Any]


def run(small: bool) -> Iterator[Row]:
    """Try all ways; a small run has one setting of counts."""
    repeats = 1 if small else 50
    both = list(COUNTED)[1:] if small else list(COUNTED)
    rows = generated(500 if small else 3000)
    many = rows if small else generated(40_000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*looks like the training data")
        expected = _found(lambda options: count(rows, options), both)
        of_many = expected if small else _found(lambda options: count(many, options), both)
        yield _repeated(
            "order and form: pandas, polars, Arrow, CSV, Parquet", in_any_form, rows, expected, repeats
        )
        yield _repeated("chunks, threads, memory limits", in_chunks, many, of_many, repeats)
        yield _repeated("shards, added in any order, from disk or memory", in_shards, rows, expected, repeats)
        yield _encoded(rows, 1 + repeats)
        if not small:  # each takes seconds to begin
            yield _in_processes(rows, expected, repeats)
            yield _on_spark(rows, expected, 5)


def generated(n_rows: int) -> Rows:
    """Return rows of several kinds, with ties, missing values and texts that sort in many ways."""
    rng = np.random.default_rng(11)
    site = np.minimum(rng.zipf(1.3, n_rows), 400)
    user = rng.integers(0, n_rows // 3, n_rows)
    number = np.minimum(rng.zipf(1.5, n_rows), 90) * 37 % 101 - 20
    texts = ["ä", "A", "a", "Z", "é", "e\u0301", "日本", "💥", "-1", "0x10", "a b", "'", '"', ";"]
    rate = 0.1 + 0.4 * (site % 4 == 0) + 0.2 * (user % 5 == 1) + 0.1 * (number > 20)
    return pa.table(
        {
            "row": np.arange(n_rows),
            "site": [None if i == 3 else f"{texts[i % len(texts)]}{i}" for i in site.tolist()],
            "user": [f"u{i}" for i in user.tolist()],
            "number": pa.array([None if i == 17 else i for i in number.tolist()]),
            "weight": rng.integers(0, 40, n_rows) / 16,
            "fold": rng.integers(0, 4, n_rows),
            "click": (rng.random(n_rows) < rate).astype(np.int64),
        }
    )


def count(data: Any, options: dict[str, Any]) -> Any:
    """Count rows, however they are given."""
    return vf.count(data, "click", FEATURES, **options)


def in_chunks(rows: Rows, rng: random.Random, folder: Path, options: dict[str, Any]) -> Any:
    """Count rows in pieces of other sizes, with another number of threads, and little memory or much."""
    options = options | {"memory_limit": rng.choice((None, None, "400MB", "1GB", "3GB"))}
    size = rng.randint(100, rows.num_rows)
    way = rng.randrange(5)
    if way == 0:
        return count(pa.concat_tables(_cut(rows, rng, rng.randint(2, 40))), options)
    if way == 1:
        batches = rows.to_batches(size // 10)
        return count(pa.RecordBatchReader.from_batches(rows.schema, batches), options)
    if way == 2:
        return count(_parquet_file(rows, folder / "rows.parquet", size // 10), options)
    for i, part in enumerate(_cut(rows, rng, rng.randint(2, 12))):
        _parquet_file(part, folder / f"{rng.random()}-{i}.parquet")
    if way == 3:
        return count(str(folder / "*.parquet"), options)
    return count(pyarrow.dataset.dataset(folder, format="parquet"), options)


def in_any_form(rows: Rows, rng: random.Random, folder: Path, options: dict[str, Any]) -> Any:
    """Count rows in another order, as what people have them in."""
    import pandas as pd
    import polars as pl

    rows = _shuffled(rows, rng)
    path = folder / f"rows.{rng.choice(('csv', 'csv.gz', 'tsv'))}"
    nullable = {pa.int64(): pd.Int64Dtype()}
    forms: list[Callable[[], Any]] = [
        lambda: rows.to_pandas(types_mapper=nullable.get),
        lambda: rows.to_pandas(types_mapper=pd.ArrowDtype),
        lambda: pl.from_arrow(rows),
        lambda: pl.from_arrow(rows).lazy(),
        lambda: rows.set_column(1, "site", rows["site"].dictionary_encode()),
        lambda: _text_file(rows, path),
        lambda: _parquet_file(rows, folder / "rows.parquet"),
        lambda: duckdb.from_arrow(rows),
    ]
    return count(rng.choice(forms)(), options)


def in_shards(rows: Rows, rng: random.Random, folder: Path, options: dict[str, Any]) -> Any:
    """Count shards, and add them as they come."""
    parts = [count(part, options) for part in _cut(rows, rng, rng.randint(2, 7))]
    for i in range(len(parts)):
        if rng.random() < 0.4:
            parts[i].save(folder / f"{i}")
            parts[i] = vf.load_counts(folder / f"{i}")
    while len(parts) > 1:
        one, other = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
        both = one + other
        parts.append(both.compacted() if rng.random() < 0.3 else both)
    return parts[0]


def _repeated(what: str, way: Way, rows: Rows, expected: Found, repeats: int) -> Row:
    """Fit rows that are counted in some way, again and again."""
    tally, seen = Tally(what), _Seen(expected)
    for i in range(repeats):
        rng = random.Random(f"{what} {i}")
        with tempfile.TemporaryDirectory() as folder:

            def counted(options: dict[str, Any], rng: random.Random = rng, folder: str = folder) -> Any:
                return way(rows, rng, Path(tempfile.mkdtemp(dir=folder)), options)

            with mock.patch("os.cpu_count", return_value=rng.choice((1, 2, 3, 8))):  # threads of DuckDB
                seen.compare(tally, f"repeat {i}", counted)
    return tally.row | seen.figures


class _Seen:
    """What was found in each setting."""

    def __init__(self, expected: Found) -> None:
        self.names = list(dict.fromkeys(of_counts for of_counts, _ in expected))
        self._expected = expected
        self._found = {name: ({digest}, {files}) for name, (digest, files) in expected.items()}

    def compare(self, tally: Tally, repeat: str, counted: Counted, with_files: bool = True) -> None:
        """Compare what comes out of counts in every setting with what is expected."""
        with tally.case(repeat):
            self.check(_found(counted, self.names, with_files), with_files)

    def check(self, found: Found, with_files: bool = True) -> None:
        """Compare what was found with what is expected."""
        for name, (digest, files) in found.items():
            self._found[name][0].add(digest)
            assert digest == self._expected[name][0], f"another result: {name}"
            if with_files:
                self._found[name][1].add(files)
                assert files == self._expected[name][1], f"other bytes: {name}"

    @property
    def figures(self) -> Row:
        """How many there are at most, in a setting."""
        digests, files = (max(len(seen[i]) for seen in self._found.values()) for i in (0, 1))
        return {"settings": len(self._found), "digests": digests, "files": files}


def _found(counted: Counted, names: list[str], with_files: bool = True) -> Found:
    """Fit counts in all settings, and return what comes out of it."""
    found = {}
    for of_counts in names:
        counts = counted(COUNTED[of_counts])
        about = counts.kinds, counts.rows, counts.positive_rows, counts.folds
        of_files = _bytes(counts) if with_files else ""
        for of_book, options in FITTED.items():
            book = vf.fit(counts, BUDGET, **options)
            files = of_files + _bytes(book) if with_files else ""  # which finds the digest on its way
            said = repr((*about, book.digest, book.columns, book.gap, book.bound, book.settings))
            found[of_counts, of_book] = _hash(said.encode()), _hash(files.encode())
    return found


def _bytes(saved: Any) -> str:
    """Return a hash of all files of a folder, but of that which says where it comes from."""
    with tempfile.TemporaryDirectory() as folder:
        saved.save(folder)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        listed = [(path.name, _hash(path.read_bytes())) for path in files if path.name != "provenance.json"]
    return _hash(repr(listed).encode())


def _encoded(rows: Rows, repeats: int) -> Row:
    """Encode training rows out of their folds, and other rows, in any order and as frames of any kind."""
    import polars as pl

    tally = Tally("ids of rows: fit_transform and transform")
    new = rows.slice(0, rows.num_rows // 2)
    expected, seen = None, set()
    for i in range(repeats):
        rng = random.Random(f"ids {i}")
        mixed, part = (_shuffled(table, rng) if i else table for table in (rows, new))
        with tally.case(f"repeat {i}"):
            options = {"features": FEATURES, "budget": BUDGET} | COUNTED["weights and folds"]
            book, out = vf.fit_transform(mixed, "click", **options)
            ids = book.transform(part), book.transform(pl.from_arrow(part)).to_arrow()
            found = _hash(repr([table.sort_by("row").to_pydict() for table in (out, *ids)]).encode())
            expected = expected or found
            seen.add(found)
            assert found == expected, "other ids"
    return tally.row | {"settings": 1, "digests": len(seen)}


def _in_processes(rows: Rows, expected: Found, repeats: int) -> Row:
    """Fit a file in fresh processes, each with a hash seed and a number of threads of its own."""
    expected = _with_folds(expected)
    tally, seen = Tally("fresh processes: PYTHONHASHSEED, threads of libraries"), _Seen(expected)
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        file = _parquet_file(rows, Path(folder) / "rows.parquet")
        command = [sys.executable, "-c", _TELL, str(file), *seen.names]
        for i in range(repeats):
            of_seed = {"PYTHONPATH": path, "PYTHONHASHSEED": str(7919 * i)}
            threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(1 + i % 3))
            with tally.case(f"process {i}"):
                environment = os.environ | of_seed | threads
                said = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
                )
                assert not said.returncode, said.stderr[-200:]
                seen.check({tuple(name): tuple(both) for name, both in json.loads(said.stdout)})
    return tally.row | seen.figures


def tell() -> None:
    """Print what comes out of a file, in a process of its own."""
    _, file, *names = sys.argv
    print(json.dumps(list(_found(lambda options: count(file, options), names).items())))


def _with_folds(expected: Found) -> Found:
    """Return the settings with weights and folds: the most that can depend on an order."""
    return {name: found for name, found in expected.items() if "folds" in name[0]}


def _on_spark(rows: Rows, expected: Found, repeats: int) -> Row:
    """Fit rows on Spark, in other partitions and orders."""
    what = "Spark: partitions and their order"
    if java.home() is None:
        return {"what": what, "not_run": java.NOT_RUN}
    tally, seen = Tally(what), _Seen(_with_folds(expected))
    with tempfile.TemporaryDirectory() as folder, session("local[2]", folder) as spark:
        whole = spark.read.parquet(str(_parquet_file(rows, Path(folder) / "rows.parquet", 500)))
        for i in range(repeats):
            rng = random.Random(f"spark {i}")
            frame = whole.repartition(rng.randint(1, 4)) if i % 3 else whole.coalesce(1)
            frame = frame.orderBy(rng.choice(FEATURES)) if i % 4 == 1 else frame

            def counted(options: dict[str, Any], frame: Any = frame) -> Any:
                return count(frame, options)

            seen.compare(tally, f"repeat {i}", counted, with_files=False)
    figures = seen.figures
    del figures["files"]
    return tally.row | figures


def _shuffled(rows: Rows, rng: random.Random) -> Rows:
    return rows.take(np.random.default_rng(rng.getrandbits(32)).permutation(rows.num_rows))


def _cut(rows: Rows, rng: random.Random, n: int) -> list[Rows]:
    """Cut rows, in another order, into so many parts that are not empty."""
    rows = _shuffled(rows, rng)
    ends = [0, *sorted(rng.sample(range(1, rows.num_rows), n - 1)), rows.num_rows]
    return [rows.slice(a, b - a) for a, b in zip(ends, ends[1:], strict=False)]


def _text_file(rows: Rows, path: Path) -> Path:
    separator = "\t" if path.suffix == ".tsv" else ","
    with pa.CompressedOutputStream(path, "gzip") if path.suffix == ".gz" else path.open("wb") as file:
        pyarrow.csv.write_csv(rows, file, pyarrow.csv.WriteOptions(delimiter=separator))
    return path


def _parquet_file(rows: Rows, path: Path, row_group_size: int | None = None) -> Path:
    pq.write_table(rows, path, row_group_size=row_group_size)
    return path


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    harness.main("determinism", __doc__, run)
