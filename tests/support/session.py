"""A session of Spark on this machine."""

import os
import sys
from contextlib import contextmanager

from support import java


@contextmanager
def session(master, folder, **options):
    """Yield a session that leaves nothing behind but in a folder."""
    os.environ["JAVA_HOME"] = java.home()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.warehouse.dir": str(folder),
        "spark.driver.host": "localhost",
        # Tables of a few rows: to compile queries would take longer than to run them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        # Nor does the Java of a session of minutes earn back what its second compiler takes. What the first one
        # makes needs more of the stack: queries of a hundred columns and more are deep.
        "spark.driver.extraJavaOptions": "-Dlog4j2.level=off -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss8m",
    } | options
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    try:
        yield made
    finally:
        made.stop()
