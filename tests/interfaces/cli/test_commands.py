"""The command line as a user meets it: what it prints where, and how it ends."""

import io
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import fold_counts
from support.terminal import FOLD, bad, ok
from vocabfold.interfaces.cli import display, options

GROUPED = "values with fewer than 20 rows are grouped; counts with folds need no such limit"


@pytest.mark.filterwarnings("default:.*looks like the training data")
def test_from_rows_to_ids(vocabfold, rows):
    out = ok(vocabfold("fit", *rows, *FOLD, "-o", "book"))
    assert " ".join(out.split()[:10]) == "column values rates ids train MI kept loss CV gain"
    assert "5 of 5 ids used" in out
    book = vf.load("book")
    assert book.digest == fold_counts(vf.count(rows, "click", ["site", "zip"]), 5).digest
    assert f"digest {book.digest}" in out
    pq.write_table(pq.read_table(rows[0]).slice(1), "new.parquet")
    out = ok(vocabfold("transform", "book", "new.parquet", "-o", "ids.parquet", "--expect", book.digest))
    assert out.splitlines()[0] == "wrote 199 rows to ids.parquet"
    assert pq.read_table("ids.parquet").equals(book.transform(pq.read_table("new.parquet")))
    code, _, err = vocabfold("transform", "book", "*day.parquet", "-o", "each/", "--only-ids", "--offset-ids")
    assert code == 0
    assert err == (
        "warning: monday.parquet and 1 more looks like the training data: transform leaks its labels through "
        "infrequent values. Use 'vocabfold fit --train-out', or 'vocabfold transform --counts' with counts by "
        "fold, for training; score on held-out rows.\n"
    )
    assert sorted(path.name for path in Path("each").iterdir()) == rows
    assert pq.read_table("each/tuesday.parquet").schema.names == ["site", "zip"]


@pytest.mark.filterwarnings("default:.*label rates differ between folds")
def test_folds_that_go_with_the_label_warn_in_the_words_of_flags(vocabfold, rows):
    table = pq.read_table(rows[0]).sort_by("click")
    folds = pa.array([i * 5 // table.num_rows for i in range(table.num_rows)])
    pq.write_table(table.append_column("part", folds), "sorted.parquet")
    words = ["--label", "click", "--budget", "12", "--fold-column", "part", "-o", "book"]
    code, _, err = vocabfold("fit", "sorted.parquet", *words)
    assert code == 0
    assert re.search(
        r"^warning: label rates differ between folds, from .* with --folds 5, in", err, re.MULTILINE
    )


def test_counts_are_kept_and_merged(vocabfold, rows):
    for path in rows:
        out = ok(vocabfold("count", path, "--label", "click", "-o", path.removesuffix(".parquet")))
        assert out.splitlines()[:2] == ["column  kind  values", "site    text       4"]
    out = ok(vocabfold("merge", "monday", "tuesday", "-o", "week"))
    assert "wrote the counts of 400 rows (" in out
    ok(vocabfold("fit", "week", "--budget", "3", "-o", "book"))
    ok(vocabfold("fit", "monday", "tuesday", "--budget", "3", "--label", "click", "-o", "again"))
    assert vf.load("book").digest == vf.load("again").digest == vf.fit(vf.count(rows, "click"), 3).digest


def test_training_rows_are_encoded_out_of_fold(vocabfold, rows):
    words = ["--label", "click", "--budget", "12", "--folds", "4", "--fold-seed", "3", "--shared-ids", "3"]
    out = ok(
        vocabfold("fit", *rows, *words, "--dedicated-min", "60", "-o", "book", "--train-out", "train.parquet")
    )
    assert "wrote 400 rows to train.parquet (encoded out of fold)\n" in out
    assert "values with at least 60 rows have dedicated ids\n" in out
    assert "CV gain" in out.splitlines()[0]
    options = {"folds": 4, "fold_seed": 3, "shared_ids": 3, "dedicated_min": 60}
    book, written = vf.fit_transform(rows, "click", 12, out="again.parquet", **options)
    assert vf.load("book").digest == book.digest
    assert pq.read_table("train.parquet").equals(pq.read_table("again.parquet"))
    # The same from counts, in two steps.
    ok(vocabfold("count", *rows, "--label", "click", "--folds", "4", "--fold-seed", "3", "-o", "counts"))
    ok(
        vocabfold(
            "fit",
            "counts",
            *words[:4],
            "--shared-ids",
            "3",
            "--dedicated-min",
            "60",
            "-o",
            "two",
        )
    )
    ok(vocabfold("transform", "two", *rows, "--counts", "counts", "-o", "two.parquet"))
    assert pq.read_table("two.parquet").equals(pq.read_table("train.parquet"))
    assert "monday.parquet is not what was counted" in bad(
        vocabfold("transform", "two", rows[0], "--counts", "counts", "-o", "one.parquet")
    )


@pytest.fixture
def rare(vocabfold):
    """Return rows with values that are rare."""
    sites = [f"site-{i * i % 97 // (1 + i % 3)}" for i in range(500)]
    path, clicks = "rare.parquet", pa.array([i * i % 97 * 31 % 11 > i % 8 for i in range(500)]).cast("int8")
    pq.write_table(pa.table({"site": sites, "part": [i % 3 for i in range(500)], "click": clicks}), path)
    return path


@pytest.mark.parametrize("aim", ["model", "information"])
def test_from_rows_there_is_one_codebook(vocabfold, rare, aim):
    words = ["--label", "click", "--budget", "9", "--aim", aim]
    book, _ = vf.fit_transform(rare, "click", 9, aim=aim, out="ids.parquet")
    for name, more in {
        "plain": [],
        "train": ["--train-out", "train.parquet"],
        "folds": ["--folds", "3"],
        "column": ["--fold-column", "part", "--features", "site"],
        "column-train": ["--fold-column", "part", "--features", "site", "--train-out", "train.csv"],
    }.items():
        out = ok(vocabfold("fit", rare, *words, *more, "-o", name))
        assert "CV gain" in out
        assert "grouped" not in out
        assert vf.load(name).digest == book.digest
        assert vf.load(name).settings == book.settings
    assert vf.load("plain").gain == vf.load("train").gain == book.gain
    ok(vocabfold("count", rare, "--label", "click", "--folds", "5", "-o", "counts"))
    ok(vocabfold("fit", "counts", *words, "-o", "counted"))
    assert vf.load("counted").digest == vf.fit(vf.load_counts("counts"), 9, aim=aim).digest == book.digest
    table = pq.read_table(rare)
    learners = [vf.VocabularyCompressor(9, aim=aim) for _ in range(3)]
    for method, learner in zip(("fit", "fit_transform", "partial_fit"), learners, strict=True):
        getattr(learner, method)(table.select(["site"]), table["click"].to_pylist())
        assert learner.codebook_.digest == book.digest, method
    assert vf.fit(learners[1].counts_, 9, aim=aim).digest == book.digest


def test_bare_counts_say_that_values_are_grouped(vocabfold, rare):
    words = ["--label", "click", "--budget", "9"]
    ok(vocabfold("count", rare, *words[:2], "-o", "counts"))
    out = ok(vocabfold("fit", "counts", *words, "-o", "bare"))
    assert f"\n{GROUPED}\n" in out
    assert (
        ok(vocabfold("fit", rare, *words, "--folds", "0", "-o", "bare-rows")).replace("bare-rows", "bare")
        == out
    )
    book = vf.load("bare")
    assert book.settings["min_count"] == 20
    assert book.digest != vf.fit(vf.count(rare, "click", folds=5), 9).digest
    assert repr(book).splitlines()[-1] == f"  {GROUPED}"
    assert GROUPED in book._repr_html_()
    # Said of a default that matters, and of nothing else.
    for more in ({"min_count": 1}, {"min_count": 5}, {"aim": "information"}):
        assert "grouped" not in repr(vf.fit(vf.load_counts("counts"), 9, **more))
    without_rare = pa.table({"site": ["a", "b"] * 50, "click": [0, 1, 1, 1] * 25})
    assert "grouped" not in repr(vf.fit(vf.count(without_rare, "click"), 9))
    reader = pq.read_table(rare).to_reader()  # which is read once, and has no folds unless they are asked for
    assert "grouped" in repr(vf.fit(vf.count(reader, "click"), 9))


def test_a_codebook_is_judged_by_other_rows(vocabfold, rows):
    ok(vocabfold("fit", rows[0], "--label", "click", "--budget", "9", "--features", "site,zip", "-o", "book"))
    code, out, err = vocabfold("evaluate", "book", rows[1])
    assert code == 0
    assert " ".join(out.split()[:9]) == "column train MI CV gain test MI test gain"
    assert out.splitlines()[3].startswith("all ")
    assert "200 rows, " in out
    assert (
        "warning: column 'zip' has only 5 values. If their order means something, give it to the model as "
        "it is.\n" in err
    )
    found = json.loads(vocabfold("evaluate", "book", rows[1], "--json")[1])
    judged = vf.load("book").evaluate(rows[1])
    assert found["gain"] == judged.gain
    assert found["columns"]["site"]["calibration"] == judged.calibration("site").to_pylist()
    assert found["warnings"] == list(judged.warnings)
    assert vocabfold("evaluate", "book", rows[1], "--fail-below", "-1")[0] == 0
    code, out, err = vocabfold("evaluate", "book", rows[1], "--fail-below", "0.9")
    assert (code, out.splitlines()[3][:4]) == (1, "all ")
    assert err.splitlines()[-1] == f"failed: the test gain of {judged.gain:.4g} nats/row is below 0.9."
    assert found["passed"]
    code, _, err = vocabfold("evaluate", "book", rows[0], "--fail-below", "-9")
    assert (
        "warning: monday.parquet looks like the training data: the figures are optimistic. Evaluate on "
        "held-out rows.\n" in err
    )
    failed = "failed: the rows look like the training data, which cannot show whether the codebook generalises."
    assert (code, err.splitlines()[-1]) == (1, failed)
    assert not json.loads(vocabfold("evaluate", "book", rows[1], "--json", "--fail-below", "9")[1])["passed"]
    ok(vocabfold("transform", "book", rows[1], "-o", "ids.parquet"))
    assert bad(vocabfold("evaluate", "book", "ids.parquet")) == (
        "column 'site' of ids.parquet holds ids already; give the original rows."
    )


def test_why_ids_are_left_over(vocabfold, rows):
    words = ["fit", *rows, "--label", "click", "-b", "40", "-o", "book", "--force"]
    out = ok(vocabfold(*words, "--dedicated-min", "500"))
    assert "of 40 ids used (no value has 500 rows: lower --dedicated-min)" in out
    assert "of 40 ids used (no other value has 50 rows: lower --min-count)" in ok(
        vocabfold(*words, "--min-count", "50")
    )
    assert "values with at least 50 rows have dedicated ids" in ok(vocabfold(*words, "--min-count", "50"))


def test_names_of_columns_are_not_taken_for_options(vocabfold):
    pq.write_table(pa.table({"fold_column": ["a"], "min_count": ["b"], "y": [0]}), "in.parquet")
    text = bad(vocabfold("count", "in.parquet", "--label", "z", "-o", "c"))
    assert text == "column 'z' is not in in.parquet. Columns: fold_column, min_count, y."


def test_columns_that_nobody_named_are_listed(vocabfold, rows):
    note = (
        "note: columns that are not text were left out: zip (--also NAME,... adds numbers and dates, but no "
        "lists)\n"
    )
    for words in (["count"], ["fit", "--budget", "9"], ["fit", "--budget", "9", "--train-out", "t.csv"]):
        out = [words[0], rows[0], "--label", "click", *words[1:], "-o", f"out{len(words)}"]
        code, _, err = vocabfold(*out)
        assert (code, err) == (0, note)
        assert vocabfold(*out, "--force", "--features", "site,zip")[2] == ""
        assert vocabfold(*out, "--force", "--also", "zip")[2] == ""


def test_every_option_of_count_reaches_it(vocabfold):
    lines = ["a,b,say,w,part", "x,1,yes,2,0", "y,2,no,1,1", "x,1,,1,1", "z,2,yes,1,0"]
    Path("log.csv").write_text("\n".join(lines) + "\n")
    options = ["--label", "say", "--positive", "yes", "--weight", "w", "--drop-null-labels"]
    folds = ["--folds", "2", "--fold-column", "part", "--memory", "1GB"]
    out = json.loads(ok(vocabfold("count", "log.csv", *options, *folds, "-o", "counts", "--json")))
    assert out == {
        "counts": "counts",
        "rows": 4,
        "positive_rows": 3,
        "label": "say",
        "positive": "yes",
        "folds": 2,
        "columns": {"a": {"kind": "text", "values": 3}},
    }
    ok(
        vocabfold(
            "count", "log.csv", *options, "--features", "b", "--folds", "2", "--fold-seed", "1", "-o", "b"
        )
    )
    assert vf.load_counts("b").features == ("b",)
    assert "no other text-like column" in bad(
        vocabfold("count", "log.csv", *options, "--exclude", "a", "-o", "c")
    )
    assert not Path("c").exists()


def test_names_with_commas_are_quoted_as_in_csv():
    assert options.names(['a,"b,c"', "d"]) == ["a", "b,c", "d"]
    assert options.names(None) is None
    assert options.names(['"a\r\nb",c']) == ["a\r\nb", "c"]
    with pytest.raises(vf.InputError, match="cannot be read as names separated by commas .* double quotes"):
        options.names(["x" * 200_000])


def test_json_holds_no_characters_that_a_terminal_obeys(vocabfold):
    name, value = "\x9b31m\u202e", "\x85\x1b]0;\x07\U000e0001 ü"
    pq.write_table(pa.table({name: [value, "b"] * 3, "y": [0, 1, 1] * 2}), "t.parquet")
    ok(vocabfold("fit", "t.parquet", "--label", "y", "-b", "4", "--aim", "information", "-o", "book"))
    out = ok(vocabfold("inspect", "book", "--feature", name, "--json"))
    assert out.replace("\n", "").isprintable()
    assert "ü" in out
    found = json.loads(out)
    assert found["feature"] == name
    assert value in [example for group in found["ids"] for example in group["examples"]]


def test_every_option_of_fit_reaches_it(vocabfold, rows):
    options = ["--method", "threshold", "--allocation", "uniform", "--min-count", "3", "--unseen", "own"]
    options += ["--smoothing", "2.5", "--dedicated-min", "7", "--shared-ids", "5"]
    options += ["--epsilon", "0.9", "--shards", "2"]
    ok(
        vocabfold(
            "fit", *rows, "--label", "click", "--budget", "4", "--aim", "information", *options, "-o", "book"
        )
    )
    assert vf.load("book").settings == {
        "aim": "information",
        "method": "threshold",
        "allocation": "uniform",
        "budget": 4,
        "smoothing": 2.5,
        "min_count": 3,
        "dedicated_min": 7,
        "dedicated_from": None,
        "shared_ids": 5,
        "unseen": "own",
        "epsilon": 0.9,
        "shards": 2,
        "seed": 0,
    }


def test_methods_that_look_at_values_print_what_they_used(vocabfold, rows):
    fit = ["fit", *rows, "--label", "click", "--budget", "9", "--aim", "information", "--force", "-o", "book"]
    out = ok(vocabfold(*fit, "--method", "frequency"))
    assert "values with at least" not in out
    out = ok(vocabfold(*fit, "--method", "hashing", "--allocation", "uniform", "--budget", "6"))
    assert "of 6 ids used (the method did not make more)" in out
    out = ok(vocabfold(*fit, "--budget", "60", "--unseen", "own"))
    assert "7 of 60 ids used (more would not help), 100 %" in out
    assert "method" not in out
    out = ok(vocabfold(*fit, "--budget", "3", "--method", "greedy"))
    assert re.search(r"kept, gap [\d.e-]+ \(loss 1\.\d+ × optimum\)", out)
    assert "label click = 1, method greedy" in out


@pytest.mark.parametrize(
    ("text", "ids"),
    [("160000", 160_000), ("160k", 160_000), ("1.5m", 1_500_000), ("2K", 2000), ("10,000", 10_000)],
)
def test_budgets(text, ids):
    assert options.parse_budget(text) == ids


def test_inspect(vocabfold, rows):
    ok(vocabfold("fit", *rows, *FOLD, "-o", "book"))
    book = vf.load("book")
    out = json.loads(ok(vocabfold("inspect", "book", "--json")))
    assert (out["digest"], out["size"], out["rows"]) == (book.digest, 5, 400)
    assert out["columns"]["site"]["n_values"] == book.columns["site"].n_values
    out = ok(vocabfold("inspect", "book"))
    assert out.splitlines()[0].startswith("column")
    out = json.loads(ok(vocabfold("inspect", "book", "--feature", "site", "--json")))
    assert [group["id"] for group in out["ids"]] == list(range(book.sizes["site"]))
    assert sum(group["neg"] + group["pos"] for group in out["ids"]) == 400
    out = ok(vocabfold("inspect", "book", "--feature", "site", "--limit", "1"))
    assert "more ids (--limit)" in out
    out = json.loads(ok(vocabfold("inspect", "book", "--feature", "zip", "--value", "3", "--json")))
    assert out == {"feature": "zip", "value": 3, "id": int(book.ids("zip", [3])[0]), "is_known": True}
    out = ok(vocabfold("inspect", "book", "--feature", "zip", "--value", "77"))
    assert out == f"zip 77: id {book.columns['zip'].other}, not in the codebook\n"
    out = ok(vocabfold("inspect", "book", "--feature", "zip", "--missing"))
    assert out == f"zip (missing): id {book.columns['zip'].other}, not in the codebook\n"
    out = ok(vocabfold("inspect", "book", "--feature", "site", "--id", "0"))
    assert out.splitlines() == book.members("site", 0)
    first = next(id for id in range(book.sizes["site"]) if len(book.members("site", id)) > 1)
    words = ["inspect", "book", "--feature", "site", "--id", first, "--limit", "1"]
    out = json.loads(ok(vocabfold(*words, "--json")))
    assert out == {"feature": "site", "id": first, "values": book.members("site", first)[:1], "is_all": False}
    assert vocabfold(*words) == (0, book.members("site", first)[0] + "\n", "... and more (--limit)\n")


def test_ids_that_rest_on_few_rows_are_named(vocabfold):
    wheels = ["steel"] * 40 + ["alloy"] * 70 + ["wire", "rare", "special"] * 4
    pq.write_table(pa.table({"wheel": wheels, "click": [i % 3 % 2 for i in range(122)]}), "in.parquet")
    fit = ["fit", "in.parquet", "--label", "click", "--budget", "9", "-o", "book", "--force"]
    folds = ["--train-out", "out.parquet"]
    few = "ids of wheel with fewer than 30 training rows: 0 (12)\n"
    joined = "too few training rows for an id of unseen values, which share another: wheel\n"
    for given, (is_few, is_joined) in {
        (*folds,): (True, False),
        (*folds, "--unseen", "own"): (False, True),
        (*folds, "--unseen", "own", "--dedicated-min", "9"): (False, True),
        (*folds, "--aim", "information"): (False, False),
        ("--unseen", "own"): (False, True),
        ("--unseen", "own", "--folds", "0"): (False, False),  # nothing is known of training rows
    }.items():
        out = ok(vocabfold(*fit, *given))
        inspected = ok(vocabfold("inspect", "book"))
        assert [few in out, joined in out] == [few in inspected, joined in inspected] == [is_few, is_joined]
    ok(vocabfold(*fit, *folds, "--unseen", "own"))
    out = ok(vocabfold("inspect", "book", "--feature", "wheel"))
    assert re.search(r"^id +rate +rows +values", out)  # no id has other rows for training
    assert re.search(r"0\.\d+ +82 +4  alloy, ", out)
    assert out.endswith("Values that are not in the codebook get the id 0 (82 training rows).\n")


def test_values_that_json_has_no_numbers_for(vocabfold):
    pq.write_table(pa.table({"x": [1.5, float("inf"), None, 1.5], "y": [0, 1, 1, 0]}), "in.parquet")
    ok(
        vocabfold(
            "fit",
            "in.parquet",
            "--label",
            "y",
            "--features",
            "x",
            "-b",
            "3",
            "--aim",
            "information",
            "-o",
            "book",
        )
    )
    out = ok(vocabfold("inspect", "book", "--feature", "x", "--json"))
    assert json.loads(out, parse_constant=pytest.fail)["ids"][1]["examples"] == [None, "inf"]
    for value, id in (("inf", 1), ("nan", 1), ("1.5", 0)):
        out = json.loads(ok(vocabfold("inspect", "book", "--feature", "x", "--value", value, "--json")))
        assert (out["id"], out["is_known"]) == (id, True)
    bad(vocabfold("inspect", "book", "--feature", "x", "--value", "1_0"))


def test_what_is_shown_cannot_write_to_the_terminal(vocabfold):
    table = pa.table({"a\x1b[31m\n": ["x\x1b]0;title\x07", None, "v" * 500], "y": [0, 1, 1]})
    pq.write_table(table, "in.parquet")
    out = ok(vocabfold("fit", "in.parquet", "--label", "y", "-b", "2", "--min-count", "1", "-o", "book"))
    out += ok(vocabfold("inspect", "book", "--feature", "a\x1b[31m\n"))
    assert "\x1b" not in out
    assert r"x\x1b]0;title\x07" in out
    assert "(missing)" in out
    assert "v" * 59 + "…" in out
    assert "\x1b" not in bad(vocabfold("fit", "in.parquet", "--label", "z", "--budget", "2", "-o", "b"))


def test_characters_that_the_terminal_lacks_are_escaped(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    display.line("0.1 ± 0.02")
    display.machine({"café": "±"})
    first, *rest = terminal.buffer.getvalue().decode("ascii").splitlines()
    assert first == r"0.1 \xb1 0.02"
    assert json.loads("".join(rest)) == {"café": "±"}


def test_an_interrupted_demo_does_not_go_on(vocabfold, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(vf, "fit_transform", interrupted)
    code, out, err = vocabfold("demo")
    assert (code, err) == (130, "error: interrupted.\n")
    assert out.count("$ vocabfold") == 1


def test_help_and_version(vocabfold):
    assert "Usage: vocabfold" in ok(vocabfold())
    assert ok(vocabfold("--version")) == f"vocabfold {vf.__version__}\n"
    for verb in ("count", "merge", "fit", "transform", "evaluate", "compare", "report", "inspect", "demo"):
        assert verb in ok(vocabfold("--help"))
        assert f"Usage: vocabfold {verb}" in ok(vocabfold(verb, "--help"))


def test_compare_prints_draws_and_refuses(vocabfold, rows):
    asked = ["--budgets", "4", "--budgets", "0.006k", "--methods", "exact,hashing"]
    of_rows = [*rows, "--label", "click"]
    out = ok(vocabfold("compare", *of_rows, *asked, "--plot", "a.svg"))
    assert out.count("hashing  uniform") == 2
    assert "wrote the plot to a.svg" in out
    assert "hashing, uniform" in Path("a.svg").read_text()
    ok(vocabfold("count", *of_rows, "-o", "counts"))
    found = json.loads(ok(vocabfold("compare", "counts", *asked, "--json")))
    assert [trial["budget"] for trial in found["trials"]] == [4, 4, 6, 6]
    assert found["trials"][0]["lost"] == found["trials"][0]["loss"] / found["total"]
    for words, message in [
        (
            ["counts", "--budgets", "4,x"],
            "--budgets must be numbers of ids, at least 1, separated by commas without spaces, such as 1000",
        ),
        (
            ["counts", *asked, "--label", "no"],
            "counts was counted with the label 'click', not 'no'; leave --label out",
        ),
        (["counts", *asked, "--features", "site"], "--features applies to rows, but counts holds counts"),
        (["counts", "absent", *asked], "there is no absent; counts holds counts: give folders of counts."),
        (["counts", *asked, "--plot", ""], "the name must end in .svg, .png or .pdf to be a plot."),
        (["counts", "--budgets", "4,,5"], "--budgets must be numbers of ids, at least 1, separated by commas"),
        ([*of_rows, *asked, "--plot", "a.svg"], "a.svg exists; give another name, or use --force"),
        (
            ["monday.parquet", *asked, "--time-limit", "-1"],
            "--time-limit must be a number of seconds above 0, got -1",
        ),
        (["monday.parquet", *asked, "--methods", "x"], "--methods must be one of"),
        (["monday.parquet", "--budgets", "9" * 400], "--budgets must be numbers of ids"),
        (
            ["monday.parquet", *asked, "--seed", "1"],
            "--seed applies to --methods stochastic, not to exact, hashing; leave it out",
        ),
        (["monday.parquet", "--budgets", "9" * 20], "--budgets must be at most 4,611,686,018,427,387,904, got"),
        (
            ["counts", "--budgets", "4", "--methods", "threshold", "--shards", "40", "--plot", "b.svg"],
            "no method finished, so there is nothing to draw: b.svg was not written.",
        ),
    ]:
        code, _, err = vocabfold("compare", *words)
        assert (code, err[: len(message) + 7]) == (2, f"error: {message}")


def test_a_report_is_a_page(vocabfold, rows):
    monday, tuesday = rows
    ok(vocabfold("count", monday, "--label", "click", "--folds", 3, "-o", "counts"))
    ok(vocabfold("fit", "counts", "--budget", 4, "--min-count", 1, "-o", "book"))
    found = ok(vocabfold("compare", "counts", "-b", "2,4", "--methods", "exact,frequency", "--json"))
    Path("compare.json").write_text(found)
    given = ["--counts", "counts", "--heldout", tuesday, "--label", "click", "--compare", "compare.json"]
    code, said, err = vocabfold("report", "book", *given, "--steps", 5, "--pictures", "plots", "-o", "r.html")
    assert (code, err[:50]) == (0, "warning: column 'site' has unseen values in 57 % o")
    lines = said.splitlines()
    assert lines[0].startswith("4 values in 1 column became 2 ids, with a test gain of ")
    assert lines[-2] == "wrote the plots to plots"
    assert lines[-1] == "wrote the report to r.html (open it in a browser)"
    again = vocabfold("report", "book", "-o", "r.html")
    assert again == (2, "", "error: r.html exists; give another name, or use --force to replace it.\n")
    found = json.loads(ok(vocabfold("report", "book", "-o", "r.html", "--force", "--json")))
    assert (found["report"], found["about"]["size"], found["budgets"]) == ("r.html", 2, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--steps", "5"],
            "--steps is for other budgets, which need the counts. Give these too, or leave it out.",
        ),
        (["--counts", "counts", "--steps", "1000"], "--steps must be at most 200, got 1,000."),
        (["--label", "x"], "--label is for held-out rows. Give these too, or leave it out."),
        (["--drop-null-labels"], "--drop-null-labels is for held-out rows. Give these too, or leave it out."),
        (
            ["--counts", "other"],
            "these are not the counts that the codebook was fitted on: they have 124 positive rows, not 129. "
            "Give those, or fit these.",
        ),
        (["-o", "r.txt"], "the report must be a file that ends in .html, got r.txt."),
    ],
    ids=str,
)
def test_a_report_says_what_it_needs(vocabfold, rows, words, said):
    for name, day in (("counts", rows[0]), ("other", rows[1])):
        vf.count(day, "click", ["site"]).save(name)
    fold_counts(vf.load_counts("counts"), 3).save("book")
    assert vocabfold("report", "book", "-o", "r.html", *words) == (2, "", f"error: {said}\n")


def test_rows_are_shown_once_each_and_by_weight(vocabfold):
    lines = [f"{'ab'[i % 2]},{i % 3 // 2},3" for i in range(40)]
    Path("log.csv").write_text("\n".join(["site,click,w", *lines]))
    of_rows = ["--label", "click", "--weight", "w"]
    by_weight = "40 rows (120 by weight)"
    assert f"wrote the counts of {by_weight} (" in ok(vocabfold("count", "log.csv", *of_rows, "-o", "counts"))
    out = ok(vocabfold("fit", "counts", "--budget", "9", "-o", "book"))
    assert f"book: fitted on {by_weight}, label" in out
    assert f"book: fitted on {by_weight}, label" in ok(vocabfold("inspect", "book"))
    assert "id    rate  weight  values  examples" in ok(vocabfold("inspect", "book", "--feature", "site"))
    code, out, _ = vocabfold("evaluate", "book", "log.csv", *of_rows)
    assert f"\n{by_weight}, 32.5 % positive" in out
    vocabfold("report", "book", "--heldout", "log.csv", *of_rows, "-o", "r.html")
    page = Path("r.html").read_text()
    assert "<b>40</b><span>training rows (120 by weight), " in page
    assert "<p>40 held-out rows (120 by weight), " in page


def test_one_of_many_is_in_the_singular(vocabfold):
    lines = [f"{site},{i % 2 if site == 'b' else site}" for i, site in enumerate("0101b" * 9)]
    Path("log.csv").write_text("\n".join(["site,click", *lines]))
    words = ["--aim", "information", "--features", "site", "--budget", "9", "-o", "book"]
    ok(vocabfold("fit", "log.csv", "--label", "click", *words))
    out = ok(vocabfold("inspect", "book", "--feature", "site", "--limit", "2"))
    assert "\n... and 1 more id (--limit)\n" in out


def test_rows_are_not_written_into_a_codebook(vocabfold, rows):
    ok(vocabfold("fit", rows[0], "--label", "click", "--budget", "9", "-o", "book"))
    said = "is the folder of a codebook; give another place for rows."
    assert said in bad(vocabfold("transform", "book", rows[0], "-o", "book"))
    assert said in bad(vocabfold("transform", "book", rows[0], "-o", "book/"))


def test_a_single_fold_is_none(vocabfold):
    pq.write_table(pa.table({"a": ["x", "y"] * 9, "y": [0, 1, 1] * 6, "f": [0] * 18}), "in.parquet")
    fit = [
        "fit",
        "in.parquet",
        "--label",
        "y",
        "--features",
        "a",
        "--budget",
        "2",
        "--fold-column",
        "f",
        "-o",
        "b",
    ]
    assert "all rows are in one fold, but at least two folds are needed" in bad(vocabfold(*fit))
