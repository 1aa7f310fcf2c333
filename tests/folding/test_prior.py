import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.reference import beta_binomial, shrunk
from vocabfold.folding.prior import Prior, _excess, _surplus, fixed, most_likely

SPREAD = {(3, 1): 40, (0, 2): 30, (5, 5): 10, (1, 0): 60, (0, 1): 8, (30, 2): 20}


def columns(pairs):
    """Return {(neg, pos): how many values} as three arrays."""
    neg, pos = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    return neg, pos, np.array(list(pairs.values()))


def drawn(rates, rows, seed=0):
    """Return the table of values with such rates and so many rows each."""
    rng = np.random.default_rng(seed)
    pos = rng.binomial(rows, rates)
    return Counter(zip((rows - pos).tolist(), pos.tolist(), strict=True))


@pytest.mark.parametrize(
    ("numbers", "a", "close"),
    [
        ([2, 3, 7, 40], 1e-3, 1e-12),
        ([2, 3, 7, 40], 3.5, 1e-12),
        ([3, 7, 40], 2.5e4, 1e-5),  # what cancels is lost, so still fewer rows have a series
        ([2, 40, 400], 4.1e6, 1e-8),
        ([2], 2.1e4, 1e-8),
        ([40], 1e9, 1e-12),
    ],
)
def test_how_much_likelier_rows_of_one_value_are_together(numbers, a, close):
    value, slope = _surplus(np.array(numbers, float), a)
    # Gamma(a + x) / Gamma(a) is the product of a + i for i < x.
    assert value.tolist() == pytest.approx(
        [sum(math.log1p(i / a) for i in range(x)) for x in numbers], rel=close
    )
    slopes = [-sum(i / (a * (a + i)) for i in range(x)) for x in numbers]
    assert slope.tolist() == pytest.approx(slopes, rel=close)


@pytest.mark.parametrize("scale", [1, 0.37])  # weights may be less than a row
@pytest.mark.parametrize(("mean", "strength"), [(0.3, 2.0), (0.05, 40.0), (0.9, 0.2)])
def test_the_likelihood_beyond_one_rate_for_all_and_its_slopes(mean, strength, scale):
    pairs = {(neg * scale, pos * scale): n for (neg, pos), n in SPREAD.items()}

    def beyond(mean, strength):
        alike = sum(n * (neg * math.log1p(-mean) + pos * math.log(mean)) for (neg, pos), n in pairs.items())
        return beta_binomial(pairs, mean, strength) - alike

    found, by_mean, by_strength = _excess(*columns(pairs))(mean, 1 - mean, strength)
    assert found == pytest.approx(beyond(mean, strength), rel=1e-12)
    step = 1e-5
    assert by_mean == pytest.approx(
        (beyond(mean + step, strength) - beyond(mean - step, strength)) / (2 * step), rel=1e-5
    )
    assert by_strength == pytest.approx(
        (beyond(mean, strength + step) - beyond(mean, strength - step)) / (2 * step), rel=1e-5
    )


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("scale", [1, 3])
def test_the_counts_are_most_likely_to_five_digits(swapped, scale):
    pairs = {((pos, neg) if swapped else (neg, pos)): scale * n for (neg, pos), n in SPREAD.items()}
    found = most_likely(*columns(pairs))

    def off(likelihood):
        """Return how far from the top the middle of three points is, in steps."""
        below, middle, above = map(likelihood, (-1, 0, 1))
        return (above - below) / (2 * (2 * middle - above - below))

    step = 1e-3
    by_strength = off(lambda i: beta_binomial(pairs, found.mean, found.strength * (1 + i * step)))
    by_mean = off(lambda i: beta_binomial(pairs, found.mean * (1 + i * step), found.strength))
    assert abs(by_strength * step) < 1e-5
    assert abs(by_mean * step) < 1e-5


def test_a_spread_must_pay_for_its_parameter():
    prices = []
    for k in (0, 2, 3, 4, 5, 10):
        pairs = {(10 + k, 10 - k): 3, (10 - k, 10 + k): 3} if k else {(10, 10): 6}
        alike = 120 * math.log(0.5)
        gain = max(beta_binomial(pairs, 0.5, strength) for strength in np.geomspace(0.01, 1e6, 200)) - alike
        prices.append(gain / math.log(120))
        assert math.isinf(most_likely(*columns(pairs)).strength) == (prices[-1] <= 0.5), k
    assert any(0.5 < price < 1 for price in prices)  # near enough to tell the price
    assert any(0.1 < price < 0.5 for price in prices)


def test_rates_without_rows_without_strength_and_with_nothing_else():
    neg, pos = np.array([0.0, 2.0, 3.0, 1.0]), np.array([0.0, 2.0, 1.0, 0.0])
    assert Prior(0.3, 0.0).rates(neg, pos).tolist() == [0.3, 0.5, 0.25, 0.0]
    assert Prior(0.3, 4.0).rates(neg, pos).tolist() == pytest.approx([0.3, 0.4, 0.275, 0.24])
    assert Prior(0.3, math.inf).rates(neg, pos).tolist() == [0.3, 0.3, 0.3, 0.3]


def test_the_smaller_side_of_a_rate_keeps_its_digits():
    assert most_likely(*columns({(1, 0): 2, (0, 1): 1})) == Prior(0.333333, math.inf)
    assert most_likely(*columns({(1, 0): 1, (0, 1): 2})) == Prior(1 - 0.333333, math.inf)
    assert most_likely(*columns({(1, 0): 3 * 10**9, (0, 1): 1})) == Prior(3.33333e-10, math.inf)


@pytest.mark.parametrize(("a", "b"), [(0.5, 1.5), (5, 15), (500, 1500), (2, 200)])
def test_the_prior_that_values_were_drawn_from_is_found(a, b):
    rng = np.random.default_rng(1)
    rows = np.minimum(rng.zipf(1.6, 100_000), 10_000)
    found = most_likely(*columns(drawn(rng.beta(a, b, rows.size), rows)))
    assert found.mean == pytest.approx(a / (a + b), rel=0.05)
    assert found.strength == pytest.approx(a + b, rel=0.25)


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(any),
        st.integers(1, 50),
        min_size=1,
        max_size=8,
    )
)
def test_no_other_prior_makes_the_counts_more_likely(pairs):
    found = most_likely(*columns(pairs))
    neg, pos, n_values = columns(pairs)
    rows, positive = float((neg + pos) @ n_values), float(pos @ n_values)
    if math.isinf(found.strength):
        # One rate for all: any other prior gains less than a parameter costs.
        best = sum(n * math.log(n / rows) for n in (positive, rows - positive) if n) + math.log(rows) / 2
        assert found.mean == pytest.approx(positive / rows, rel=1e-5)
        if 0 < positive < rows:
            tries = [(positive / rows, strength) for strength in 10.0 ** np.arange(-2, 6, 0.5)]
            assert max(beta_binomial(pairs, *point) for point in tries) <= best + 1e-6
        return
    best = beta_binomial(pairs, found.mean, found.strength)
    for up in (0.5, 0.9, 0.999, 1, 1.001, 1.1, 2):
        for shift in (-0.5, -0.01, 0, 0.01, 0.5):
            mean = 1 / (1 + math.exp(-math.log(found.mean / (1 - found.mean)) - shift))
            if up * found.strength > 1e-3:
                assert beta_binomial(pairs, mean, up * found.strength) <= best + 1e-6


@pytest.mark.parametrize("big", [10**k for k in range(1, 9)])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 2), (5, 5), (19, 26), (1000, 1000)])
def test_one_frequent_value_beside_rare_ones_of_the_other_label(big, a, b):
    for scale in (1, 0.37):
        found = most_likely(np.array([big, 0, 0]) * scale, np.array([0, a, b]) * scale, np.ones(3, np.int64))
        assert 0 < found.mean < 1
        assert found.strength > 0


@pytest.mark.parametrize(
    "pairs",
    [{(804, 63_934): 35, (2, 0): 36}, {(24_878, 279): 12, (0, 1): 49}, {(984_440, 12): 24, (12, 1): 16}],
)
def test_frequent_values_do_not_hide_how_others_differ(pairs):
    """Around the rate of all rows, which is that of a few frequent values, no spread seems to pay."""
    found = most_likely(*columns(pairs))
    best = beta_binomial(pairs, found.mean, found.strength)
    for mean in np.arange(0.005, 1, 0.03):
        for strength in np.geomspace(1e-2, 1e6, 17):
            assert beta_binomial(pairs, mean, strength) <= best + 1e-6


def test_labels_may_be_swapped():
    pairs = drawn(np.random.default_rng(2).beta(1, 9, 5000), np.arange(1, 5001) % 90 + 1)
    there, back = (
        most_likely(*columns(pairs)),
        most_likely(*columns({(p, n): k for (n, p), k in pairs.items()})),
    )
    assert there.strength == back.strength
    assert there.mean == pytest.approx(1 - back.mean, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_where_there_is_no_signal_all_rates_are_one(seed):
    rows = np.minimum(np.random.default_rng(seed).zipf(1.5, 20_000), 10_000)
    assert math.isinf(most_likely(*columns(drawn(0.25, rows, seed))).strength)


def test_values_seen_once_tell_nothing_about_the_spread():
    for n in (1, 1000):
        found = most_likely(*columns({(1, 0): 70_000 * n, (0, 1): 30_000 * n}))
        assert found == Prior(0.3, math.inf)


def test_rounding_is_no_signal():
    n = 30_000_000
    found = most_likely(*columns({(2, 0): n * 9 // 16, (1, 1): n * 6 // 16, (0, 2): n // 16}))
    assert found == Prior(0.25, math.inf)


def test_perfect_separation_leaves_rates_as_they_are():
    found = most_likely(*columns({(30, 0): 700, (0, 30): 300}))
    assert found.strength == pytest.approx(1e-3)
    assert found.mean == pytest.approx(0.3, rel=0.01)
    assert found.rates(np.array([30.0]), np.array([0.0]))[0] < 1e-4


@pytest.mark.parametrize(
    ("pairs", "mean"), [({(0, 1): 1}, 1.0), ({(1, 0): 1}, 0.0), ({(1, 0): 1, (0, 1): 1}, 0.5)]
)
def test_one_row_or_two(pairs, mean):
    assert most_likely(*columns(pairs)) == Prior(mean, math.inf)


def test_six_digits_are_kept():
    found = most_likely(*columns(drawn(np.random.default_rng(3).beta(2, 7, 3000), np.arange(3000) % 50 + 1)))
    assert found.mean == float(f"{found.mean:.6g}")
    assert found.strength == float(f"{found.strength:.6g}")


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=9),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.5, 20.0, math.inf]),
)
def test_rates_are_pulled_to_the_mean(pairs, mean, strength):
    neg, pos = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    expected = [shrunk(n, p, mean, strength) for n, p in pairs]
    assert Prior(mean, strength).rates(neg, pos).tolist() == pytest.approx(expected, abs=1e-15)


def test_a_given_strength_has_the_overall_rate_as_its_mean():
    assert fixed(*columns({(3, 1): 2, (0, 2): 1}), 7) == Prior(0.4, 7.0)


@pytest.mark.parametrize(
    ("mean", "strength", "rows"),
    [
        (0.5, 50, 50),
        (0.5, 0, 16),
        (0.25, 10, 32),
        (0.75, 10, 32),  # whichever label is rarer
        (0.01, 10, 800),
        (0.3, math.inf, math.inf),
        (0.0, 1, math.inf),
        (1.0, 1, math.inf),
    ],
)
def test_the_rows_that_the_order_by_rate_takes(mean, strength, rows):
    assert Prior(mean, strength).rows_to_order == rows
