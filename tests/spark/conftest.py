"""Rows of all kinds, and a frame of them."""

import pytest

from support.frames import generated, read


@pytest.fixture(scope="session")
def table():
    return generated(3000)


@pytest.fixture(scope="session")
def frame(spark, table, tmp_path_factory):
    return read(spark, table, tmp_path_factory.mktemp("rows") / "rows.parquet")
