"""Rows, and what is done with them: tasks whose answers are the same wherever they are done."""

import hashlib
import os
import pickle
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vocabfold as vf

FEATURES = ["site", "user", "hour"]
Answers = dict[str, str]


@dataclass(frozen=True)
class Sample:
    """Rows on disk, their counts and two codebooks of them."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, n_rows: int) -> "Sample":
        """Write everything that the tasks need."""
        for name, seed in (("old", 1), ("new", 2)):
            pq.write_table(rows(n_rows, seed), folder / f"{name}.parquet", row_group_size=n_rows // 3 + 1)
        counts = vf.count(folder / "old.parquet", "click", FEATURES, fold_column="fold")
        counts.save(folder / "counts")
        vf.fit(counts, 60).save(folder / "book")
        vf.fit(counts, 25, aim="information").save(folder / "other")
        return cls(folder)

    @property
    def old(self) -> pa.Table:
        """The rows that the codebooks were fitted on."""
        return pq.read_table(self.folder / "old.parquet")

    @property
    def new(self) -> pa.Table:
        """Other rows."""
        return pq.read_table(self.folder / "new.parquet")

    def counts(self) -> vf.Counts:
        """Return the counts, loaded afresh."""
        return vf.load_counts(self.folder / "counts")

    def loaded(self) -> vf.Codebook:
        """Return the codebook from disk, nothing of it in memory."""
        return vf.load(self.folder / "book")

    def fitted(self) -> vf.Codebook:
        """Return the same codebook, just fitted."""
        return vf.fit(self.counts(), 60)


def rows(n_rows: int, seed: int) -> pa.Table:
    """Return rows of text, text with missing values, numbers, a fold, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    site, user = rng.zipf(1.3, n_rows) % 2_000, rng.zipf(1.15, n_rows) % 6_000
    hour = rng.integers(0, 24, n_rows)
    rate = 0.05 + 0.4 * (site % 5 == 0) + 0.2 * (user % 7 == 1) + 0.01 * hour
    return pa.table(
        {
            "site": [f"s{i}" for i in site],
            "user": [None if i == 3 else f"ü{i}" for i in user],
            "hour": hour,
            "fold": rng.integers(0, 4, n_rows),
            "click": (rng.random(n_rows) < rate).astype(np.int8),
        }
    )


def of_table(table: pa.Table) -> str:
    """Return a hash of a table's values."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name)
        is_number = column.null_count == 0 and column.type in (pa.int8(), pa.int32(), pa.int64(), pa.float64())
        digest.update(np.asarray(column).tobytes() if is_number else repr(column.to_pylist()).encode())
    return digest.hexdigest()


def of_column(found: vf.Codebook | vf.Counts, name: str) -> str:
    """Return a hash of a column."""
    return of_table(found[name])


def of_folder(folder: Path) -> str:
    """Return a hash of what is in a folder, but for when and from what it was made."""
    files = sorted(path for path in folder.iterdir() if path.name != "provenance.json")
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def of_comparison(sample: Sample) -> str:
    """Return what a comparison finds, but for its times; one of its methods warns."""
    counts = sample.counts().without_folds()
    found = vf.compare(counts, [20, 50], ["exact", "greedy", "threshold", "frequency"], shards=4)
    return of_table(found.to_arrow().drop_columns(["seconds"]))


def of_file(sample: Sample, book: vf.Codebook, name: str) -> str:
    """Return the bytes of a transformed file."""
    out = sample.folder / f"out-{os.getpid()}-{threading.get_ident()}-{random.getrandbits(60):x}-{name}"
    try:
        written = book.transform(sample.folder / "new.parquet", out=out)
        return f"{written.rows} {written.unseen} {hashlib.sha256(out.read_bytes()).hexdigest()}"
    finally:
        out.unlink(missing_ok=True)


def of_save(sample: Sample, saved: Any) -> str:
    """Return the bytes of a saved folder."""
    folder = Path(tempfile.mkdtemp(dir=sample.folder))
    try:
        saved.save(folder / "saved")
        return of_folder(folder / "saved")
    finally:
        shutil.rmtree(folder)


def of_rows(sample: Sample, book: vf.Codebook) -> str:
    """Return the ids of single rows."""
    return str([book.row(row) for row in sample.new.slice(0, 200).to_pylist()])


LOOKUPS: Mapping[str, Callable[[Sample, vf.Codebook], Any]] = {
    "frame": lambda sample, book: of_table(book.transform(sample.new, only_ids=True)),
    "pandas": lambda sample, book: of_table(pa.table(book.transform(sample.new.to_pandas()))),
    "file": lambda sample, book: of_file(sample, book, "x.parquet"),
    "csv": lambda sample, book: of_file(sample, book, "x.csv"),
    "ids": lambda sample, book: book.ids("user", sample.new["user"]).tolist(),
    "few ids": lambda sample, book: book.ids("site", sample.new["site"].slice(0, 9)).tolist(),
    "row": of_rows,
    "members": lambda sample, book: book.members("site", 3),
    "column": lambda sample, book: of_table(book["hour"]),
    "digest": lambda sample, book: book.digest,
    "pickle": lambda sample, book: pickle.loads(pickle.dumps(book)).digest,
    "folds": lambda sample, book: of_table(book.transform(sample.old, counts=sample.counts(), only_ids=True)),
}
OTHERS: Mapping[str, Callable[[Sample, vf.Codebook], Any]] = {
    "count": lambda sample, book: of_table(vf.count(sample.old, "click", FEATURES)["user"]),
    "count a file": lambda sample, book: of_table(vf.count(sample.folder / "new.parquet", "click")["site"]),
    "fit": lambda sample, book: vf.fit(sample.counts(), 33).digest,
    "fold": lambda sample, book: vf.fold(range(1, 400), range(400, 1, -1), 17).ids.tolist(),
    "save": lambda sample, book: of_save(sample, book),
    "save counts": lambda sample, book: of_save(sample, sample.counts()),
    "evaluate": lambda sample, book: repr(book.evaluate(sample.new)),
    "compare": lambda sample, book: of_comparison(sample),
    "fit_transform": lambda sample, book: of_table(
        vf.fit_transform(sample.old, "click", 40, features=FEATURES)[1]
    ),
}
TASKS = LOOKUPS | OTHERS


def answers(sample: Sample, book: vf.Codebook, names: Sequence[str] = tuple(TASKS)) -> Answers:
    """Return the answers of tasks, one after the other."""
    return {name: TASKS[name](sample, book) for name in names}


def hashed(found: Answers) -> Answers:
    """Return answers short enough to be told to another process."""
    return {name: hashlib.sha256(repr(answer).encode()).hexdigest() for name, answer in found.items()}


def short_answer(sample: Sample, book: vf.Codebook, name: str) -> str:
    """Return one such answer."""
    return hashed(answers(sample, book, [name]))[name]
