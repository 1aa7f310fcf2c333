"""Every number of a report, against the objects it comes from."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from support.visits import FEATURES, HOSTILE, LABEL, visits
from vocabfold.evaluation.sweep import sweep
from vocabfold.report import contents
from vocabfold.report.contents import EMPTY, MISSING, shown
from vocabfold.report.findings import findings
from vocabfold.report.summary import summarise


def test_the_summary_is_plain(reported):
    assert json.loads(json.dumps(reported.summary, allow_nan=False)) == reported.summary


def test_what_i_got(reported):
    book = reported.book
    about = reported.summary["about"]
    for name in ("n_values", "n_rare", "n_dedicated", "n_rates", "size", "budget", "rows", "digest"):
        assert about[name] == getattr(book, name)
    for name in ("information", "total", "loss", "gain"):
        assert about[name] == pytest.approx(getattr(book, name))
    assert about["kept"] == pytest.approx(book.information / book.total)
    assert (about["gap"], about["bound"], about["saved"]) == (None, None, None)
    assert about["n_dedicated"] + about["n_shared"] <= about["size"]
    assert about["rate"] == book.pos / 4000
    p = about["rate"]
    assert about["entropy"] == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p))
    assert about["held_out"] == pytest.approx(book.evaluate(visits(2000, seed=1)).gain)
    assert about["settings"] == book.settings
    assert about["commands"]["fit"] == "vocabfold fit COUNTS --budget BUDGET -o BOOK"
    assert about["commands"]["count"].startswith(f"vocabfold count DATA --label '{LABEL}' --features '<b ")
    other = vf.fit(vf.count(visits(), LABEL, FEATURES), 30, aim="information", min_count=3, unseen="own")
    about = summarise(other)["about"]
    assert about["commands"]["fit"].endswith("BUDGET --aim information --min-count 3 --unseen own -o BOOK")
    assert not about["is_plain"]  # so that its gap is not that of the rows as they are
    assert about["gap"] == 0
    assert about["bound"] == pytest.approx(other.bound)


def test_where_the_ids_go(reported):
    book = reported.book
    rows = visits()
    judged = book.evaluate(visits(2000, seed=1))
    for found, (name, column) in zip(reported.summary["columns"], book.columns.items(), strict=True):
        assert found["name"] == shown(name)
        for fact in ("kind", "n_values", "n_rare", "n_rates", "n_dedicated", "size", "other"):
            assert found[fact] == getattr(column, fact)
        for fact in ("information", "total", "loss", "gain"):
            assert found[fact] == pytest.approx(getattr(column, fact))
        assert found["kept"] == pytest.approx(1 - column.loss / column.total)
        ids = set(book[name]["id"].to_pylist())
        assert found["n_shared"] == len(ids) - column.n_dedicated
        values = rows[name].to_pylist()
        n = {value: values.count(value) for value in set(values)}
        is_known = None in book[name]["value"].to_pylist() or not column.n_rare
        assert found["missing"] == (pytest.approx(values.count(None) / 4000) if is_known else None)
        assert found["infrequent"] == pytest.approx(np.mean([n[value] < 30 for value in values]))
        assert found["expected_unseen"] == pytest.approx(judged[name].expected_unseen)
        assert found["unseen"] == judged[name].unseen
        assert found["held_out"] == pytest.approx(judged[name].gain)


@pytest.mark.filterwarnings("ignore:budget=")
def test_which_budget_is_enough(reported):
    counts = reported.counts
    found = reported.summary["budgets"]
    assert found["budget"][found["chosen"]] == 60
    assert found["by"] == "held_out"
    for i in (0, found["chosen"], len(found["budget"]) // 3):
        fitted = vf.fit(counts, found["budget"][i])
        judged = fitted.evaluate(visits(2000, seed=1))
        assert found["size"][i] == fitted.size
        assert found["information"][i] == pytest.approx(fitted.information)
        assert found["gain"][i] == pytest.approx(fitted.gain)
        assert found["held_out"][i] == pytest.approx(judged.gain)
        for column, name in zip(found["columns"], FEATURES, strict=True):
            assert column["size"][i] == fitted.sizes[name]
            assert column["n_dedicated"][i] == fitted.columns[name].n_dedicated
            assert column["information"][i] == pytest.approx(fitted.columns[name].information)
            assert column["gain"][i] == pytest.approx(fitted.columns[name].gain)
            assert column["held_out"][i] == pytest.approx(judged[name].gain)
    for i, budget in enumerate(found["budget"]):
        around = [
            figure
            for other, figure in zip(found["budget"], found["held_out"], strict=True)
            if budget / 2**0.5 <= other <= budget * 2**0.5
        ]
        assert found["level"][i] == pytest.approx(np.median(around))
        for name, wanted in (("half", budget / 2), ("double", budget * 2)):
            if found[name][i] is not None:
                assert found["budget"][found[name][i]] == pytest.approx(wanted, rel=0.03, abs=1)
    best = max(found["level"])
    assert found["level"][found["best"]] == best
    assert found["tolerance"] >= 0.01 * best
    alike = [i for i, level in enumerate(found["level"]) if level >= best - found["tolerance"]]
    assert (found["enough"], found["last_alike"]) == (alike[0], alike[-1])
    assert found["half"][found["chosen"]] is not None
    assert found["half"][0] is None
    assert found["double"][-1] is None


def test_what_is_in_an_id(reported):
    book = reported.book
    rows = visits()
    for found, name in zip(reported.summary["ids"], FEATURES, strict=True):
        column, segments = book.columns[name], found["segments"]
        entries = {row["value"]: row for row in book[name].to_pylist()}
        at_fit = np.zeros((2, column.size))
        for value, label in zip(rows[name].to_pylist(), rows[LABEL].to_pylist(), strict=True):
            at_fit[label, entries[value]["id"] if value in entries else column.other] += 1
        ids = segments["id"]
        assert sorted(ids) == list(range(column.size))
        assert segments["rate"] == sorted(segments["rate"])
        assert segments["rate"] == pytest.approx([column.rates[id] for id in ids])
        assert segments["rows"] == at_fit.sum(axis=0)[ids].tolist()
        for i, id in enumerate(ids):
            members = book.members(name, id)
            assert segments["n_values"][i] == len(members)
            assert segments["examples"][i] == [shown(value, 40) for value in members[:3]]
            n, pos = at_fit[:, id].sum(), at_fit[1, id]
            assert segments["observed"][i] == (pytest.approx(pos / n) if n else None)
            assert segments["low"][i] <= (pos / n if n else 0.5) <= segments["high"][i]
            if id in column.shared:
                borders = (0, *column.borders, 1)
                place = column.shared.index(id)
                bounds = borders[place : place + 2] if column.borders else (None, None)
                assert (segments["from"][i], segments["to"][i]) == bounds
                assert segments["role"][i] == "rates"
            else:
                assert segments["role"][i] == ("value" if members else "other")
                assert segments["from"][i] is None
        values = found["values"]
        assert values["of"] == len(values["text"]) == column.n_values
        assert sorted(values["text"]) == sorted(map(shown, entries))
        by_text = {shown(value): row for value, row in entries.items()}
        keys = ("text", "id", "segment", "rows", "rate")
        for text, id, place, n, rate in zip(*(values[key] for key in keys), strict=True):
            entry = by_text[text]
            assert id == entry["id"] == ids[place]
            assert n == entry["neg"] + entry["pos"]
            assert rate == entry["pos"] / n
        special = [text for text in values["text"] if text in (MISSING, EMPTY)]
        assert [values["text"][i] for i in values["special"]] == special


def test_many_ids_and_values_are_aggregated(reported, monkeypatch):
    book = reported.book
    monkeypatch.setattr(contents, "MOST_SEGMENTS", 9)
    monkeypatch.setattr(contents, "MOST_VALUES", 12)
    found = contents.contents(book)
    assert sum(len(column.segments["id"]) for column in found.values()) <= 9
    for name, column in found.items():
        segments, size = column.segments, book.columns[name].size
        assert sum(segments["n_ids"]) == size
        assert sum(segments["rows"]) == pytest.approx(4000)
        assert sum(segments["n_values"]) == book.columns[name].n_values
        assert all(len(examples) <= 3 for examples in segments["examples"])
        assert max(column.values["segment"], default=0) < len(segments["id"])
        several = [i for i, n in enumerate(segments["n_ids"]) if n > 1]
        assert all(segments["role"][i] == "several" for i in several)
        assert several or size <= 3
    assert sum(len(column.values["text"]) for column in found.values()) == 12
    rows = found["user"].values["rows"]
    assert rows == sorted(rows, reverse=True)


def test_the_segment_of_other_is_found_where_ids_do_not_rise_with_the_rate(monkeypatch):
    monkeypatch.setattr(contents, "MOST_SEGMENTS", 5)
    values = np.arange(2000) % 40
    rows = pa.table({"site": [f"v{i}" for i in values], "click": (np.arange(2000) // 40) < values})
    book = vf.fit(vf.count(rows, "click"), 100, smoothing=500, unseen="own")
    column, found = book.columns["site"], contents.contents(book)["site"]
    assert list(column.rates) != sorted(column.rates)
    by_rate = np.argsort(column.rates, kind="stable")
    segments = np.repeat(np.arange(len(found.segments["n_ids"])), found.segments["n_ids"])
    assert found.other == segments[by_rate == column.other]
    assert 0 < found.other < 4


def test_can_i_trust_it(reported):
    book = reported.book
    trust, judged = reported.summary["trust"], book.evaluate(visits(2000, seed=1))
    assert (trust["rows"], trust["rate"], trust["is_fitted"]) == (2000, judged.rate, False)
    for name in ("kept", "out_of_fold", "gain"):
        assert trust[name] == pytest.approx(getattr(judged, name))
    assert len(trust["warnings"]) == len(judged.warnings) > 0  # days have an order
    for found, column in zip(trust["columns"], judged.values(), strict=True):
        for fact in ("kept", "out_of_fold", "information", "gain", "error"):
            assert found[fact] == pytest.approx(getattr(column, fact))
        for fact in ("unseen", "expected_unseen", "infrequent", "missing", "drift", "miscalibration"):
            assert found[fact] == getattr(column, fact)
        bins = found["calibration"]
        ids = column.ids.to_pylist()
        assert sum(bins["rows"]) == pytest.approx(2000)
        assert sum(bins["n_ids"]) == sum(row["rows"] > 0 for row in ids)
        positive = sum(row["rows"] * row["rate"] for row in ids if row["rows"])
        assert np.dot(bins["rows"], bins["rate"]) == pytest.approx(positive)
        expected = sum(row["rows"] * row["rate_at_fit"] for row in ids)
        assert np.dot(bins["rows"], bins["rate_at_fit"]) == pytest.approx(expected)
        assert bins["rate_at_fit"] == sorted(bins["rate_at_fit"])
        assert all(
            low <= rate <= high for low, rate, high in zip(bins["low"], bins["rate"], bins["high"], strict=True)
        )
    assert sum(trust["calibration"]["rows"]) == pytest.approx(6000)


def test_warnings_are_those_of_the_evaluation():
    book = vf.fit(vf.count(visits(), LABEL, ["user"]), 200, aim="information")
    shuffled = visits(2000, seed=5)
    shuffled = shuffled.set_column(3, LABEL, shuffled[LABEL].take(np.random.default_rng(0).permutation(2000)))
    found = book.evaluate(shuffled)
    (said,) = (text for text in found.warnings if "did not generalise" in text)
    assert f"train MI {found.kept:.2g} nats/row at fit" in said
    assert summarise(book, held_out=found)["trust"]["warnings"] == list(found.warnings)
    few = summarise(book, held_out=book.evaluate(visits(5, seed=3)))["trust"]["warnings"]
    assert few[-1] == "5 held-out rows cannot show whether the codebook generalises. Give some thousands."
    fitted = book.evaluate(visits())
    assert summarise(book, held_out=fitted)["about"]["held_out"] is None  # it would be optimistic
    assert "cannot show whether it generalises" in findings(summarise(book, held_out=fitted))["trust"]
    assert "looks like the training data" in summarise(book, held_out=fitted)["trust"]["warnings"][0]


def test_how_it_compares(reported):
    compared = reported.compared
    found = reported.summary["comparison"]
    assert found["total"] == pytest.approx(compared.total)
    for trial, one in zip(found["trials"], compared, strict=True):
        assert [trial[name] for name in ("name", "budget", "size", "seconds")] == [
            *(one.name, one.budget, one.size, one.seconds)
        ]
        assert trial["loss"] == pytest.approx(one.loss)
        assert trial["lost"] == compared.lost(one)


def test_what_is_not_given_is_not_there(reported):
    book = reported.book
    found = summarise(book)
    assert [found[name] for name in ("budgets", "trust", "comparison")] == [None] * 3
    assert found["about"]["held_out"] is None
    assert found["columns"][0]["unseen"] is None


def test_values_are_shown_in_one_line_and_cut():
    for value in HOSTILE:
        text = shown(value)
        assert len(text) <= 60
        assert text.isprintable()
    assert shown(None) == MISSING
    assert shown("x" * 60) == "x" * 60
    assert shown("x" * 61) == "x" * 40 + "…" + "x" * 19
    assert shown("http://example.org/" + "a/" * 90 + "end") != shown("http://example.org/" + "a/" * 90 + "END")
    assert shown("") == EMPTY
    assert shown("\x00" * 50) == r"\x00" * 10 + "…" + (r"\x00" * 50)[-19:]
    assert "\\u202e" in shown(HOSTILE[3])


def test_the_codebook_is_among_what_it_is_compared_with(reported):
    own = reported.summary["comparison"]["own"]
    assert own["lost"] == pytest.approx(reported.book.loss / reported.book.total)
    assert (own["budget"], own["size"]) == (60, reported.book.size)


@pytest.mark.parametrize(
    ("method", "role"), [("frequency", "rest"), ("selection", "rest"), ("hashing", "hash")]
)
def test_methods_by_value_have_no_intervals(method, role):
    counts = vf.count(visits(), LABEL, ["user"])
    book = vf.fit(counts, 20, aim="information", method=method, allocation="uniform")
    (ids,) = summarise(book)["ids"]
    assert role in ids["segments"]["role"]
    assert "rates" not in ids["segments"]["role"]
    assert set(ids["segments"]["from"]) == {None}


def test_columns_whose_names_are_cut_alike_are_told_apart():
    rows = visits()
    names = [f"{'a' * 80}{i}{'b' * 80}" for i in range(2)]
    book = vf.fit(
        vf.count(pa.table({name: rows["user"] for name in names} | {"label": rows[LABEL]}), "label"), 30
    )
    found = [column["name"] for column in summarise(book)["columns"]]
    assert found[1] == f"{found[0]} (2)"


def test_an_id_that_others_have_joined_is_no_dedicated_one():
    wheels = ["steel"] * 40 + ["alloy"] * 70 + ["wire", "rare", "special"] * 4
    rows = pa.table({"wheel": wheels, "click": [i % 3 % 2 for i in range(122)]})
    counts = vf.count(rows, "click", folds=2)
    book = vf.fit(counts, 9, min_count=1, unseen="own")
    roles = summarise(book, sweep(book, counts))["ids"][0]["segments"]["role"]
    assert sorted(roles) == ["joined", "value"]


@pytest.mark.filterwarnings("ignore:budget=")
@pytest.mark.parametrize("unseen", ["other", "own"])
@pytest.mark.parametrize("budget", [2, 3, "auto"])
def test_few_ids_have_no_half(budget, unseen):
    rows = pa.table({"id": [f"v{i % 300}" for i in range(600)], "label": [i % 3 == 0 for i in range(600)]})
    counts = vf.count(rows.set_column(1, "label", rows["label"].cast("int8")), "label", folds=2)
    book = vf.fit(counts, budget, unseen=unseen)  # all values are rare
    found = summarise(book, sweep(book, counts))
    budgets = found["budgets"]
    for i, size in enumerate(budgets["budget"]):
        assert budgets["half"][i] is None or budgets["budget"][budgets["half"][i]] < size
        assert budgets["double"][i] is None or budgets["budget"][budgets["double"][i]] > size
    assert budgets["is_auto"] == (budget == "auto")
    assert findings(found)


@pytest.mark.parametrize(
    ("gain", "expected", "said"),
    [
        *((0.2, -0.1, "test gain is 0.2 nats/row"), (0.0, 0.0, "test gain is 0 nats/row")),
        *((0.1, 0.2, "50.0 % of the CV gain generalises"), (-0.1, 0.2, "0 % of the CV gain")),
        (0.3, 0.2, "The test gain exceeds the CV gain: 0.3 against 0.2 nats/row"),
    ],
)
def test_the_expected_gain_may_be_nothing(reported, gain, expected, said):
    trust = reported.summary["trust"] | {"gain": gain, "out_of_fold": expected}
    assert said in findings(reported.summary | {"trust": trust})["trust"]
