"""A job as a user submits it: count, fit, save, encode on the cluster that is named, and tell what came out."""

import json
import sys
import time
from pathlib import Path

import vocabfold as vf


def main(master, rows, folder, *wanted):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(master[8:]) if master.startswith("connect:") else None
    if builder is None:
        builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.executor.memory", "1g").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "6").getOrCreate()
    frame = spark.read.parquet(f"file://{rows}").repartition(24)
    say(step="began")
    counts = vf.count(frame, "click", fold_column="fold")
    book = vf.fit(counts, 300)
    say(step="fitted", digest=book.digest, gain=book.gain)
    counts.save(Path(folder) / "counts")
    book.save(Path(folder) / "book")
    encoded = book.transform(frame, counts=counts)
    sums = {name: f"sum({name} * (row % 1000 + 1)) AS {name}" for name in book.features}
    say(step="encoded", sums=encoded.selectExpr(*sums.values()).first().asDict())
    if "threshold" in wanted:
        said = vf.fit(counts, 300, method="threshold", shards=3, aim="information").digest
        say(step="threshold", digest=said)
    if "stages" in wanted:
        from vocabfold.spark import VocabularyCompressor, VocabularyCompressorModel

        stage = VocabularyCompressor(labelCol="click", foldCol="fold", budget=300, inputCols=["c0", "c1"])
        stage.fit(frame).save(f"{folder}/model")
        say(step="stages", digest=VocabularyCompressorModel.load(f"{folder}/model").codebook.digest)
    if not master.startswith("connect:"):
        executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
        lost = [executors.apply(i).id() for i in range(executors.size()) if not executors.apply(i).isActive()]
        say(step="ended", lost=lost)
    spark.stop()


def say(**facts):
    sys.stdout.write(json.dumps(facts | {"at": time.time()}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
