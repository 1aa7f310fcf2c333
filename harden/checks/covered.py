"""Which lines and branches of the package its tests reach, with the compiler off so that kernels count as well.

The tests of `make test` run in two processes, those on Spark in the second one; processes that they
start are measured, too. The examples of the documents are left out, because some take minutes without the
compiler. A row per module shows the percentage of lines and branches that were reached, and which were not
(`12->15` is a jump that never happened). The last row covers all modules, and fails below 95 %.
docs/reliability.md shows modules below that, the log shows all.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harden.lib import harness
from tools.record import ROOT, Row

PACKAGE = ROOT / "src" / "vocabfold"
TARGET = 95.0  # percent, of the branches alone and of lines and branches together
SESSIONS = [
    # Without the page on these checks, too: until all of them are done, it is not made from their rows.
    ["-m", "not (slow or tools or jit or spark)", "-k", "not every_example and not page_is_made_from"],
    ["-m", "spark and not slow"],
]
SMALL = [["tests/folding/test_curve.py", "tests/folding/test_allocation.py"]]
SMALL_MODULES = ["folding/curve.py", "folding/allocation.py"]
# Tests read what processes print, so the tool keeps its remarks to itself.
SETTINGS = """
[run]
branch = true
parallel = true
source = {package}
data_file = {folder}/data
patch = subprocess, _exit, fork
sigterm = true
disable_warnings = no-data-collected, module-not-imported, module-not-measured, no-sysmon, trace-changed

[report]
exclude_also =
    if TYPE_CHECKING:
    if _typing.TYPE_CHECKING:
"""


def run(small: bool) -> Iterator[Row]:
    """Run the tests under the tool, and read what it found."""
    if importlib.util.find_spec("coverage") is None:
        yield {"what": "coverage", "not_run": "coverage is not installed: pip install 'vocabfold[harden]'"}
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = folder / "settings"
        settings.write_text(SETTINGS.format(package=PACKAGE, folder=folder), encoding="utf-8")
        for session in SMALL if small else SESSIONS:
            yield _tests(settings, session)
        _coverage(settings, "combine", "--quiet")
        only = [f"--include={','.join(f'*/vocabfold/{module}' for module in SMALL_MODULES)}"] if small else []
        _coverage(settings, "json", "--quiet", "-o", str(folder / "found.json"), *only)
        found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    for file, of_file in found["files"].items():
        yield _row(Path(file).resolve().relative_to(PACKAGE).as_posix(), of_file["summary"]) | {
            "missed": " ".join(_missed(of_file))
        }
    row = _row("all modules", found["totals"])
    yield row | {"failed": int(not small and min(row["percent"], row["percent_of_branches"]) < TARGET)}


def _tests(settings: Path, session: list[str]) -> Row:
    words = ["run", "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", *session]
    ended = _coverage(settings, *words, check=False)
    said = ended.stdout.strip().splitlines()
    row = {"what": f"pytest {' '.join(session)}", "tried": 1, "failed": int(ended.returncode != 0)}
    if ended.returncode:
        row["failures"] = "; ".join(line for line in said if line.startswith(("FAILED", "ERROR")))
    return row | {"said": said[-1] if said else ended.stderr[-200:]}


def _coverage(settings: Path, verb: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "coverage", verb, f"--rcfile={settings}", *words]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=check)


def _row(what: str, told: Row) -> Row:
    lines, branches = told["num_statements"], told["num_branches"]
    covered = told["covered_branches"]
    every = lines + branches
    return {
        "what": what,
        "tried": every,
        "failed": 0,
        "lines": lines,
        "branches": branches,
        "percent": round(100 * (told["covered_lines"] + covered) / every, 2) if every else 100.0,
        "percent_of_branches": round(100 * covered / branches, 2) if branches else 100.0,
    }


def _missed(of_file: Row) -> list[str]:
    jumps = [f"{start}->{'end' if end < 0 else end}" for start, end in of_file["missing_branches"]]
    return [*map(str, of_file["missing_lines"]), *jumps]


if __name__ == "__main__":
    harness.main("covered", __doc__, run)
