"""Figures in the documents are those of the runs that they link."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("report", "run"),
    [
        ("speed.report", "speed"),
        ("codebook.report", "codebook-37m"),
        ("transform.report", "transform-5m"),
        ("speed.estimator", "estimator"),
        ("leakage.report", "leakage"),
    ],
)
def test_readme_shows_the_figures_of_the_run_that_it_links(report, run, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report = import_module(f"benchmarks.{report}")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    newest = report.newest(run)
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    tables = import_module("tools.tables")
    assert tables.shown(run, text) == report.headlines(report.read_csv(newest / "raw.csv"))


def test_the_page_on_new_rows_shows_the_run_that_it_links(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report, tables = (import_module(name) for name in ("benchmarks.leakage.report", "tools.tables"))
    text = (ROOT / "docs" / "leakage.md").read_text(encoding="utf-8")
    newest = report.newest("leakage")
    assert text.count(f"benchmarks/runs/{newest.name}/") == 2
    assert tables.shown("leakage", text) == report.for_page(report.read_csv(newest / "raw.csv"))


@pytest.mark.parametrize(("module", "run"), [("unseen_report", "unseen"), ("identified", "identified")])
def test_the_page_on_new_rows_shows_the_runs_that_it_links(monkeypatch, module, run):
    monkeypatch.syspath_prepend(ROOT)
    report, tables = (import_module(name) for name in (f"benchmarks.leakage.{module}", "tools.tables"))
    text, newest = report.PAGE.read_text(encoding="utf-8"), tables.newest(run)
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    assert tables.shown(run, text) == report.losses(tables.read_csv(newest / "raw.csv")).strip()


def test_the_page_on_spark_shows_the_run_that_it_links(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report, tables = (import_module(name) for name in ("benchmarks.spark.report", "tools.tables"))
    text = report.PAGE.read_text(encoding="utf-8")
    newest = report.newest("spark-5m")
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    assert tables.shown("spark-5m", text) == report.headlines(report.read_csv(newest / "raw.csv"))


@pytest.mark.tools
@pytest.mark.parametrize(
    ("page", "report", "run"),
    [
        ("results", "figures.fig_mi_train", "fig-mi-train"),
        ("results", "figures.fig_logloss_report", "fig-logloss"),
        ("results", "peers.report", "peers"),
        ("scale", "growth.report", "growth"),
        ("scale", "growth.simulation_report", "scale"),
        ("report", "page.run", "page"),
    ],
)
def test_a_page_and_a_run_show_what_was_measured(page, report, run, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    report, tables = (import_module(name) for name in (f"benchmarks.{report}", "tools.tables"))
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (linked,) = set(re.findall(rf"benchmarks/runs/[\d-]+-{run}/README\.md", text))
    folder = (ROOT / linked).parent
    rows, about = (tables.read_csv(folder / f"{name}.csv") for name in ("raw", "about"))
    assert tables.shown(run, text) == report.for_page(rows)
    report.write_report(tmp_path, rows, about)
    assert (tmp_path / "README.md").read_text("utf-8") == (folder / "README.md").read_text("utf-8")
    drawn = {path.name for path in folder.iterdir() if path.suffix in (".svg", ".png")}
    assert drawn == {path.name for path in tmp_path.iterdir() if path.suffix in (".svg", ".png")}


def test_a_page_of_real_rows_keeps_its_figures_where_there_are_none(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(ROOT)
    tables = import_module("tools.tables")
    monkeypatch.setattr(tables, "RUNS", tmp_path)
    page, run = tmp_path / "page.md", tmp_path / "2026-01-02-x"
    page.write_text("2026-01-01-x\n{}\nold\n{}\n".format(*tables._marks("x")))
    run.mkdir()
    for name in ("raw", "about"):
        (run / f"{name}.csv").write_text("fact,is\na,b\n")
    for is_real, shown in ((False, "old"), (True, "new")):
        tables.make_report(
            "x", page, lambda *_: None, lambda rows: "new", lambda rows, is_real=is_real: is_real
        )
        assert tables.shown("x", page.read_text()) == shown
    assert "page.md keeps the figures that it has" in capsys.readouterr().out
    assert "2026-01-02-x" in page.read_text()
