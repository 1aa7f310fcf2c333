"""What the documents show is what the code does."""

import doctest
import os
import re
import runpy
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run_python(text, names, page):
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


def run_shell(text):
    """Run every line after a $ in a real shell, and compare what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for part in text.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        ended = subprocess.run(
            command, shell=True, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        printed = ended.stdout + ended.stderr
        assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), (
            f"{command}\n{printed}"
        )


HAS_TORCH = find_spec("torch") is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, text in re.findall(
        r"^```([\w ]+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        if language == "python" or (language == "python torch" and HAS_TORCH):
            run_python(text, names, page)
        elif language == "console":
            run_shell(text)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: pip install 'vocabfold[learn]'")
def test_the_examples_with_torch_were_run():
    for page in ("leakage.md", "gallery.md"):
        assert "```python torch\n" in (ROOT / "docs" / page).read_text("utf-8")


@pytest.mark.spark
def test_the_examples_on_spark_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, names = ROOT / "docs" / "spark.md", {}
    for text in re.findall(r"^```python spark\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        run_python(text, names, page)
    assert "loaded" in names


def test_every_command_is_documented():
    made = runpy.run_path(str(ROOT / "docs" / "make_cli.py"))
    assert made["PAGE"].read_text("utf-8") == made["page"](), "stale: run `make docs`"


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


def test_the_page_on_spark_shows_the_run_that_it_links(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report, tables = (import_module(name) for name in ("benchmarks.spark.report", "tools.tables"))
    text = report.PAGE.read_text(encoding="utf-8")
    newest = report.newest("spark-5m")
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    assert tables.shown("spark-5m", text) == report.headlines(report.read_csv(newest / "raw.csv"))


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


def test_links_to_pictures_and_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_page_on_the_paper_names_tests_and_functions_that_exist(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    report, tables = (import_module(name) for name in ("benchmarks.methods.report", "tools.tables"))
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+?)(?:_?\.\.\.)?`", text)
    assert len(named) > 25
    assert [name for name in named if f"def {name}" not in tests] == []
    first_table = re.findall(r"^\| .*$", text.split("## The algorithms")[0], re.MULTILINE)
    for module, name in re.findall(r"`(\w+)\.(\w+)`", "\n".join(first_table)):
        solve = "solve." if (ROOT / "src/vocabfold/folding/solve" / f"{module}.py").exists() else ""
        assert callable(getattr(import_module(f"vocabfold.folding.{solve}{module}"), name))
    newest = tables.newest("methods")
    assert f"benchmarks/runs/{newest.name}/README.md" in text
    assert tables.shown("methods", text) == report.for_page(tables.read_csv(newest / "raw.csv"))


def run(*command):
    result = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.jit
def test_the_small_benchmark_runs_without_the_rivals():
    out = run("-m", "benchmarks.speed.run", "--small", "--parts", "size,growth,criteo")
    assert out.count("part=criteo") == 20


@pytest.mark.slow
@pytest.mark.jit
def test_the_small_benchmark_of_the_estimator_runs():
    out = run("-m", "benchmarks.speed.estimator", "--small", "--kinds", "integers")
    assert out.count("n_unseen=25620") == 2
    assert out.count("auc=0.6") == 2


@pytest.mark.jit
def test_the_small_benchmark_of_methods_runs():
    out = run("-m", "benchmarks.methods.run", "--small")
    assert out.count("part=shaped") == 16
    assert out.count("not_run") == 1


def test_the_examples_of_paired_differences_hold(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    tried = doctest.testmod(import_module("benchmarks.figures.paired"))
    assert (tried.failed, tried.attempted > 5) == (0, True)


@pytest.mark.jit
def test_the_small_figure_of_the_paper_runs():
    out = run("-m", "benchmarks.figures.fig_mi_train", "--small")
    assert out.count("name=Exact") == 6
    assert out.count("name=Submodular seed") == 6


@pytest.mark.jit
def test_the_small_figure_of_models_runs():
    lines = run("-m", "benchmarks.figures.fig_logloss", "--small").splitlines()
    for model in ["logistic regression", "LightGBM", *["network"] * HAS_TORCH]:
        told = [line for line in lines if f"model={model} " in line and " test=" in line]
        assert len(told) == len(lines) // 3
        assert "recipe=model" in told[0]


@pytest.mark.jit
def test_the_small_benchmark_of_peers_runs():
    lines = run("-m", "benchmarks.peers.run", "--small", "--workloads", "a").splitlines()
    told = [line for line in lines if "workload=a peer=" in line and " loss=" in line and " gain=" in line]
    for peer in ("vocabfold, information", "vocabfold, model", "scikit-learn entropy tree", "hashing"):
        assert any(f"peer={peer}" in line for line in told)
    assert all("is not installed" in line for line in lines if "not_run" in line)


def test_a_peer_that_takes_too_long_is_stopped_and_said_so(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.chdir(ROOT)
    run_of_peers = import_module("benchmarks.peers.run")
    assert run_of_peers.in_a_process("hashing with pandas", tmp_path, 0.01) == {
        "not_run": "not finished within 0.01 s"
    }
    broken = run_of_peers.in_a_process("hashing with pandas", tmp_path, 60)  # no rows there
    assert broken["not_run"].startswith("its process ended with code 1: FileNotFoundError")
    assert str(tmp_path) not in broken["not_run"]


@pytest.mark.jit
def test_the_small_benchmark_of_growth_runs():
    assert run("-m", "benchmarks.growth.run", "--small").count("step=") == 20


@pytest.mark.slow
@pytest.mark.jit
def test_the_small_codebook_benchmark_runs():
    out = run("-m", "benchmarks.codebook.run", "--small")
    assert out.count("n_values=45649") == 11


@pytest.mark.slow
@pytest.mark.jit
def test_the_small_leakage_benchmark_runs():
    out = run("-m", "benchmarks.leakage.run", "--small", "--parts", "generated,noise,older")
    assert "recipe=model, naive" in out
    assert "recipe=model, noise column added" in out


@pytest.mark.slow
@pytest.mark.jit
def test_the_small_transform_benchmark_runs():
    out = run("-m", "benchmarks.transform.run", "--small", "--parts", "check,commands")
    assert "n_checked=1350000 n_wrong=0" in out
