"""What is said at fit: each line has its cause, comes once, and does not come without it."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from vocabfold.fitting.advice import is_date


def table(n=4000, **columns):
    """Return rows with a column of signal, and others."""
    rng = np.random.default_rng(0)
    sites = rng.integers(0, 20, n)
    label = (rng.random(n) < 0.1 + 0.04 * sites).astype(int)
    made = {name: column(rng, label) for name, column in columns.items()}
    return pa.table({"site": [f"s{site}" for site in sites], **made, "click": label})


def said_of(rows, budget=40, **options):
    """Return what is advised when training rows are made, and the codebook."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        book, _ = vf.fit_transform(rows, "click", budget, **options)
    return [str(one.message) for one in caught if one.category is vf.AdviceWarning], book


def test_nothing_is_said_of_a_good_column():
    assert said_of(table())[0] == []


def test_a_copy_of_the_label():
    rows = table(copy=lambda rng, label: np.where(label, "yes", "no"))
    text = (
        "column 'copy' leaks the label: out of fold, its ids explain 100 % of the label's entropy. Drop it "
        "unless it is known before the label."
    )
    assert said_of(rows)[0] == [text]
    with pytest.warns(vf.AdviceWarning, match="^column 'copy' leaks the label: its ids explain 100 % of the"):
        vf.fit(vf.count(rows, "click"), 40)


def test_a_nearly_unique_column_is_named_once():
    rows = table(user=lambda rng, label: [f"u{i}" for i in range(label.size)])
    text = (
        "column 'user' is nearly unique (4,000 values in 4,000 rows), so it can only memorise the training "
        "labels. Drop it."
    )
    assert said_of(rows)[0] == [text]
    counts = vf.count(rows, "click")
    for options in ({}, {"min_count": 1}, {"aim": "information"}):  # no rate of a single row is a leak
        with pytest.warns(vf.AdviceWarning) as caught:
            vf.fit(counts, 40, **options)
        assert [str(one.message) for one in caught] == [text]


def test_a_column_without_gain_may_be_left_out():
    noise = {name: lambda rng, label: rng.integers(0, 50, label.size).astype(str) for name in ("a", "b")}
    found, book = said_of(table(**noise), 200)
    idle = [name for name, column in book.columns.items() if column.gain <= 0]
    assert idle == ["a", "b"]
    ids = book.columns["a"].size + book.columns["b"].size
    assert found == [f"columns 'a', 'b' have no cross-validated gain ({ids} ids): they may be left out."]


def test_dates_as_text():
    def days(rng, label):
        return np.datetime_as_string(np.datetime64("2024-02-01") + rng.integers(0, 60, label.size))

    found, book = said_of(table(day=days), 200)
    n_dedicated = book.columns["day"].n_dedicated
    assert n_dedicated >= 50
    assert found == [
        f"column 'day' holds dates as text, and {n_dedicated} ids went to a date each, which later rows will "
        "not have. Leave it out, or give its parts, such as the weekday."
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("2024-02-29", "2024-02-29 12:30:00", "20240229", "29.2.2024", "2/29/2024")),
        *((text, False) for text in ("2024-02-30", "70240229", "12345678", "2024", "a", "", "1.2.3", "10:30")),
    ],
)
def test_what_is_a_date(text, expected):
    assert is_date(text) == expected


def test_a_budget_that_cannot_be_spent():
    rows = table(word=lambda rng, label: rng.integers(0, 2000, label.size).astype(str))
    found, book = said_of(rows, 1000)
    assert book.size < 500
    assert found[0] == (
        f"the budget of 1,000 ids cannot be spent: only {book.size} ids are used, as no other value has 30 "
        "rows. Lower dedicated_min, or give a smaller budget."
    )
    assert not any("budget" in text for text in said_of(rows, 1000, dedicated_min=1)[0])
    assert said_of(table(), 1000)[0] == []  # all of its values have an id


def test_values_tied_in_rows_do_not_fit():
    rows = pa.table(
        {"site": [f"s{i % 300}" for i in range(12_000)], "click": [i % 7 % 2 for i in range(12_000)]}
    )
    found, book = said_of(rows, 250)
    assert (book.size, book.n_dedicated) == (1, 0)
    assert found[0] == (
        "the budget of 250 ids cannot be spent: only 1 id is used, as the next values, tied in rows, do not "
        "all fit. Give more ids, or a smaller budget."
    )


def test_no_column_has_a_gain():
    rng = np.random.default_rng(0)
    rows = pa.table({"site": rng.integers(0, 30, 4000).astype(str), "click": rng.integers(0, 2, 4000)})
    assert said_of(rows)[0] == [
        "no column has a cross-validated gain: their values say nothing about the labels of other rows."
    ]


def test_few_ids_say_nothing_of_their_values():
    rows = table(
        good=lambda rng, label: np.char.add("g", (label * 3 + rng.integers(0, 7, label.size)).astype(str))
    )
    found, book = said_of(rows, 3)
    assert book.gain < 0  # though both columns tell much
    assert not any("gain" in text for text in found)


def test_few_rows_show_nothing():
    rows = table(90, user=lambda rng, label: [f"u{i}" for i in range(label.size)])
    assert said_of(rows, 20)[0] == []
