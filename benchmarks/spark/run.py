"""On Spark: from rows to a codebook and to ids, against the bare groupBy that any such job needs, in one run.

    python -m benchmarks.spark.run                       5 million rows on local[2], a quarter of an hour
    python -m benchmarks.spark.run --small               the same in two minutes, only printed

The rows are those of `benchmarks.criteo_rows`, in one Parquet file. Every task is a process with a session of
its own; rival and we take turns, and the least of the repeats counts. The rivals count the rows and the
positive rows of every value, in one groupBy over (column, value) and in one per column, and throw the result
away; we keep it. Both run a small job before the clock starts. Jobs, shuffled bytes and bytes sent to the
driver are read from Spark's own event log.
"""

import json
import logging
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.criteo_shaped import CARDINALITIES
from benchmarks.in_turns import in_turns
from tools.measure import peak

Row = dict[str, Any]
ONE, EACH = "one groupBy of all columns", "a groupBy per column"
COUNT = "count and fit"
PACKAGES = ["vocabfold", "pyspark", "pyarrow", "numpy", "numba"]
BUDGET, SHARDS = 10_000, 16


@contextmanager
def session(memory: str) -> Iterator[tuple[Any, Callable[[], dict[str, Row]]]]:
    """Yield a session, and a function that returns jobs, shuffled and collected bytes of each job group."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as logs:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", memory.lower().removesuffix("b"))
            .config("spark.sql.shuffle.partitions", 8)
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
            .config("spark.eventLog.enabled", True)
            .config("spark.eventLog.compress", False)
            .config("spark.eventLog.rolling.enabled", False)
            .config("spark.eventLog.dir", Path(logs).as_uri())
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        spark.range(10**6).selectExpr("id % 7 AS k").groupBy("k").count().toArrow()
        try:
            yield spark, lambda: _events(spark, Path(logs))
        finally:
            spark.stop()


def _events(spark: Any, folder: Path) -> dict[str, Row]:
    """Return what the event log says of each job group; the session ends here."""
    spark.stop()
    groups: dict[int, str] = {}
    found: dict[str, Row] = defaultdict(lambda: {"jobs": 0, "shuffled_mb": 0.0, "collected_mb": 0.0})
    for line in next(folder.iterdir()).read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            group = event["Properties"].get("spark.jobGroup.id", "")
            groups |= dict.fromkeys(event["Stage IDs"], group)
            found[group]["jobs"] += 1
        elif event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
            metrics, group = event["Task Metrics"], groups.get(event["Stage ID"], "")
            found[group]["shuffled_mb"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] / 1e6
            found[group]["collected_mb"] += metrics["Result Size"] / 1e6
    return found


def group_by(task: str, file: str, memory: str) -> list[Row]:
    """Run the bare queries."""
    with session(memory) as (spark, events):
        rows = spark.read.parquet(file)
        sums = "count(*) - sum(label) AS neg, sum(label) AS pos"
        values = ", ".join(f"{i}, {name}" for i, name in enumerate(CARDINALITIES))
        stacked = f"(SELECT label, stack({len(CARDINALITIES)}, {values}) AS (feature, value) FROM {{rows}})"
        queries = {
            ONE: [f"SELECT feature, value, {sums} FROM {stacked} GROUP BY feature, value"],
            EACH: [f"SELECT {name}, {sums} FROM {{rows}} GROUP BY {name}" for name in CARDINALITIES],
        }
        spark.sparkContext.setJobGroup(task, task)
        start = time.perf_counter()
        for query in queries[task]:
            spark.sql(query, rows=rows).write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - start
        return [{"step": task, "seconds": seconds, "peak_mb": peak()} | events()[task]]


def codebook(_: str, file: str, memory: str) -> list[Row]:
    """Count, fit, save and encode."""
    import vocabfold as vf
    from vocabfold.io.engines.spark import Cluster

    waited = 0.0
    collect = Cluster.collect

    def timed(self: Cluster, frame: Any) -> Any:
        nonlocal waited
        start = time.perf_counter()
        try:
            return collect(self, frame)
        finally:
            waited += time.perf_counter() - start

    Cluster.collect = timed  # type: ignore[method-assign]
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("vocabfold").addHandler(handler)
    logging.getLogger("vocabfold").setLevel(logging.INFO)
    steps: list[Row] = []
    with session(memory) as (spark, events):
        few = spark.sql("SELECT CAST(id % 3 AS STRING) AS x, CAST(id % 2 AS INT) AS y FROM range(100)")
        for aim in ("model", "information"):
            vf.fit(vf.count(few, "y"), 3, aim=aim)

        def step(name: str, call: Callable[[], Any]) -> Any:
            nonlocal waited
            waited = 0.0
            spark.sparkContext.setJobGroup(name, name)
            start = time.perf_counter()
            result = call()
            seconds = time.perf_counter() - start
            steps.append(
                {"step": name, "seconds": seconds, "driver_seconds": seconds - waited, "peak_mb": peak()}
            )
            return result

        rows = spark.read.parquet(file)
        counts = vf.count(rows, "label")
        fit = {"aim": "information"}

        def count_and_fit() -> Any:
            nonlocal counts
            counts = vf.count(rows, "label")
            return vf.fit(counts, BUDGET, **fit)

        book = step(COUNT, count_and_fit)
        step("fit again, the counts are kept", lambda: vf.fit(counts, BUDGET, **fit))
        step("fit for a model", lambda: vf.fit(counts, BUDGET))
        step(
            f"fit by threshold, {SHARDS} shards",
            lambda: vf.fit(counts, BUDGET, method="threshold", shards=SHARDS, **fit),
        )
        folder = Path(file).with_suffix(".spark-book")
        step("save", lambda: book.save(folder))
        ids = Path(file).with_suffix(".spark-ids")
        new = spark.read.parquet(file).where("label >= 0")  # to Spark, another query
        encoded = step("transform, plan", lambda: vf.load(folder).transform(new))
        step("transform, write", lambda: encoded.write.mode("overwrite").parquet(ids.as_uri()))
        found = events()
    answer = {"n_values": book.n_values, "positives": counts.positive_rows, "size": book.size}
    answer |= {"total": book.total, "loss": book.loss, "gap": book.gap, "said": "; ".join(told)}
    return [row | found[row["step"]] | answer for row in steps]


TASKS = {ONE: group_by, EACH: group_by, "codebook": codebook}

if __name__ == "__main__":
    in_turns("spark", __doc__, TASKS, PACKAGES, memory="4GB", repeats=2)
