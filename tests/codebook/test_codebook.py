import dataclasses
import datetime
import hashlib
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample, write_csv
from vocabfold.codebook.matching import check_same


@pytest.fixture(scope="module")
def book():
    return fold_counts(vf.count(arrow(sample()), "click", FEATURES), 14)


@pytest.fixture(scope="module")
def loaded(book, tmp_path_factory):
    path = tmp_path_factory.mktemp("books") / "book"
    book.save(path)
    return vf.load(path)


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != "provenance.json"}


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """Two codebooks of one column, fitted with unseen='error': as it is, and as it was read back."""
    values = list("aaaaabbbbcccdde")
    rows = pa.table({"letter": values, "n": range(15), "click": [value in "bd" for value in values]})
    book = fold_counts(vf.count(rows, "click", ["letter"]), 2, unseen="error")
    path = tmp_path_factory.mktemp("letters") / "book"
    book.save(path)
    return rows, [book, vf.load(path)]


def test_what_a_codebook_tells(letters):
    rows, books = letters
    for book in books:
        assert (book.budget, book.size, book.sizes, book.features) == (2, 2, {"letter": 2}, ("letter",))
        assert (book.rows, book.offsets) == (15, {"letter": 0})
        assert book.ids("letter", list("dcba")).tolist() == [1, 0, 1, 0]
        assert book.row({"letter": "b"}) == {"letter": 1}
        copy = pickle.loads(pickle.dumps(book))
        assert copy.indexes == {}
        assert list(book.indexes) == ["letter"]
        assert copy.row({"letter": "b"}) == {"letter": 1}
        with pytest.raises(dataclasses.FrozenInstanceError):
            book.label = "y"
    assert len(set(books)) == 2  # each is itself, whatever it holds
    automatic = vf.fit(vf.count(rows, "click", ["letter"]), "auto")
    assert automatic.budget == automatic.size


@pytest.mark.filterwarnings("ignore:budget=")
def test_members_and_groups_are_as_many_as_asked(letters):
    _, (_, book) = letters
    assert book.members("letter", 0) == ["a", "c", "e"]
    assert book.members("letter", 1, limit=1) == ["b"]
    assert book.members("letter", 1, limit=0) == []
    assert book.groups("letter")["examples"].to_pylist() == [["a", "c", "e"], ["b", "d"]]
    assert book.groups("letter", 2)["examples"].to_pylist() == [["a", "c"], ["b", "d"]]
    assert book.groups("letter", 0)["n_values"].to_pylist() == [3, 2]
    for id, said in ((2, "^column 'letter' has the ids 0 to 1, got 2"), (-1, "^id must be at least 0, got -1")):
        with pytest.raises(vf.InputError, match=said):
            book.members("letter", id)
    with pytest.raises(vf.InputError, match="^limit must be at least 0, got -1"):
        book.members("letter", 0, limit=-1)
    with pytest.raises(vf.InputError, match="^examples must be at least 0, got -1"):
        book.groups("letter", -1)
    four = fold_counts(vf.count(pa.table({"v": list("wxyz"), "click": [0, 1] * 2}), "click"), 1)
    assert len(four.groups("v")["examples"][0]) == 3


def test_what_was_never_seen_is_refused_if_told_so(letters):
    for book in letters[1]:
        for look_up in (lambda b: b.ids("letter", ["a", "x", "y"]), lambda b: b.row({"letter": "x"})):
            with pytest.raises(
                vf.InputError, match=r"^column 'letter': the value 'x' is not in the codebook, "
            ):
                look_up(book)


def test_what_is_not_told_stays_as_it_is(letters, loaded, tmp_path):
    rows, (book, _) = letters
    strangers = rows.slice(0, 3)
    for _ in range(2):  # what exists is replaced
        loaded.transform(arrow(sample(5, seed=3)), out=tmp_path / "ids.parquet")
    assert pq.read_schema(tmp_path / "ids.parquet").names == [*FEATURES, "click"]
    found = loaded.transform(arrow(sample(5, seed=3)))
    assert found["day"].to_pylist() == loaded.ids("day", [row["day"] for row in sample(5, seed=3)]).tolist()
    unlabelled = strangers.set_column(2, "click", pa.array([True, False, None]))
    with pytest.raises(vf.InputError, match="^label 'click' .*missing"):
        book.evaluate(unlabelled)
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(vf.InputError, match="report.html exists"):
        book.report(tmp_path / "report.html")
    with pytest.raises(vf.InputError, match=r"nowhere\.json"):
        book.report(tmp_path / "new.html", compare=tmp_path / "nowhere.json")


def test_rows_are_known_by_any_part_that_has_rows(letters):
    book = dataclasses.replace(letters[1][0], fingerprints=(("15 abc", "0 abc", "abc"), ("7 def",)))
    assert book.knows(("15 abc",))
    assert book.knows(("1 xyz", "7 def"))
    assert not book.knows(("15 xyz",))
    assert not book.knows(("0 abc",))
    assert not book.knows(("abc",))
    assert not book.knows(())


def test_a_codebook_survives_a_round_trip(book, loaded):
    assert loaded.digest == book.digest
    assert repr(loaded) == repr(book)
    assert loaded._repr_html_() == book._repr_html_()
    assert loaded.columns == book.columns
    assert loaded.settings == book.settings
    assert (loaded.rows, loaded.label, loaded.positive) == (60, "click", "1")
    assert loaded.sources == ("the Arrow Table",)
    for name in FEATURES:
        assert loaded[name].equals(book[name])
        for id in range(book.sizes[name]):
            assert loaded.members(name, id) == book.members(name, id)


def test_offsets_place_all_ids_in_one_range(book):
    ids = [book.offsets[name] + id for name in FEATURES for id in range(book.sizes[name])]
    assert ids == list(range(book.size))
    assert list(book) == FEATURES
    assert len(book) == 5
    assert "site" in book


def test_members_are_all_values_of_an_id_most_rows_first(book):
    for name in FEATURES:
        entries = book[name].to_pylist()
        for id in range(book.sizes[name]):
            expected = [entry for entry in entries if entry["id"] == id]
            expected.sort(key=lambda entry: -entry["neg"] - entry["pos"])
            members = book.members(name, id)
            assert members == [entry["value"] for entry in expected]
            assert book.members(name, id, limit=1) == members[:1]
            assert book.members(name, id, limit=10**400) == members


def test_every_value_is_found_alone_and_together(book, loaded):
    for b in (book, loaded):
        for name in FEATURES:
            table = b[name]
            values, ids = table["value"].to_pylist(), table["id"].to_pylist()
            assert b.ids(name, values).tolist() == ids
            assert b.ids(name, values).dtype == np.int32
            assert b.ids(name, table["value"]).tolist() == ids
            assert b.ids(name, pl.Series(table["value"])).tolist() == ids
            for value, id in zip(values, ids, strict=True):
                row = {feature: None for feature in FEATURES} | {name: value}
                assert b.row(row)[name] == id


UNSEEN = {"site": "zz", "number": 5, "real": 0.25, "flag": None, "day": datetime.date(2030, 1, 1)}


def test_what_was_never_seen_is_other(book, loaded):
    for b in (book, loaded):
        for name in ("site", "number", "real", "day"):
            assert b.ids(name, [UNSEEN[name]]).tolist() == [b.columns[name].other]
            assert b.row(UNSEEN)[name] == b.columns[name].other
        assert b.ids("site", []).tolist() == []
        assert b.row(UNSEEN | {"site": "\ud800"}) == b.row(UNSEEN)
        assert b.row(UNSEEN | {"number": 5.0}) == b.row(UNSEEN)  # found by another way than its neighbours


@pytest.mark.parametrize(
    ("name", "values", "same"),
    [
        ("number", np.array([1, 7], np.int8), [1, 7]),
        ("number", np.array([1, 7], np.uint64), [1, 7]),
        ("number", [1.0, 7.0], [1, 7]),
        ("number", [1.5, np.nan, None], [5, None, None]),
        ("number", np.array([2**64 - 3], np.uint64), [5]),  # as int64 that is -3, which is there
        ("number", [1e30, -np.inf], [5, 5]),
        ("number", pd.Series([1, None], dtype="Int64"), [1, None]),
        ("real", [1, 0], [1.0, 0.0]),
        ("real", np.array([0.5, -0.0], np.float32), [0.5, 0.0]),
        ("real", [2**53 + 1], [0.25]),
        ("flag", np.array([True, False]), [True, False]),
        ("site", pd.Categorical(["a", None]), ["a", None]),
        ("site", pd.Series(["a", np.nan]), ["a", None]),
        ("site", np.array(["a", "b"]), ["a", "b"]),
        ("site", pa.chunked_array([["a"], ["b"]]), ["a", "b"]),
        ("site", pa.array(["a"], pa.large_string()), ["a"]),
        ("site", [None], [None]),
        ("day", pd.Series([datetime.date(1901, 1, 2)]), [datetime.date(1901, 1, 2)]),
    ],
)
def test_numbers_are_found_by_value_whatever_their_type(loaded, name, values, same):
    assert loaded.ids(name, values).tolist() == loaded.ids(name, same).tolist()


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        (
            "site",
            [1],
            r"^column 'site' holds text values, got int64; values of different types never match, so",
        ),
        ("number", ["1"], r"^column 'number' holds integer values, got string"),
        ("number", [True], r"^column 'number' holds integer values, got bool"),
        ("flag", [1], r"^column 'flag' holds boolean values, got int64"),
        ("site", "a", r"^column 'site': values must be a list or array of text values, got 'a'\.$"),
        ("site", 7, r"^column 'site': values must be a list or array of text values, got 7\.$"),
        ("site", pd.DataFrame({"a": ["x"]}), r"^column 'site': values must be a list or array of text values"),
        ("site", {"a": 1}, r"^column 'site': values must be a list or array of text values, got \{'a': 1\}\.$"),
        ("site", ["a", 1], r"^column 'site': values must be a list or array of text values, got \['a', 1\]\.$"),
        (
            "sites",
            ["a"],
            r"^column 'sites' \(did you mean 'site'\?\) is not in the codebook\. Columns: site, number",
        ),
    ],
)
def test_values_of_another_kind_are_refused(loaded, name, values, message):
    with pytest.raises(vf.InputError, match=message):
        loaded.ids(name, values)


def test_rows_and_ids_that_cannot_be_used(loaded):
    with pytest.raises(
        vf.InputError, match=r"^the row lacks the column 'real'; give None where a value is missing"
    ):
        loaded.row({"site": "a", "number": 1})
    with pytest.raises(vf.InputError, match=r"^row must map columns to values, such as a dict, got list\.$"):
        loaded.row(["a"])
    with pytest.raises(vf.InputError, match=r"^column 'site' holds text values, got int64"):
        loaded.row(UNSEEN | {"site": 3})
    with pytest.raises(vf.InputError, match=r"^column 'flag' has the ids 0 to \d, got 99\.$"):
        loaded.members("flag", 99)
    with pytest.raises(vf.InputError, match=r"^column 'x' is not in the codebook"):
        loaded["x"]


def test_every_kind_is_saved_and_found(tmp_path):
    instants = [datetime.datetime(2020, 1, 1, 10, 0, 0, i) for i in range(3)]
    table = pa.table({"u": pa.array([1, 2**64 - 1, None], pa.uint64()), "t": instants, "y": [0, 1, 1]})
    book = fold_counts(vf.count(table, "y", ["u", "t"]), 6)
    book.save(tmp_path / "book")
    loaded = vf.load(tmp_path / "book")
    for name in ("u", "t"):
        values = loaded[name]["value"].to_pylist()
        assert loaded.ids(name, values).tolist() == loaded[name]["id"].to_pylist()
    assert [loaded.row({"u": u, "t": t}) for u, t in zip([1, 2**64 - 1, None], instants, strict=True)] == [
        book.row({"u": u, "t": t}) for u, t in zip([1, 2**64 - 1, None], instants, strict=True)
    ]


def test_the_digest_is_the_one_of_the_page(book):
    epoch = datetime.date(1970, 1, 1)
    spelled = {
        "text": lambda v: v,
        "integer": str,
        "float": lambda v: f"{int.from_bytes(struct.pack('>d', v), 'big'):064b}",
        "boolean": lambda v: str(v).lower(),
        "date": lambda v: str((v - epoch).days),
    }
    lines = ["vocabfold 1 1 other"]
    for name, column in book.columns.items():
        total = 0
        for row in book[name].to_pylist():
            kind = "missing" if row["value"] is None else column.kind
            value = "" if row["value"] is None else spelled[kind](row["value"])
            text = f"{kind}|{row['id']}|{row['neg']}|{row['pos']}|{value}"
            total += int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
        shared = "".join(struct.pack(">i", id).hex() for id in column.shared) or "-"
        borders = "".join(struct.pack(">d", border).hex() for border in column.borders) or "-"
        prior = struct.pack(">dd", column.mean, column.strength).hex()
        about = f"{column.kind} {column.size} {column.other} {shared} {borders} {prior}"
        lines.append(f"{about} {total % 2**256:064x} {len(name.encode())} {name}")
    assert book.digest == hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_order_chunks_files_threads_and_hash_seed_do_not_change_a_byte(tmp_path, monkeypatch):
    rows = sample(3000)
    expected = None
    for trial in range(2):
        random.Random(trial).shuffle(rows)
        table = arrow(rows)
        pq.write_table(table.slice(0, 1000), tmp_path / "a.parquet", row_group_size=100 + trial)
        pq.write_table(table.slice(1000), tmp_path / "b.parquet")
        write_csv(table, tmp_path / "t.csv")
        monkeypatch.setattr(os, "cpu_count", lambda n=1 + trial: n)
        forms = [
            table.to_reader(max_chunksize=7 + trial),
            table,
            sorted(tmp_path.glob("*.parquet"), reverse=trial % 2 == 0),
            tmp_path / "t.csv",
        ]
        for data in forms:
            counts = vf.count(data, "click", FEATURES)
            book = fold_counts(counts, 15)
            counts.save(tmp_path / "counts")
            book.save(tmp_path / "book")
            found = book.digest, content(tmp_path / "counts"), content(tmp_path / "book")
            expected = expected or found
            assert found == expected
    code = (
        "import vocabfold as vf; counts = vf.count('t.csv', 'click', "
        f"{FEATURES}); counts.save('counts'); vf.fit(counts, 15, aim='information').save('book')"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)
        assert (content(tmp_path / "counts"), content(tmp_path / "book")) == expected[1:]


def _kill_while_saving(tmp_path, n_kills):
    books = [fold_counts(vf.count(arrow(sample(400, seed)), "click", FEATURES), 40) for seed in (1, 2)]
    for i, one in enumerate(books):
        one.save(tmp_path / f"book{i}")
    books[0].save(tmp_path / "target")
    code = (
        "import vocabfold as vf, itertools\n"
        "books = [vf.load(f'book{i}') for i in range(2)]\n"
        "for book in itertools.cycle(books):\n"
        "    book.save('target')\n"
        "    print('saved', flush=True)\n"
    )
    generator = random.Random(5)
    for _ in range(n_kills):
        child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
        with child:
            child.stdout.readline()
            time.sleep(generator.uniform(0, 0.5))
            child.kill()
        found = vf.load(tmp_path / "target")
        assert found.digest in {one.digest for one in books}
        assert found.ids("site", ["a"]).size == 1
    books[1].save(tmp_path / "target")
    assert content(tmp_path / "target") == content(tmp_path / "book1")  # and nothing is left behind


def test_a_killed_save_leaves_the_old_codebook_or_the_new(tmp_path):
    _kill_while_saving(tmp_path, 3)


@pytest.mark.slow
def test_many_killed_saves_leave_the_old_codebook_or_the_new(tmp_path):
    _kill_while_saving(tmp_path, 60)


def test_threads_may_share_a_codebook(loaded):
    values = loaded["site"]["value"].to_pylist()
    fresh = vf.load(loaded.store.files["site"][0].parent)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fresh.ids("site", values).tolist(), range(32)))
    assert found == [loaded.ids("site", values).tolist()] * 32


def test_counts_that_do_not_belong_to_a_codebook_say_what_differs():
    rows = pa.table(
        {
            **{f"c{i}": ["a", "b", "a", "c"] * 9 for i in range(16)},
            "click": [1, 0, 1, 1] * 9,
            "buy": ["y", "n", "n", "n"] * 9,
            "w": [1, 2, 3, 1] * 9,
        }
    )
    names = [f"c{i}" for i in range(10)]
    book = vf.fit(vf.count(rows, "click", names), 30)
    for (label, features, options), text in {
        ("click", None, ()): "they have 17 columns, not 10 (with 'c10', 'c11', 'c12', 'c13', 'c14', ...)",
        (
            "click",
            ("c0", "c12"),
            (),
        ): "not 10 (without 'c1', 'c2', 'c3', 'c4', 'c5', ... and with 'c12')",
        ("click", tuple(names[::-1]), ()): "the columns in another order: 'c9', 'c8', 'c7', 'c6', 'c5', ...",
        (
            "buy",
            tuple(names),
            (("positive", "y"),),
        ): "the label 'buy', not 'click'; the positive value 'y'",
        ("buy", tuple(names), (("positive", "n"),)): "not '1'. Give those, or fit these.",
        ("click", tuple(names), (("weight", "w"),)): "they have 36 rows (63 by weight), not 36 rows. Give",
    }.items():
        counts = vf.count(rows, label, features and list(features), **dict(options))
        with pytest.raises(vf.InputError, match=re.escape(text)):
            check_same(book, counts)
    flipped = rows.set_column(rows.column_names.index("click"), "click", pa.array([0, 0, 1, 1] * 9))
    with pytest.raises(vf.InputError, match="they have 18 positive rows, not 27. Give"):
        check_same(book, vf.count(flipped, "click", names))
    check_same(book, vf.count(rows, "click", [*names, "c12"]), all_columns=False)
