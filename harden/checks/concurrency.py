"""Many threads, forks and processes at once: every answer must be the one that a single thread gets alone.

The rows:

- `threads`: 16 threads look values up in one shared codebook (frames, files, `ids`, `row`, members, digest,
  pickle). All start at once with nothing in memory, while others count, fit, save, evaluate and compare.
- `first use`: 16 threads in new processes import and compile everything for the first time, together.
- `empty cache`: processes compile all kernels at once into one empty folder, and another uses them later.
- `fork`, `spawn`: children use a codebook and counts of the parent. Other children are forked while
  other threads compile, count, fit and save, and run what is registered for the end of a process;
  temporary folders of the parent must survive that.
- `writers`: 2 and 8 writers, threads and processes, on one folder or one file, which may be new. At least one
  wins, the others get an error or come later, and the final content is complete and by one of them.
- `readers`: they load in a loop while a writer replaces the folder in a loop; every codebook is one of the two.
- `scikit-learn`: cross-validation in processes and in threads, and one lazy compressor shared by threads.
- `terminal`: threads with progress bars and warnings. Each warning arrives once, and nothing is left behind.

`tried` counts answers; `failed` counts those that were wrong, raised an exception, or did not come.
"""

import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import vocabfold as vf
from harden.lib import harness
from harden.lib.concurrency.first_use import empty_cache, first_use
from harden.lib.concurrency.forks import children, forks
from harden.lib.concurrency.places import readers, writers
from harden.lib.concurrency.tally import Tally
from harden.lib.concurrency.tasks import FEATURES, LOOKUPS, OTHERS, TASKS, Answers, Sample, answers, of_table
from harden.lib.concurrency.terminal import terminal
from tools.record import Row


def threads(
    sample: Sample, expected: Answers, n_rounds: int, n_others: int, lookups: Sequence[str] = tuple(LOOKUPS)
) -> Iterator[Row]:
    """Sixteen threads and more on one codebook that has nothing in memory yet."""
    for where, make in (("in memory", sample.fitted), ("freshly loaded", sample.loaded)):
        tally = Tally()
        for seed in range(n_rounds):
            together(tally, sample, make(), expected, n_others, lookups, seed)
        yield tally.row(f"threads: one codebook {where}, 16 threads and {n_others} others", rounds=n_rounds)


def together(
    tally: Tally,
    sample: Sample,
    book: vf.Codebook,
    expected: Answers,
    n_others: int,
    lookups: Sequence[str],
    seed: int,
) -> None:
    """Have threads do all tasks, each in an order of its own, all beginning at once."""
    barrier = threading.Barrier(16 + n_others)

    def work(number: int) -> None:
        names = list(lookups if number < 16 else OTHERS)
        random.Random(f"{seed} {number}").shuffle(names)
        barrier.wait()
        for name in names:
            tally.same(name, partial(TASKS[name], sample, book), expected[name])

    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns much more often than they would
    try:
        with ThreadPoolExecutor(16 + n_others) as pool:
            list(pool.map(work, range(16 + n_others)))
    finally:
        sys.setswitchinterval(patience)


def scikit_learn(sample: Sample, n_rows: int, backends: Sequence[str]) -> Iterator[Row]:
    """Cross-validate in several processes or threads, and share a compressor that has no codebook yet."""
    from joblib import parallel_config
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = sample.old.slice(0, n_rows).to_pandas()
    X, y = frame[FEATURES], frame["click"]
    model = make_pipeline(
        vf.VocabularyCompressor(40), OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300)
    )
    alone = cross_val_score(model, X, y, cv=4, n_jobs=1).tolist()
    for backend in backends:
        tally = Tally()
        with parallel_config(backend, n_jobs=2):
            tally.same(backend, lambda: cross_val_score(model, X, y, cv=4).tolist(), alone)
        yield tally.row(f"scikit-learn: cross_val_score with two jobs, {backend}")
    tally = Tally()
    new = sample.new.slice(0, n_rows).to_pandas()[FEATURES]
    expected = vf.VocabularyCompressor(40).partial_fit(X, y).transform(new).tolist()
    lazy = vf.VocabularyCompressor(40).partial_fit(X, y)
    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(lambda: lazy.transform(new).tolist()) for _ in range(32)]:
            tally.same("transform", future.result, expected)
    yield tally.row("scikit-learn: 16 threads share a compressor without a codebook yet")


@contextmanager
def room() -> Iterator[Path]:
    """Yield a temporary folder, which children do not remove, however they end."""
    folder, owner = Path(tempfile.mkdtemp(prefix="harden-concurrency-")), os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def run(small: bool) -> Iterator[Row]:
    """Try everything."""
    with room() as folder:
        sample = Sample.make(folder, 1_000 if small else 70_000)
        few = ["frame", "ids", "row", "digest"]
        expected = answers(sample, sample.loaded(), [*few, "column"] if small else list(TASKS))
        expected["counts"] = of_table(sample.counts()["user"])
        if small:
            yield from threads(sample, expected, 1, 0, few)
            yield from children(sample, expected, "fork", 1, few)
            yield from writers(sample, 2, [4], 0)
            yield from readers(sample, 2, 1)
            return
        yield from threads(sample, expected, 2, 4)
        yield from first_use(sample, expected, 4)
        yield from empty_cache(sample, expected, 3)
        yield from children(sample, expected, "fork", 2, list(TASKS))
        yield from children(sample, expected, "spawn", 2, few)
        yield from forks(sample, expected, 1, 16)
        yield from writers(sample, 24, [2, 8], 3)
        yield from readers(sample, 40, 2)
        yield from scikit_learn(sample, 5_000, ["loky", "threading"])
        yield from terminal(sample, 5)


if __name__ == "__main__":
    harness.main("concurrency", __doc__, run)
