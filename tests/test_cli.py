"""The command line as a user meets it: what it prints where, and how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from conftest import fold_counts
from vocabfold.interfaces.cli import main, options

COMMAND = [sys.executable, "-c", "from vocabfold.interfaces.cli.main import main; main()"]


@pytest.fixture
def vocabfold(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; return its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["vocabfold", *map(str, words)])
        before = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGHUP)}
        try:
            with pytest.raises(SystemExit) as ended:
                main.main()
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


@pytest.fixture
def rows(vocabfold):
    """Two days of clicks, in files."""
    for day, shift in (("monday", 0), ("tuesday", 1)):
        sites = [f"site-{(i * i + shift) % 7}" for i in range(200)]
        clicks = [(i * i + shift) % 7 * 31 % 11 > i % 8 for i in range(200)]
        table = pa.table(
            {"site": sites, "zip": [i % 5 for i in range(200)], "click": pa.array(clicks).cast("int8")}
        )
        pq.write_table(table, f"{day}.parquet")
    return ["monday.parquet", "tuesday.parquet"]


def ok(result):
    code, out, err = result
    assert (code, err if not err.startswith("note: not text") else "") == (0, "")
    return out


def bad(result):
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err.endswith((".\n", ")\n", "?\n"))
    return err.removeprefix("error: ").strip()


FOLD = ("--aim", "information", "--features", "site,zip", "--label", "click", "--budget", "5")


@pytest.mark.filterwarnings("default:.*seems to be what the codebook was fitted on")
def test_from_rows_to_ids(vocabfold, rows):
    out = ok(vocabfold("fit", *rows, *FOLD, "-o", "book"))
    assert out.splitlines()[0].split() == ["column", "values", "rates", "ids", "nats", "kept", "loss"]
    assert "5 of 5 ids used" in out
    book = vf.load("book")
    assert book.digest == fold_counts(vf.count(rows, "click", ["site", "zip"]), 5).digest
    assert f"digest {book.digest}" in out
    pq.write_table(pq.read_table(rows[0]).slice(1), "new.parquet")
    out = ok(vocabfold("transform", "book", "new.parquet", "-o", "ids.parquet", "--expect", book.digest))
    assert out.splitlines()[0] == "199 rows -> ids.parquet"
    assert pq.read_table("ids.parquet").equals(book.transform(pq.read_table("new.parquet")))
    code, _, err = vocabfold("transform", "book", "*day.parquet", "-o", "each/", "--only-ids", "--offset-ids")
    assert code == 0
    assert err == (
        "warning: monday.parquet and 1 more seems to be what the codebook was fitted on: its ids tell the "
        "labels of these rows, and a model that is trained on them trusts rare values too much; use 'vocabfold "
        "fit --train-out', or 'vocabfold transform --counts' with counts by fold, or fit on older rows.\n"
    )
    assert sorted(path.name for path in Path("each").iterdir()) == rows
    assert pq.read_table("each/tuesday.parquet").schema.names == ["site", "zip"]


def test_counts_are_kept_and_merged(vocabfold, rows):
    for path in rows:
        out = ok(vocabfold("count", path, "--label", "click", "-o", path.removesuffix(".parquet")))
        assert out.splitlines()[:2] == ["column  kind  values", "site    text       4"]
    out = ok(vocabfold("merge", "monday", "tuesday", "-o", "week"))
    assert "400 rows, " in out
    ok(vocabfold("fit", "week", "--budget", "3", "-o", "book"))
    ok(vocabfold("fit", "monday", "tuesday", "--budget", "3", "--label", "click", "-o", "again"))
    assert vf.load("book").digest == vf.load("again").digest == vf.fit(vf.count(rows, "click"), 3).digest


def test_training_rows_are_written_without_their_labels(vocabfold, rows):
    words = ["--label", "click", "--budget", "12", "--folds", "4", "--fold-seed", "3", "--tail", "3"]
    out = ok(
        vocabfold("fit", *rows, *words, "--private-min", "60", "-o", "book", "--train-out", "train.parquet")
    )
    assert "400 rows -> train.parquet, each without its own label\n" in out
    assert "values with at least 60 rows have ids of their own\n" in out
    assert "out of fold" in out.splitlines()[0]
    options = {"folds": 4, "fold_seed": 3, "tail": 3, "private_min": 60}
    book, written = vf.fit_transform(rows, "click", 12, out="again.parquet", **options)
    assert vf.load("book").digest == book.digest
    assert pq.read_table("train.parquet").equals(pq.read_table("again.parquet"))
    # The same from counts, in two steps.
    ok(vocabfold("count", *rows, "--label", "click", "--folds", "4", "--fold-seed", "3", "-o", "counts"))
    ok(
        vocabfold(
            "fit", "counts", *words[:4], "--tail", "3", "--private-min", "60", "--min-count", "1", "-o", "two"
        )
    )
    ok(vocabfold("transform", "two", *rows, "--counts", "counts", "-o", "two.parquet"))
    assert pq.read_table("two.parquet").equals(pq.read_table("train.parquet"))
    assert "monday.parquet is not what was counted" in bad(
        vocabfold("transform", "two", rows[0], "--counts", "counts", "-o", "one.parquet")
    )


def test_a_codebook_is_judged_by_other_rows(vocabfold, rows):
    ok(vocabfold("fit", rows[0], "--label", "click", "--budget", "9", "--features", "site,zip", "-o", "book"))
    code, out, err = vocabfold("evaluate", "book", rows[1])
    assert code == 0
    assert out.splitlines()[0].split()[:5] == ["column", "at", "fit", "here", "gain"]
    assert out.splitlines()[3].startswith("all ")
    assert "200 rows, " in out
    assert (
        "warning: column 'zip' has 5 values with a natural order; better give it to the model as it is.\n"
        in err
    )
    found = json.loads(vocabfold("evaluate", "book", rows[1], "--json")[1])
    judged = vf.load("book").evaluate(rows[1])
    assert found["gain"] == judged.gain
    assert found["columns"]["site"]["calibration"] == judged.calibration("site").to_pylist()
    assert found["warnings"] == list(judged.warnings)
    assert vocabfold("evaluate", "book", rows[1], "--fail-below", "-1")[0] == 0
    code, out, err = vocabfold("evaluate", "book", rows[1], "--fail-below", "0.9")
    assert (code, out.splitlines()[3][:4]) == (1, "all ")
    assert err.splitlines()[-1] == f"failed: the gain of {judged.gain:.4g} nats per row is below 0.9."
    assert found["passed"]
    code, _, err = vocabfold("evaluate", "book", rows[0], "--fail-below", "-9")
    assert (
        "warning: monday.parquet seems to be what the codebook was fitted on: evaluate it on other rows.\n"
        in err
    )
    failed = (
        "failed: these seem to be the rows that the codebook was fitted on, which tell nothing about others."
    )
    assert (code, err.splitlines()[-1]) == (1, failed)
    assert not json.loads(vocabfold("evaluate", "book", rows[1], "--json", "--fail-below", "9")[1])["passed"]
    ok(vocabfold("transform", "book", rows[1], "-o", "ids.parquet"))
    assert bad(vocabfold("evaluate", "book", "ids.parquet")) == (
        "column 'site' of ids.parquet holds ids already; give the rows as they were."
    )


def test_why_ids_are_left_over(vocabfold, rows):
    words = ["fit", *rows, "--label", "click", "-b", "40", "-o", "book", "--force"]
    out = ok(vocabfold(*words, "--private-min", "500"))
    assert "of 40 ids used (no value has 500 rows: --private-min)" in out
    assert "of 40 ids used (no other value has 50 rows: --min-count)" in ok(
        vocabfold(*words, "--min-count", "50")
    )
    assert "values with at least 50 rows have ids of their own" in ok(vocabfold(*words, "--min-count", "50"))


def test_names_of_columns_are_not_taken_for_options(vocabfold):
    pq.write_table(pa.table({"fold_column": ["a"], "min_count": ["b"], "y": [0]}), "in.parquet")
    text = bad(vocabfold("count", "in.parquet", "--label", "z", "-o", "c"))
    assert text == "column 'z' is not in in.parquet. Columns: fold_column, min_count, y."


def test_columns_that_nobody_named_are_listed(vocabfold, rows):
    note = "note: not text, so left as they are: zip (to fold them, name all --features)\n"
    for words in (["count"], ["fit", "--budget", "9"], ["fit", "--budget", "9", "--train-out", "t.csv"]):
        out = [words[0], rows[0], "--label", "click", *words[1:], "-o", f"out{len(words)}"]
        code, _, err = vocabfold(*out)
        assert (code, err) == (0, note)
        assert vocabfold(*out, "--force", "--features", "site,zip")[2] == ""


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
    with pytest.raises(
        vf.InputError, match="cannot be read as names with commas between them .* double quotes"
    ):
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
    options += ["--smoothing", "2.5", "--private-min", "7", "--tail", "5"]
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
        "private_min": 7,
        "private_from": None,
        "tail": 5,
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
    assert "of 6 ids used (the method made no more)" in out
    out = ok(vocabfold(*fit, "--budget", "60", "--unseen", "own"))
    assert "7 of 60 ids used (more would keep no more), 100 %" in out
    assert "method" not in out
    out = ok(vocabfold(*fit, "--budget", "3", "--method", "greedy"))
    assert re.search(r"kept, gap [\d.e-]+ \(1\.\d+ times the least loss\)", out)
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fold"], "No such command 'fold'."),
        (["fit"], "Missing argument 'DATA'."),
        (["fit", "monday.parquet", "-o", "b"], "Missing option '--budget' / '-b'."),
        (
            ["fit", "monday.parquet", "-b", "0", "-o", "b"],
            "--budget must be auto or a number of ids, at least 1, such as",
        ),
        (["fit", "monday.parquet", "-b", "-5", "-o", "b"], "--budget must be auto or"),
        (["fit", "monday.parquet", "-b", "ten", "-o", "b"], "--budget must be auto or"),
        (["fit", "monday.parquet", "-b", "1.5", "-o", "b"], "--budget must be auto or"),
        (
            ["fit", "monday.parquet", "-b", "auto", "--aim", "information", "--label", "click", "-o", "b"],
            "--budget auto is for --aim model; give a number of ids.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--smoothing", "x", "-o", "b"],
            "--smoothing must be 'auto' or a",
        ),
        (["fit", "monday.parquet", "-b", "9", "--min-count", "0", "-o", "b"], "--min-count must be at least 1"),
        (
            ["fit", "monday.parquet", "-b", "9", "--private-min", "0", "-o", "b"],
            "--private-min must be at least",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "--only-ids", "-o", "b"],
            "--only-ids is for the rows that --train-out writes; give it to 'vocabfold transform'.",
        ),
        (
            ["fit", "counts", "-b", "9", "--train-out", "t.parquet", "-o", "b"],
            "--train-out needs rows, and counts holds counts: give the rows, or use 'vocabfold transform --co",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "--train-out", "no/t.parquet", "-o", "b"],
            "there is no folder 'no' to write to",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "--train-out", "t.xls", "-o", "b"],
            "the format of t.xls cannot be told",
        ),
        (
            ["fit", "counts", "-b", "9", "--folds", "5", "-o", "b"],
            "--folds is for rows, and counts holds counts",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "magic", "-o", "b"],
            "method must be one of 'exact', 'dyn",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "divisive", "-o", "b"],
            "method 'divisive' has no joint allocation, as it does not tell what one more id is worth; give "
            "--allocation uniform or --allocation information.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "selection", "-o", "b"],
            "method 'selection' does not fold by rate, which --aim model does with rare values; give --aim "
            "information.",
        ),
        (
            ["fit", "monday.parquet", "-b", "auto", "--method", "greedy", "-o", "b"],
            "--budget auto is for --method exact; give that method, or a number of ids.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "hashing", "-o", "b"],
            "give --aim information and --allocation uniform.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--seed", "5", "-o", "b"],
            "--seed is for --method stochastic, not exact; leave it out.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "gredy", "-o", "b"],
            "'hashing', got 'gredy' (did you mean 'greedy'?).",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--epsilon", "1.5", "-o", "b"],
            "--epsilon must be a number below 1, and 1e-09 at least, got 1.5.",
        ),
        (["fit", "monday.parquet", "-b", "9", "-o", "b"], "--label is missing: name the column that holds it."),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "clik", "-o", "b"],
            "column 'clik' (did you mean 'click'?)",
        ),
        (
            ["fit", "sunday.parquet", "-b", "9", "--label", "click", "-o", "b"],
            "there is no file 'sunday.parquet'.",
        ),
        (["fit", "no*.parquet", "-b", "9", "--label", "click", "-o", "b"], "no file matches 'no*.parquet'."),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "-o", "no/b"],
            "there is no folder 'no' to write to",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "-o", "full"],
            "full exists; give another name, or --force to replace it.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "-o", "full", "--force"],
            "full holds 'x', so it is",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "-o", "tuesday.parquet"],
            "tuesday.parquet is a file",
        ),
        (
            ["fit", "counts", "monday.parquet", "-b", "9", "-o", "b"],
            "monday.parquet holds no counts, and others do",
        ),
        (
            ["fit", "counts", "-b", "9", "--weight", "w", "-o", "b"],
            "--weight is for rows, and counts holds counts",
        ),
        (
            ["fit", "counts", "-b", "9", "--label", "y", "-o", "b"],
            "counts was counted with the label 'click', not 'y'; leave --label out, or count again.",
        ),
        (["count", "monday.parquet", "--label", "zip", "-o", "c"], "label 'zip' has"),
        (["count", "monday.parquet", "--label", "click", "-o", "counts"], "counts exists; give another name"),
        (
            ["count", "monday.parquet", "--label", "click", "--memory", "lots", "-o", "c"],
            "--memory must be",
        ),
        (
            ["count", "monday.parquet", "--label", "click", "--folds", "x", "-o", "c"],
            "Invalid value for '--folds'",
        ),
        (["merge", "counts", "./counts/", "-o", "c"], "./counts/ is given twice; its rows would count twice."),
        (["merge", "monday.parquet", "-o", "c"], "monday.parquet is a file; a table of counts is a folder"),
        (
            ["transform", "counts", "monday.parquet", "-o", "i.parquet"],
            "counts holds a table of counts; give it to 'vocabfold fit'.",
        ),
        (["transform", "nothing", "monday.parquet", "-o", "i.parquet"], "there is no folder 'nothing'."),
        (["transform", "book", "monday.parquet", "-o", "i.txt"], "the format of i.txt cannot be told"),
        (["transform", "book", "monday.parquet", "-o", "no/i.parquet"], "there is no folder 'no' to write to"),
        (
            ["transform", "book", "monday.parquet", "-o", "tuesday.parquet"],
            "tuesday.parquet exists; give another",
        ),
        (
            ["transform", "book", "wrong.parquet", "-o", "i.parquet"],
            "column 'site' holds integer in wrong.parquet",
        ),
        (
            ["transform", "book", "monday.parquet", "-o", "i.parquet", "--expect", "0"],
            "the codebook has the digest",
        ),
        (
            ["inspect", "book", "--feature", "sight"],
            "column 'sight' (did you mean 'site'?) is not in the codebook.",
        ),
        (["inspect", "book", "--id", "3"], "--id needs a column: add --feature."),
        (
            ["inspect", "book", "--feature", "site", "--id", "3", "--missing"],
            "--id and --missing ask for different",
        ),
        (["inspect", "book", "--feature", "site", "--limit", "-1"], "--limit must be at least 1, got -1."),
        (["fit", "book", "--label", "y", "-b", "3", "-o", "b"], "book holds a codebook, not rows."),
        (["count", "counts", "--label", "y", "-o", "c"], "counts holds counts, not rows."),
        (
            ["transform", "monday.parquet", "book", "-o", "i.parquet"],
            "monday.parquet is a file; a codebook is a folder",
        ),
        (["inspect", "book", "--feature", "site", "--id", "99"], "column 'site' has the ids 0 to"),
        (["inspect", "damaged"], "is damaged or was changed by hand"),
    ],
)
def test_bad_usage_is_one_sentence_and_leaves_nothing_behind(vocabfold, rows, words, message):
    counts = vf.count(rows, "click")
    counts.save("counts")
    book = vf.fit(counts, 3)
    book.save("book")
    book.save("damaged")
    next(Path("damaged").glob("000-*")).write_bytes(b"x" * next(Path("damaged").glob("000-*")).stat().st_size)
    Path("full").mkdir()
    Path("full/x").touch()
    pq.write_table(pa.table({"site": [1, 2]}), "wrong.parquet")
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    assert message in bad(vocabfold(*words))
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before


def test_nothing_is_begun_if_the_result_cannot_be_written(vocabfold, rows, monkeypatch):
    vf.fit(vf.count(rows, "click"), 3).save("book")
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.R_OK)  # root may write anywhere
    monkeypatch.setattr(vf, "count", pytest.fail)
    message = "nothing can be written to '.'; check its permissions."
    assert bad(vocabfold("fit", *rows, "--label", "click", "-b", "3", "-o", "new")) == message
    assert bad(vocabfold("count", *rows, "--label", "click", "-o", "new")) == message
    assert bad(vocabfold("transform", "book", rows[0], "-o", "ids.parquet")) == message


def test_a_value_that_the_column_cannot_hold(vocabfold, rows):
    vf.fit(vf.count(rows, "click", "zip"), 3).save("book")
    message = bad(vocabfold("inspect", "book", "--feature", "zip", "--value", "x"))
    assert message == "column 'zip' holds integer values, and 'x' is none."


def test_a_column_of_which_nothing_is_known_is_pointed_out(vocabfold, rows):
    vf.fit(vf.count(rows, "click"), 3).save("book")
    Path("other.csv").write_text("site\nx\ny\n")
    code, out, err = vocabfold("transform", "book", "other.csv", "-o", "ids.csv")
    assert (code, err) == (0, "warning: no value of column 'site' is in the codebook; is it the same column?\n")
    assert "site                      2  100.00 %" in out


def test_results_are_replaced_if_forced(vocabfold, rows):
    for _ in range(2):
        ok(vocabfold("fit", rows[0], "--label", "click", "-b", "3", "-o", "book", "--force"))
        ok(vocabfold("transform", "book", rows[1], "-o", "ids.csv", "--force"))
    assert len(Path("ids.csv").read_text().splitlines()) == 201


def test_an_error_nobody_thought_of_is_one_line_too_unless_asked(vocabfold, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("lost")

    monkeypatch.setattr(vf, "load", broken)
    assert bad(vocabfold("inspect", "book")) == (
        "RuntimeError: lost (unexpected: 'vocabfold --debug ...' shows where)"
    )
    monkeypatch.setenv("VOCABFOLD_DEBUG", "1")
    code, _, err = vocabfold("inspect", "book")
    assert code == 2
    assert err.startswith("Traceback")


# With a process of its own


@pytest.mark.parametrize("words", [["inspect", "book"], ["--help"]])
def test_a_closed_pipe_ends_quietly(rows, tmp_path, words):
    vf.fit(vf.count(rows, "click"), 3).save("book")
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_run_that_shall_outlive_its_terminal_does():
    code = (
        "import signal, sys; from vocabfold.interfaces.cli.main import main\n"
        "sys.argv = ['vocabfold', '--version']\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "try:\n    main()\nfinally:\n    print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[1] == "True"


@pytest.mark.parametrize(
    ("verb", "sign"),
    [
        ("fit", signal.SIGINT),
        ("fit", signal.SIGTERM),
        ("transform", signal.SIGINT),
        ("transform", signal.SIGHUP),
    ],
)
def test_an_interrupted_run_leaves_no_temporary_files(rows, tmp_path, monkeypatch, sign, verb):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    vf.fit(vf.count(rows, "click"), 3).save("book")
    duckdb.sql("SELECT 'site-' || i % 7 || '-' || i AS site, i % 2 AS click FROM range(3_000_000) t(i)").to_csv(
        "large.csv"
    )
    words = {
        "fit": ["fit", "large.csv", "--label", "click", "-b", "9", "-o", "new"],
        "transform": ["transform", "book", "large.csv", "-o", "ids.csv"],
    }
    before = sorted(path.name for path in tmp_path.iterdir())

    def heed():  # whoever runs the tests with nohup has told its children to ignore SIGHUP
        signal.signal(sign, signal.SIG_DFL if sign != signal.SIGINT else signal.default_int_handler)

    with subprocess.Popen([*COMMAND, *words[verb]], stderr=subprocess.PIPE, preexec_fn=heed) as process:
        while not any(temporary.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(sign)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + sign, b"error: interrupted.\n")
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_compare_prints_draws_and_refuses(vocabfold, rows):
    asked = ["--budgets", "4", "--budgets", "0.006k", "--methods", "exact,hashing"]
    of_rows = [*rows, "--label", "click"]
    out = ok(vocabfold("compare", *of_rows, *asked, "--plot", "a.svg"))
    assert out.count("hashing  uniform") == 2
    assert "plot -> a.svg" in out
    assert "hashing, uniform" in Path("a.svg").read_text()
    ok(vocabfold("count", *of_rows, "-o", "counts"))
    found = json.loads(ok(vocabfold("compare", "counts", *asked, "--json")))
    assert [trial["budget"] for trial in found["trials"]] == [4, 4, 6, 6]
    assert found["trials"][0]["lost"] == found["trials"][0]["loss"] / found["total"]
    for words, message in [
        (
            ["counts", "--budgets", "4,x"],
            "--budgets must be numbers of ids, at least 1, with commas between them alone, such as 1000,160k",
        ),
        (
            ["counts", *asked, "--label", "no"],
            "counts was counted with the label 'click', not 'no'; leave --label out",
        ),
        (["counts", *asked, "--features", "site"], "--features is for rows, and counts holds counts"),
        (["counts", "absent", *asked], "there is no absent; counts holds counts: give folders of counts."),
        (["counts", *asked, "--plot", ""], "the name must end in .svg, .png or .pdf to be a plot."),
        (["counts", "--budgets", "4,,5"], "--budgets must be numbers of ids, at least 1, with commas between"),
        ([*of_rows, *asked, "--plot", "a.svg"], "a.svg exists; give another name, or --force"),
        (
            ["absent.csv", *asked, "--time-limit", "-1"],
            "--time-limit must be a number of seconds above 0, got -1",
        ),
        (["absent.csv", *asked, "--methods", "x"], "--methods must be one of"),
        (["absent.csv", "--budgets", "9" * 400], "--budgets must be numbers of ids"),
        (
            ["absent.csv", *asked, "--seed", "1"],
            "--seed is for --methods stochastic, not exact, hashing; leave it out",
        ),
        (["absent.csv", "--budgets", "9" * 20], "--budgets must be at most 4,611,686,018,427,387,904, got"),
        (
            ["counts", "--budgets", "4", "--methods", "threshold", "--shards", "40", "--plot", "b.svg"],
            "no method came to its end, so there is nothing to draw: b.svg was not written.",
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
    assert (code, err[:50]) == (0, "warning: column 'site' has values that are not in ")
    lines = said.splitlines()
    assert lines[0].startswith("4 values of 1 column became 2 ids, which gain ")
    assert lines[-2] == "plots -> plots"
    assert lines[-1] == "report -> r.html (open it in a browser)"
    again = vocabfold("report", "book", "-o", "r.html")
    assert again == (2, "", "error: r.html exists; give another name, or --force to replace it.\n")
    found = json.loads(ok(vocabfold("report", "book", "-o", "r.html", "--force", "--json")))
    assert (found["report"], found["about"]["size"], found["budgets"]) == ("r.html", 2, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--steps", "5"],
            "--steps is for other budgets, which need the counts: give these, too, or leave it out.",
        ),
        (["--counts", "counts", "--steps", "1000"], "--steps must be at most 200, got 1,000."),
        (["--label", "x"], "--label is for held-out rows; give these, too, or leave it out."),
        (["--drop-null-labels"], "--drop-null-labels is for held-out rows; give these, too, or leave it out."),
        (
            ["--counts", "other"],
            "these are not the counts that the codebook was fitted on; give those, or fit these.",
        ),
        (["-o", "r.txt"], "r.txt must end in .html to be a report."),
    ],
    ids=str,
)
def test_a_report_says_what_it_needs(vocabfold, rows, words, said):
    for name, day in (("counts", rows[0]), ("other", rows[1])):
        vf.count(day, "click", ["site"]).save(name)
    fold_counts(vf.load_counts("counts"), 3).save("book")
    assert vocabfold("report", "book", "-o", "r.html", *words) == (2, "", f"error: {said}\n")
