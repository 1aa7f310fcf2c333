"""What pytest is told, and what several folders of tests are given: a session of Spark, a report."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

import vocabfold as vf
from support import chromium, java, visits
from support.session import session

pytest.register_assert_rewrite("support.builders", "support.encoded", "support.frames", "support.terminal")
collect_ignore = ["support"]  # helpers, which are imported by that name

# Kernels compile during the first example, so a time limit per example would only flake. `make test` takes the
# profile of few examples: the same laws, on a part of the examples that each has otherwise.
for profile in ("vocabfold", "few"):
    settings.register_profile(profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vocabfold")
FEW = 1 / 5


def pytest_addoption(parser):
    parser.addoption("--examples", type=int, help="run laws (tests with @given) alone, with so many examples")


def pytest_itemcollected(item):
    if hasattr(getattr(item, "obj", None), "hypothesis"):
        item.add_marker(pytest.mark.law)


@pytest.hookimpl(trylast=True)  # after pytest has chosen by marks
def pytest_collection_modifyitems(config, items):
    """Leave tests out that need Java or a browser, if there is none; `make full` does not accept that."""
    laws = [item for item in items if item.get_closest_marker("law")]
    if config.option.examples:
        config.hook.pytest_deselected(items=[item for item in items if item not in laws])
        items[:] = laws
        _multiply(laws, config.option.examples / max(1, sum(own.max_examples for own in _own(laws))))
    elif config.getoption("--hypothesis-profile", None) == "few":
        _multiply(laws, FEW, least=5)
    of_java = [item for item in items if any(map(item.get_closest_marker, ("spark", "java")))]
    of_browser = [item for item in items if item.get_closest_marker("browser")]
    for needing, program in ((of_java, java), (of_browser, chromium)):
        if needing and program.home() is None:
            if os.environ.get("VOCABFOLD_FULL"):
                raise pytest.UsageError(program.NOT_RUN)
            config.hook.pytest_deselected(items=needing)
            items[:] = [item for item in items if item not in needing]
            config.stash[_NOT_RUN].append(program.NOT_RUN)


def _multiply(laws, times, least=1):
    """Try so many times its own number of examples on each law."""
    # Hypothesis has no public way to change the number of examples of a test that has its own.
    for law, own in zip(laws, _own(laws), strict=True):  # parameters of one test share its settings
        examples = max(math.ceil(times * own.max_examples), min(least, own.max_examples))
        law.obj._hypothesis_internal_use_settings = settings(own, max_examples=examples)


def _own(laws):
    return [law.obj._hypothesis_internal_use_settings for law in laws]


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
