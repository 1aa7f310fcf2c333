"""Memory limit: every step on a file ten times larger than the limit, in a process that gets little more.

Each step runs in a Linux control group that kills it if it takes more than `cap_mb`: the limit plus the 250 MB
for Python, libraries and compiled code that the documentation allows. `own_mb` is the most that the process had
for itself alone. `resident_mb` adds mapped pages of libraries and other files, which the system shares and
takes back, so it may exceed the cap. Where there are no control groups, `own_mb` is compared with the cap. In
one file most values are distinct, and the limit is the smallest allowed; in the other, values have 1 KB.
`values` is the size of the codebook: "for a model" has the values of one column that are not rare, which fit;
all values do not fit. Each step must succeed, or, where the limit is known to be too small (`refused`), end
with one sentence and exit code 2. No temporary files or unfinished results may remain.

The last row is a step without a limit in a group: it must respect the memory of the group, not of the machine.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

import vocabfold as vf
from harden.lib import harness
from tools.record import Row

_OWN = 250_000_000  # bytes that a process may take beyond the limit
_TIMES = 10  # the limit, the size of a file
_GROUPS = {  # where control groups are, and what their limit is called: version 1, and 2
    Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes",
    Path("/sys/fs/cgroup"): "memory.max",
}
_RUN = "import sys; sys.argv[0] = 'vocabfold'; from vocabfold.interfaces.cli.main import main; main()"
_STEPS = {
    "count": "count rows.parquet --label click --features page,user -o counts",
    "merge": "merge counts copy -o both",
    "fit for a model": "fit both -b 10000 --min-count {min_count} -o book",
    "fit all values": "fit both -b 10000 --aim information -o whole",
    "transform to Parquet": "transform book rows.parquet -o ids.parquet",
    "transform to CSV": "transform book rows.parquet -o ids.csv",
    "transform by all values": "transform whole rows.parquet --only-ids -o whole.parquet",
}


@dataclass(frozen=True)
class File:
    """A file that is generated: how large its rows are, and what is in them."""

    name: str
    limit: int
    row_bytes: int
    min_count: int  # of which one column has many values, after its counts are merged with their copy
    columns: dict[str, str]
    group_rows: int = 65_536  # of a row group, in which DuckDB writes a column as one page: it is read whole

    def write(self, path: Path, scale: float) -> int:
        """Write it, and return its size."""
        n_rows = int(_TIMES * self.limit * scale / self.row_bytes) + 1
        columns = ", ".join(f"{sql} AS {name}" for name, sql in self.columns.items())
        rows = f"SELECT {columns}, i % 5 = 0 AS click FROM (SELECT i, {n_rows} AS n FROM range({n_rows}) t(i))"
        # As large as the values are: nothing of it is saved by compression.
        options = "FORMAT parquet, COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1, "
        options += f"ROW_GROUP_SIZE {self.group_rows}"
        duckdb.execute(f"COPY ({rows}) TO '{path}' ({options})")
        return path.stat().st_size


def _text(number: str, times: int = 1) -> str:
    return f"repeat(md5(({number})::VARCHAR), {times})"


MANY = File(
    "most values distinct",
    200 << 20,
    2 * 36 + 510,
    4,
    {
        "page": _text("i"),
        "user": _text("(i * 7919) % (n * 2 // 3)"),
        "note": _text("i + n", 16),
    },
)
LONG = File(
    "values of 1 KB",
    400_000_000,
    2 * 1000,
    30,
    {"page": _text("i % (n // 10)", 32), "user": _text("(i * 7919) % (n // 40)", 32)},
    group_rows=8_192,
)


def run(small: bool) -> Iterator[Row]:
    """Run all steps on all files."""
    with tempfile.TemporaryDirectory(prefix="harden-") as name:
        folder = Path(name)
        for file in (MANY,) if small else (MANY, LONG):
            shutil.rmtree(folder)
            (folder / "temporary").mkdir(parents=True)
            size = file.write(folder / "rows.parquet", 0.01 if small else 1)
            for step in ("count",) if small else _STEPS:
                if step == "merge":
                    shutil.copytree(folder / "counts", folder / "copy", dirs_exist_ok=True)
                words = f"{_STEPS[step].format(min_count=file.min_count)} --memory {file.limit}"
                about = {"what": f"{step}, {file.name}", "file_mb": size / 1e6, "limit_mb": file.limit / 1e6}
                # All values of a column: 3.6 million of them, or as many bytes as the limit allows.
                is_refused = step == "transform by all values"
                if step.startswith("transform"):
                    about["values"] = _n_values(folder / words.split()[1])
                yield about | _judged(folder, words, file.limit + _OWN, is_refused=is_refused)
        if not small:
            words = f"{_STEPS['count']}-2 --memory {MANY.limit}"
            refused = _judged(folder, words, MANY.limit + _OWN, is_refused=True)
            yield {"what": f"a limit that is too small, {LONG.name}", "limit_mb": MANY.limit / 1e6} | refused
        words = f"{_STEPS['count']}-3"
        what = "no limit, but that of the group"
        if _group_folder() is None:
            yield {"what": what, "not_run": "there are no control groups"}
        else:
            yield {"what": what} | _judged(folder, words, 2 * LONG.limit)


def _n_values(book: Path) -> int:
    """Return how many values a codebook has; none would be no test."""
    n_values = sum(column.n_values for column in vf.load(book).columns.values())
    assert n_values, book
    return n_values


def _judged(folder: Path, words: str, cap: int, *, is_refused: bool = False) -> Row:
    """Run a command within a cap, and say whether it ended as it should."""
    start, before = time.perf_counter(), set(os.listdir(folder))
    code, said, own, resident = _run(folder, words, cap)
    result = set() if is_refused else {words.split(" -o ")[1].split()[0]}
    left = [*os.listdir(folder / "temporary"), *set(os.listdir(folder)) - before - result]
    is_sentence = said.startswith("error: ") and said.count("\n") == 1
    is_good = (code == 2 and is_sentence) if is_refused else code == 0
    is_within = own <= cap  # where there are groups, the process would have been killed
    failure = "" if is_good and is_within and not left else f"exit code {code}, left {left}: {said.strip()}"
    return {
        "tried": 1,
        "failed": int(bool(failure)),
        "refused": int(is_refused),
        "own_mb": own / 1e6,
        "cap_mb": cap / 1e6,
        "of_cap": own / cap,
        "resident_mb": resident / 1e6,
        "seconds": time.perf_counter() - start,
        **({"first_failure": failure} if failure else {}),
    }


def _run(folder: Path, words: str, cap: int) -> tuple[int, str, int, int]:
    """Run a command in a group of its own, and return its exit code, what it said, and its peaks in bytes."""
    with _group(cap) as members, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, *words.split()],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=said,
            preexec_fn=lambda: members.write_text(str(os.getpid())) if members else None,
        )
        own, ended = 0, 0
        while not ended:
            own = max(own, _own_bytes(process.pid))
            time.sleep(0.02)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read(), own, used.ru_maxrss * 1024


def _own_bytes(pid: int) -> int:
    """Return how many bytes a process has in memory that no file holds, and 0 once it has ended."""
    found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


@contextmanager
def _group(cap: int) -> Iterator[Path | None]:
    """Make a control group with a cap, and yield the file that takes its members."""
    parent = _group_folder()
    if parent is None:
        yield None
        return
    group = parent / f"harden-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        (group / _GROUPS[parent]).write_text(str(cap))
        yield group / "cgroup.procs"
    finally:
        time.sleep(0.1)  # until the system has let go of the process
        group.rmdir()


@cache
def _group_folder() -> Path | None:
    """Return where groups can be made, if they can."""
    for parent, limit in _GROUPS.items():
        probe = parent / f"harden-{secrets.token_hex(4)}"
        try:
            probe.mkdir()
        except OSError:
            continue
        try:
            if (probe / limit).exists():
                return parent
        finally:
            probe.rmdir()
    return None


if __name__ == "__main__":
    harness.main("memory", __doc__, run)
