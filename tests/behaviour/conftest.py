"""Both engines, and what is made of the same rows on each of them.

A test has `tried`, the engine that it is run on, and `expected`: DuckDB, with the rows in another order.
"""

from functools import cached_property
from itertools import count as numbers

import numpy as np
import pytest

import vocabfold as vf
from support.frames import FEATURES, generated, read


class DuckDB:
    """Rows are an Arrow table."""

    name, subject = "duckdb", "the Arrow Table"

    def rows(self, table):
        return table

    def load_counts(self, folder):
        return vf.load_counts(folder)

    def table(self, encoded):
        return encoded


class Spark:
    """Rows are a frame, read from a file."""

    name, subject = "spark", "the Spark frame"

    def __init__(self, session, folder):
        self._session, self._folder, self._numbers = session, folder, numbers()

    def rows(self, table):
        return read(self._session, table, self._folder / f"{next(self._numbers)}.parquet")

    def load_counts(self, folder):
        return vf.load_counts(folder, spark=self._session)

    def table(self, encoded):
        return encoded.toArrow()


class Work:
    """What an engine makes of a table; counts and codebooks are made once, and shared by the tests."""

    def __init__(self, engine, table):
        self.engine, self._table = engine, table
        self._counts, self._books = {}, {}

    @cached_property
    def rows(self):
        return self.engine.rows(self._table)

    @cached_property
    def new_rows(self):
        return self.engine.rows(generated(500, seed=1))

    def counts(self, **options):
        key = str(options)
        if key not in self._counts:
            self._counts[key] = vf.count(self.rows, "click", FEATURES, **options)
        return self._counts[key]

    def book(self, counted=None, **settings):
        """Return the codebook of 60 ids for counts with the options `counted`."""
        key = str((counted, settings))
        if key not in self._books:
            self._books[key] = vf.fit(self.counts(**counted or {}), 60, **settings)
        return self._books[key]

    def encoded(self, book, rows=None, **options):
        """Return rows with their ids, in the order of their numbers."""
        found = book.transform(self.rows if rows is None else rows, **options)
        return self.engine.table(found).sort_by("row")


@pytest.fixture(scope="session")
def table():
    return generated(3000)


@pytest.fixture(scope="session", params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request, tmp_path_factory):
    if request.param == "duckdb":
        return DuckDB()
    return Spark(request.getfixturevalue("spark"), tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="session")
def tried(engine, table):
    return Work(engine, table)


@pytest.fixture(scope="session")
def expected(table):
    return Work(DuckDB(), table.take(np.random.default_rng(1).permutation(table.num_rows)))
