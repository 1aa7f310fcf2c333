"""vocabfold compared with what people use today: the information of groups, on the rows at fit and on others.

    python -m benchmarks.peers.run [--data FOLDER]    all workloads; stopped, it goes on where it was
    python -m benchmarks.peers.run --small            two small workloads in seconds, only printed

Workloads: `a` (15 thousand values, 200 thousand rows, 16 groups), `b` (220 thousand, 2 million, 256), `c` (1
million, 8 million, 256), `d` (26 Criteo-shaped columns of 500 thousand rows, 2,000 groups in all) and `real`
(the Criteo sample in FOLDER/criteo_100k.tsv.zst, 2,000 groups). All peers get the same rows, as the kind of
text that suits them, on one core, in a process of their own that has warmed up on some rows.
"""

import argparse
import importlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers.data import LABEL, SAMPLE, Array, Rows, information, log_loss, read, workloads
from benchmarks.peers.peers import PEERS, SEVERAL_COLUMNS, Fitted, Groups, Peer
from tools import journal
from tools.measure import extra_memory
from tools.record import Row

PACKAGES = [
    *("vocabfold", "numpy", "pandas", "pyarrow", "duckdb", "numba", "scikit-learn", "optbinning"),
    *("khiops", "khiops-core", "kmeans1d", "ckwrap", "feature-engine", "category-encoders"),
]
ALL = "all"
_REPEATS = {1.0: 5, 10.0: 3, 30.0: 2}  # below so many seconds, so many times; a single one beyond
_WARM_UP = 2_000  # rows
_MEMORY = 14 * 2**30  # bytes that a peer may ask for
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def measured(train: Groups, test: Groups, rows: Rows) -> Row:
    """Measure the groups of the rows, summed over the columns; the same for all peers."""
    kept = kept_on_test = gain = 0.0
    n_groups = 0
    label = rows.labels, rows.test[LABEL].to_numpy()
    base = float(label[0].mean())
    for of_train, of_test in zip(train, test, strict=True):
        codes, _ = pd.factorize(np.concatenate([of_train, of_test]), use_na_sentinel=False)
        codes_of = codes[: len(of_train)], codes[len(of_train) :]
        (neg, pos), counts_of_test = (
            _counts(*part, codes.max() + 1) for part in zip(codes_of, label, strict=True)
        )
        kept += information(neg, pos)
        kept_on_test += information(*counts_of_test)
        n_groups += int((neg + pos > 0).sum())
        rate = (pos + base) / (neg + pos + 1)  # one row more, at the overall rate: it is never 0 or 1
        gain += log_loss(label[1], base) - log_loss(label[1], rate[codes_of[1]])
    answer = {"groups": n_groups, "information": kept, "loss": max(0.0, rows.about.total - kept)}
    return answer | {"gain": gain, "test_information": kept_on_test}


def _counts(codes: Array, label: Array, n_groups: int) -> list[Array]:
    """Return (neg, pos) of each group."""
    return [np.bincount(codes[label == side], minlength=n_groups) for side in (0, 1)]


def trial(peer: Peer, rows: Rows, repeats: Mapping[float, int]) -> Row:
    """Fit and encode the training rows, the more often the quicker that is, then judge the groups."""
    times: list[tuple[float, float]] = []
    found: dict[str, Any] = {}

    def once() -> None:
        start = time.perf_counter()
        fitted: Fitted = peer.fit(rows)
        middle = time.perf_counter()
        train = fitted.encode(rows.train) if fitted.train is None else fitted.train
        times.append((middle - start, time.perf_counter() - middle))
        found.update(fitted=fitted, train=train)

    with Descendants(peer.has_programs) as others:
        memory = extra_memory(once)
    if not times:  # memory is not watched on this system
        once()
    for _ in range(next((n - 1 for limit, n in repeats.items() if sum(times[0]) < limit), 0)):
        once()
    in_all = [sum(pair) for pair in times]
    fit_seconds, transform_seconds = min(times, key=sum)
    row = {"seconds": min(in_all), "slowest": max(in_all), "repeats": len(times), "fit_seconds": fit_seconds}
    if found["fitted"].train is None:
        row["transform_seconds"] = transform_seconds
    row["extra_mb"] = memory + others.peak
    return row | measured(found["train"], found["fitted"].encode(rows.test), rows)


class Descendants:
    """Watch the memory of the processes that this one starts; Linux only."""

    def __init__(self, is_needed: bool) -> None:
        self.peak = 0.0  # megabytes
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch) if is_needed else None

    def __enter__(self) -> "Descendants":
        """Begin."""
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End."""
        self._is_over.set()
        if self._thread:
            self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            self.peak = max(self.peak, sum(_resident(Path("/proc/self"))))


def _resident(process: Path) -> Iterator[float]:
    """Yield the memory of all descendants of a process in megabytes."""
    for children in process.glob("task/*/children"):
        try:
            pids = children.read_text().split()
        except OSError:
            continue  # it has ended
        for pid in pids:
            child = process.parent / pid
            try:
                # between fork and exec it is this process once more
                is_started = (child / "exe").readlink() != Path("/proc/self/exe").readlink()
                pages = int((child / "statm").read_text().split()[1])
            except OSError:
                continue
            if is_started:
                yield pages * resource.getpagesize() / 2**20
                yield from _resident(child)


def judged(name: str, folder: Path, repeats: Mapping[float, int] = _REPEATS) -> Row:
    """Run a peer in this process, and return its row; a peer that fails gets one that says why."""
    peer = PEERS[name]
    try:
        importlib.import_module(peer.needs)
    except ImportError:
        return {"not_run": f"{peer.needs} is not installed"}
    warnings.simplefilter("ignore")  # of the peers; ours are about what is done here on purpose
    rows = read(folder, peer.kind)
    try:
        if repeats:
            warm = rows.head(_WARM_UP)
            peer.fit(warm).encode(warm.test)
        return trial(peer, rows, repeats)
    except Exception as error:
        return {"not_run": without_paths(f"{type(error).__name__}: {error}".splitlines()[0])}


def without_paths(text: str) -> str:
    """Return a message without the folders of this machine."""
    return re.sub(r"(?<!\w)/(?:[^/\s'\"]+/)+", ".../", text)[:200]


def in_a_process(name: str, folder: Path, seconds: float) -> Row:
    """Run a peer in a process of its own, with whatever it starts, for so many seconds at most."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers.run", "--peer", name, "--folder", str(folder)],
            env=os.environ | _ONE_THREAD | {"TMPDIR": scratch},
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return {"not_run": f"not finished within {seconds:g} s"}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said.seek(0)
        last = (said.read().splitlines() or [""])[-1]
    if not answer.exists():
        return {"not_run": without_paths(f"its process ended with code {process.returncode}: {last}")}
    row: Row = json.loads(answer.read_text(encoding="utf-8"))
    return row


def answer(name: str, folder: Path) -> None:
    """Run a peer on one core and within the memory allowed, and leave its row in the folder."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    (folder / "answer.json").write_text(json.dumps(judged(name, folder)), encoding="utf-8")


def main() -> None:
    """Run all peers on the workloads asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with criteo_100k.tsv.zst")
    parser.add_argument("--small", action="store_true", help="seconds; only prints")
    parser.add_argument("--workloads", help="comma-separated (default: all)")
    parser.add_argument("--time-limit", type=float, default=300, help="seconds for a peer (default: 300)")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        answer(options.peer, options.folder)
        return
    known = workloads(options.small, options.data)
    chosen = options.workloads.split(",") if options.workloads else list(known)
    with tempfile.TemporaryDirectory() as scratch:

        @cache
        def folder_of(workload: str) -> Path:
            folder = Path(scratch) / workload
            folder.mkdir()
            known[workload](folder)
            return folder

        def task(workload: str, name: str) -> Callable[[], list[Row]]:
            def run() -> list[Row]:
                row = {"workload": workload, "peer": name}
                if name == ALL:
                    return [row | {"not_run": "no --data"}]
                folder = folder_of(workload)
                about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
                if options.small:
                    found = judged(name, folder, repeats={})
                else:
                    found = in_a_process(name, folder, options.time_limit)
                kind = {"text": PEERS[name].kind}
                return [row | {key: value for key, value in about.items() if value is not None} | kind | found]

            return run

        tasks = {
            f"{workload} {name}": task(workload, name)
            for workload in chosen
            for name in (PEERS if known[workload] else [ALL])
            if name not in SEVERAL_COLUMNS or workload in ("d", "real")
        }
        given = {"data": options.data and "FOLDER", "workloads": options.workloads}
        words = [f"--{option} {value}" for option, value in given.items() if value]
        command = " ".join(["python -m benchmarks.peers.run", *words, f"--time-limit {options.time_limit:g}"])
        data = options.data and options.data / SAMPLE
        journal.run("peers", tasks, PACKAGES, command, small=options.small, data=data)


if __name__ == "__main__":
    main()
