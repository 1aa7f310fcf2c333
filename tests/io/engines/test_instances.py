"""Instances of DuckDB are used again, by one task at a time, and nothing of the last task is left in them."""

import gc
import os
import signal
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from vocabfold.errors import InputError
from vocabfold.io.engines import instances
from vocabfold.io.engines.duckdb import Engine, parquet

LIMIT = 600 * 2**20


@pytest.fixture(autouse=True)
def none_idle():
    instances._close_all()
    instances._lock.release()


def database(engine):
    return engine._instance.database


def setting(engine, name):
    return engine.run(f"SELECT current_setting('{name}') AS value")["value"][0].as_py()


def test_the_next_task_with_the_same_limit_gets_the_same_instance():
    with Engine(LIMIT) as first:
        first_limit = setting(first, "memory_limit")
    with Engine(LIMIT + 2**23) as larger:
        assert database(larger) is not database(first)
        assert setting(larger, "memory_limit") != first_limit
    with Engine(LIMIT) as second, Engine(LIMIT) as beside:
        assert database(second) is database(first)
        assert database(beside) is not database(first)


def test_nothing_of_a_task_is_left_for_the_next():
    rows = pa.table({"x": [1, 2]})
    freed = weakref.ref(rows)
    with Engine(LIMIT) as first:
        name = first.table(rows)
        first.variable("positive", 5)
        first.write(f"SELECT * FROM {name}", first.folder / "rows.parquet", ordered=True)
        assert setting(first, "preserve_insertion_order") is True
        folder = first.folder
    del rows
    gc.collect()
    assert freed() is None
    assert not folder.exists()
    with Engine(LIMIT) as second:
        assert database(second) is database(first)
        assert setting(second, "preserve_insertion_order") is False
        assert setting(second, "temp_directory") == str(second.folder / "spill") != str(folder / "spill")
        assert second.run("SELECT getvariable('positive') AS value")["value"].to_pylist() == [None]
        with pytest.raises(InputError, match="does not exist"):
            second.run(f"SELECT * FROM {name}")


def test_an_instance_has_no_temporary_folder_while_it_is_idle():
    with Engine(LIMIT) as engine:
        engine.run("SELECT 1")
    (idle,) = instances._idle
    assert idle.database.sql("SELECT current_setting('temp_directory')").fetchall() == [("",)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_an_instance_is_not_used_again_after_an_error(error):
    def fail():
        with Engine(LIMIT) as engine:
            engine.run("SELECT 1")
            raise error("stopped")

    with pytest.raises(error):
        fail()
    assert instances._idle == []


def test_an_instance_that_has_spilled_is_not_used_again():
    with Engine(LIMIT) as engine:
        database(engine).execute("SET memory_limit = '40MiB'")
        engine.run("SELECT count(*) FROM (SELECT DISTINCT md5(i::VARCHAR) FROM range(1_000_000) t(i))")
        assert any((engine.folder / "spill").iterdir())
        folder = engine.folder
    assert instances._idle == []
    assert not folder.exists()


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    path, found = tmp_path / "rows.parquet", []
    for value in range(3):
        pq.write_table(pa.table({"x": [value] * 1000}), path)
        os.utime(path, (0, 0))
        with Engine(LIMIT) as engine:
            found += engine.run(f"SELECT DISTINCT x FROM {parquet([path])}")["x"].to_pylist()
    assert found == [0, 1, 2]


def test_idle_instances_are_few():
    barrier = Barrier(8)

    def work(number):
        with Engine(LIMIT) as engine:
            name = engine.table(pa.table({"x": [number]}))
            barrier.wait(60)
            engine.write(f"SELECT * FROM {name}", engine.folder / "x.parquet", ordered=number % 2 == 0)
            barrier.wait(60)
            assert setting(engine, "preserve_insertion_order") is (number % 2 == 0)
            return engine.run(f"SELECT x FROM {name}")["x"].to_pylist(), database(engine)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    assert [values for values, _ in found] == [[number] for number in range(8)]
    assert len({id(used) for _, used in found}) == 8
    assert len(instances._idle) == instances._MOST_IDLE
    closed = [used for _, used in found if all(used is not idle.database for idle in instances._idle)]
    for used in closed:
        with pytest.raises(duckdb.ConnectionException):
            used.execute("SELECT 1")


MEMORY = """
import re
from pathlib import Path
from vocabfold.io.engines.duckdb import Engine

def own():
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10

with Engine(2**30) as engine:
    engine.run("SELECT 1")
before, peak = own(), 0
with Engine(2**30) as engine:
    for batch in engine.stream("SELECT DISTINCT md5(i::VARCHAR) AS x FROM range(1_500_000) t(i)"):
        peak = max(peak, own())
        break
    del batch
print(peak - before, own() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the memory of a process is not shown here")
def test_an_idle_instance_does_not_keep_the_memory_of_its_last_task():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    taken, kept = map(int, done.stdout.split())
    assert taken > 80
    assert kept < 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_makes_an_instance_of_its_own():
    site = np.array([f"s{i % 7}" for i in range(200)])
    rows = pa.table({"site": site, "click": np.arange(200) % 2})
    expected = vf.fit(vf.count(rows, "click"), 3).digest
    assert instances._idle
    child = os.fork()
    if not child:
        signal.alarm(60)  # or it would wait for threads that it does not have
        os._exit(instances._idle != [] or vf.fit(vf.count(rows, "click"), 3).digest != expected)
    assert os.waitpid(child, 0)[1] == 0
    assert vf.fit(vf.count(rows, "click"), 3).digest == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_processes_end_by_themselves_after_their_last_task_and_so_do_their_children():
    code = """
import os, sys
from vocabfold.io.engines.duckdb import Engine
with Engine() as engine:
    engine.run("SELECT 1")
if not (child := os.fork()):
    with Engine() as engine:
        engine.run("SELECT 1")
    sys.exit(7)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60).returncode == 7


def test_an_instance_whose_result_may_still_be_read_is_not_used_again():
    with Engine() as engine:
        database = engine._instance.database
        stream = iter(engine.stream("SELECT * FROM range(1_000_000)"))
        next(stream)
    with Engine() as other:
        assert other._instance.database is not database
