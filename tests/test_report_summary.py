"""Every number of a report, against the objects it comes from."""

import json
import math

import numpy as np
import pytest

import vocabfold as vf
from visits import FEATURES, HOSTILE, LABEL, visits
from vocabfold.report import contents
from vocabfold.report.contents import MISSING, shown
from vocabfold.report.summary import summarise

BIT = math.log(2)


def test_the_summary_is_plain(reported):
    assert json.loads(json.dumps(reported.summary, allow_nan=False)) == reported.summary


def test_what_i_got(reported):
    book = reported.book
    about = reported.summary["about"]
    for name in ("n_values", "n_pooled", "n_private", "n_rates", "size", "budget", "rows", "digest"):
        assert about[name] == getattr(book, name)
    for name in ("information", "total", "loss", "gain"):
        assert about[name] == pytest.approx(getattr(book, name) / BIT)
    assert about["kept"] == pytest.approx(book.information / book.total)
    assert (about["gap"], about["bound"], about["saved"]) == (None, None, None)
    assert about["rate"] == book.pos / 4000
    p = about["rate"]
    assert about["entropy"] == pytest.approx(-p * math.log2(p) - (1 - p) * math.log2(1 - p))
    assert about["n_tail"] == sum(len(column.tail) for column in book.columns.values())
    assert about["held_out"] == pytest.approx(book.evaluate(visits(2000, seed=1)).gain / BIT)
    assert about["settings"] == book.settings
    assert about["command"] == "vocabfold fit COUNTS --budget BUDGET -o BOOK"
    other = vf.fit(vf.count(visits(), LABEL, FEATURES), 30, aim="information", min_count=3, unseen="own")
    about = summarise(other)["about"]
    assert about["command"].endswith("--budget BUDGET --aim information --min-count 3 --unseen own -o BOOK")
    assert about["gap"] == 0
    assert about["bound"] == pytest.approx(other.bound / BIT)


def test_where_the_ids_go(reported):
    book = reported.book
    rows = visits()
    judged = book.evaluate(visits(2000, seed=1))
    for found, (name, column) in zip(reported.summary["columns"], book.columns.items(), strict=True):
        assert found["name"] == shown(name)
        for fact in ("kind", "n_values", "n_pooled", "n_rates", "n_private", "size", "other"):
            assert found[fact] == getattr(column, fact)
        for fact in ("information", "total", "loss", "gain"):
            assert found[fact] == pytest.approx(getattr(column, fact) / BIT)
        assert found["kept"] == pytest.approx(1 - column.loss / column.total)
        assert found["n_tail"] == len(column.tail)
        values = rows[name].to_pylist()
        n = {value: values.count(value) for value in set(values)}
        is_known = None in book[name]["value"].to_pylist() or not column.n_pooled
        assert found["missing"] == (pytest.approx(values.count(None) / 4000) if is_known else None)
        assert found["rare"] == pytest.approx(np.mean([n[value] < 30 for value in values]))
        assert found["expected_unseen"] == pytest.approx(judged[name].expected_unseen)
        assert found["unseen"] == judged[name].unseen
        assert found["held_out"] == pytest.approx(judged[name].gain / BIT)


def test_which_budget_is_enough(reported):
    counts = reported.counts
    found = reported.summary["budgets"]
    assert found["budget"][found["chosen"]] == 60
    assert found["by"] == "held_out"
    for i in (0, found["chosen"], len(found["budget"]) // 3):
        fitted = vf.fit(counts, found["budget"][i])
        judged = fitted.evaluate(visits(2000, seed=1))
        assert found["size"][i] == fitted.size
        assert found["information"][i] == pytest.approx(fitted.information / BIT)
        assert found["gain"][i] == pytest.approx(fitted.gain / BIT)
        assert found["held_out"][i] == pytest.approx(judged.gain / BIT)
        for column, name in zip(found["columns"], FEATURES, strict=True):
            assert column["size"][i] == fitted.sizes[name]
            assert column["n_private"][i] == fitted.columns[name].n_private
            assert column["information"][i] == pytest.approx(fitted.columns[name].information / BIT)
            assert column["gain"][i] == pytest.approx(fitted.columns[name].gain / BIT)
            assert column["held_out"][i] == pytest.approx(judged[name].gain / BIT)
    best = max(found["held_out"])
    assert found["held_out"][found["best"]] == best
    reached = [figure >= 0.99 * best for figure in found["held_out"]]
    assert found["enough"] == reached.index(True)
    for i, budget in enumerate(found["budget"]):
        for name, wanted in (("half", budget / 2), ("double", budget * 2)):
            if found[name][i] is not None:
                assert found["budget"][found[name][i]] == pytest.approx(wanted, rel=0.2, abs=1)
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
            if id in column.tail:
                borders = (0, *column.borders, 1)
                place = column.tail.index(id)
                assert (segments["from"][i], segments["to"][i]) == borders[place : place + 2]
                assert segments["role"][i] == "rates"
            else:
                assert segments["role"][i] == ("value" if members else "other")
                assert segments["from"][i] is None
        values = found["values"]
        assert values["of"] == len(values["text"]) == column.n_values
        assert sorted(values["text"]) == sorted(map(shown, entries))
        by_text = {shown(value): row for value, row in entries.items()}
        for text, id, place, n in zip(*(values[key] for key in ("text", "id", "segment", "rows")), strict=True):
            assert id == by_text[text]["id"] == ids[place]
            assert n == by_text[text]["neg"] + by_text[text]["pos"]


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


def test_can_i_trust_it(reported):
    book = reported.book
    trust, judged = reported.summary["trust"], book.evaluate(visits(2000, seed=1))
    assert (trust["rows"], trust["rate"], trust["is_fitted"]) == (2000, judged.rate, False)
    for name in ("kept", "out_of_fold", "gain"):
        assert trust[name] == pytest.approx(getattr(judged, name) / BIT)
    assert len(trust["warnings"]) == len(judged.warnings) > 0  # days have an order
    for found, column in zip(trust["columns"], judged.values(), strict=True):
        for fact in ("kept", "out_of_fold", "information", "gain", "error"):
            assert found[fact] == pytest.approx(getattr(column, fact) / BIT)
        for fact in ("unseen", "expected_unseen", "rare", "missing", "drift", "miscalibration", "n_off"):
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


def test_warnings_are_in_bits():
    book = vf.fit(vf.count(visits(), LABEL, ["user"]), 200, aim="information")
    shuffled = visits(2000, seed=5)
    shuffled = shuffled.set_column(3, LABEL, shuffled[LABEL].take(np.random.default_rng(0).permutation(2000)))
    found = book.evaluate(shuffled)
    (said,) = (text for text in found.warnings if "does not hold" in text)
    (in_bits,) = (
        text for text in summarise(book, held_out=found)["trust"]["warnings"] if "does not hold" in text
    )
    assert f"it told {found.kept:.2g} nats" in said
    assert f"it told {found.kept / BIT:.2g} bits" in in_bits
    fitted = book.evaluate(visits())
    assert (
        "seems to be what the codebook was fitted on"
        in summarise(book, held_out=fitted)["trust"]["warnings"][0]
    )


def test_how_it_compares(reported):
    compared = reported.compared
    found = reported.summary["comparison"]
    assert found["total"] == pytest.approx(compared.total / BIT)
    for trial, one in zip(found["trials"], compared, strict=True):
        assert [trial[name] for name in ("name", "budget", "size", "seconds")] == [
            *(one.name, one.budget, one.size, one.seconds)
        ]
        assert trial["loss"] == pytest.approx(one.loss / BIT)
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
    assert shown("x" * 61) == "x" * 59 + "…"
    assert "\\u202e" in shown(HOSTILE[3])
