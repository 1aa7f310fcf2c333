"""What the documents show is what the code does."""

import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may save
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )
    assert failed == 0


@pytest.mark.parametrize(("benchmark", "run"), [("speed", "speed"), ("codebook", "codebook-37m")])
def test_readme_shows_the_figures_of_the_run_that_it_links(benchmark, run, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report = import_module(f"benchmarks.{benchmark}.report")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    newest = report.newest(run)
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    tables = import_module("benchmarks.tables")
    assert tables.shown(run, text) == report.headlines(report.read_csv(newest / "raw.csv"))


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


@pytest.mark.jit
def test_the_small_codebook_benchmark_runs():
    out = run("-m", "benchmarks.codebook.run", "--small")
    assert out.count("n_values=45649") == 9
