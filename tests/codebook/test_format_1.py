"""What was saved in format 1, which does not tell rows from weights, is loaded and fitted as it was then."""

import json
import shutil
from pathlib import Path

import pytest

import vocabfold as vf

FOLDER = Path(__file__).parents[1] / "data" / "format-1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
FITTED = {  # the codebooks, the counts that they are of, and how they were fitted
    "model": ("folds", 40, {"min_count": 1, "dedicated_min": 20, "shared_ids": 4}),
    "weighted": ("weighted", 24, {"min_count": 3, "unseen": "own", "smoothing": 5.0}),
    "information": ("folds", 30, {"aim": "information", "unseen": "error"}),
    "hashing": (
        "folds",
        30,
        {"aim": "information", "method": "hashing", "allocation": "uniform", "min_count": 2},
    ),
}


@pytest.fixture
def saved(tmp_path):
    """Return a copy of what is kept: nothing may write into that itself."""
    return shutil.copytree(FOLDER, tmp_path / "format-1")


def load_counts(path):
    """Load counts of format 1, which warn of what they do not tell."""
    with pytest.warns(
        vf.VocabfoldWarning, match=r"has format 1, which does not tell rows from their weights: "
    ) as said:
        counts = vf.load_counts(path)
    assert said[0].filename == __file__
    assert (counts.neg_rows, counts.pos_rows) == (None, None)
    return counts


def values(folder):
    """Return the bytes of all files but of the header, and of that which says when a folder was saved."""
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_everything_that_is_kept_has_a_test():
    names = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert names == {f"codebook-{name}" for name in FITTED} | {f"counts-{name}" for name in EXPECTED["counts"]}
    assert set(FITTED) == set(EXPECTED["codebooks"])


@pytest.mark.parametrize("name", FITTED)
def test_a_codebook_has_the_ids_that_it_had(saved, name):
    book, expected = vf.load(saved / f"codebook-{name}"), EXPECTED["codebooks"][name]
    book.verify()
    assert book.digest == expected["digest"]
    assert book.sizes == expected["sizes"]
    assert list(book) == list(expected["ids"])
    for feature, known in expected["ids"].items():
        values = book[feature]["value"]
        assert [None if value is None else str(value) for value in values.to_pylist()] == known["values"]
        assert book[feature]["id"].to_pylist() == known["ids"]
        assert book.ids(feature, values).tolist() == known["ids"]


@pytest.mark.parametrize("name", EXPECTED["counts"])
def test_counts_are_what_they_were(saved, name):
    counts, expected = load_counts(saved / f"counts-{name}"), EXPECTED["counts"][name]
    for what in ("rows", "positive_rows", "folds", "n_values"):
        assert getattr(counts, what) == expected[what], what
    assert dict(counts.kinds) == expected["kinds"]


@pytest.mark.parametrize("name", FITTED)
def test_saved_again_the_values_have_the_same_bytes(saved, name, tmp_path):
    book = vf.load(saved / f"codebook-{name}")
    book.save(tmp_path / "again")
    assert values(tmp_path / "again") == values(FOLDER / f"codebook-{name}")
    again = vf.load(tmp_path / "again")
    for what in ("digest", "columns", "settings", "rows", "neg_rows", "pos_rows", "bound", "gap"):
        assert getattr(again, what) == getattr(book, what), what
    assert content(saved / f"codebook-{name}") == content(FOLDER / f"codebook-{name}")


@pytest.mark.parametrize("name", EXPECTED["counts"])
def test_counts_saved_again_have_the_same_bytes(saved, name, tmp_path):
    load_counts(saved / f"counts-{name}").save(tmp_path / "again")
    assert values(tmp_path / "again") == values(FOLDER / f"counts-{name}")
    assert vf.load_counts(tmp_path / "again").neg_rows is None


@pytest.mark.parametrize("name", FITTED)
def test_counts_are_fitted_as_they_were(saved, name):
    of, budget, settings = FITTED[name]
    book = vf.fit(load_counts(saved / f"counts-{of}"), budget, **settings)
    assert book.digest == EXPECTED["codebooks"][name]["digest"]
