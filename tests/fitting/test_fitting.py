import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample
from support.masses import EXACT, information
from support.reference import count_rows, shrunk


def count(rows):
    return vf.count(arrow(rows), "click", FEATURES)


def rate(neg, pos):
    return pos / (neg + pos)


@pytest.mark.parametrize("method", ["exact", "dynamic"])
@pytest.mark.parametrize("allocation", ["joint", "uniform", "information"])
def test_a_codebook_keeps_what_the_fold_of_its_counts_keeps(method, allocation):
    rows = sample(400)
    book = fold_counts(count(rows), 12, method=method, allocation=allocation)
    columns = {name: list(zip(*count_rows(rows, name, "click").values(), strict=True)) for name in FEATURES}
    table = vf.fold_table(columns, 12, method=method, allocation=allocation)
    assert book.sizes == table.sizes
    assert book.size == sum(book.sizes.values()) == 12
    for what in ("information", "total", "loss", "bound", "gap"):
        assert getattr(book, what) == pytest.approx(getattr(table, what), abs=EXACT)
    for name in FEATURES:
        assert book.columns[name].n_values == len(columns[name][0])
        assert book.columns[name].information == pytest.approx(table[name].information, abs=EXACT)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40).filter(
        lambda rows: len({label for _, label in rows}) == 2
    ),
    st.integers(2, 6),
    st.sampled_from([1, 2, 3, 50]),
    st.sampled_from(["other", "own", "error"]),
)
def test_what_a_codebook_says_is_true_of_its_values(rows, budget, min_count, unseen):
    table = pa.table({"x": [value for value, _ in rows], "y": [label for _, label in rows]})
    book = fold_counts(vf.count(table, "y", "x"), budget, min_count=min_count, unseen=unseen)
    column = book.columns["x"]
    counts = {
        value: sides
        for (_, value), sides in count_rows(table.to_pylist(), "x", "y", positive=True).items()
        if sum(sides) >= min_count
    }
    entries = book["x"].to_pylist()
    assert [entry["value"] for entry in entries] == sorted(counts)
    assert [[entry["neg"], entry["pos"]] for entry in entries] == [counts[value] for value in sorted(counts)]
    assert column.size <= budget
    assert column.n_values == len(counts)
    assert column.n_values + column.n_rare == len({value for value, _ in rows})

    # Every row has an id, those of rare values by way of `other`; what the ids keep follows by definition.
    id_of = {entry["value"]: entry["id"] for entry in entries}
    groups = np.zeros((column.size, 2), int)
    for value, label in rows:
        groups[id_of.get(value, column.other), int(label)] += 1
    assert column.information == pytest.approx(information(groups.tolist()), abs=EXACT)
    values = list(count_rows(table.to_pylist(), "x", "y", positive=True).values())
    assert column.total == pytest.approx(information(values), abs=EXACT)
    assert column.loss == pytest.approx(column.total - column.information, abs=EXACT)

    # Ids are numbered by rate; the borders part the rates of neighbouring ids.
    own = unseen == "own"
    has_rows = [id for id in range(column.size - own) if groups[id].any()]
    rates = [rate(*groups[id]) for id in has_rows]
    assert rates == sorted(rates)
    for entry in entries:
        above = sum(border <= rate(entry["neg"], entry["pos"]) for border in column.borders)
        assert above == entry["id"]
    if own:
        assert column.other == column.size - 1
    elif not any(sum(sides) < min_count for sides in values):
        overall = rate(*groups.sum(axis=0))
        assert column.other == sum(border <= overall for border in column.borders)

    if unseen == "error":
        with pytest.raises(
            vf.InputError, match=r"^column 'x': the value 99 is not in the codebook, which was fitted with"
        ):
            book.ids("x", [99])
    else:
        assert book.ids("x", [99, None]).tolist() == [column.other] * 2
    assert book.ids("x", list(id_of)).tolist() == list(id_of.values())


def test_masses_beyond_2_to_the_53_are_rounded_and_fitted():
    values = list("abcdef")
    weights = [2.0**31 * (1 + i) + 0.5 for i in range(12)]
    table = pa.table({"x": values * 2, "y": [0] * 6 + [1] * 6, "w": weights})
    book = fold_counts(vf.count(table, "y", weight="w"), 3)
    fold = vf.fold([int(w) for w in weights[:6]], [int(w) for w in weights[6:]], 3)
    assert book.information == pytest.approx(fold.information, rel=1e-9)
    assert book["x"]["neg"].to_pylist() == weights[:6]


def rows_of_weights(counts):
    """Return counts that take weights for rows, as those of format 1 do: so there are more than 2**52 units."""
    return replace(counts, neg_rows=None, pos_rows=None)


@pytest.mark.parametrize("smoothing", [0, 3.5])
def test_values_that_rounding_makes_nothing_of_have_the_id_of_their_rate(smoothing):
    giants = {"g": (6, 4), "h": (5, 5), "i": (4, 6)}
    units = {value: (neg << 56, pos << 56) for value, (neg, pos) in giants.items()}
    units |= {"r": (0, 1), "s": (2, 4), "t": (7, 0)}  # of 2**52 units, they would be a thousandth each
    values = [(value, label, pair[label] / 2**20) for value, pair in units.items() for label in (0, 1)]
    table = pa.table(dict(zip("xyw", map(list, zip(*values, strict=True)), strict=True)))
    counts = rows_of_weights(vf.count(table, "y", weight="w"))
    column = (book := fold_counts(counts, 3, smoothing=smoothing)).columns["x"]
    prior = column.mean, column.strength
    rates = [shrunk(neg / 2**20, pos / 2**20, *prior) for neg, pos in units.values()]
    assert list(column.borders) == sorted(column.borders)
    assert book.ids("x", list(units)).tolist() == np.searchsorted(column.borders, rates, side="right").tolist()
    assert column.size == 3 <= column.n_rates


@pytest.mark.parametrize("options", [{"smoothing": 0}, {"smoothing": 3.5}, {"budget": "auto", "smoothing": 2}])
def test_a_tail_of_which_rounding_leaves_one_class_is_one_id(options):
    rows = [("g", 0, 2.0**40), ("g", 1, 2.0**38), ("r", 0, 5.0), ("r", 1, 1.0), ("s", 0, 3.0), ("s", 1, 1.0)]
    values, labels, weights = map(list, zip(*rows, strict=True))
    weights[2:] = [weight / 2**20 for weight in weights[2:]]
    counts = vf.count(pa.table({"x": values, "y": labels, "w": weights}), "y", weight="w")
    book = vf.fit(rows_of_weights(counts), **{"budget": 4, "min_count": 1} | options)
    assert len(set(book.ids("x", ["r", "s"]))) == 1
    assert book.columns["x"].size == 2


@pytest.mark.parametrize("option", ["budget", "shared_ids", "dedicated_min", "min_count"])
def test_absurdly_large_options_are_as_large_ones(option):
    rng = np.random.default_rng(0)
    table = pa.table({"x": [f"v{i % 30}" for i in range(900)], "y": rng.integers(0, 2, 900)})
    counts = vf.count(table, "y", ["x"])
    digests = {
        vf.fit(counts, **{"budget": 20, "min_count": 1, option: number}).digest
        for number in (10**6, 2**62, 2**63, 10**400)
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 4}, r"^budget must be at least 5 \(one id per column\), got 4\.$"),
        (
            {"budget": 9, "unseen": "own"},
            r"^budget must be at least 10 \(two ids per column with unseen='own'\), got",
        ),
        ({"budget": 2.5}, r"^budget must be a whole number, got 2\.5\.$"),
        ({"budget": "auto"}, r"^budget='auto' is for aim='model'; give a number of ids\.$"),
        ({"budget": "many"}, r"^budget must be a number of ids, or 'auto', got 'many'\.$"),
        ({"budget": 0}, r"^budget must be at least 1, got 0\.$"),
        ({"smoothing": "some"}, r"^smoothing must be 'auto' or a number of rows, 0 or more, got 'some'\.$"),
        ({"smoothing": -1}, r"^smoothing must be .* got -1\.$"),
        ({"smoothing": 10**400}, r"^smoothing must be 'auto' or a number of rows, 0 or more, got 10000"),
        ({"smoothing": math.nan}, r"^smoothing must be .* got nan\.$"),
        ({"smoothing": True}, r"^smoothing must be .* got True\.$"),
        ({"dedicated_min": 0}, r"^dedicated_min must be at least 1, got 0\.$"),
        ({"shared_ids": 0}, r"^shared_ids must be at least 1, got 0\.$"),
        ({"aim": "fame"}, r"^aim must be one of 'model', 'information', got 'fame'\.$"),
        ({"method": "magic"}, r"^method must be one of 'exact', 'dynamic', .*'hashing', got 'magic'\.$"),
        ({"allocation": "x"}, r"^allocation must be one of"),
        ({"unseen": "x"}, r"^unseen must be one of 'other', 'own', 'error', got 'x'\.$"),
        ({"min_count": 0}, r"^min_count must be at least 1, got 0\.$"),
    ],
)
def test_options_that_cannot_be_used(options, message):
    with pytest.raises(vf.InputError, match=message):
        fold_counts(count(sample()), **{"budget": 20} | options)


def test_only_counts_are_fitted():
    with pytest.raises(
        vf.InputError,
        match=r"^counts must come from vf\.count or vf\.load_counts, got list; for rows, use",
    ):
        fold_counts([1], 3)


@pytest.mark.parametrize(("unseen", "least"), [("other", 2), ("own", 4), ("error", 2)])
@pytest.mark.parametrize("aim", ["model", "information"])
def test_a_budget_that_keeps_nothing_is_warned_of(unseen, least, aim):
    rows = {"site": ["a", "b", "a", "c"] * 9, "zip": ["0", "1", "0", "1"] * 9, "click": [1, 0, 1, 1] * 9}
    counts = vf.count(pa.table(rows), "click")
    said = f"^budget={least} is one id for all values of a column, which keeps nothing of what they tell"
    with pytest.warns(vf.VocabfoldWarning, match=said):
        book = vf.fit(counts, least, aim=aim, unseen=unseen, min_count=1)
    assert book.information == pytest.approx(0, abs=1e-12)
    assert vf.fit(counts, least + 9, aim=aim, unseen=unseen, min_count=1).information > 0.1


def test_a_column_with_one_value_needs_one_id():
    counts = vf.count(pa.table({"site": ["a", "a"], "click": [0, 1]}), "click")
    assert vf.fit(counts, 1).size == 1
