"""How much memory DuckDB gets, and what is said if that is too little."""

import pyarrow as pa
import pytest

from vocabfold.errors import InputError
from vocabfold.io.engines import duckdb
from vocabfold.io.engines.duckdb import Engine


@pytest.mark.parametrize(
    ("groups", "limits"),
    [
        ("0::/\n", {"memory.max": "700\n"}),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "700\n"}),
        ("3:cpu,memory:/a\n1:cpu:/\n0::/\n", {"memory/a/memory.limit_in_bytes": "700\n"}),
        ("4:memory:/docker/of-the-host\n", {"memory/memory.limit_in_bytes": "700\n"}),
    ],
)
def test_the_memory_of_a_container_is_that_of_its_control_groups(tmp_path, groups, limits):
    for name, text in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(duckdb._group_limits(groups, tmp_path)) == ["700"]


def test_a_stream_that_needs_too_much_memory_says_so(monkeypatch):
    class Broken:
        def sql(self, _):
            raise pa.ArrowInvalid("Out of Memory Error: failed to pin block of size 256.0 KiB (49.7 MiB used)")

        def close(self):
            pass

    with Engine(200 * 2**20) as engine:
        engine._connection.close()
        monkeypatch.setattr(engine, "_connection", Broken())
        with pytest.raises(InputError, match=r"^this needs more memory than the limit of 0\.21 GB"):
            list(engine.stream("SELECT 1"))
