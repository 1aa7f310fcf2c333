"""Counts -> codebook: the same on both engines, and for ever the same."""

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from support.frames import FEATURES, generated

SETTINGS = {
    "model": {},
    "rare": {"aim": "information", "min_count": 4, "unseen": "own"},
    "hashed": {"aim": "information", "method": "hashing", "allocation": "uniform"},
    "frequent": {"aim": "information", "method": "frequency"},
}
WEIGHTED = {"weight": "weight"}
IN_FOLDS = {"weight": "weight", "fold_column": "fold"}
slow = pytest.mark.slow


DIGESTS = {
    "model": "c4d7ec8e0d2d34784632dcdb75c21f89d2179669954e4110b5a597920cc00d3e",
    "rare": "b8d144ec8a8fd11d391199145e849a8420d177e47f7e91ad75e167353b07238d",
    "hashed": "e909929f67bcf2b0d00befbae07f2de1625eb2e75abae7e584677b497b9e434a",
    "frequent": "34455f3694c5d5adba6f478dff870d21a3be7e60099fe9c45535846953872514",
}
BY_WEIGHT = {
    "model": "dcaed4ff46ec60541683d78175ec229f92f0e49dff3aae0b0964c4bd00a188b5",
    "rare": "7b360fda0fafcdd5d615a1fdbe30b3dd693d419e3c6b0f9f52a0e5661c5d24e1",
    "hashed": "12f4fe216ca69ee85d8f453bdf63b8c72f47e0ac594f67c9871cd1bfc40b6f07",
    "frequent": "c4dd7b36adb106fc35b1e10b236d5b1e51b6388a828ffc01272eeedd536c5a2f",
}
BY_FOLD = BY_WEIGHT | {
    "model": "3649b6b1e63376212c3160fc3501215aeea2ac2dd8fcd5bf16443040e2bdde32"
}  # min_count=1


@pytest.mark.parametrize(
    ("counted", "name"),
    [
        ({}, "model"),
        ({}, "rare"),
        ({}, "hashed"),
        pytest.param({}, "frequent", marks=slow),
        *(pytest.param(WEIGHTED, name, marks=slow) for name in DIGESTS),
        (IN_FOLDS, "model"),
        *(pytest.param(IN_FOLDS, name, marks=slow) for name in ("rare", "hashed", "frequent")),
    ],
    ids=str,
)
def test_a_codebook_has_its_digest(tried, expected, counted, name):
    """Counts by fold tell more than a codebook holds: its gain, which is in no digest.

    For a model, they also make that no values are rare.
    """
    book = tried.book(counted, **SETTINGS[name])
    assert book.columns == expected.book(counted, **SETTINGS[name]).columns
    digests = BY_FOLD if "fold_column" in counted else BY_WEIGHT if counted else DIGESTS
    assert book.digest == digests[name]
    if counted is IN_FOLDS and name == "model":
        assert tried.book(WEIGHTED, min_count=1).digest == book.digest


@pytest.mark.parametrize("name", ["model", pytest.param("hashed", marks=slow)])
def test_its_values_and_their_ids_are_the_same(tried, expected, name):
    book, same = (work.book(**SETTINGS[name]) for work in (tried, expected))
    for column in FEATURES:
        assert book[column].equals(same[column]), column


def test_dedicated_ids_of_few_rows_are_the_same(tried, expected):
    """Those with fewer rows than the prior are not numbered by rate."""
    book, same = (work.book(smoothing=300) for work in (tried, expected))
    assert list(book.columns[FEATURES[0]].rates) != sorted(book.columns[FEATURES[0]].rates)
    assert book.columns == same.columns
    for column in FEATURES:
        assert book[column].equals(same[column]), column


def test_a_saved_codebook_is_the_same(tried, expected, tmp_path):
    book = tried.book()
    book.save(tmp_path / "book")
    loaded = vf.load(tmp_path / "book")
    assert loaded.digest == book.digest
    loaded.verify()
    new = generated(500, seed=1)
    assert loaded.transform(new).equals(expected.book().transform(new))


def test_methods_are_compared_alike(tried, expected):
    found, same = (vf.compare(work.counts(), 20) for work in (tried, expected))
    assert [(trial.method, trial.loss) for trial in found] == [(trial.method, trial.loss) for trial in same]


def test_folds_that_go_with_the_label_warn(tried, table):
    clicks = table["click"].to_numpy(zero_copy_only=False)
    rows = tried.engine.rows(table.append_column("bad", pa.array(clicks + np.arange(clicks.size) % 2)))
    counts = vf.count(rows, "click", FEATURES[:2], fold_column="bad", weight="weight")
    said = r"^label rates differ between folds, from 0\.0 % to 100\.0 %\. .* on Spark by a hash of an id\.$"
    with pytest.warns(vf.VocabfoldWarning, match=said):
        vf.fit(counts, 60)
