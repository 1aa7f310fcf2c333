"""On a cluster of several processes, one of which is killed, and through Spark Connect."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support import java

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.java]

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "build" / "spark-logs"
PATIENCE = 120  # seconds


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    n_rows = 300_000
    values = {f"c{i}": np.minimum(rng.zipf(1.2, n_rows), 10 ** (i + 2)).astype(str) for i in range(5)}
    click = rng.random(n_rows) < 0.1 + 0.2 * (np.char.str_len(values["c2"]) % 2)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    others = {"row": np.arange(n_rows), "fold": rng.integers(0, 3, n_rows), "click": click}
    pq.write_table(pa.table(values | others), path, row_group_size=20_000)
    return path


@pytest.fixture(scope="module")
def expected(rows):
    """Return what one machine makes of the rows."""
    counts = vf.count(rows, "click", fold_column="fold")
    book = vf.fit(counts, 300)
    table = pq.read_table(rows)
    encoded = book.transform(table, counts=counts)
    weights = table["row"].to_numpy() % 1000 + 1
    sums = {name: int(encoded[name].to_numpy() @ weights) for name in book.features}
    by_threshold = vf.fit(counts, 300, method="threshold", shards=3, aim="information").digest
    stage, _ = vf.fit_transform(table, "click", 300, fold_column="fold", features=["c0", "c1"])
    return {"book": book.digest, "sums": sums, "threshold": by_threshold, "stages": stage.digest}


def environment():
    import pyspark

    return os.environ | {
        "JAVA_HOME": java.home(),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }


@contextmanager
def running(name, *command):
    """Run a process, whose log is kept, in a group of its own, and end the whole group."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)), stdout=out, stderr=out, env=environment(), start_new_session=True
        )
        try:
            yield process, log
        finally:
            kill(process)


def kill(process):
    """Kill a process and its children: a worker and its executors."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def until(log, pattern):
    """Wait until a log tells something, and return that."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{log} does not say {pattern!r}")


@contextmanager
def cluster(tmp_path):
    """Yield the address of a master, and two workers of it."""
    spark_class = Path(environment()["SPARK_HOME"]) / "bin" / "spark-class"
    deploy = "org.apache.spark.deploy"
    master = (spark_class, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", 0, "--webui-port", 0)
    with running("master", *master) as (_, log):
        port = until(log, r"Starting Spark master at spark://127\.0\.0\.1:(\d+)")[1]
        address = f"spark://127.0.0.1:{port}"
        options = ("--host", "127.0.0.1", "--webui-port", 0, "--cores", 1, "--memory", "1g")

        def worker(name):
            place = ("--work-dir", tmp_path / name)
            return running(name, spark_class, f"{deploy}.worker.Worker", *options, *place, address)

        with worker("worker-1") as first, worker("worker-2") as second:
            for _, log_of in (first, second):
                until(log_of, "Successfully registered with master")
            yield address, [process for process, _ in (first, second)]


def job(name, *arguments):
    return running(name, sys.executable, ROOT / "tests" / "support" / "spark_job.py", *arguments)


def said(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith('{"step"')]
    return {fact["step"]: fact for fact in map(json.loads, lines)}


def assert_same(facts, expected, folder):
    assert facts["fitted"]["digest"] == expected["book"]
    assert facts["encoded"]["sums"] == expected["sums"]
    assert vf.load(folder / "book").digest == expected["book"]
    assert vf.fit(vf.load_counts(folder / "counts"), 300).digest == expected["book"]


def test_a_cluster_makes_the_same_codebook_and_ids(rows, expected, tmp_path):
    with cluster(tmp_path) as (address, _), job("job", address, rows, tmp_path, "threshold") as (process, log):
        assert process.wait(5 * PATIENCE) == 0, log.read_text(errors="replace")[-3000:]
    facts = said(log)
    assert_same(facts, expected, tmp_path)
    assert facts["threshold"]["digest"] == expected["threshold"]
    assert facts["ended"]["lost"] == []


@pytest.mark.parametrize("step", ["began", "fitted"])
def test_a_killed_worker_changes_nothing(rows, expected, tmp_path, step):
    with (
        cluster(tmp_path) as (address, workers),
        job(f"killed-{step}", address, rows, tmp_path) as (process, log),
    ):
        until(log, f'"step": "{step}"')
        time.sleep(1.5)
        kill(workers[0])
        assert process.poll() is None, "the job was done before the worker was killed"
        assert process.wait(5 * PATIENCE) == 0, log.read_text(errors="replace")[-3000:]
    facts = said(log)
    assert_same(facts, expected, tmp_path)
    assert len(facts["ended"]["lost"]) >= 1


def test_connect_makes_the_same_codebook_and_ids(rows, expected, tmp_path):
    arguments = ("connect:local[2]", rows, tmp_path, "threshold", "stages")
    with job("connect", *arguments) as (process, log):
        assert process.wait(5 * PATIENCE) == 0, log.read_text(errors="replace")[-3000:]
    facts = said(log)
    assert_same(facts, expected, tmp_path)
    assert facts["threshold"]["digest"] == expected["threshold"]
    assert facts["stages"]["digest"] == expected["stages"]
