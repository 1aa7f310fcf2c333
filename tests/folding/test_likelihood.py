import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize

from support.reference import beta_binomial
from vocabfold.folding.likelihood import _Likelihood, most_likely, surplus
from vocabfold.folding.prior import Prior

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


@given(
    st.lists(st.tuples(st.integers(2, 500), st.integers(1, 9)), min_size=1, max_size=9),
    st.floats(-30, 30).map(math.exp),
)
@example([(2, 1), (40, 1)], 2.5e4)
@example([(2, 1), (400, 1)], 4.1e6)
@example([(2, 1), (40, 1)], 1e-12)
@example([(2, 1), (40, 1)], 9.999999999)
def test_how_much_likelier_rows_of_one_value_are_together(numbers, a):
    found = surplus(*np.array(numbers, float).T.copy(), a, False)
    # Gamma(a + x) / Gamma(a) is the product of a + i for i < x.
    ones = [(i, weight) for x, weight in numbers for i in range(x)]
    assert found == pytest.approx(
        (
            math.fsum(weight * math.log1p(i / a) for i, weight in ones),
            -math.fsum(weight * i / (a * (a + i)) for i, weight in ones),
            math.fsum(weight * i * (2 * a + i) / (a * a * (a + i) ** 2) for i, weight in ones),
        ),
        rel=1e-11,
    )
    assert surplus(*np.array(numbers, float).T.copy(), a, True) == (found[0], 0, 0)


@pytest.mark.parametrize("scale", [1, 0.37])  # weights may be less than a row
@pytest.mark.parametrize(("mean", "strength"), [(0.3, 2.0), (0.05, 40.0), (0.9, 0.2)])
def test_the_likelihood_beyond_one_rate_for_all_and_its_derivatives(mean, strength, scale):
    pairs = {(neg * scale, pos * scale): n for (neg, pos), n in SPREAD.items()}
    at = _Likelihood.of(*columns(pairs)).at
    logit, log_strength = math.log(mean / (1 - mean)), math.log(strength)
    found = at(logit, log_strength)
    neg, pos = (sum(pair[side] * n for pair, n in pairs.items()) for side in (0, 1))
    one_rate = neg * math.log(neg / (neg + pos)) + pos * math.log(pos / (neg + pos))
    assert found.gain == pytest.approx(beta_binomial(pairs, mean, strength) - one_rate, rel=1e-11)
    step = 1e-5
    by_logit, by_strength = (
        (np.array(at(logit + dx, log_strength + dy)) - at(logit - dx, log_strength - dy)) / (2 * step)
        for dx, dy in ((step, 0), (0, step))
    )
    assert [found.by_logit, found.by_logit_twice, found.by_both] == pytest.approx(
        by_logit[:3].tolist(), rel=1e-6
    )
    assert [found.by_strength, found.by_both, found.by_strength_twice] == pytest.approx(
        by_strength[:3].tolist(), rel=1e-6
    )


def searched(pairs):
    """Return the highest log-likelihood that a slow search without slopes finds from many starts, and where."""

    def loss(point):
        mean = 1 / (1 + math.exp(-point[0]))
        is_inside = abs(point[0]) < 20 and math.log(1e-3) <= point[1] < math.log(1e6)
        return -beta_binomial(pairs, mean, math.exp(point[1])) if is_inside else math.inf

    neg, pos, n_values = columns(pairs)
    rates = pos @ n_values / ((neg + pos) @ n_values), (pos / (neg + pos)) @ n_values / n_values.sum()
    starts = [
        (math.log(rate / (1 - rate)), math.log(strength)) for rate in rates for strength in (0.01, 1, 100)
    ]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxfev": 2000}
    found = [optimize.minimize(loss, start, method="Nelder-Mead", options=options) for start in starts]
    best = min(found, key=lambda one: one.fun)
    return -best.fun, 1 / (1 + math.exp(-best.x[0])), math.exp(best.x[1])


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 300), st.integers(0, 300)).filter(any),
        st.integers(1, 2000),
        min_size=2,
        max_size=6,
    ).filter(lambda pairs: any(neg for neg, _ in pairs) and any(pos for _, pos in pairs))
)
def test_a_slow_search_finds_no_other_prior(pairs):
    best, mean, strength = searched(pairs)
    neg, pos, n_values = columns(pairs)
    sides = float(neg @ n_values), float(pos @ n_values)
    one_rate = sum(side * math.log(side / sum(sides)) for side in sides)
    gain = best - one_rate - math.log(sum(sides)) / 2
    found = most_likely(neg, pos, n_values)
    if math.isinf(found.strength):
        assert gain < 1e-6
        return
    assert gain > -1e-6
    assert beta_binomial(pairs, found.mean, found.strength) >= best - 1e-6
    if beta_binomial(pairs, found.mean, found.strength) <= best + 1e-6:  # else the slow search stopped early
        assert found.strength == pytest.approx(strength, rel=1e-4)
        assert found.mean == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize(
    "pairs",
    [
        {(548_017, 0): 527, (12, 11_544): 3, (4_041, 0): 10},
        {
            (578_481, 0): 1,
            (442_860, 232): 909,
            (493_630, 0): 613,
            (1_870, 0): 149,
            (22_768, 184): 54,
            (342, 0): 16,
        },
    ],
)
def test_frequent_values_do_not_end_the_search_before_the_optimum(pairs):
    """Their slopes are sums of large numbers; by sums over single rows, one more Newton step leads nowhere."""
    found = most_likely(*columns(pairs))
    a, b = found.mean * found.strength, (1 - found.mean) * found.strength

    def sums(of, start, power):
        return sum(n * float((1 / (start + np.arange(of(*pair))) ** power).sum()) for pair, n in pairs.items())

    sides = [(lambda neg, pos: pos, a), (lambda neg, pos: neg, b)]
    both = lambda neg, pos: neg + pos, a + b
    slopes = [sums(*side, 1) - sums(*both, 1) for side in sides]
    curves = np.full((2, 2), sums(*both, 2)) - np.diag([sums(*side, 2) for side in sides])
    step = np.linalg.solve(curves, slopes) / [a, b]
    assert step.tolist() == pytest.approx([0, 0], abs=1e-5)


def test_the_table_may_have_a_pair_more_than_once_and_in_any_order():
    neg, pos, n_values = columns(SPREAD)
    order = np.random.default_rng(4).permutation(2 * neg.size)
    parts = np.concatenate([n_values // 3, n_values - n_values // 3])
    assert most_likely(np.tile(neg, 2)[order], np.tile(pos, 2)[order], parts[order]) == most_likely(
        neg, pos, n_values
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
