"""What the documents show is what the code does."""

import doctest
import os
import re
import runpy
import subprocess
import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.terminal import command_line

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_A_SHELL = (
    "report.md"  # whose commands begin processes; those of other pages are called here, which is faster
)


def blocks(page):
    """Return the language and the text of what a page shows between fences."""
    return re.findall(r"^```([\w ]+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def run_python(text, names, page):
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


def run_console(text, typed):
    """Type every line after a $, and compare what is printed."""
    for part in text.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        printed = typed(command)
        assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), (
            f"{command}\n{printed}"
        )


def in_a_shell(command, given=None):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        shell=True,
        env=os.environ | {"PATH": path},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stdout + ended.stderr


def in_this_process(vocabfold, command):
    """Call our own command, and give what it prints to what a shell would do with it."""
    words, rest = re.fullmatch(r"([^|>]*)(.*)", command).groups()
    program, *words = words.split()
    if program != "vocabfold":
        return in_a_shell(command)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # and not an error, as in a test
        _, out, err = vocabfold(*words)
    return (in_a_shell(f"cat {rest}", out) if rest else out) + err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = partial(in_this_process, command_line(monkeypatch, capsys))
    names = {}
    for language, text in blocks(page):
        if language == "python":
            run_python(text, names, page)
        elif language == "console":
            run_console(text, in_a_shell if page.name == IN_A_SHELL else typed)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install 'vocabfold[learn]'")
@pytest.mark.parametrize("page", ["leakage.md", "gallery.md"])
def test_the_examples_with_torch_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, names = ROOT / "docs" / page, {}
    begun, *_ = (text for language, text in blocks(page) if language == "python")
    with_torch = [text for language, text in blocks(page) if language == "python torch"]
    for text in (begun, *with_torch):  # these need rows and names of the first example alone
        run_python(text, names, page)
    assert "bag" in names


@pytest.mark.spark
def test_the_examples_on_spark_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, names = ROOT / "docs" / "spark.md", {}
    for language, text in blocks(page):
        if language == "python spark":
            run_python(text, names, page)
    assert "loaded" in names


def test_every_command_is_documented():
    made = runpy.run_path(str(ROOT / "docs" / "make_cli.py"))
    assert made["PAGE"].read_text("utf-8") == made["page"](), "stale: run `make docs`"


def test_links_to_pictures_and_pages_lead_somewhere():
    for page in PAGES:
        for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            target = page.parent / link if link else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {link}#{anchor}"


def anchors(page):
    """Return what a link may name in a page: its heads in lower case, without punctuation, with hyphens."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


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
