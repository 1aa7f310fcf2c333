"""What is said of a codebook, of new rows, and of other budgets: the same figures on both engines."""

import pytest

import vocabfold as vf
from support.frames import TEXT, generated


def test_new_rows_are_judged_alike(tried, expected):
    assert tried.book().evaluate(tried.new_rows) == expected.book().evaluate(expected.new_rows)


def test_a_codebook_of_this_machine_judges_rows_wherever_they_are(tried, expected):
    assert expected.book().evaluate(tried.new_rows) == expected.book().evaluate(expected.new_rows)


@pytest.mark.slow
def test_a_report_says_the_same(tried, expected, tmp_path):
    pages = []
    for work in (tried, expected):
        counts = vf.count(work.rows, "click", [TEXT, "number"], fold_column="fold")
        book = vf.fit(counts, 12, min_count=3, dedicated_min=9)
        path = tmp_path / f"{work.engine.name}-{len(pages)}.html"
        pages.append(book.report(path, counts=counts, heldout=generated(500, seed=1), steps=4))
        del pages[-1]["about"]["sources"]
    assert pages[0] == pages[1]
