"""The paper's statements about F that the exact core rests on, each named by its label.

Tested on F from the definition (`reference`) and on our gain, so that both the statement and the code are.
"""

from math import gcd

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from conftest import EXACT, tables
from vocabfold.information import gain


def f(table, cuts):
    """F(S) in nats, from the definition."""
    neg, pos = zip(*reference.segments(table, sorted(cuts)), strict=True)
    return reference.total(neg, pos)


@st.composite
def curves_with_cuts(draw):
    """A sorted table, two nested sets of cuts, and a cut in neither."""
    table = reference.merged(*draw(tables(max_values=9, min_values=2)))
    assume(len(table) > 1)
    places = range(1, len(table))
    cut = draw(st.sampled_from(places))
    others = [place for place in places if place != cut]
    outer = draw(st.sets(st.sampled_from(others))) if others else set()
    inner = draw(st.sets(st.sampled_from(sorted(outer)))) if outer else set()
    return table, inner, outer, cut


@given(curves_with_cuts())
def test_lem_delta_f_the_gain_depends_on_the_two_neighbours_only(case):
    table, _, cuts, cut = case
    rows = sum(map(sum, table))
    before = max([0, *(c for c in cuts if c < cut)])
    after = min([len(table), *(c for c in cuts if c > cut)])
    left, right = reference.segments(table[before:after], [cut - before])
    expected = f(table, cuts | {cut}) - f(table, cuts)
    assert gain(*left, *right) / rows == pytest.approx(expected, abs=1e-14)


@given(curves_with_cuts())
def test_f_is_monotone_a_cut_never_lowers_the_information(case):
    table, _, cuts, cut = case
    assert f(table, cuts | {cut}) >= f(table, cuts) - 1e-15


@given(curves_with_cuts())
def test_thm_submodular_gains_shrink_as_the_set_of_cuts_grows(case):
    table, inner, outer, cut = case
    early = f(table, inner | {cut}) - f(table, inner)
    late = f(table, outer | {cut}) - f(table, outer)
    assert early >= late - 1e-15


@given(tables(max_values=7), st.integers(1, 7))
def test_kurkoski2014_lemma_3_some_best_partition_is_consecutive(table, size):
    best = reference.best_of_all(*table, size)
    assert reference.best_consecutive(*table, size) == pytest.approx(
        best, abs=EXACT * reference.total(*table) + 1e-18
    )


@st.composite
def four_places(draw):
    table = reference.merged(*draw(tables(max_values=9, min_values=3)))
    assume(len(table) > 2)
    a, b, c, d = sorted(draw(st.lists(st.integers(0, len(table)), min_size=4, max_size=4)))
    assume(b < c)
    return table, a, b, c, d


@given(four_places())
def test_quadrangle_inequality_crossing_segments_lose_no_more_than_nested_ones(case):
    table, a, b, c, d = case

    def loss(start, end):
        neg, pos = zip(*table[start:end], strict=True)
        return reference.total(neg, pos) * (sum(neg) + sum(pos))

    assert loss(a, c) + loss(b, d) <= loss(a, d) + loss(b, c) + 1e-12


def test_few_rates_n_rows_have_at_most_2_to_the_third_n_to_the_two_thirds():
    n_rates = rows = 0
    for denominator in range(1, 60):
        for numerator in range(denominator + 1):
            if gcd(numerator, denominator) == 1:
                n_rates += 1
                rows += denominator
                assert n_rates**3 <= 2 * rows**2
    assert n_rates > 1000
