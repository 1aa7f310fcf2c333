"""The shape of the package: who may import whom, what stays light, which names are public."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import vocabfold

ROOT = Path(vocabfold.__file__).parent

ALLOWED = {
    "errors": {"terminal"},
    "checks": {"errors"},
    "notes": set(),
    "locks": set(),
    "temporary": {"errors", "checks", "locks"},
    "compiling": set(),
    "terminal": set(),
    "progress": {"terminal"},
    "kinds": set(),
    "information": {"compiling"},
    "estimate": set(),
    "order": {"compiling", "information"},
    "solve": {"errors", "compiling", "information", "order"},
    "baselines": {"notes", "compiling", "information", "order", "solve"},
    "budget": {"errors", "checks", "notes", "order", "solve", "baselines"},
    "folds": {"checks", "terminal"},
    "grouping": {"information", "order", "solve", "baselines", "budget", "folds"},
    "folding": {"errors", "checks", "information", "order", "solve", "budget", "folds", "grouping"},
    "engines": {"errors", "checks", "locks", "temporary", "kinds"},
    "unpacking": {"errors", "checks"},
    "headers": {"errors"},
    "storage": {"errors", "checks", "locks", "unpacking", "headers"},
    "cluster.tables": {"errors", "kinds", "engines", "unpacking"},
    "cluster.writing": {"errors", "progress", "engines", "unpacking", "headers", "storage", "cluster.tables"},
    "counts": {
        *("errors", "checks", "temporary", "kinds", "progress", "engines", "unpacking", "headers", "storage"),
        *("cluster.tables", "cluster.writing"),
    },
    "survey": {"errors", "checks", "engines", "counts"},
    "cluster.counting": {"engines", "survey", "cluster.tables"},
    "counting": {
        *("errors", "checks", "temporary", "progress", "engines", "counts", "survey"),
        *("cluster.tables", "cluster.counting"),
    },
    "pairs": {"information", "estimate", "order", "counts"},
    "private": {"pairs"},
    "searching": {"compiling"},
    "lookup": {"errors", "kinds", "searching"},
    "columns": {"kinds", "engines", "lookup"},
    "building": {"kinds", "information", "order", "folds", "pairs", "columns"},
    "choosing": {
        *("progress", "information", "order", "solve", "baselines", "budget", "folds", "engines", "counts"),
        *("pairs", "building"),
    },
    "codebook": {"errors", "checks", "progress", "folds", "engines", "counts", "lookup", "columns"},
    "cluster.shards": {"engines", "estimate", "order", "solve", "pairs", "private", "cluster.tables"},
    "cluster.store": {
        *("errors", "engines", "headers", "storage", "lookup", "columns", "building"),
        *("cluster.tables", "cluster.writing"),
    },
    "loading": {
        *("errors", "kinds", "engines", "unpacking", "headers", "storage"),
        *("counts", "lookup", "columns", "codebook"),
    },
    "saving": {
        *("errors", "progress", "engines", "headers", "storage", "columns", "codebook", "cluster.store"),
        "loading",
    },
    "crossfit": {
        "errors",
        "compiling",
        "estimate",
        "engines",
        "counts",
        "survey",
        "lookup",
        "columns",
        "codebook",
    },
    "encoding": {"errors", "kinds", "progress", "lookup", "columns", "codebook", "crossfit"},
    "cluster.folds": {"engines", "counts", "codebook", "crossfit", "cluster.tables"},
    "cluster.encoding": {
        *("errors", "checks", "engines", "codebook", "loading", "crossfit", "encoding"),
        *("cluster.tables", "cluster.store", "cluster.folds"),
    },
    "outputs": {"errors", "engines"},
    "transform": {
        *("errors", "checks", "progress", "engines", "counts"),
        *("codebook", "loading", "crossfit", "encoding", "outputs", "cluster.encoding"),
    },
    "solving": {
        *("budget", "order", "solve", "folds", "folding", "engines", "counts", "kinds", "pairs", "private"),
        *("building", "choosing", "columns", "cluster.shards"),
    },
    "fitting": {
        *("errors", "checks", "progress", "budget", "engines", "counts", "building", "lookup", "columns"),
        *("codebook", "crossfit", "solving", "cluster.store"),
    },
    "training": {"errors", "checks", "engines", "counting", "codebook", "outputs", "transform", "fitting"},
    "spark": {
        *("errors", "checks", "engines", "counts", "counting", "codebook", "loading", "crossfit", "encoding"),
        *("fitting", "cluster.encoding"),
    },
    "members": {"errors", "progress", "engines", "columns", "codebook"},
    "arrays": {"errors", "checks", "kinds", "engines", "counts"},
    "estimator": {
        *("errors", "checks", "engines", "counts", "counting", "codebook", "crossfit", "encoding", "fitting"),
        *("arrays", "members"),
    },
    "evaluation": {"checks", "codebook"},
    "evaluate": {
        *("kinds", "progress", "order", "engines", "counts", "counting"),
        *("checks", "columns", "codebook", "crossfit", "encoding", "evaluation"),
    },
    "trials": {"errors", "notes", "information", "order", "solve", "budget", "grouping", "folding"},
    "stopping": {"errors", "temporary", "budget", "trials"},
    "comparison": {
        *("errors", "checks", "terminal", "progress", "budget", "folding", "engines", "counts", "pairs"),
        *("trials", "stopping"),
    },
    "plotting": {"errors", "checks", "engines", "comparison"},
    "report.budgets": {
        *("errors", "notes", "progress", "budget", "engines", "counts", "pairs", "private", "building"),
        *("columns", "codebook", "crossfit", "evaluate", "solving", "fitting"),
    },
    "report.contents": {"progress", "terminal", "budget", "engines", "columns", "codebook", "evaluate"},
    "report.summary": {
        *(
            "checks",
            "terminal",
            "folds",
            "columns",
            "codebook",
            "evaluation",
            "evaluate",
            "fitting",
            "comparison",
        ),
        *("report.budgets", "report.contents"),
    },
    "report.findings": {"checks"},
    "report.plots": {"evaluation", "report.findings"},
    "report.page": {"errors", "report.findings", "report.plots"},
    "report.writing": {
        *("errors", "checks", "progress", "engines", "counts", "codebook", "evaluate", "comparison"),
        *("report.budgets", "report.summary", "report.findings", "report.plots", "report.page"),
    },
    "demo": {"errors", "checks", "engines"},
    "display": {
        *("errors", "checks", "terminal", "kinds", "folds", "counts", "codebook", "transform", "evaluation"),
        *("options", "comparison", "report.findings"),
    },
    "options": {"errors"},
    "commands": {
        *("options", "errors", "checks", "headers", "storage", "counts", "fitting", "comparison", "plotting"),
        *("display", "demo"),
    },
    "cli": {"errors", "terminal", "progress", "options", "commands"},
}
# Steps that methods of a noun call, imported inside the method.
INSIDE = {
    "codebook": {"transform", "evaluate", "evaluation", "saving", "comparison", "report.writing"},
    "comparison": {"plotting"},
}
HEAVY = [
    "numba",
    "numpy",
    "matplotlib",
    "jinja2",
    "vl_convert",
    "duckdb",
    "pyarrow",
    "rich",
    "sklearn",
    "pyspark",
    "pandas",
    "polars",
    "scipy",
]


def modules():
    return [path.relative_to(ROOT).with_suffix("") for path in sorted(ROOT.rglob("*.py"))]


@pytest.mark.parametrize("module", [m for m in modules() if m.name != "__init__"], ids=str)
def test_imports_go_one_way(module):
    step = step_of(module.parts)
    tree = ast.parse(source(module))
    assert imported(ast.walk(tree)) - {step} <= ALLOWED[step] | INSIDE.get(step, set())
    assert imported(tree.body) - {step} <= ALLOWED[step]


def step_of(parts):
    """Name a step: those on a cluster, and of the report, have a folder, and each a place among the others."""
    return ".".join(parts[:2]) if parts[0] in ("cluster", "report") else parts[0]


def imported(nodes):
    found = set()
    for node in nodes:
        assert not getattr(node, "level", 0), "relative import"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vocabfold":
            parts = node.module.split(".")[1:]
            found |= {step_of(parts)} if parts else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("vocabfold.")}
    return found


def test_only_two_modules_import_spark():
    found = {str(m) for m in modules() if "import pyspark" in source(m) or "from pyspark" in source(m)}
    assert found == {"engines/spark", "spark"}


def source(module):
    return (ROOT / module).with_suffix(".py").read_text()


def test_every_public_name_survives_the_import_of_all_modules():
    for module in modules():
        import_module(".".join(["vocabfold", *(part for part in module.parts if part != "__init__")]))
    assert vocabfold.__all__ == sorted(vocabfold.__all__)
    assert all(callable(getattr(vocabfold, name)) for name in vocabfold.__all__)
    assert set(vocabfold.__all__) <= set(dir(vocabfold))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'vocabfold' has no attribute 'unfold'"):
        vocabfold.unfold  # noqa: B018


def test_the_import_is_light():
    code = f"import sys, vocabfold; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_whoever_looks_at_a_codebook_loads_little(tmp_path):
    rows = pa.table({"site": ["a", "b", "b", "c"], "click": [0, 1, 0, 1]})
    vocabfold.fit(vocabfold.count(rows, "click"), 2, aim="information").save(tmp_path / "book")
    heavy = ["numba", "scipy", "pandas", "polars", "sklearn", "pyspark", "matplotlib"]
    words = ["vocabfold", "inspect", str(tmp_path / "book"), "--feature", "site"]
    code = (
        f"import sys, atexit; sys.argv = {words}; from vocabfold.cli import main\n"
        f"atexit.register(lambda: print([m for m in {heavy} if m in sys.modules], file=sys.stderr)); main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"
