"""Every method on the same counts: the figures are those of the folds, and a time limit stops what is slow."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support import reference
from support.builders import fold_counts
from support.masses import EXACT, beta_counts, tables
from vocabfold.evaluation import trials
from vocabfold.evaluation.chart import specification
from vocabfold.evaluation.comparison import Comparison, Trial
from vocabfold.evaluation.time_limit import stoppable
from vocabfold.evaluation.trials import Column, Task
from vocabfold.folding.allocation import Tuning
from vocabfold.folding.methods import BY_VALUE, METHODS, NOT_JOINT
from vocabfold.folding.solve import baselines
from vocabfold.support import notes

COLUMNS = {"a": beta_counts(60, 1, rows=50), "b": beta_counts(40, 2, a=9, b=20), "c": ([3, 8, 8], [4, 1, 2])}


@pytest.mark.parametrize("allocation", ["joint", "uniform", "information"])
@pytest.mark.parametrize("method", METHODS)
def test_the_figures_are_those_of_the_fold(method, allocation):
    if allocation == "joint" and method in NOT_JOINT:
        return
    for trial in vf.compare(COLUMNS, [3, 11, 40, 500], method, allocations=allocation):
        table = vf.fold_table(COLUMNS, trial.budget, method=method, allocation=allocation)
        assert (trial.size, trial.note) == (table.size, "")
        assert trial.loss == pytest.approx(table.loss, rel=1e-12, abs=1e-16)
        assert trial.information == pytest.approx(table.information, abs=EXACT)
        assert trial.gap == pytest.approx(table.gap, rel=1e-9, abs=1e-14)
        assert 0 <= trial.seconds < 60


@pytest.mark.parametrize("method", ["exact", "greedy", "stochastic", "threshold"])
@settings(max_examples=25)
@given(table=tables(max_values=6), budget=st.integers(1, 7))
def test_unmerged_values_are_cut_apart_and_the_best_is_the_same(method, table, budget):
    neg, pos = map(np.array, table)
    if reference.total(neg, pos) == 0:
        return
    (apart,) = vf.compare({"a": table}, budget, method, merge=False)
    n_values = int(np.count_nonzero(neg + pos))
    if method != "threshold":  # which makes no cut that gains nothing
        assert apart.size == min(budget, n_values)  # and not only the distinct rates
    best = reference.best_of_all(neg, pos, budget)
    assert apart.information + apart.gap == pytest.approx(max(best, apart.information), abs=1e-13)
    if method == "exact":
        assert apart.gap <= EXACT


def test_counts_of_rows_and_bare_counts_are_compared_alike():
    rows = pa.table({"site": [f"s{i * i % 31}" for i in range(900)], "zip": [str(i % 77) for i in range(900)]})
    rows = rows.append_column("click", pa.array([int(i * i % 31 > i % 40) for i in range(900)]))
    monday, tuesday = vf.count(rows[:500], "click"), vf.count(rows[500:], "click")
    counts = monday + tuesday
    bare = {name: [counts[name][side].to_numpy() for side in ("neg", "pos")] for name in counts.features}
    methods = [
        method for method in METHODS if method not in BY_VALUE
    ]  # which depend on the order of the values
    of_rows, of_bare = (vf.compare(given, [5, 20], methods) for given in (counts, bare))
    assert (of_rows.n_columns, of_rows.n_values) == (2, 31 - 15 + 77) == (of_bare.n_columns, of_bare.n_values)
    for one, other in zip(of_rows, of_bare, strict=True):
        assert (one.name, one.budget, one.size) == (other.name, other.budget, other.size)
        assert one.loss == pytest.approx(other.loss, rel=1e-12, abs=1e-16)
        book = fold_counts(counts, one.budget, method=one.method, allocation=one.allocation)
        assert one.loss == pytest.approx(book.loss, rel=1e-12, abs=1e-16)


def test_values_of_equal_rows_are_chosen_without_a_look_at_their_labels():
    rng = np.random.default_rng(0)
    rows = pa.table({"site": [str(i // 3) for i in range(9_000)], "click": rng.integers(0, 2, 9_000)})
    found = vf.compare(vf.count(rows, "click"), [300, 1_500], ["frequency", "selection"])
    by_rows, by_information = found[::2], found[1::2]
    for trial in by_rows:  # as many ids as values, all alike: the share kept is that of the ids
        assert found.lost(trial) == pytest.approx(1 - trial.budget / 3_000, abs=0.03)
    assert all(one.loss < other.loss for one, other in zip(by_information, by_rows, strict=True))


def test_what_divisive_rarely_needs_is_compiled_before_it_is_timed(monkeypatch):
    calls, splits = [], baselines._splits
    monkeypatch.setattr(baselines, "_splits", lambda *parts: calls.append(parts) or splits(*parts))
    trials._compile.cache_clear()
    vf.compare(COLUMNS, 3, "divisive")
    assert calls


def test_weights_are_compared_in_rows():
    rows = pa.table(
        {"site": ["a", "b", "c"] * 20, "click": [0, 1, 1, 0, 0, 1] * 10, "w": [0.25, 1.5, 2.0] * 20}
    )
    counts = vf.count(rows, "click", ["site"], weight="w")
    (trial,) = vf.compare(counts, 2, "exact")
    assert trial.loss == pytest.approx(fold_counts(counts, 2).loss, rel=1e-9)


def test_what_is_tried_and_in_which_order():
    found = vf.compare(COLUMNS, [10, 5, 10], ["hashing", "exact"])
    assert [(trial.name, trial.budget) for trial in found] == [
        ("hashing, uniform", 10),
        ("exact", 10),
        ("hashing, uniform", 5),
        ("exact", 5),
    ]
    both = vf.compare(COLUMNS, 10, ["hashing", "exact"], allocations=iter(["joint", "uniform"]))
    assert [trial.name for trial in both] == ["hashing, uniform", "exact", "exact, uniform"]
    assert len(vf.compare(COLUMNS, 10)) == len(METHODS) - 1
    of_joint = vf.compare(COLUMNS, 10, allocations="joint")
    assert {trial.method for trial in of_joint} == set(METHODS) - {"dynamic", *NOT_JOINT}
    assert [trial.method for trial in found[1:3]] == ["exact", "hashing"]


def test_it_prints_as_a_table_and_is_one():
    found = vf.compare(COLUMNS, [10, 500], ["exact", "frequency"])
    head, heads, first, *_ = repr(found).splitlines()
    assert head.startswith("Comparison(3 columns, 103 values, 0.")
    assert heads.split() == [
        "budget",
        "method",
        "allocation",
        "ids",
        "lost",
        "×",
        "optimum",
        "gap",
        "seconds",
    ]
    assert first.split()[:4] == ["10", "exact", "joint", "10"]
    assert first.split()[5:7] == ["1.000", "0"]
    assert found._repr_html_().count("<tr>") == 5
    table = found.to_arrow()
    assert table["lost"].to_pylist() == [trial.loss / found.total for trial in found]
    lossless = vf.compare({"a": ([1, 2, 4, 1], [1, 2, 4, 3])}, 2, ["exact", "frequency"])
    assert [lossless.times_optimum(trial) for trial in lossless] == [1.0, math.inf]
    assert table.schema.field("size").type == pa.int64()


def test_tiny_losses_are_told_apart_and_rounding_is_not():
    def trial(loss, gap):
        return Trial("stochastic", "joint", 9, 9, 1.7 - loss, loss, gap, 0.1, "")

    trials = (trial(1.2e-15, 9e-16), trial(1e-7, 3e-17), trial(5e-18, 1e-18), trial(0.0, 0.0))
    found = Comparison(trials, 1, 100, 1.7)
    assert [found.times_optimum(trial) for trial in trials] == [pytest.approx(4.0), 1.0, 1.0, 1.0]


def test_a_method_that_cannot_be_run_says_why():
    columns = {"a": beta_counts(70_000)}
    found = vf.compare(columns, 20_000, ["dynamic", "threshold"], shards=30_000)
    assert [trial.loss for trial in found] == [None, None]
    assert "'dynamic' needs a table of 20,000 sizes" in found[0].note
    assert found[1].note.startswith("shards must be fewer")
    assert "'dynamic' needs" in repr(found)
    assert "note" in found._repr_html_()
    assert math.isnan(found.lost(found[0]))
    assert found.to_arrow()["loss"].null_count == found.to_arrow()["lost"].null_count == 2


def test_what_a_method_warns_of_is_in_its_note():
    (trial,) = vf.compare({"a": beta_counts(50)}, 20, "threshold", shards=10)
    assert "10 shards are more than epsilon x ids" in trial.note
    assert trial.loss > 0


def test_what_other_threads_warn_of_meanwhile_is_no_note():
    with notes.taking() as taken, ThreadPoolExecutor(1) as pool:
        notes.warn("mine")
        with pytest.warns(UserWarning, match="^theirs$"):
            pool.submit(notes.warn, "theirs").result()
    assert taken == ["mine"]


@pytest.mark.jit
def test_a_time_limit_stops_what_is_slow_and_nothing_else():
    columns = {"a": beta_counts(20_000)}
    begin = time.monotonic()
    found = vf.compare(columns, [5_000, 16], ["exact", "dynamic", "greedy"], time_limit=4)
    assert time.monotonic() - begin < 60
    notes = {(trial.method, trial.budget): trial.note for trial in found}
    assert notes.pop(("dynamic", 5_000)) == "not finished within 4 s."
    assert set(notes.values()) == {""}
    free = vf.compare(columns, [5_000, 16], ["exact", "greedy"])
    limited = [trial for trial in found if trial.method != "dynamic"]
    assert [trial.loss for trial in limited] == [trial.loss for trial in free]


def test_a_process_that_ends_is_reported_and_started_anew():
    column = Column(*map(np.array, ([5, 1, 3], [1, 5, 3])))
    tasks = [Task("exact", "joint", 2), Task("exact", "joint", 3)]
    with stoppable([column], tasks, merge=True, tuning=Tuning(), seconds=60) as runner:
        assert runner.run(tasks[0]).size == 2
        runner.process.kill()
        runner.process.wait()
        assert runner.run(tasks[0]).note == (
            "the process ended with exit code -9: perhaps it ran out of memory."
        )
        assert runner.run(tasks[1]).size == 3
        process = runner.process
    assert process.returncode is not None


def test_whoever_interrupts_leaves_no_process_and_no_clock(monkeypatch):
    column = Column(*map(np.array, ([5, 1, 3], [1, 5, 3])))
    task = Task("exact", "joint", 2)
    begun = []

    def interrupted():
        with stoppable([column], [task], merge=True, tuning=Tuning(), seconds=600) as runner:
            runner.run(task)
            begun.append(runner.process)
            monkeypatch.setattr(runner, "_line", interrupt)
            runner.run(task)

    def interrupt(process):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert begun[0].returncode is not None
    begin = time.monotonic()
    while clocks() and time.monotonic() - begin < 10:
        time.sleep(0.01)
    assert not clocks()


def clocks():
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_the_process_imports_nothing_from_the_folder_it_runs_in_and_other_imports_may_print(
    tmp_path, monkeypatch
):
    (tmp_path / "json.py").write_text("raise SystemExit('mine')")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("print('hello\\n\\nthere', flush=True)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "site")
    options = {"seed": np.int64(1), "epsilon": np.float32(0.5), "shards": np.int8(1), "merge": np.bool_(True)}
    (trial,) = vf.compare(COLUMNS, np.int32(5), "exact", time_limit=1e300, **options)
    assert trial.loss == vf.fold_table(COLUMNS, 5).loss


def test_a_process_that_nobody_stops_ends_by_itself():
    begin = "from vocabfold.evaluation.time_limit import _end_after; _end_after(0.2);"
    words = f"{begin} sum(range(10**12))"  # no Python runs
    ended = subprocess.run([sys.executable, "-c", words], timeout=60, check=False)
    assert ended.returncode == -signal.SIGALRM


def test_a_process_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/python")
    with pytest.raises(vf.VocabfoldError, match="did not start; leave time_limit out"):
        vf.compare(COLUMNS, 5, "exact", time_limit=60)


@pytest.mark.parametrize("method", ["exact", "hashing"])
def test_only_the_method_has_to_keep_the_time_limit(method):
    events = []
    tried = trials.Trials([Column(*beta_counts(50))], merge=True, tuning=Tuning())
    tried._least = lambda budget: events.append("proved") or 0.0
    tried.run(Task(method, "uniform", 5), when_folded=lambda: events.append("folded"))
    assert events == ["folded", "proved"]
    (late,) = vf.compare(COLUMNS, 5, method, time_limit=1e-6)
    assert late.note == "not finished within 1e-06 s."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budgets": 2}, r"budgets must be at least 3 \(one id per column\), got 2\."),
        ({"budgets": []}, "budgets must not be empty"),
        ({"budgets": "many"}, "budgets must be a whole number, got 'many'"),
        ({"budgets": 5, "methods": []}, "methods must not be empty"),
        ({"budgets": 5, "allocations": ()}, "allocations must not be empty"),
        ({"budgets": 5, "methods": ["exact", "greddy"]}, "methods must be one of .*did you mean 'greedy'"),
        ({"budgets": 5, "allocations": "even"}, "allocations must be one of 'joint', 'uniform', 'information'"),
        ({"budgets": 5, "methods": "hashing", "allocations": "joint"}, "allocations must include 'uniform' or"),
        ({"budgets": 5, "time_limit": 0}, "time_limit must be a number of seconds above 0, got 0"),
        ({"budgets": 5, "time_limit": True}, "time_limit must be a number"),
        ({"budgets": 5, "epsilon": 2}, "epsilon must be a number, at least 1e-09 and below 1"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(vf.InputError, match=message):
        vf.compare(COLUMNS, **options)


def test_counts_without_information_are_refused():
    with pytest.raises(vf.InputError, match="no column has any information about the label"):
        vf.compare({"a": ([1, 2], [0, 0])}, 1)
    with pytest.raises(vf.InputError, match=r"counts must come from vf\.count .*, got str"):
        vf.compare("rows.parquet", 1)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_plot_is_the_same_for_the_same_figures(suffix, tmp_path):
    found = vf.compare(COLUMNS, [5, 20, 500], ["exact", "bucketing", "frequency"])
    first, again = (tmp_path / f"{name}.{suffix}" for name in ("a", "b"))
    for path in (first, again):
        found.plot(path)
    assert first.read_bytes() == again.read_bytes()
    assert sorted(os.listdir(tmp_path)) == [f"a.{suffix}", f"b.{suffix}"]
    with pytest.raises(vf.InputError, match="exists; give another name, or use overwrite=True"):
        found.plot(first)
    found.plot(first, overwrite=True)


def test_a_plot_says_what_it_shows(tmp_path):
    found = vf.compare(COLUMNS, [5, 500], ["exact", "bucketing", "frequency"])
    found.plot(tmp_path / "a.svg")
    texts = texts_of(tmp_path / "a.svg")
    for words in (
        "exact",
        "bucketing, uniform",
        "share of information lost",
        "seconds",
        "budget (ids in total)",
    ):
        assert words in texts
    assert f"103 values in 3 columns, {found.total:.4g} nats per row" in texts
    with pytest.raises(vf.InputError, match="there is nothing to plot"):
        vf.compare(COLUMNS, 5, "threshold", shards=100).plot(tmp_path / "b.svg")
    with pytest.raises(vf.InputError, match=r"must end in \.svg"):
        found.plot("")
    stopped = vf.compare(COLUMNS, 5, ["exact", "threshold"], shards=100)
    stopped.plot(tmp_path / "d.svg")
    assert "threshold: no figures" in texts_of(tmp_path / "d.svg")
    lossless = vf.compare({"a": ([1, 2], [2, 1])}, 2, "exact")
    lossless.plot(tmp_path / "c.svg")
    with pytest.raises(vf.InputError, match=r"a\.gif must end in \.svg, \.png or \.pdf"):
        found.plot(tmp_path / "a.gif")
    with pytest.raises(vf.InputError, match="there is no folder"):
        found.plot(tmp_path / "no" / "a.svg")


def test_a_plot_is_legible_without_colours(tmp_path):
    found = vf.compare(COLUMNS, [5, 500], allocations=["joint", "uniform", "information"])
    names = list(dict.fromkeys(trial.name for trial in found))
    looks = looks_of(specification(found)["hconcat"][0])
    assert list(looks) == names
    filled = {name: look["fill"] == look["stroke"] or look["fill"] for name, look in looks.items()}
    assert len({(look["shape"], filled[name]) for name, look in looks.items()}) == len(names)
    uniform = [name for name in names if name.endswith(", uniform")]
    assert {looks[name]["fill"] for name in uniform} == {"transparent"}
    assert looks["exact"]["stroke"] == looks["exact, uniform"]["stroke"] != looks["greedy"]["stroke"]
    assert looks["exact"]["shape"] == looks["exact, uniform"]["shape"] != looks["greedy"]["shape"]
    found.plot(tmp_path / "a.svg")
    dashes = {line.get("stroke-dasharray") for line in drawn_in(tmp_path / "a.svg", "mark-line")}
    assert len(dashes) == 3
    shapes = {path.get("d") for path in drawn_in(tmp_path / "a.svg", "role-legend-symbol")}
    assert len(shapes) == len({trial.method for trial in found})


def looks_of(panel):
    """Return how the points of each name are drawn: outline, filling, shape."""
    points = panel["layer"][-1]["layer"][-1]["encoding"]
    scales = {channel: points[channel]["scale"] for channel in ("stroke", "fill", "shape")}
    looks = zip(*(scale["range"] for scale in scales.values()), strict=True)
    return {
        name: dict(zip(scales, look, strict=True))
        for name, look in zip(scales["shape"]["domain"], looks, strict=True)
    }


def test_what_loses_nothing_is_drawn_at_the_bottom_on_a_line_called_0(tmp_path):
    found = vf.compare({"a": ([9, 2, 5, 1], [1, 2, 4, 3])}, [2, 3, 4], "exact")
    assert [trial.loss == 0 for trial in found] == [False, False, True]
    losses, times = specification(found)["hconcat"]
    line, methods = losses["layer"]
    axis = methods["encoding"]["y"]
    zero, *decades = axis["axis"]["values"]
    assert line["mark"]["type"] == "rule"
    assert zero == line["encoding"]["y"]["datum"] == axis["scale"]["domain"][0]
    shares = {row["budget"]: row["height"] for row in methods["layer"][-1]["data"]["values"]}
    assert shares == {trial.budget: found.lost(trial) or zero for trial in found}
    assert zero < min(decades) <= min(share for share in shares.values() if share != zero)
    assert len(times["layer"]) == 1
    found.plot(tmp_path / "a.svg")
    assert texts_of(tmp_path / "a.svg").count("0") == 1
    (drawn,) = drawn_in(tmp_path / "a.svg", "mark-rule role-mark", "line")
    assert abs(float(drawn.get("x2"))) == losses["width"]


def test_budgets_and_figures_are_plain_numbers(tmp_path):
    trials = [Trial("exact", "joint", budget, 9, 1.0, loss, 0.0, 0.5, "") for budget, loss in FAR_APART]
    found = Comparison(tuple(trials), 1, 12_345, 1.5)
    found.plot(tmp_path / "a.svg")
    texts = texts_of(tmp_path / "a.svg")
    assert {"9", "1,000", "160,000", "1", "0.01", "0.0001", "1e-6", "1e-8", "0.2"} <= set(texts)
    assert "12,345 values in 1 column, 1.5 nats per row" in texts


SVG = "{http://www.w3.org/2000/svg}"
FAR_APART = ((9, 1.5), (1_000, 0.3), (160_000, 2.1e-9))


@pytest.mark.parametrize(
    ("loss", "seconds"), [(5e-324, 0.0), (1e308, 1e300), (0.0, 0.0), (0.5, 5e-324), (0.5, None)]
)
def test_figures_of_any_size_are_drawn(loss, seconds, tmp_path):
    (tmp_path / "a.svg").write_text("")
    trial = Trial("exact", "joint", 2**62, 9, 1.0, loss, 0.0, seconds, "")
    Comparison((trial,), 1, 2, 0.7).plot(tmp_path / "a.svg", overwrite=True)
    assert any(text.startswith("exact") for text in texts_of(tmp_path / "a.svg"))


@pytest.mark.parametrize(
    "name", ["</text><script>alert(1)</script>", "a\ud800\u202eb", "x" * 10**5, "&amp;\x00"]
)
def test_hostile_names_are_text(name, tmp_path):
    trials = [Trial(name, "no such", budget, 9, 1.0, 0.1, 0.0, 0.5, "") for budget in (2, 9)]
    Comparison(tuple(trials), 1, 2, 0.7).plot(tmp_path / "a.svg")
    shown = f"{name}, no such"[:60].encode("unicode_escape").decode()
    assert any(shown.startswith(text.rstrip("…")) for text in texts_of(tmp_path / "a.svg") if len(text) > 15)
    assert "<script" not in (tmp_path / "a.svg").read_text("utf-8")


def texts_of(path):
    """Return the texts of a picture."""
    return [text.text for text in ElementTree.parse(path).iter(f"{SVG}text")]


def drawn_in(path, kind, what="path"):
    """Return what is drawn in the groups of a kind."""
    groups = [group for group in ElementTree.parse(path).iter(f"{SVG}g") if kind in group.get("class", "")]
    return [drawn for group in groups for drawn in group.iter(f"{SVG}{what}")]


def test_a_plot_without_the_library_that_draws_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    found = vf.compare(COLUMNS, 5, "exact")
    with pytest.raises(
        vf.MissingDependency, match=r"a plot needs vl-convert-python: pip install jinja2 vl-convert-python"
    ):
        found.plot(tmp_path / "a.svg")
