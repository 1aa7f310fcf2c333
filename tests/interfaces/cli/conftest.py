"""A command line in an empty folder, and rows in files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.terminal import command_line


@pytest.fixture
def vocabfold(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; return its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    return command_line(monkeypatch, capsys)


@pytest.fixture
def rows(vocabfold):
    """Two days of clicks, in files."""
    for day, shift in (("monday", 0), ("tuesday", 1)):
        sites = [f"site-{(i * i + shift) % 7}" for i in range(200)]
        clicks = [(i * i + shift) % 7 * 31 % 11 > i % 8 for i in range(200)]
        table = pa.table(
            {"site": sites, "zip": [i % 5 for i in range(200)], "click": pa.array(clicks).cast("int8")}
        )
        pq.write_table(table, f"{day}.parquet")
    return ["monday.parquet", "tuesday.parquet"]
