"""The checks of docs/reliability.md: in their small form nothing fails, and the page is what the rows say."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = (
    *(
        "answers",
        "leaks",
        "overflow",
        "crash",
        "artefacts",
        "memory",
        "determinism",
        "concurrency",
        "hostile",
        "fuzz",
    ),
    *("long_run", "covered", "mutants", "supply"),
)


@pytest.mark.tools
@pytest.mark.parametrize("check", CHECKS)
def test_the_small_check_finds_nothing(check):
    command = [sys.executable, "-m", f"harden.checks.{check}", "--small"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"tried=[1-9]", result.stdout)


def test_all_checks_are_run_and_reported(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report = import_module("harden.report")
    assert set(report.CHECKS) == set(CHECKS)
    listed = re.search(r"^HARDEN = (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert listed.split() == list(report.CHECKS)


def test_the_page_is_made_from_the_rows(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    report = import_module("harden.report")
    page = tmp_path / "reliability.md"
    page.write_text(report.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(report, "PAGE", page)
    report.main()
    assert page.read_text(encoding="utf-8") == report.RUNS.parents[1].joinpath("docs/reliability.md").read_text(
        encoding="utf-8"
    )
