"""Each option of `fit` is described once, and is there wherever it is asked for."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import vocabfold as vf
from support import java
from vocabfold.codebook.settings import NOTED, OPTIONS, FitSettings, default_of
from vocabfold.errors import flag, in_shell

ROOT = Path(vf.__file__).parent
ROWS = pa.table({"site": ["a", "b", "b", "c"] * 30, "click": [0, 1, 0, 1] * 30})
SIGNATURES = {
    "vf.fit": vf.fit,
    "vf.fit_transform": vf.fit_transform,
    "scikit-learn": vf.VocabularyCompressor.__init__,
}


def test_the_stage_of_spark_repeats_the_defaults():
    from vocabfold.spark import VocabularyCompressor

    parameters = inspect.signature(VocabularyCompressor.__init__).parameters
    for option, described in OPTIONS.items():
        first, *others = option.split("_")
        assert parameters[first + "".join(map(str.title, others))].default == described.default, option


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_repeat_the_defaults(name):
    parameters = inspect.signature(SIGNATURES[name]).parameters
    assert [option for option in parameters if option in OPTIONS and option != "budget"] == [
        option for option in OPTIONS if option != "budget"
    ]
    for option, described in OPTIONS.items():
        if option != "budget":  # of which scikit-learn has a default
            assert parameters[option].default == described.default, option


def test_fit_documents_every_option():
    documented = re.findall(r"^    ([a-z_, ]+?)(?: :|$)", inspect.getdoc(vf.fit).replace("\n", "\n    "), re.M)
    assert set(OPTIONS) <= {name for names in documented for name in names.split(", ")}


def test_settings_of_a_codebook_are_those_it_was_fitted_with(tmp_path):
    given = FitSettings(budget=7, aim="information", unseen="own", min_count=2)
    book = vf.fit(vf.count(ROWS, "click"), **{name: getattr(given, name) for name in OPTIONS})
    assert list(book.settings) == list(NOTED)
    assert FitSettings.of(book.settings) == given
    book.save(tmp_path / "book")
    assert FitSettings.of(vf.load(tmp_path / "book").settings) == given


@pytest.mark.parametrize(
    ("aim", "with_folds", "smoothing", "min_count"),
    [("model", False, "auto", 20), ("model", True, "auto", 1), ("information", False, 0, 1)],
)
def test_aim_and_folds_decide_what_nobody_said(aim, with_folds, smoothing, min_count):
    settings = FitSettings(budget=7, aim=aim, with_folds=with_folds)
    assert (settings.smoothing, settings.min_count) == (smoothing, min_count)
    for name in ("smoothing", "min_count"):
        assert default_of(name, aim, with_folds=with_folds) == getattr(settings, name)
    given = {name: getattr(settings, name) for name in OPTIONS} | {"min_count": None}
    assert FitSettings.of(given, with_folds=True).min_count == 1
    assert FitSettings.of(given | {"min_count": 7}, with_folds=with_folds).min_count == 7


@pytest.mark.parametrize("name", [name for name in OPTIONS if OPTIONS[name].default is not None])
def test_none_is_no_default_but_where_it_is_said_to_be(name):
    message = rf"^{name} must be .*, got None\.$"
    with pytest.raises(vf.InputError, match=message) as refused:
        FitSettings.of({option: OPTIONS[option].default for option in OPTIONS} | {"budget": 7, name: None})
    assert refused.value.argument == name
    assert refused.value.said(in_shell) == str(refused.value).replace(name, flag(name), 1)


COLOUR = """    colour: str = _option(
        "blue", _one_of(("blue", "red")), str, "blue|red", "Which colour the codebook is painted in."
    )
"""
# What uses the package with one option more; it prints what it finds.
PROGRAM = """
import contextlib, json, sys
import pyarrow as pa
import vocabfold as vf

rows = pa.table({"site": ["a", "b", "b", "c"] * 30, "click": [0, 1, 0, 1] * 30})
counts = vf.count(rows, "click")
found = {"default": vf.fit(counts, 3).settings["colour"]}
book = vf.fit(counts, 3, colour="red")
book.save("book")
found["header"] = json.load(open("book/codebook.json"))["settings"]["colour"]
found["loaded"] = vf.load("book").settings["colour"]
book, _ = vf.fit_transform(rows, "click", 3, colour="red")
found["fit_transform"] = book.settings["colour"]
frame, y = rows.select(["site"]), rows["click"].to_pylist()
compressor = vf.VocabularyCompressor(3, colour="red").fit(frame, y)
found["scikit-learn"] = compressor.codebook_.settings["colour"], compressor.get_params()["colour"]
for name, call in {
    "refused": lambda: vf.fit(counts, 3, colour="green"),
    "refused by scikit-learn": lambda: vf.VocabularyCompressor(3, colour="green").fit(frame, y),
}.items():
    try:
        call()
    except vf.InputError as error:
        found[name] = str(error)
if "spark" in sys.argv:
    import vocabfold.spark
    stage = vocabfold.spark.VocabularyCompressor
    found["spark"] = stage.colour.name, stage.colour.doc, hasattr(stage, "setColour")
print(json.dumps(found))
"""


@pytest.fixture
def one_option_more(tmp_path):
    """Return a folder with the package, in which an option was added to its list and to the signatures."""
    shutil.copytree(ROOT, tmp_path / "vocabfold", ignore=shutil.ignore_patterns("__pycache__"))

    def add(module, what, before):
        path = tmp_path / "vocabfold" / module
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, what + before, 1), encoding="utf-8")

    add("codebook/settings.py", COLOUR, "    epsilon: float = _option(")
    for module in (
        "fitting/fitting.py",
        "encoding/fit_transform.py",
        "interfaces/sklearn/estimator.py",
        "spark.py",
    ):
        indent = "        " if module in ("interfaces/sklearn/estimator.py", "spark.py") else "    "
        add(module, f'{indent}colour: str = "blue",\n', f"{indent}epsilon: float = 0.1,")
    return tmp_path


def run(folder, *words):
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_a_new_option_is_added_in_one_place(one_option_more):
    with_spark = ["spark"] if java.home() is not None else []
    done = run(one_option_more, "-c", PROGRAM, *with_spark)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    message = "colour must be one of 'blue', 'red', got 'green'."
    assert found == {
        "default": "blue",
        "header": "red",
        "loaded": "red",
        "fit_transform": "red",
        "scikit-learn": ["red", "red"],
        "refused": message,
        "refused by scikit-learn": message,
    } | ({"spark": ["colour", "Which colour the codebook is painted in.", True]} if with_spark else {})
    command = ["-c", "from vocabfold.interfaces.cli.main import main; main()"]
    assert re.search(
        r"--colour blue\|red +Which colour the codebook is painted in\.",
        run(one_option_more, *command, "fit", "--help").stdout,
    )
    (one_option_more / "rows.csv").write_text("site,click\n" + "a,0\nb,1\nb,0\nc,1\n" * 30)
    words = ["fit", "rows.csv", "--label", "click", "-b", "3", "-o", "new", "--colour"]
    refused = run(one_option_more, *command, *words, "green")
    assert (refused.returncode, refused.stderr) == (2, f"error: --{message}\n")
    assert run(one_option_more, *command, *words, "red", "--train-out", "rows.parquet").returncode == 0
    assert json.loads((one_option_more / "new" / "codebook.json").read_text())["settings"]["colour"] == "red"
    shutil.copy(Path(__file__).parents[2] / "docs" / "make_cli.py", one_option_more)
    assert run(one_option_more, "make_cli.py").returncode == 0
    assert "| `--colour blue\\|red` | Which colour" in (one_option_more / "cli.md").read_text("utf-8")
