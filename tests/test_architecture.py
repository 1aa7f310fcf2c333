"""The shape of the package: who may import whom, what stays light, which names are public."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import vocabfold

ROOT = Path(vocabfold.__file__).parent

ALLOWED = {
    "errors": set(),
    "checks": {"errors"},
    "compiling": set(),
    "terminal": set(),
    "progress": {"terminal"},
    "kinds": set(),
    "information": {"compiling"},
    "order": {"compiling", "information"},
    "solve": {"errors", "compiling", "information", "order"},
    "budget": set(),
    "folds": {"checks"},
    "folding": {"errors", "checks", "information", "order", "solve", "budget", "folds"},
    "engines": {"errors", "checks", "kinds"},
    "storage": {"errors", "checks"},
    "counts": {"errors", "checks", "kinds", "progress", "engines", "storage"},
    "survey": {"errors", "checks", "engines", "counts"},
    "counting": {"errors", "checks", "progress", "engines", "counts", "survey"},
    "searching": {"compiling"},
    "lookup": {"errors", "kinds", "searching"},
    "columns": {"kinds", "engines", "lookup"},
    "codebook": {
        *("errors", "checks", "progress", "folds", "engines", "storage", "counts", "lookup", "columns"),
    },
    "encoding": {"errors", "kinds", "progress", "lookup", "codebook"},
    "transform": {"errors", "checks", "progress", "engines", "lookup", "codebook", "encoding"},
    "loading": {"errors", "kinds", "engines", "storage", "counts", "lookup", "columns", "codebook"},
    "fitting": {
        *("errors", "checks", "progress", "budget", "order", "folds", "folding"),
        *("engines", "counts", "lookup", "columns", "codebook"),
    },
    "demo": {"errors", "checks", "engines"},
    "display": {"errors", "checks", "terminal", "kinds", "folds", "counts", "codebook", "transform"},
    "options": {"errors"},
    "cli": {
        "options",
        "errors",
        "checks",
        "terminal",
        "progress",
        "storage",
        "counts",
        "fitting",
        "display",
        "demo",
    },
}
INSIDE = {"codebook": {"transform"}}  # steps that methods of a noun call, imported inside the method
HEAVY = ["numba", "numpy", "duckdb", "pyarrow", "rich", "sklearn", "pyspark", "pandas", "polars", "scipy"]


def modules():
    return [path.relative_to(ROOT).with_suffix("") for path in sorted(ROOT.rglob("*.py"))]


@pytest.mark.parametrize("module", [m for m in modules() if m.name != "__init__"], ids=str)
def test_imports_go_one_way(module):
    step = module.parts[0]
    tree = ast.parse((ROOT / module).with_suffix(".py").read_text())
    assert imported(ast.walk(tree)) - {step} <= ALLOWED[step] | INSIDE.get(step, set())
    assert imported(tree.body) - {step} <= ALLOWED[step]


def imported(nodes):
    found = set()
    for node in nodes:
        assert not getattr(node, "level", 0), "relative import"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vocabfold":
            parts = node.module.split(".")[1:]
            found |= {parts[0]} if parts else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("vocabfold.")}
    return found


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
