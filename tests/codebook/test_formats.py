"""What was saved in an earlier format is loaded, fitted and saved as it was then."""

import json
import shutil
from pathlib import Path

import pytest

import vocabfold as vf

DATA = Path(__file__).parents[1] / "data"
# Of each format, the codebooks, the counts that they are of, and how they were fitted.
_HASHING = {"aim": "information", "method": "hashing", "allocation": "uniform", "min_count": 2}
FITTED = {
    1: {
        "model": ("folds", 40, {"min_count": 1, "dedicated_min": 20, "shared_ids": 4}),
        "weighted": ("weighted", 24, {"min_count": 3, "unseen": "own", "smoothing": 5.0}),
        "information": ("folds", 30, {"aim": "information", "unseen": "error"}),
        "hashing": ("folds", 30, _HASHING),
    },
    2: {
        "model": ("folds", 40, {"min_count": 1, "dedicated_min": 20, "shared_ids": 4}),
        "weighted": ("weighted", 40, {"min_count": 3, "unseen": "own", "dedicated_min": 20}),
        "information": ("weighted", 30, {"aim": "information", "unseen": "error"}),
        "hashing": ("folds", 30, _HASHING),
    },
}
EXPECTED = {
    version: json.loads((DATA / f"format-{version}" / "expected.json").read_text(encoding="utf-8"))
    for version in FITTED
}
of_codebooks = pytest.mark.parametrize(("version", "name"), [(v, name) for v in FITTED for name in FITTED[v]])
of_counts = pytest.mark.parametrize(
    ("version", "name"), [(v, name) for v in EXPECTED for name in EXPECTED[v]["counts"]]
)


@pytest.fixture
def saved(tmp_path):
    """Return a copy of what is kept: nothing may write into that itself."""
    return shutil.copytree(DATA, tmp_path / "data")


def load_counts(path, version):
    """Load counts; those of format 1 warn of what they do not tell."""
    if version > 1:
        return vf.load_counts(path)
    with pytest.warns(vf.VocabfoldWarning, match=r"has format 1, which does not tell rows from their ") as said:
        counts = vf.load_counts(path)
    assert said[0].filename == __file__
    return counts


def values(folder):
    """Return the bytes of the files with values."""
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_everything_that_is_kept_has_a_test():
    assert {path.name for path in DATA.iterdir()} == {f"format-{version}" for version in FITTED}
    for version, fitted in FITTED.items():
        names = {path.name for path in (DATA / f"format-{version}").iterdir() if path.is_dir()}
        counts = EXPECTED[version]["counts"]
        assert names == {f"codebook-{name}" for name in fitted} | {f"counts-{name}" for name in counts}
        assert set(fitted) == set(EXPECTED[version]["codebooks"])


@of_codebooks
def test_a_codebook_has_the_ids_that_it_had(saved, version, name):
    book = vf.load(saved / f"format-{version}" / f"codebook-{name}")
    expected = EXPECTED[version]["codebooks"][name]
    book.verify()
    assert book.digest == expected["digest"]
    assert book.sizes == expected["sizes"]
    assert list(book) == list(expected["ids"])
    for feature, known in expected["ids"].items():
        found = book[feature]["value"]
        assert [None if value is None else str(value) for value in found.to_pylist()] == known["values"]
        assert book[feature]["id"].to_pylist() == known["ids"]
        assert book.ids(feature, found).tolist() == known["ids"]


@of_counts
def test_counts_are_what_they_were(saved, version, name):
    counts = load_counts(saved / f"format-{version}" / f"counts-{name}", version)
    expected = EXPECTED[version]["counts"][name]
    for what in ("rows", "positive_rows", "neg_rows", "pos_rows", "folds", "n_values"):
        assert getattr(counts, what) == expected.get(what), what
    assert dict(counts.kinds) == expected["kinds"]


@of_codebooks
def test_saved_again_the_values_have_the_same_bytes(saved, version, name, tmp_path):
    folder = saved / f"format-{version}" / f"codebook-{name}"
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    book = vf.load(folder)
    book.save(tmp_path / "again")
    assert values(tmp_path / "again") == values(folder)
    again = vf.load(tmp_path / "again")
    for what in ("digest", "columns", "settings", "rows", "neg_rows", "pos_rows", "bound", "gap"):
        assert getattr(again, what) == getattr(book, what), what
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


@of_counts
def test_counts_saved_again_have_the_same_bytes(saved, version, name, tmp_path):
    folder = saved / f"format-{version}" / f"counts-{name}"
    counts = load_counts(folder, version)
    counts.save(tmp_path / "again")
    assert values(tmp_path / "again") == values(folder)
    assert vf.load_counts(tmp_path / "again").neg_rows == counts.neg_rows


@of_codebooks
def test_counts_are_fitted_as_they_were(saved, version, name):
    of, budget, settings = FITTED[version][name]
    counts = load_counts(saved / f"format-{version}" / f"counts-{of}", version)
    if settings.get("unseen") == "own":  # today that looks at folds, so that each id has enough training rows
        counts = counts.without_folds()
    book = vf.fit(counts, budget, **settings)
    assert book.digest == EXPECTED[version]["codebooks"][name]["digest"]
