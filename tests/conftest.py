"""Tolerances, tables of counts, and a session of Spark for all tests."""

import math
import os
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import chromium
import java
import visits
import vocabfold as vf

EXACT = 1e-12  # of I(X;C): what an exact solver may miss
ROUNDING = 1e-14  # of itself: what a formula may miss

fold_counts = partial(vf.fit, aim="information")  # every value, however few its rows

# Kernels compile during the first example, so a time limit per example would only flake.
settings.register_profile("vocabfold", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vocabfold")


@st.composite
def tables(draw, max_values=7, max_count=12, min_values=1):
    """Small tables with ties, zeros and one-class values on purpose; at least one row."""
    count = st.one_of(st.sampled_from([0, 0, 1, 1, 2, 3]), st.integers(0, max_count))
    pair = st.tuples(count, count)
    pairs = draw(st.lists(pair, min_size=min_values, max_size=max_values).filter(lambda p: any(map(any, p))))
    return [neg for neg, _ in pairs], [pos for _, pos in pairs]


def beta_counts(n_values, seed=0, rows=10**6, a=1.0, b=3.0):
    """Many values with nearly as many distinct rates."""
    rng = np.random.default_rng(seed)
    n_rows = rng.integers(1, rows, n_values)
    pos = rng.binomial(n_rows, rng.beta(a, b, n_values))
    return n_rows - pos, pos


def giant_and_many(n_values):
    """Two giant values of one class each, and many small ones in between that differ by chance."""
    rng = np.random.default_rng(5)
    rows = rng.integers(80_000, 100_000, n_values)
    pos = rng.binomial(rows, rng.uniform(0.499, 0.501, n_values))
    giant = 2**52 - 2**40
    return np.array([giant, *(rows - pos), 0]), np.array([0, *pos, giant])


def pytest_addoption(parser):
    parser.addoption("--examples", type=int, help="run laws (tests with @given) alone, with so many examples")


def pytest_collection_modifyitems(config, items):
    """Leave tests out that need Java or a browser, if there is none; `make full` does not accept that."""
    if config.option.examples:
        _only_laws(config, items)
    of_java = [item for item in items if "spark" in item.fixturenames or item.get_closest_marker("java")]
    of_browser = [item for item in items if item.get_closest_marker("browser")]
    for needing, program in ((of_java, java), (of_browser, chromium)):
        if needing and program.home() is None:
            if os.environ.get("VOCABFOLD_FULL"):
                raise pytest.UsageError(program.NOT_RUN)
            config.hook.pytest_deselected(items=needing)
            items[:] = [item for item in items if item not in needing]
            config.stash[_NOT_RUN].append(program.NOT_RUN)


def _only_laws(config, items):
    """Leave all tests but laws out, and share so many examples among them as they share their own."""
    laws = [item for item in items if hasattr(getattr(item, "obj", None), "hypothesis")]
    config.hook.pytest_deselected(items=[item for item in items if item not in laws])
    items[:] = laws
    # Hypothesis has no public way to change the number of examples of a test that has its own.
    own = [item.obj._hypothesis_internal_use_settings for item in laws]
    times = config.option.examples / max(1, sum(one.max_examples for one in own))
    for item, one in zip(laws, own, strict=True):  # parameters of one test share its settings
        larger = settings(one, max_examples=math.ceil(times * one.max_examples))
        item.obj._hypothesis_internal_use_settings = larger


def pytest_configure(config):
    config.stash[_NOT_RUN] = []


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # one of several processes: another one prints
        session.config.workeroutput["not_run"] = session.config.stash[_NOT_RUN]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    node.config.stash[_NOT_RUN] += getattr(node, "workeroutput", {}).get("not_run", [])


def pytest_terminal_summary(terminalreporter, config):
    for said in dict.fromkeys(config.stash[_NOT_RUN]):
        terminalreporter.write_line(said, yellow=True)


_NOT_RUN = pytest.StashKey()


class Reported(NamedTuple):
    """A report on hostile rows: its file, the figures in it, and what they are made of."""

    path: Path
    summary: dict
    book: vf.Codebook
    counts: vf.Counts
    compared: Sequence


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    counts = vf.count(visits.visits(), visits.LABEL, visits.FEATURES, folds=3)
    book = vf.fit(counts, 60)
    compared = vf.compare(counts, [10, 60], ["exact", "bucketing", "frequency"])
    path = tmp_path_factory.mktemp("report") / "report.html"
    summary = book.report(path, counts=counts, heldout=visits.visits(2000, seed=1), compare=compared)
    return Reported(path, summary, book, counts, compared)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Return a session on this machine, with two workers in one process."""
    with session("local[2]", tmp_path_factory.mktemp("spark")) as found:
        yield found


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
        "spark.driver.extraJavaOptions": "-Dlog4j2.level=off",
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
