"""What the documents show is what the code does."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs_and_prints_what_the_page_shows(page):
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )
    assert failed == 0


def test_readme_shows_the_figures_of_the_run_that_it_links():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.measure import RUNS, read_csv
        from benchmarks.speed.report import BEGIN, END, headlines
    finally:
        sys.path.remove(str(ROOT))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    newest = max(RUNS.glob("*-speed"))
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    shown = text.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == headlines(read_csv(newest / "raw.csv"))


def run(*command):
    result = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_demo_runs():
    out = run("examples/demo.py")
    assert "3 columns, budget 64: 4,157 values -> 64 ids" in out
    assert "carrier id 9" in out


@pytest.mark.jit
def test_the_small_benchmark_runs_without_the_rivals():
    out = run("-m", "benchmarks.speed.run", "--small", "--parts", "size,growth,criteo")
    assert out.count("part=criteo") == 20
