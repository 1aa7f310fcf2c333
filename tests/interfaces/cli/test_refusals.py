"""The command line where something is wrong: one sentence, nothing left behind."""

import os
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
from support.terminal import COMMAND, bad, ok


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
            ["fit", "monday.parquet", "-b", "9", "--dedicated-min", "0", "-o", "b"],
            "--dedicated-min must be at least",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "--only-ids", "-o", "b"],
            "--only-ids applies to the rows that --train-out writes; use it with 'vocabfold transform'.",
        ),
        (
            ["fit", "counts", "-b", "9", "--train-out", "t.parquet", "-o", "b"],
            "--train-out needs rows, but counts holds counts: give the rows, or run 'vocabfold transform --co",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "--train-out", "no/t.parquet", "-o", "b"],
            "there is no folder 'no' to write to",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--label", "click", "--train-out", "t.xls", "-o", "b"],
            "cannot tell the format of t.xls",
        ),
        (
            ["fit", "counts", "-b", "9", "--folds", "5", "-o", "b"],
            "--folds applies to rows, but counts holds counts",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "magic", "-o", "b"],
            "method must be one of 'exact', 'dyn",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "divisive", "-o", "b"],
            "method 'divisive' has no joint allocation, because it does not rank cuts or values by gain. Give "
            "--allocation uniform or --allocation information.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "selection", "-o", "b"],
            "method 'selection' does not fold by rate, as --aim model does with infrequent values; give "
            "--aim information.",
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
            "--seed applies to --method stochastic, not to exact; leave it out.",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--method", "gredy", "-o", "b"],
            "'hashing', got 'gredy' (did you mean 'greedy'?).",
        ),
        (
            ["fit", "monday.parquet", "-b", "9", "--epsilon", "1.5", "-o", "b"],
            "--epsilon must be a number, at least 1e-09 and below 1, got 1.5.",
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
            "full exists; give another name, or use --force to replace it.",
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
            "monday.parquet holds no counts, but other folders do",
        ),
        (
            ["fit", "counts", "-b", "9", "--weight", "w", "-o", "b"],
            "--weight applies to rows, but counts holds counts",
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
        (["transform", "book", "monday.parquet", "-o", "i.txt"], "cannot tell the format of i.txt"),
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
    assert message == "column 'zip' has integer values, and 'x' is not one."


def test_a_column_of_which_nothing_is_known_is_pointed_out(vocabfold, rows):
    vf.fit(vf.count(rows, "click"), 3).save("book")
    Path("other.csv").write_text("site\nx\ny\n")
    code, out, err = vocabfold("transform", "book", "other.csv", "-o", "ids.csv")
    assert (code, err) == (
        0,
        "warning: no value of column 'site' is in the codebook. Check that it is the same column.\n",
    )
    assert "site              2  100.00 %" in out


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


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Write a file that takes seconds to read."""
    path = tmp_path_factory.mktemp("large") / "large.csv"
    text = "SELECT 'site-' || i % 7 || '-' || i AS site, i % 2 AS click FROM range(3_000_000) t(i)"
    duckdb.sql(text).to_csv(str(path))
    return path


@pytest.mark.parametrize(
    ("verb", "sign"),
    [
        ("fit", signal.SIGINT),
        pytest.param("fit", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("transform", signal.SIGINT, marks=pytest.mark.slow),
        ("transform", signal.SIGHUP),
    ],
)
def test_an_interrupted_run_leaves_no_temporary_files(rows, large, tmp_path, monkeypatch, sign, verb):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    vf.fit(vf.count(rows, "click"), 3).save("book")
    words = {
        "fit": ["fit", large, "--label", "click", "-b", "9", "-o", "new"],
        "transform": ["transform", "book", large, "-o", "ids.csv"],
    }
    before = sorted(path.name for path in tmp_path.iterdir())

    def heed():  # whoever runs the tests with nohup has told its children to ignore SIGHUP
        signal.signal(sign, signal.SIG_DFL if sign != signal.SIGINT else signal.default_int_handler)

    with subprocess.Popen([*COMMAND, *words[verb]], stderr=subprocess.PIPE, preexec_fn=heed) as process:
        while not any(temporary.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.05)
        process.send_signal(sign)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + sign, b"error: interrupted.\n")
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == before
